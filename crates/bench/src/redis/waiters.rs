//! What a call of the line's scripts costs the server, with 1, 100, 1,000 and 10,000 claims waiting.
//!
//! The figures are the server's own (`INFO commandstats`). Surprise: everything has to be done within the time that the
//! store keeps a claim that does not ask again, or the sweep of the dead is what is measured.

use std::time::Duration;

use lockkeeper::store::{Claim, Keep, Patience, SharedStore, Standing};
use lockkeeper::{ClaimId, LockKind, Name, Owner};
use redis::Connection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::wire;
use crate::Outcome;
use crate::report::Figure;

/// How many claims wait.
const WAITERS: &[usize] = &[1, 100, 1_000, 10_000];
/// How many calls are averaged.
const CALLS: usize = 200;
/// How many tasks put claims in line.
const TASKS: usize = 64;
const LEASE: Duration = Duration::from_secs(30);

/// One figure for each call and number of waiters.
pub fn figures(runtime: &Runtime, url: &str) -> Outcome<Vec<Figure>> {
    let store = runtime.block_on(lockkeeper::open(url))?;
    let mut stats = Stats(wire::connect_alone(url)?);
    let mut figures = Vec::new();
    for waiters in WAITERS {
        figures.extend(runtime.block_on(measure(&store, &mut stats, *waiters))?);
    }
    runtime.block_on(store.close())?;
    Ok(figures)
}

async fn measure(store: &SharedStore, stats: &mut Stats, waiters: usize) -> Outcome<Vec<Figure>> {
    let lock = Name::new(&format!("waiters/{waiters}"))?;
    let holder = claim()?;
    store.enter(&lock, &holder).await?;
    let line = fill(store, &lock, waiters).await?;

    stats.reset()?;
    for call in 0..CALLS {
        // Spread over the line, so that the place in it does not matter.
        store.enter(&lock, &line[call * 7_919 % line.len()]).await?;
    }
    let again = stats.micros()?;

    let mut late = Vec::new();
    stats.reset()?;
    for _ in 0..CALLS {
        let claim = claim()?;
        store.enter(&lock, &claim).await?;
        late.push(claim);
    }
    let first = stats.micros()?;

    stats.reset()?;
    for claim in &late {
        store.leave(&lock, claim.id, Keep::Nothing).await?;
    }
    let left = stats.micros()?;

    stats.reset()?;
    store.leave(&lock, holder.id, Keep::Nothing).await?;
    for claim in line.iter().take(CALLS.min(waiters - 1)) {
        store.leave(&lock, claim.id, Keep::Nothing).await?;
    }
    let handed = stats.micros()?;
    let figure =
        |what: &str, micros: f64| Figure::new(format!("{what}, {waiters} waiting"), micros, "µs at the server");
    Ok(vec![
        figure("a claim comes into the line", first),
        figure("a waiting claim asks again", again),
        figure("a waiting claim leaves", left),
        figure("a release lets the next one in", handed),
    ])
}

/// Puts so many claims in line, in the order in which they came.
async fn fill(store: &SharedStore, lock: &Name, waiters: usize) -> Outcome<Vec<Claim>> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS.min(waiters) {
        let (store, lock) = (store.clone(), lock.clone());
        tasks.spawn(async move {
            let mut line = Vec::new();
            for _ in (task..waiters).step_by(TASKS) {
                let claim = claim()?;
                match store.enter(&lock, &claim).await? {
                    Standing::Waiting { ahead, .. } => line.push((ahead, claim)),
                    other => return Err(format!("a claim was to wait, and is {other:?}").into()),
                }
            }
            Outcome::Ok(line)
        });
    }
    let mut line = Vec::with_capacity(waiters);
    while let Some(claims) = tasks.join_next().await {
        line.extend(claims??);
    }
    line.sort_by_key(|(ahead, _)| *ahead);
    Ok(line.into_iter().map(|(_, claim)| claim).collect())
}

fn claim() -> Outcome<Claim> {
    Ok(Claim {
        id: ClaimId::random()?,
        owner: Owner::new("")?,
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease: LEASE,
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    })
}

/// The server's own account of scripts.
struct Stats(Connection);

impl Stats {
    fn reset(&mut self) -> Outcome<()> {
        Ok(redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut self.0)?)
    }

    /// Microseconds per call of a script since then.
    fn micros(&mut self) -> Outcome<f64> {
        let text: String = redis::cmd("INFO").arg("commandstats").query(&mut self.0)?;
        per_call(&text).ok_or_else(|| "no script was called".into())
    }
}

fn per_call(text: &str) -> Option<f64> {
    let fields = text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"))?;
    let field = |name: &str| -> Option<f64> {
        fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    Some(field("usec")? / field("calls")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_account_is_read() {
        let text = "# Commandstats\r\ncmdstat_get:calls=9,usec=9,usec_per_call=1.00\r\n\
                    cmdstat_evalsha:calls=200,usec=5000,usec_per_call=25.00,rejected_calls=0,failed_calls=0\r\n";
        assert_eq!(per_call(text), Some(25.0));
        assert_eq!(per_call("# Commandstats\r\n"), None);
    }
}
