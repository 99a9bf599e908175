//! rslock, measured by `cargo xtask bench redis`. What it is told and says: `bench/peers/README.md`.
//!
//! The surprise: it is asked again when it gives up, because its own default is three tries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::AsyncCommands;
use rslock::{Lock, LockError, LockManager};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PAIRS: usize = 64;
const TURNS: usize = 8;
const LEASE: Duration = Duration::from_secs(30);
const HELD_FOR: Duration = Duration::from_millis(4);
const LOOKS_EVERY_S: f64 = 0.2;
const SIGNAL: &str = "ball-taken";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        println!("rslock {}", version());
        return Ok(());
    }
    let [mode, url] = arguments.as_slice() else { return Err("usage: rslock-bench MODE URL".into()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let manager = Arc::new(LockManager::new(vec![url.as_str()]));
    runtime.block_on(async {
        let lock = take(&manager, "warm-up").await?;
        manager.unlock(&lock).await;
        Outcome::Ok(())
    })?;
    println!("ready");
    for line in std::io::stdin().lines() {
        let length = Duration::from_millis(line?.parse()?);
        let cpu = nanos(ClockId::ProcessCPUTime);
        let said = match mode.as_str() {
            "pairs" => pairs(&runtime, &manager, length)?.to_string(),
            "turns" => turns(&runtime, &manager, length)?,
            "ball" => ball(&runtime, &manager, url, length)?,
            other => return Err(format!("there is no mode `{other}`").into()),
        };
        println!("{} {said}", nanos(ClockId::ProcessCPUTime) - cpu);
    }
    Ok(())
}

fn name(task: usize) -> String {
    format!("orders/item-{task:08}")
}

fn pairs(runtime: &Runtime, manager: &Arc<LockManager>, length: Duration) -> Outcome<u64> {
    let end = Instant::now() + length;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..PAIRS {
            let manager = manager.clone();
            tasks.spawn(async move {
                let (name, mut count) = (name(task), 0);
                while Instant::now() < end {
                    let lock = take(&manager, &name).await?;
                    manager.unlock(&lock).await;
                    count += 1;
                }
                Outcome::Ok(count)
            });
        }
        let mut count = 0;
        while let Some(done) = tasks.join_next().await {
            count += done??;
        }
        Ok(count)
    })
}

fn turns(runtime: &Runtime, manager: &Arc<LockManager>, length: Duration) -> Outcome<String> {
    let end = Instant::now() + length;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..TURNS {
            let manager = manager.clone();
            tasks.spawn(async move {
                let mut noted = Vec::new();
                while Instant::now() < end {
                    let lock = take(&manager, &name(0)).await?;
                    noted.push(nanos(ClockId::Boottime).to_string());
                    manager.unlock(&lock).await;
                }
                Outcome::Ok(noted)
            });
        }
        let mut noted = Vec::new();
        while let Some(done) = tasks.join_next().await {
            noted.extend(done??);
        }
        Ok(noted.join(" "))
    })
}

fn ball(runtime: &Runtime, manager: &Arc<LockManager>, url: &str, length: Duration) -> Outcome<String> {
    let end = Instant::now() + length;
    let (manager, client, me) = (manager.clone(), redis::Client::open(url)?, std::process::id());
    let player = runtime.spawn(async move {
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let mut signals = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut noted = Vec::new();
        while Instant::now() < end {
            let lock = take(&manager, &name(0)).await?;
            noted.push(format!("T{}", nanos(ClockId::Boottime)));
            let _: () = signals.lpush(SIGNAL, me).await?;
            tokio::time::sleep(HELD_FOR).await;
            noted.push(format!("P{}", nanos(ClockId::Boottime)));
            manager.unlock(&lock).await;
            // It does not ask again before the other one has it.
            while Instant::now() < end {
                let signal: Option<(String, u32)> = signals.blpop(SIGNAL, LOOKS_EVERY_S).await?;
                if signal.is_some_and(|(_, who)| who != me) {
                    break;
                }
            }
        }
        Outcome::Ok(noted.join(" "))
    });
    runtime.block_on(player)?
}

async fn take(manager: &LockManager, name: &str) -> Outcome<Lock> {
    loop {
        match manager.lock(name.as_bytes(), LEASE).await {
            Ok(lock) => return Ok(lock),
            Err(LockError::Unavailable) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The version of rslock, from the lock file it was built with.
fn version() -> &'static str {
    let lines = include_str!("../Cargo.lock").lines();
    let mut after = lines.skip_while(|line| *line != "name = \"rslock\"").skip(1);
    after.next().and_then(|line| line.split('"').nth(1)).unwrap_or("of an unknown version")
}
