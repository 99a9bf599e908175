//! etcd-client, measured by `cargo xtask bench etcd`. What it is told and says: `bench/peers/README.md`.
//!
//! The surprise: the server locks for it, by its Lock call, and takes the lease for the holder: two tasks on one lease that
//! want one name are both in. So where tasks want the same name, each has a lease of its own.

use std::time::{Duration, Instant};

use etcd_client::{Client, LockOptions};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PAIRS: usize = 64;
const TURNS: usize = 8;
const LEASE_S: i64 = 30;
const RENEWED_EVERY: Duration = Duration::from_secs(10);
const HELD_FOR: Duration = Duration::from_millis(4);
const REST: Duration = Duration::from_millis(1);

/// What a process does in a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pairs,
    Turns,
    Ball,
}

/// One lock that one task wants.
#[derive(Clone)]
struct Wanted {
    client: Client,
    name: String,
    lease: i64,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("etcd-client {}", version());
        return Ok(());
    }
    let [mode, url] = arguments.as_slice() else { return Err("usage: etcd-client-bench MODE URL".into()) };
    let mode = match mode.as_str() {
        "pairs" => Mode::Pairs,
        "turns" => Mode::Turns,
        "ball" => Mode::Ball,
        other => return Err(format!("there is no mode `{other}`").into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let wanted = runtime.block_on(wanted(mode, url.trim_start_matches("etcd://")))?;
    println!("ready");
    for line in std::io::stdin().lines() {
        let length = Duration::from_millis(line?.parse()?);
        let cpu = nanos(ClockId::ProcessCPUTime);
        let notes = slice(&runtime, &wanted, mode, length)?;
        let said = if mode == Mode::Pairs { notes.len().to_string() } else { notes.join(" ") };
        println!("{} {said}", nanos(ClockId::ProcessCPUTime) - cpu);
    }
    Ok(())
}

/// What the tasks of a process want, each its own; the leases are kept for as long as the process lives.
async fn wanted(mode: Mode, endpoint: &str) -> Outcome<Vec<Wanted>> {
    let mut client = Client::connect([endpoint], None).await?;
    let tasks = match mode {
        Mode::Pairs => PAIRS,
        Mode::Turns => TURNS,
        Mode::Ball => 1,
    };
    let mut wanted: Vec<Wanted> = Vec::new();
    for task in 0..tasks {
        let lease = match wanted.last() {
            Some(last) if mode == Mode::Pairs => last.lease,
            _ => kept_lease(&mut client).await?,
        };
        let number = if mode == Mode::Pairs { task } else { 0 };
        wanted.push(Wanted { client: client.clone(), name: format!("orders/item-{number:08}"), lease });
    }
    Ok(wanted)
}

async fn kept_lease(client: &mut Client) -> Outcome<i64> {
    let lease = client.lease_grant(LEASE_S, None).await?.id();
    let (mut keeper, mut answers) = client.lease_keep_alive(lease).await?;
    // Without it the lease ends, and the next lock on it is an error.
    tokio::spawn(async move {
        while keeper.keep_alive().await.is_ok() && answers.message().await.is_ok() {
            tokio::time::sleep(RENEWED_EVERY).await;
        }
    });
    Ok(lease)
}

/// Lets all tasks play until the time is over, and gives their notes.
fn slice(runtime: &Runtime, wanted: &[Wanted], mode: Mode, length: Duration) -> Outcome<Vec<String>> {
    let end = Instant::now() + length;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for lock in wanted {
            tasks.spawn(play(lock.clone(), mode, end));
        }
        let mut notes = Vec::new();
        while let Some(done) = tasks.join_next().await {
            notes.extend(done??);
        }
        Ok(notes)
    })
}

/// In `ball` it needs no word from the other one that it has the lock: that one stands in line, and comes first.
async fn play(mut lock: Wanted, mode: Mode, end: Instant) -> Outcome<Vec<String>> {
    let mut notes = Vec::new();
    while Instant::now() < end {
        let options = LockOptions::new().with_lease(lock.lease);
        let held = lock.client.lock(lock.name.as_str(), Some(options)).await?;
        match mode {
            Mode::Pairs => notes.push(String::new()),
            Mode::Turns => notes.push(nanos(ClockId::Boottime).to_string()),
            Mode::Ball => {
                notes.push(format!("T{}", nanos(ClockId::Boottime)));
                tokio::time::sleep(HELD_FOR).await;
                notes.push(format!("P{}", nanos(ClockId::Boottime)));
            }
        }
        lock.client.unlock(held.key()).await?;
        if mode == Mode::Ball {
            tokio::time::sleep(REST).await;
        }
    }
    Ok(notes)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The version of etcd-client, from the lock file it was built with.
fn version() -> &'static str {
    let lines = include_str!("../Cargo.lock").lines();
    let mut after = lines.skip_while(|line| *line != "name = \"etcd-client\"").skip(1);
    after.next().and_then(|line| line.split('"').nth(1)).unwrap_or("of an unknown version")
}
