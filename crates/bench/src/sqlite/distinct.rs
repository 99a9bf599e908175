//! Many tasks, each with a lock of its own: how many pairs of lock and release a second there can be.
//!
//! The baseline is the shape that carried most in trials: one bare thread that owns the connection, fed over a
//! channel, committing up to 64 operations at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lockkeeper::Keeper;
use lockkeeper_sqlite::Sync;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::raw::{Raw, RawClaim};
use crate::harness::{Arm, Work};
use crate::{Outcome, machine};

/// How many tasks lock and release at once.
const TASKS: usize = 64;
/// The most operations of the baseline in one transaction, as in the store.
const GROUP: usize = 64;

fn name(task: usize) -> String {
    format!("orders/item-{task:08}")
}

/// Runs all tasks to their end and adds up the pairs.
fn run_tasks<F>(runtime: &Runtime, length: Duration, task: impl Fn(usize, Instant) -> F) -> Outcome<Work>
where
    F: Future<Output = Outcome<u64>> + Send + 'static,
{
    let (started, cpu) = (Instant::now(), machine::process_cpu());
    let end = started + length;
    let count = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for number in 0..TASKS {
            tasks.spawn_on(task(number, end), runtime.handle());
        }
        let mut count = 0;
        while let Some(done) = tasks.join_next().await {
            count += done??;
        }
        Outcome::Ok(count)
    })?;
    let cpu = machine::process_cpu().saturating_sub(cpu);
    Ok(Work { score: count as f64 / started.elapsed().as_secs_f64(), count, cpu, p99: None })
}

/// The whole client, as a program uses it.
pub struct Ours {
    runtime: Arc<Runtime>,
    keeper: Keeper,
}

impl Ours {
    /// A keeper on a new file.
    pub fn open(runtime: Arc<Runtime>, path: &Path, sync: Sync) -> Outcome<Self> {
        let keeper = runtime.block_on(super::keeper(path, sync))?;
        Ok(Self { runtime, keeper })
    }

    /// Closes the store, so that its threads are gone before the next comparison.
    pub fn close(self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.keeper.close())?)
    }
}

impl Arm for Ours {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        run_tasks(&self.runtime, length, |task, end| {
            let keeper = self.keeper.clone();
            async move {
                let (name, mut count) = (name(task), 0);
                while Instant::now() < end {
                    keeper.mutex(&name).lock().await?.release().await?;
                    count += 1;
                }
                Ok(count)
            }
        })
    }
}

/// What a task asks of the owner of the connection.
enum Ask {
    Enter { task: usize, id: [u8; 16] },
    Leave { task: usize, id: [u8; 16] },
}

type Letter = (Ask, oneshot::Sender<()>);

/// The bare statements, committed in groups by one thread.
pub struct Bare {
    runtime: Arc<Runtime>,
    letters: Option<mpsc::Sender<Letter>>,
    owner: Option<JoinHandle<rusqlite::Result<()>>>,
}

impl Bare {
    /// A thread that owns a new file.
    pub fn open(runtime: Arc<Runtime>, path: &Path, sync: Sync) -> Outcome<Self> {
        let raw = Raw::create(path, sync)?;
        let (letters, received) = mpsc::channel();
        let owner = std::thread::Builder::new().name("bench-raw".into()).spawn(move || own(raw, &received))?;
        Ok(Self { runtime, letters: Some(letters), owner: Some(owner) })
    }

    /// Ends the thread, and says what went wrong in it.
    pub fn close(mut self) -> Outcome<()> {
        drop(self.letters.take());
        match self.owner.take().map(JoinHandle::join) {
            Some(Ok(done)) => Ok(done?),
            _ => Err("the owner of the raw connection panicked".into()),
        }
    }
}

/// Takes what has come, at most a group, commits it, and answers.
fn own(mut raw: Raw, letters: &mpsc::Receiver<Letter>) -> rusqlite::Result<()> {
    let names: Vec<String> = (0..TASKS).map(|task| format!("lockkeeper/{}", name(task))).collect();
    let mut answers = Vec::with_capacity(GROUP);
    while let Ok(first) = letters.recv() {
        raw.begin()?;
        let mut next = Some(first);
        while let Some((ask, answer)) = next {
            match ask {
                Ask::Enter { task, id } => raw.enter(&names[task], RawClaim { id, held: true })?,
                Ask::Leave { task, id } => {
                    raw.leave(&names[task], id)?;
                }
            }
            answers.push(answer);
            next = if answers.len() < GROUP { letters.try_recv().ok() } else { None };
        }
        raw.commit()?;
        answers.drain(..).for_each(|answer: oneshot::Sender<()>| answer.send(()).unwrap_or_default());
    }
    Ok(())
}

impl Arm for Bare {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        let letters = self.letters.as_ref().ok_or("the raw connection is closed")?;
        run_tasks(&self.runtime, length, |task, end| {
            let letters = letters.clone();
            async move {
                let ask = async |ask: Ask| -> Outcome<()> {
                    let (answer, answered) = oneshot::channel();
                    letters.send((ask, answer)).map_err(|_| "the owner of the raw connection is gone")?;
                    Ok(answered.await?)
                };
                let mut count = 0_u64;
                while Instant::now() < end {
                    let id = ((u128::from(count) << 64) | task as u128).to_be_bytes();
                    ask(Ask::Enter { task, id }).await?;
                    ask(Ask::Leave { task, id }).await?;
                    count += 1;
                }
                Ok(count)
            }
        })
    }
}
