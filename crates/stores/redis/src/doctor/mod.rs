//! Is this server set up to be trusted with locks? What `lockkeeper doctor` asks a Redis, and what the answers mean.
//!
//! Each file looks at one thing: `seen` collects what the server tells, the others judge it without asking further, so
//! that they can be tried on recorded answers. Surprise: the server is changed, but only under a name that nobody else
//! has: a lock is really taken there, and every command that locks need is tried.

mod keeping;
mod memory;
mod names;
mod reach;
mod rights;
mod role;
mod seen;
mod server;
mod speed;
mod visit;

use std::sync::Arc;

use lockkeeper_core::checkup::{Finding, Level, Promise, Report, Trial, trial};
use lockkeeper_core::store::{Store, Survives};
use lockkeeper_core::{ClaimId, Error, ErrorKind, Name, Result};
use redis::Value;

use self::seen::{Fields, Seen};
use self::visit::Visit;
use crate::keys::Keys;
use crate::options::Options;
use crate::store::{Redis, profile, text_of};
use crate::trouble::shown;

/// Looks a server over.
///
/// What may not be asked is said to be unknown. A lock is taken and released under a name of its own, and everything is
/// taken away again.
///
/// # Errors
/// `Unavailable` if the server cannot be reached or falls silent, `Denied` if it does not let us in.
///
/// # Round trips
/// Some three hundred, most of them to see how long they take.
pub async fn checkup(options: Options) -> Result<Report> {
    let mut visit = Visit::begin(&options).await?;
    let id = ClaimId::random()?;
    let name = Name::stored(&format!("{}doctor/{id}", options.listed_under))?;
    let (keys, channel) = (Keys::of(&name), format!("lockkeeper:wake:{id}"));
    let under = options.listed_under.clone();

    let mut seen = Seen::look(&visit, keys.holder()).await?;
    let missing = rights::try_all(&visit, &keys, &channel).await?;
    if seen.user.as_deref() == Some("default") {
        seen.default_user_writes = Some(missing.is_nothing());
    }
    let measured = speed::measure(&visit).await?;
    let found = names::look(&visit, &under).await?;
    let push = reach::push(&mut visit, &channel).await?;
    let tried = try_out(&options, &visit, &name).await;

    let mut report = Report::new("redis", options.address.to_string());
    server::tell(&seen, &mut report);
    let allow = rights::tell(seen.user.as_deref(), options.password.is_some(), &missing, &under, &mut report);
    report.promise_of(&profile(Survives::Nothing));
    reach::tell(&options, visit.resp3, &push, &mut report);
    role::tell(&seen, &mut report);
    keeping::tell(&seen, &mut report);
    memory::tell(&seen, &mut report);
    reach::tell_room(&seen, &mut report);
    let leans_on_clock = speed::tell(&seen, measured, &mut report);
    names::tell(found, &under, &mut report);
    tell_unseen(&seen, &mut report);
    tell_trial(tried.map_err(|error| allowed(error, allow)), leans_on_clock, &mut report);
    Ok(report.sorted())
}

/// What a server that told this would be said to be, for the fuzz targets: `INFO`, then what `CONFIG GET`, `HELLO` and
/// `SLOWLOG GET` answered, its user, and two looks at its clock.
pub(crate) fn judged(info: &str, answers: [&Value; 4], clock_us: [u64; 2]) -> Report {
    let [config, hello, slow, user] = answers;
    let seen = Seen {
        hello: Fields::of_value(hello),
        info: Some(Fields::of_info(info)),
        config: Fields::of_value(config),
        config_seen: true,
        user: Some(shown(&text_of(user))),
        slow: Some(seen::slowest(slow)),
        default_user_writes: None,
    };
    let mut report = Report::new("redis", "");
    server::tell(&seen, &mut report);
    role::tell(&seen, &mut report);
    keeping::tell(&seen, &mut report);
    memory::tell(&seen, &mut report);
    reach::tell_room(&seen, &mut report);
    let missing = rights::Missing::default();
    rights::tell(seen.user.as_deref(), true, &missing, "", &mut report);
    let leans_on_clock = speed::tell(&seen, Some(speed::of_two_looks(clock_us)), &mut report);
    tell_unseen(&seen, &mut report);
    tell_trial(Err(Error::bug("not tried")), leans_on_clock, &mut report);
    report.sorted()
}

/// Takes a lock and hands it on, as any client would.
async fn try_out(options: &Options, visit: &Visit, name: &Name) -> Result<Trial> {
    let store: Arc<Redis> = Redis::open(options.clone()).await?;
    let tried = trial(&*store, name).await;
    let _ = store.close().await;
    // What lines leave behind for a while is of no use here. If it may not be removed, it ends by itself.
    let _ = visit.ask(redis::cmd("DEL").arg(&Keys::of(name).all()[..])).await;
    tried
}

/// What this user may not ask.
fn tell_unseen(seen: &Seen, report: &mut Report) {
    let asked = [
        ("INFO", "+info", seen.info.is_some()),
        ("CONFIG GET", "+config|get", seen.config_seen),
        ("SLOWLOG GET", "+slowlog|get", seen.slow.is_some()),
        ("ACL WHOAMI", "+acl|whoami", seen.user.is_some()),
        ("ACL DRYRUN", "+acl|dryrun", seen.default_user_writes.is_some()),
    ];
    let refused = || asked.iter().filter(|(_, _, answered)| !answered);
    let names: Vec<&str> = refused().map(|(name, ..)| *name).collect();
    if names.is_empty() {
        return;
    }
    let rules: Vec<&str> = refused().map(|(_, rule, _)| *rule).collect();
    let found = format!("this user may not ask {}", names.join(", "));
    let change = format!("to see more: `ACL SETUSER {} {}`", seen.user.as_deref().unwrap_or("NAME"), rules.join(" "));
    let finding = Finding::new("unseen", Level::Note, found, "what hangs on it is not known here, and so not promised");
    report.find(finding.with_change(change));
}

/// Where the user lacks rights, the way out is to give it these.
fn allowed(error: Error, allow: Option<String>) -> Error {
    match allow.filter(|_| error.kind() == ErrorKind::Denied) {
        Some(allow) => error.with_hint(allow),
        None => error,
    }
}

fn tell_trial(tried: Result<Trial>, leans_on_clock: bool, report: &mut Report) {
    match tried {
        Ok(trial) => {
            report.fact("hand-over", speed::ms(trial.handed_over_in));
            report.find(Finding::good("trial", "a lock was taken, renewed, handed over and released"));
            report.promise(Promise::Usable, true, "a lock was taken, renewed, handed over and released", None);
        }
        Err(error) => {
            let means = "locks do not work here, for this user and now";
            let finding = Finding::new("trial", Level::Danger, error.to_string(), means);
            report.find(match error.hint() {
                Some(hint) => finding.with_change(hint),
                None => finding,
            });
            report.promise(Promise::Usable, false, error.to_string(), error.hint().map(str::to_owned));
            unusable(&error, report);
        }
    }
    if !leans_on_clock {
        let change = Some("see to the server's time service".to_owned());
        report.promise(Promise::Tokens, false, "its clock, by which tokens rise, does not move on evenly", change);
    }
}

/// Where nothing can be taken, nothing is served in order and nothing has a token.
fn unusable(error: &Error, report: &mut Report) {
    for promise in [Promise::Tokens, Promise::Fair] {
        report.promise(promise, false, error.to_string(), error.hint().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests;
