//! One lock among the tasks of one process: handed on in the process, against every turn by way of the store. And how
//! long a second process waits for its turn meanwhile.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::harness::{Arm, Work};
use crate::report::Figure;
use crate::stats::quantile;
use crate::{Outcome, machine};

const NAME: &str = "orders/item-00000000";

/// Tasks of one keeper that take turns on one lock.
pub struct Turns {
    runtime: Arc<Runtime>,
    keeper: Keeper,
    tasks: usize,
}

/// What was seen while another process waited.
pub struct Beside {
    /// Turns of the tasks here, per second.
    pub rate: f64,
    /// How long the other process waited for each of its turns, in milliseconds.
    pub waits: Vec<f64>,
}

impl Turns {
    /// So many tasks of this keeper.
    pub fn new(runtime: Arc<Runtime>, keeper: Keeper, tasks: usize) -> Self {
        Self { runtime, keeper, tasks }
    }

    /// Closes the store, so that its threads are gone before the next comparison.
    pub fn close(self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.keeper.close())?)
    }

    fn turns(&self, stop: impl Fn() -> bool + Clone + Send + 'static) -> Outcome<u64> {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..self.tasks {
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

    /// How long another process waits for its turn while tasks here keep taking theirs. It is this program, in a hidden
    /// mode that calls [`another`].
    pub fn while_another_waits(&self, mode: &[&str], length: Duration) -> Outcome<Beside> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child")
            .args(mode)
            .arg(length.as_millis().to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let started = Instant::now();
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
        Ok(Beside { rate: count as f64 / started.elapsed().as_secs_f64(), waits })
    }
}

impl Beside {
    /// For people; without bars.
    pub fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::new("turns of another process meanwhile", self.waits.len() as f64, ""),
            Figure::new("its wait for a turn, p50", quantile(&self.waits, 0.5), "ms"),
            Figure::new("its wait for a turn, p99", quantile(&self.waits, 0.99), "ms").at_most(50.0),
            Figure::new("turns of the tasks here meanwhile", self.rate, "per second"),
        ]
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
pub async fn another(keeper: &Keeper, length: Duration) -> Outcome<()> {
    let end = Instant::now() + length;
    while Instant::now() < end {
        let asked = Instant::now();
        let hold = keeper.mutex(NAME).lock().await?;
        println!("{:.3}", asked.elapsed().as_secs_f64() * 1e3);
        hold.release().await?;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    Ok(keeper.close().await?)
}
