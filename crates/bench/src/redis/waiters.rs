//! What a call of the line's scripts costs the server, with 1, 100, 1,000 and 10,000 claims waiting.
//!
//! The figures are the server's own (`INFO commandstats`). Surprise: everything has to be done within the time that the
//! store keeps a claim that does not ask again, or the sweep of the dead is what is measured.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper::store::{Claim, Keep, Left, Patience, SharedStore, Standing};
use lockkeeper::{ClaimId, LockKind, Name, Owner};
use redis::Connection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::wire;
use crate::Outcome;
use crate::report::{Figure, short};

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
    let mut holder = claim()?;
    store.enter(&lock, &holder).await?;
    let mut line: VecDeque<Claim> = fill(store, &lock, waiters).await?.into();
    let [mut came, mut asked, mut left, mut handed] = [0.0; 4];
    for call in 0..CALLS {
        // Spread over the line, so that the place in it does not matter.
        let one = &line[call * 7_919 % line.len()];
        asked += stats.of(store.enter(&lock, one)).await?.0;

        let late = claim()?;
        came += stats.of(store.enter(&lock, &late)).await?.0;
        let (micros, answer) = stats.of(store.leave(&lock, late.id, Keep::Nothing)).await?;
        left += micros;
        is_out(answer)?;

        // The line stays as long as it was: one goes in, another comes.
        let (micros, answer) = stats.of(store.leave(&lock, holder.id, Keep::Nothing)).await?;
        handed += micros;
        is_out(answer)?;
        holder = line.pop_front().ok_or("nobody waits")?;
        let next = claim()?;
        store.enter(&lock, &next).await?;
        line.push_back(next);
    }
    let figure = |what: &str, micros: f64| {
        Figure::new(format!("{what}, {} waiting", short(waiters as f64)), micros / CALLS as f64, "µs at the server")
    };
    Ok(vec![
        figure("a claim comes into the line", came),
        figure("a waiting claim asks again", asked),
        figure("a waiting claim leaves", left),
        figure("a release lets the next one in", handed),
    ])
}

fn is_out(left: Left) -> Outcome<()> {
    match left {
        Left::Released => Ok(()),
        other => Err(format!("the line moved by itself ({other:?}): this machine is too busy for this figure").into()),
    }
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
    /// Microseconds that the server spent in scripts during a call, and what the call came to.
    async fn of<T>(&mut self, call: impl Future<Output = lockkeeper::Result<T>>) -> Outcome<(f64, T)> {
        let before = self.micros()?;
        let answer = call.await?;
        Ok((self.micros()? - before, answer))
    }

    fn micros(&mut self) -> Outcome<f64> {
        let text: String = redis::cmd("INFO").arg("commandstats").query(&mut self.0)?;
        Ok(in_scripts(&text))
    }
}

/// All time in scripts so far.
fn in_scripts(text: &str) -> f64 {
    let fields = text.lines().filter_map(|line| line.strip_prefix("cmdstat_eval")?.split_once(':'));
    let micros =
        |fields: &str| -> Option<f64> { fields.split(',').find_map(|field| field.strip_prefix("usec=")?.parse().ok()) };
    fields.filter_map(|(_, fields)| micros(fields)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_account_is_read() {
        let text = "# Commandstats\r\ncmdstat_get:calls=9,usec=9,usec_per_call=1.00\r\n\
                    cmdstat_eval:calls=1,usec=70,usec_per_call=70.00,rejected_calls=0,failed_calls=0\r\n\
                    cmdstat_evalsha:calls=200,usec=5000,usec_per_call=25.00,rejected_calls=0,failed_calls=0\r\n";
        assert_eq!(in_scripts(text), 5_070.0);
        assert_eq!(in_scripts("# Commandstats\r\n"), 0.0);
    }
}
