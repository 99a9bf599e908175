//! `interop`: other people's locks and ours want the same names of the same store; nobody may ever hold one together.
//!
//! The surprise: before it judges anybody, the judge is tried itself, with stand-ins that are wrong on purpose.

mod cases;
mod etcd;
mod family;
mod log;
mod party;
mod peers;
mod race;
mod redis;
mod self_test;
mod witness;

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lockkeeper_rig::{SERVERS, Server, Spec, Trouble, rig_dir};

use cases::Scene;
use family::{FAMILIES, Family, Ground};
use party::Program;
use peers::Peer;
use race::{Terms, race};

use crate::places::{self, Places};
use crate::setup;

/// How many cases play at once: they mostly wait for leases, but nobody's lease may end because the machine is busy.
const AT_ONCE: usize = 3;

/// What was asked for.
pub struct Options {
    /// Hundreds of hand-overs, and every kind of lock.
    pub full: bool,
    /// Install what is missing, with sudo.
    pub install: bool,
    /// An honest stand-in plays in our place.
    pub stand_in: bool,
    /// These peers, and all peers of these stores, only; or all.
    pub peers: Vec<String>,
}

/// The limit of a race: far above what the slowest peer needs.
const RACE_STARTS: Duration = Duration::from_secs(30);
const HANDOVER_TAKES: Duration = Duration::from_millis(500);

/// Both sides of everything that is played.
struct Cast<'a> {
    ground: Ground,
    ours: &'a Program,
    /// Ours, sharing a lock, where that can be tried.
    sharing: Option<&'a Program>,
    full: bool,
}

/// What passed and what did not.
#[derive(Default)]
struct Score {
    passed: usize,
    failed: usize,
    handovers: u32,
    overlaps: usize,
}

/// `cargo xtask interop`.
pub fn interop(options: &Options) -> Result<(), Trouble> {
    let wanted = wanted(&options.peers)?;
    let places = Places::new("interop", "interop")?;
    let mut total = Score::default();
    for (family, peers) in wanted {
        let score = meet(family, &peers, &places, options)?;
        total.passed += score.passed;
        total.failed += score.failed;
    }
    if !options.peers.is_empty() {
        println!("PARTIAL: only {}", options.peers.join(", "));
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 {
        return Ok(());
    }
    Err(Trouble::new(format!("{} of {} did not pass", total.failed, total.passed + total.failed))
        .hint("`cargo xtask interop --stand-in PEER` says whether a peer gets on with a plain lock that is not ours"))
}

/// Everything on one store: the judge's trials, and its peers.
fn meet(family: &'static Family, peers: &[&Peer], places: &Places, options: &Options) -> Result<Score, Trouble> {
    let specs: Vec<&'static Spec> = SERVERS.iter().filter(|spec| spec.name == family.name).collect();
    let spec = specs.first().ok_or_else(|| Trouble::new(format!("the rig has no {}", family.name)))?;
    setup::for_peers(options.install, family.tools, &specs)?;
    print!("{}", places::tools());
    let stand_in = peers::stand_in(family, places)?;
    let (ours, sharing) = if options.stand_in {
        println!("NOT OURS: the honest stand-in plays in our place");
        let words: Vec<&str> = family.as_ours.split_whitespace().collect();
        (Program { name: "ours".to_string(), ..stand_in.told(&words) }, None)
    } else {
        let (ours, sharing) = peers::ours(family, places)?;
        (ours, Some(sharing))
    };
    let server = Server::start(spec, &rig_dir())?;
    let ground = Ground { family, port: server.port() };
    let cast = Cast { ground, ours: &ours, sharing: sharing.as_ref(), full: options.full };
    let mut total = try_the_judge(&stand_in, ground);
    for peer in peers {
        let score = play_with(peer, places, &cast);
        total.passed += score.passed;
        total.failed += score.failed;
    }
    Ok(total)
}

/// The stores and their peers that these names ask for: each a peer's or a store's.
fn wanted(names: &[String]) -> Result<Vec<(&'static Family, Vec<&'static Peer>)>, Trouble> {
    let known = || FAMILIES.iter().flat_map(|family| family.peers.iter().map(|peer| peer.name).chain([family.name]));
    if let Some(name) = names.iter().find(|name| known().all(|known| known != name.as_str())) {
        let known: Vec<&str> = known().collect();
        return Err(Trouble::new(format!("there is no peer `{name}`")).hint(format!("one of: {}", known.join(", "))));
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let of = |family: &'static Family| {
        let peers = family.peers.iter().filter(|peer| is_wanted(family.name) || is_wanted(peer.name));
        (family, peers.collect::<Vec<_>>())
    };
    Ok(FAMILIES.iter().map(|family| of(family)).filter(|(_, peers)| !peers.is_empty()).collect())
}

/// The judge's own trials.
fn try_the_judge(stand_in: &Program, ground: Ground) -> Score {
    println!("\nthe judge itself, with stand-ins on {}", ground.family.name);
    let trials = self_test::trials(ground.family, stand_in);
    let jobs: Vec<_> = trials.iter().enumerate().map(|(n, trial)| move || trial.run(ground.port, n)).collect();
    let mut score = Score::default();
    for (trial, (ran, took)) in trials.iter().zip(side_by_side(AT_ONCE, &jobs)) {
        score.add(&trial.name, "", ran, took);
    }
    score
}

/// Everything with one peer: installation, races, cases, and its closing line.
fn play_with(peer: &Peer, places: &Places, cast: &Cast<'_>) -> Score {
    println!("\n{}", peer.name);
    let mut score = Score::default();
    let began = Instant::now();
    let ready = peers::installed(peer, places).and_then(|program| Ok((peers::version(&program)?, program)));
    let (version, program) = match ready {
        Ok(ready) => ready,
        Err(trouble) => {
            score.add("is there", "", Err(trouble), began.elapsed());
            println!("{}: not installed, nothing shown", peer.name);
            return score;
        }
    };
    println!("  {version}");
    run_races(&program, cast, &mut score);
    play_cases(&program, cast, &mut score);
    let label = version.split(',').next().unwrap_or(peer.name);
    let failed = if score.failed > 0 { format!(", {} FAILED", score.failed) } else { String::new() };
    println!("{label}: {} hand-overs, {} overlaps{failed}", score.handovers, score.overlaps);
    score
}

fn run_races(peer: &Program, cast: &Cast<'_>, score: &mut Score) {
    // The stand-in has one kind only, and its name says nothing to it.
    let races = cast.ground.family.races;
    let races = if cast.sharing.is_some() { races } else { &races[..1] };
    for (number, (name, kind, ours_away_ms, quick, full)) in races.iter().enumerate() {
        let handovers = if cast.full { *full } else { *quick };
        if handovers == 0 {
            println!("  none  race for {name}: with --full");
            continue;
        }
        let at_most = RACE_STARTS + HANDOVER_TAKES * handovers;
        let terms = Terms { handovers, ours_away_ms: *ours_away_ms, at_most };
        let began = Instant::now();
        let ours = if cast.sharing.is_some() { cast.ours.told(&[kind]) } else { cast.ours.clone() };
        let raced = race(&ours, peer, cast.ground, &format!("interop/{}/race/{number}", peer.name), terms);
        let mut shown = String::new();
        let verdict = raced.and_then(|outcome| {
            score.handovers += outcome.handovers;
            score.overlaps += outcome.overlaps.len();
            shown = format!(": {} hand-overs in {} turns", outcome.handovers, outcome.turns);
            if let (fast @ 1.., line) | (fast, line @ 1..) = outcome.ours {
                shown += &format!(", ours {fast} by the fast lane and {line} by the line");
            }
            outcome.verdict(&terms)
        });
        score.add(&format!("race for {name}"), &shown, verdict, began.elapsed());
    }
}

fn play_cases(peer: &Program, cast: &Cast<'_>, score: &mut Score) {
    let ours = if cast.sharing.is_some() { cast.ours.told(&["mutex"]) } else { cast.ours.clone() };
    let scene = |name: &str| {
        let key = format!("interop/{}/{name}", peer.name);
        Scene { ground: cast.ground, key, ours: &ours, peer, sharing: cast.sharing }
    };
    let cases: Vec<_> = cast.ground.family.cases().filter(|case| case.needs.are_met(&scene(case.name))).collect();
    let jobs: Vec<_> = cases.iter().map(|case| || (case.play)(&scene(case.name))).collect();
    for (case, (played, took)) in cases.iter().zip(side_by_side(AT_ONCE, &jobs)) {
        score.add(case.name, "", played, took);
    }
    for case in cast.ground.family.cases().filter(|case| !case.needs.are_met(&scene(case.name))) {
        println!("  none  {}: {}", case.name, case.needs.missing());
    }
}

impl Score {
    /// Counts and prints one.
    fn add(&mut self, name: &str, shown: &str, went: Result<(), Trouble>, took: Duration) {
        let seconds = took.as_secs_f32();
        match went {
            Ok(()) => {
                self.passed += 1;
                println!("  pass  {name}{shown} ({seconds:.1} s)");
            }
            Err(trouble) => {
                self.failed += 1;
                let why = trouble.to_string().replace('\n', "\n        ");
                println!("  FAIL  {name}{shown} ({seconds:.1} s)\n        {why}");
            }
        }
    }
}

/// Does jobs, a few at a time, and gives what came of each, in order, with the time it took.
fn side_by_side<T: Send>(at_once: usize, jobs: &[impl Fn() -> T + Sync]) -> Vec<(T, Duration)> {
    let next = Mutex::new(0..jobs.len());
    let take = || next.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    let work = || {
        let mut done = Vec::new();
        while let Some(n) = take() {
            let began = Instant::now();
            done.push((n, (jobs[n](), began.elapsed())));
        }
        done
    };
    let mut all: Vec<(usize, (T, Duration))> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    all.sort_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_back_in_order() {
        let jobs: Vec<_> = (0..20).map(|n| move || n * n).collect();
        let done: Vec<i32> = side_by_side(3, &jobs).into_iter().map(|(value, _)| value).collect();
        assert_eq!(done, (0..20).map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn only_known_peers_can_be_asked_for() {
        let names = |asked: &[&str]| -> Vec<String> {
            let asked: Vec<String> = asked.iter().map(|name| name.to_string()).collect();
            let names = |(family, peers): (&Family, Vec<&Peer>)| {
                format!("{}: {}", family.name, peers.iter().map(|peer| peer.name).collect::<Vec<_>>().join(" "))
            };
            wanted(&asked).unwrap().into_iter().map(names).collect()
        };
        assert_eq!(names(&[]), ["redis: redis-py node-redlock rslock", "etcd: go-concurrency etcdctl"]);
        assert_eq!(names(&["rslock"]), ["redis: rslock"]);
        assert_eq!(names(&["etcd", "rslock"]), ["redis: rslock", "etcd: go-concurrency etcdctl"]);
        assert!(wanted(&["jedis".to_string()]).err().unwrap().to_string().contains("hint: one of: redis-py"));
    }
}
