//! One lock among the tasks of one process: handed on in the process, against every turn by way of the store. And how
//! long a second process waits for its turn meanwhile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockkeeper::{Builder, Keeper};
use lockkeeper_sqlite::Sync;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::harness::{Arm, Work};
use crate::report::Figure;
use crate::stats::quantile;
use crate::{Outcome, machine};

/// How many tasks take turns.
const TASKS: usize = 8;
const NAME: &str = "orders/item-00000000";

/// Tasks of one keeper that take turns on one lock.
pub struct Turns {
    runtime: Arc<Runtime>,
    keeper: Keeper,
}

impl Turns {
    /// A keeper that hands locks on inside the process, or does not.
    pub fn open(runtime: Arc<Runtime>, path: &Path, hand_over: bool) -> Outcome<Self> {
        let builder: Builder = Keeper::builder().hand_over(hand_over);
        let store = runtime.block_on(super::store(path, Sync::Full))?;
        Ok(Self { keeper: builder.with_store(store).into(), runtime })
    }

    /// Closes the store, so that its threads are gone before the next comparison.
    pub fn close(self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.keeper.close())?)
    }

    fn turns(&self, stop: impl Fn() -> bool + Clone + Send + 'static) -> Outcome<u64> {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..TASKS {
                let (keeper, stop) = (self.keeper.clone(), stop.clone());
                tasks.spawn(async move {
                    let mut count = 0;
                    while !stop() {
                        keeper.mutex(NAME).lock().await?.release().await?;
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

    /// How long another process waits for its turn while tasks here keep taking theirs.
    pub fn while_another_waits(&self, path: &Path, length: Duration) -> Outcome<Vec<Figure>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child", "another"])
            .arg(path)
            .arg(length.as_millis().to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let over = Arc::new(AtomicBool::new(false));
        let (seen, watched) = (over.clone(), over.clone());
        let end = Instant::now() + length + Duration::from_secs(20);
        let waiter = std::thread::spawn(move || {
            let said = child.stdout.take().map(std::io::read_to_string);
            let ended = child.wait();
            seen.store(true, Ordering::SeqCst);
            (said, ended)
        });
        let count = self.turns(move || watched.load(Ordering::SeqCst) || Instant::now() > end)?;
        let (said, ended) = waiter.join().map_err(|_| "the thread that waits for the child failed")?;
        if !ended?.success() {
            return Err("the other process failed".into());
        }
        let said = said.ok_or("the child has no output")??;
        let waits: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        if waits.is_empty() {
            return Err("the other process never had its turn".into());
        }
        Ok(vec![
            Figure::new("turns of another process meanwhile", waits.len() as f64, ""),
            Figure::new("its wait for a turn, p50", quantile(&waits, 0.5), "ms"),
            Figure::new("its wait for a turn, p99 (to be at most 50)", quantile(&waits, 0.99), "ms"),
            Figure::new("turns of the tasks here meanwhile", count as f64 / length.as_secs_f64(), "per second"),
        ])
    }
}

impl Arm for Turns {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        let (started, cpu) = (Instant::now(), machine::process_cpu());
        let end = started + length;
        let count = self.turns(move || Instant::now() >= end)?;
        let cpu = machine::process_cpu().saturating_sub(cpu);
        Ok(Work { score: count as f64 / started.elapsed().as_secs_f64(), count, cpu, p99: None })
    }
}

/// The other process: takes its turn again and again, and says how many milliseconds each took to come.
pub fn another(path: &Path, length: Duration) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let keeper = super::keeper(path, Sync::Full).await?;
        let end = Instant::now() + length;
        while Instant::now() < end {
            let asked = Instant::now();
            let hold = keeper.mutex(NAME).lock().await?;
            println!("{:.3}", asked.elapsed().as_secs_f64() * 1e3);
            hold.release().await?;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        Ok(keeper.close().await?)
    })
}
