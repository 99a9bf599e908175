//! `interop`: other people's plain Redis locks and ours want the same keys; nobody may ever hold one together.
//!
//! The surprise: before it judges anybody, the judge is tried itself, with stand-ins that are wrong on purpose.

mod cases;
mod log;
mod party;
mod peers;
mod race;
mod self_test;
mod wire;
mod witness;

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lockkeeper_rig::{SERVERS, Server, Spec, Trouble, rig_dir};

use cases::{CASES, Scene};
use party::Program;
use peers::{PEERS, Peer};
use race::{AWAY_MS, FORGETS_MS, Terms, race};

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
    /// These peers only, or all.
    pub peers: Vec<String>,
}

/// A race: its name, the kind of our lock, how long ours stays away, the hand-overs it must have: quick, and in full.
type Race = (&'static str, &'static str, (u64, u64), u32, u32);

/// All of them.
const RACES: &[Race] = &[
    ("a mutex", "mutex", AWAY_MS, 50, 300),
    ("a mutex that ours seldom wants", "mutex", FORGETS_MS, 20, 200),
    ("a semaphore of one", "semaphore(1)", AWAY_MS, 10, 100),
    ("a write lock", "write lock", AWAY_MS, 10, 100),
    ("a mutex of threads", "blocking", AWAY_MS, 0, 100),
];

/// The limit of a race: far above what the slowest peer needs.
const RACE_STARTS: Duration = Duration::from_secs(30);
const HANDOVER_TAKES: Duration = Duration::from_millis(500);

/// Both sides of everything that is played.
struct Cast<'a> {
    port: u16,
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
    let redis: Vec<&'static Spec> = SERVERS.iter().filter(|spec| spec.name == "redis").collect();
    setup::for_peers(options.install, &redis)?;
    let places = Places::new("interop", "interop")?;
    print!("{}", places::tools());
    let stand_in = peers::stand_in(&places)?;
    let (ours, sharing) = if options.stand_in {
        println!("NOT OURS: the honest stand-in plays in our place");
        (Program { name: "ours".to_string(), ..stand_in.told(&["renews"]) }, None)
    } else {
        let (ours, sharing) = peers::ours(&places)?;
        (ours, Some(sharing))
    };
    let spec = redis.first().ok_or_else(|| Trouble::new("the rig has no redis"))?;
    let server = Server::start(spec, &rig_dir())?;
    let cast = Cast { port: server.port(), ours: &ours, sharing: sharing.as_ref(), full: options.full };
    let mut total = try_the_judge(&stand_in, cast.port);
    for peer in wanted {
        let score = play_with(peer, &places, &cast);
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

fn wanted(names: &[String]) -> Result<Vec<&'static Peer>, Trouble> {
    if let Some(name) = names.iter().find(|name| !PEERS.iter().any(|peer| peer.name == **name)) {
        let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        return Err(Trouble::new(format!("there is no peer `{name}`")).hint(format!("one of: {}", known.join(", "))));
    }
    Ok(PEERS.iter().filter(|peer| names.is_empty() || names.iter().any(|name| name == peer.name)).collect())
}

/// The judge's own trials.
fn try_the_judge(stand_in: &Program, port: u16) -> Score {
    println!("\nthe judge itself, with stand-ins");
    let trials = self_test::trials(stand_in);
    let jobs: Vec<_> = trials.iter().enumerate().map(|(n, trial)| move || trial.run(port, n)).collect();
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
    let races = if cast.sharing.is_some() { RACES } else { &RACES[..1] };
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
        let raced = race(&ours, peer, cast.port, &format!("interop/{}/race/{number}", peer.name), terms);
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
        Scene { port: cast.port, key, ours: &ours, peer, sharing: cast.sharing }
    };
    let cases: Vec<_> = CASES.iter().filter(|case| case.needs.are_met(&scene(case.name))).collect();
    let jobs: Vec<_> = cases.iter().map(|case| || (case.play)(&scene(case.name))).collect();
    for (case, (played, took)) in cases.iter().zip(side_by_side(AT_ONCE, &jobs)) {
        score.add(case.name, "", played, took);
    }
    for case in CASES.iter().filter(|case| !case.needs.are_met(&scene(case.name))) {
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
        let names = |peers: Vec<&'static Peer>| peers.iter().map(|peer| peer.name).collect::<Vec<_>>();
        assert_eq!(names(wanted(&[]).unwrap()), ["redis-py", "node-redlock", "rslock"]);
        assert_eq!(names(wanted(&["rslock".to_string()]).unwrap()), ["rslock"]);
        assert!(wanted(&["jedis".to_string()]).err().unwrap().to_string().contains("hint: one of: redis-py"));
    }
}
