//! 100,000 locks held by one process: what renewing them costs, on both sides.

use std::time::{Duration, Instant};

use lockkeeper::{Hold, Keeper};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::report::Figure;
use crate::{Outcome, machine};

/// How many.
const HOLDS: usize = 100_000;
/// How many tasks take them.
const TASKS: usize = 64;
/// A third of the default lease: how often each is renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// Takes them, watches for so many rounds of renewing, and says what they cost.
pub fn figures(runtime: &Runtime, url: &str, server: u32, rounds: u32) -> Outcome<Vec<Figure>> {
    let keeper = runtime.block_on(Keeper::connect(url))?;
    let started = Instant::now();
    let holds = runtime.block_on(take(&keeper))?;
    let took = started.elapsed();
    let (started, client_cpu, server_cpu) = (Instant::now(), machine::process_cpu(), machine::cpu_of(server)?);
    // Nothing else runs in this process meanwhile, so its processor time is that of renewing.
    std::thread::sleep(RENEWED_EVERY * rounds);
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    let client = machine::process_cpu().saturating_sub(client_cpu).as_secs_f64() / minutes;
    let server = machine::cpu_of(server)?.saturating_sub(server_cpu).as_secs_f64() / minutes;
    let lost = holds.iter().filter(|hold| !hold.is_held()).count();
    let started = Instant::now();
    runtime.block_on(release(holds))?;
    let released = started.elapsed();
    runtime.block_on(keeper.close())?;
    let rate = |time: Duration| HOLDS as f64 / time.as_secs_f64();
    Ok(vec![
        Figure::new("100,000 holds: taken by 64 tasks", rate(took), "per second"),
        Figure::new("100,000 holds: released by 64 tasks", rate(released), "per second"),
        Figure::new("100,000 holds: lost at a lease of 30 s", lost as f64, "").exactly(0.0),
        Figure::new("100,000 holds: processor time of renewing, client", client, "s per minute"),
        Figure::new("100,000 holds: processor time of renewing, server", server, "s per minute"),
    ])
}

async fn take(keeper: &Keeper) -> Outcome<Vec<Hold>> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let keeper = keeper.clone();
        tasks.spawn(async move {
            let mut holds = Vec::new();
            for number in (task..HOLDS).step_by(TASKS) {
                holds.push(keeper.mutex(&format!("holds/item-{number:08}")).lock().await?);
            }
            Outcome::Ok(holds)
        });
    }
    let mut holds = Vec::with_capacity(HOLDS);
    while let Some(taken) = tasks.join_next().await {
        holds.extend(taken??);
    }
    Ok(holds)
}

async fn release(holds: Vec<Hold>) -> Outcome<()> {
    let mut tasks = JoinSet::new();
    let mut holds = holds.into_iter();
    loop {
        let mine: Vec<Hold> = holds.by_ref().take(HOLDS.div_ceil(TASKS)).collect();
        if mine.is_empty() {
            break;
        }
        tasks.spawn(async move {
            for hold in mine {
                hold.release().await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(released) = tasks.join_next().await {
        released??;
    }
    Ok(())
}
