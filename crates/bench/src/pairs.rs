//! Lock and release of free locks, by way of any store: 64 tasks with a name each, and one task alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::harness::{Arm, Work};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// How many tasks lock and release at once.
pub const TASKS: usize = 64;

/// Twenty bytes, like the names that people choose.
pub fn name(task: usize) -> String {
    format!("orders/item-{task:08}")
}

/// Something that can take and release a lock.
pub trait Client: Clone + Send + Sync + 'static {
    /// What stands for one lock.
    type Lock: Clone + Send + Sync + 'static;

    /// One of its locks.
    fn lock(&self, task: usize) -> Self::Lock;

    /// Takes it and releases it; `claim` is never used twice.
    fn pair(&self, lock: &Self::Lock, claim: u128) -> impl Future<Output = Outcome<()>> + Send;
}

/// The whole client, as a program uses it.
#[derive(Clone)]
pub struct Ours(pub Keeper);

impl Client for Ours {
    type Lock = Arc<str>;

    fn lock(&self, task: usize) -> Arc<str> {
        name(task).into()
    }

    async fn pair(&self, lock: &Arc<str>, _claim: u128) -> Outcome<()> {
        self.0.mutex(lock).lock().await?.release().await?;
        Ok(())
    }
}

/// 64 tasks; the score is pairs per second.
pub struct Many<C> {
    /// Where they run.
    pub runtime: Arc<Runtime>,
    /// What they use.
    pub client: C,
}

impl<C: Client> Arm for Many<C> {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        let (started, cpu) = (Instant::now(), machine::process_cpu());
        let count = self.runtime.block_on(crowd(&self.client, started + length))?;
        let cpu = machine::process_cpu().saturating_sub(cpu);
        Ok(Work { score: count as f64 / started.elapsed().as_secs_f64(), count, cpu, p99: None })
    }
}

/// All tasks of one slice: each takes and releases its own lock until the end; how many pairs that were.
pub async fn crowd<C: Client>(client: &C, end: Instant) -> Outcome<u64> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (client, lock) = (client.clone(), client.lock(task));
        tasks.spawn(async move {
            let mut count = 0_u64;
            while Instant::now() < end {
                client.pair(&lock, (task as u128) << 64 | u128::from(count)).await?;
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
}

/// One task; the score is the median time of a pair in microseconds.
pub struct One<C> {
    /// Where it runs.
    pub runtime: Arc<Runtime>,
    /// What it uses.
    pub client: C,
}

impl<C: Client> Arm for One<C> {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        let (client, lock, cpu) = (self.client.clone(), self.client.lock(0), machine::process_cpu());
        let end = Instant::now() + length;
        // A task of the runtime, as in a service; what blocks on it is woken once.
        let took = self.runtime.block_on(self.runtime.spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let started = Instant::now();
                client.pair(&lock, took.len() as u128).await?;
                took.push(started.elapsed().as_secs_f64() * 1e6);
            }
            Outcome::Ok(took)
        }))??;
        let cpu = machine::process_cpu().saturating_sub(cpu);
        Ok(Work { score: quantile(&took, 0.5), count: took.len() as u64, cpu, p99: Some(quantile(&took, 0.99)) })
    }
}
