//! From the command line to a plan: which store, what hurts, and where the history goes. Everything that can be refused is
//! refused here, before anything is started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkeeper_rig::Trouble;
use lockkeeper_verify::nemesis::ALL;
use lockkeeper_verify::plan::{MadeOf, Nemesis, Plan, Promised};
use lockkeeper_verify::repro;
use lockkeeper_verify::targets::{Facts, TARGETS, Target};

use super::mutants;
use crate::args::{Hurt, ReproArgs, VerifyArgs};
use crate::client::{self, Memory};
use crate::exit::{self, Failure};

/// A run that may be begun.
pub struct Asked {
    /// For the arena. It may hold a password.
    pub target: String,
    pub plan: Plan,
    pub folder: PathBuf,
}

/// What hurts where nothing is said: what everybody meets sooner or later.
const USUAL: [Nemesis; 4] = [Nemesis::PauseHolder, Nemesis::KillHolder, Nemesis::Cut, Nemesis::LoseReplies];
/// Shorter runs show nothing, and longer ones fill disks.
const RUNS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(6 * 3_600)];
/// What all stores take. Holds of a shorter lease are lost on a busy machine without any fault.
const LEASES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(60)];

impl Asked {
    /// Reads what is asked for.
    pub fn new(store: Option<&str>, args: &VerifyArgs) -> Result<Self, Failure> {
        within("--for", args.time, RUNS)?;
        within("--lease", args.lease, LEASES)?;
        within("--lock-delay", args.lock_delay, [Duration::ZERO, LEASES[1]])?;
        within("--think", args.think, [Duration::ZERO, args.lease])?;
        args.every.map_or(Ok(()), |every| within("--every", every, RUNS))?;
        args.mutant.as_deref().map_or(Ok(()), mutants::known)?;
        let target = target(store, args.place.as_deref())?;
        let nemesis = nemesis(&target, &args.nemesis)?;
        let seed = args.seed.unwrap_or_else(any_seed);
        let folder = args.report.clone().unwrap_or_else(|| PathBuf::from(format!("verify-{seed}")));
        make(&folder)?;
        let plan = Plan {
            target: String::new(),
            nemesis,
            work: args.work,
            for_ms: millis(args.time),
            seed,
            workers: args.workers,
            tasks: args.tasks,
            locks: args.locks,
            lease_ms: millis(args.lease),
            delay_ms: millis(args.lock_delay),
            think_us: u64::try_from(args.think.as_micros()).unwrap_or(u64::MAX),
            every_ms: args.every.map(millis),
            mutant: args.mutant.clone(),
            store: Promised::default(),
            made_of: MadeOf {
                lockkeeper: env!("CARGO_PKG_VERSION").to_owned(),
                commit: option_env!("LOCKKEEPER_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
                server: None,
                began: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            },
        };
        Ok(Self { target, plan, folder })
    }
}

/// What a published run is asked for.
pub fn published(args: &ReproArgs) -> Result<repro::Asked, Failure> {
    within("--for", args.time, RUNS)?;
    Ok(repro::Asked { time: args.time, seed: args.seed.unwrap_or_else(any_seed) })
}

/// Small enough to be typed again.
fn any_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn within(flag: &str, time: Duration, [least, most]: [Duration; 2]) -> Result<(), Failure> {
    if (least..=most).contains(&time) {
        return Ok(());
    }
    let [time, least, most] = [time, least, most].map(humantime::format_duration);
    Err(Failure::new(exit::USAGE, format!("`{flag} {time}` cannot be done"))
        .with_hint(format!("it is from {least} to {most}")))
}

/// The target's name, or an address with the password that was given for it.
fn target(store: Option<&str>, place: Option<&str>) -> Result<String, Failure> {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let asked = match (place, store) {
        (Some(_), Some(_)) => {
            let message = "the store is named twice, by `--store` and after `verify`";
            return Err(Failure::new(exit::USAGE, message).with_hint("leave one of them away"));
        }
        (Some(name), None) if Target::named(name).is_some() => return Ok(name.to_owned()),
        (Some(name), None) if !name.contains(':') => return named(name, &names),
        (Some(asked), None) | (None, Some(asked)) => asked,
        // Not the store in use: nobody should put load on it by leaving a word away.
        (None, None) => {
            let hint = format!("a URL, or one that is started for the run: {}", names.join(", "));
            return Err(Failure::new(exit::USAGE, "it is not said what to verify").with_hint(hint));
        }
    };
    address(asked)
}

/// A store of the config file.
fn named(name: &str, targets: &[&str]) -> Result<String, Failure> {
    address(name).map_err(|failure| failure.or_hint(&format!("started for a run are: {}", targets.join(", "))))
}

fn address(asked: &str) -> Result<String, Failure> {
    let (url, access) = client::reach(Some(asked), Memory::Refused)?;
    let Some(password) = access.password else { return Ok(url) };
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| !scheme.contains('+')) else {
        return Err(Failure::new(exit::USAGE, "verify has no way to pass a password to this sort of store")
            .with_hint("name the server by a `redis://` address"));
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (user, place) = rest[..end].rsplit_once('@').unwrap_or(("", &rest[..end]));
    Ok(format!("{scheme}://{user}:{}@{place}{}", encoded(password.reveal()), &rest[end..]))
}

/// So that it may stand in an address.
fn encoded(text: &str) -> String {
    let code = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(code).collect()
}

/// What hurts; what cannot be done to this store is refused if it was asked for.
fn nemesis(target: &str, asked: &[Hurt]) -> Result<Vec<Nemesis>, Failure> {
    let usage = |trouble: Trouble| Failure::new(exit::USAGE, trouble.to_string());
    let facts = match Target::named(target) {
        Some(target) => target.facts(),
        None => Facts::of_address(target).map_err(usage)?,
    };
    let possible = |all: &[Nemesis]| -> Vec<Nemesis> {
        all.iter().copied().filter(|nemesis| facts.allow(*nemesis).is_ok()).collect()
    };
    let mut chosen = Vec::new();
    match asked {
        [] => return Ok(possible(&USUAL)),
        [Hurt::Nothing] => return Ok(chosen),
        [Hurt::All] => return Ok(possible(&ALL)),
        _ => {}
    }
    for hurt in asked {
        let Hurt::One(nemesis) = hurt else {
            return Err(Failure::new(exit::USAGE, "`none` and `all` are for themselves")
                .with_hint("`--nemesis none`, `--nemesis all`, or names with commas between"));
        };
        facts.allow(*nemesis).map_err(usage)?;
        if !chosen.contains(nemesis) {
            chosen.push(*nemesis);
        }
    }
    Ok(chosen)
}

/// Makes the folder. One that holds something is left alone: two histories in one folder are none.
pub fn make(folder: &Path) -> Result<(), Failure> {
    let fails = |why: String| {
        Failure::new(exit::USAGE, format!("the folder `{}` {why}", folder.display()))
            .with_hint("name another one by `--report DIR`")
    };
    std::fs::create_dir_all(folder).map_err(|error| fails(format!("cannot be made: {error}")))?;
    let mut entries = std::fs::read_dir(folder).map_err(|error| fails(format!("cannot be read: {error}")))?;
    if entries.next().is_some() { Err(fails("holds something already".to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_hold_anything() {
        assert_eq!(encoded("aZ9:@/?%ä"), "aZ9%3A%40%2F%3F%25%C3%A4");
    }

    #[test]
    fn what_hurts_is_what_can_be_done() {
        let of = |target, asked: &[Hurt]| nemesis(target, asked);
        let usual = of("sqlite", &[]).expect("a list");
        assert_eq!(usual, [Nemesis::PauseHolder, Nemesis::KillHolder], "a file has no connections");
        assert_eq!(of("redis", &[]).expect("a list"), USUAL);
        assert_eq!(of("redis", &[Hurt::Nothing]).expect("a list"), []);
        assert!(of("redis", &[Hurt::All]).expect("a list").contains(&Nemesis::WipeStore));
        let cut = Hurt::One(Nemesis::Cut);
        assert_eq!(of("redis", &[cut, cut]).expect("a list"), [Nemesis::Cut]);
        assert!(of("redis", &[cut, Hurt::Nothing]).is_err() && of("sqlite", &[cut]).is_err());
        assert!(of("redis://host", &[Hurt::One(Nemesis::KillStore)]).is_err(), "it was not started by us");
    }
}
