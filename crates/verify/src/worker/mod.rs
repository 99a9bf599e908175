//! A worker process: takes locks, changes registers, writes down what it saw.
//!
//! Surprise: each of its tasks is a thread. A task dwells for fractions of a millisecond, which threads can and timers of a
//! runtime cannot; only the lock calls are async, and their connections are driven by the runtime that `work` is called in.

mod cells;
mod dice;
mod grip;
mod how;
mod task;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockkeeper::{Access, Keeper, Owner, Secret};
use lockkeeper_rig::Trouble;

use crate::history::write::{Lines, now, worker_file};
use crate::history::{Event, Life};
use crate::plan::Plan;

pub(crate) use cells::names_between;

/// The variable with the store's address.
pub const STORE: &str = "LOCKKEEPER_STORE";
/// The variable with the password, where the store has one and its address does not tell it.
pub const PASSWORD: &str = "LOCKKEEPER_PASSWORD";

/// Works as the arguments say until its plan is over. `args` are those after the program's own first ones: the path of
/// the plan, whose folder the history goes to; the worker's number; its life; the registers' socket; and the moment at
/// which it ends, in nanoseconds of `CLOCK_BOOTTIME`.
pub async fn work(args: &[String]) -> Result<(), Trouble> {
    let orders = Orders::read(args)?;
    let history = Lines::begin(&orders.folder.join(worker_file(orders.life)))?;
    history.write(&Event::Began { at: now(), life: orders.life, pid: std::process::id() })?;
    let worker = Arc::new(Worker {
        orders,
        history,
        stop: AtomicBool::new(false),
        ops: AtomicU64::new(0),
        trouble: Mutex::new(None),
    });
    stop_when_told(&worker)?;
    if let Some(keeper) = worker.open().await? {
        worker.all_tasks(&keeper).await;
        // What cannot be released now ends with its lease.
        let _ = tokio::time::timeout(worker.orders.plan.patience(), keeper.close()).await;
    }
    worker.note(&Event::Ended { at: now() });
    let trouble = worker.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
    trouble.map_or(Ok(()), Err)
}

/// What a worker was started for.
struct Orders {
    plan: Plan,
    folder: PathBuf,
    life: Life,
    socket: PathBuf,
    until: u64,
}

impl Orders {
    fn read(args: &[String]) -> Result<Self, Trouble> {
        let [plan, worker, life, socket, until] = args else {
            return Err(Trouble::new("a worker is started by `lockkeeper verify`, not by hand"));
        };
        let number = |text: &String| text.parse().map_err(|_| Trouble::new(format!("`{text}` is not a number")));
        let path = Path::new(plan);
        let unreadable = |why: &dyn std::fmt::Display| Trouble::new(format!("`{plan}` cannot be read: {why}"));
        let bytes = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let life = Life { worker: number(worker)?, life: number(life)? };
        Ok(Self {
            plan: serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?,
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            life,
            socket: PathBuf::from(socket),
            until: until.parse().map_err(|_| Trouble::new(format!("`{until}` is not a moment")))?,
        })
    }
}

/// What the tasks of a worker share.
struct Worker {
    orders: Orders,
    history: Lines,
    stop: AtomicBool,
    ops: AtomicU64,
    trouble: Mutex<Option<Trouble>>,
}

impl Worker {
    /// Is it time to end?
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || now() >= self.orders.until
    }

    fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Ends, because a history from here on would be wrong.
    fn fail(&self, trouble: Trouble) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trouble);
        self.end();
    }

    fn note(&self, event: &Event) {
        if let Err(trouble) = self.history.write(event) {
            self.fail(trouble);
        }
    }

    fn next_op(&self) -> u64 {
        self.ops.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens the store, asking until it answers: it may be hurt already. Nothing if it did not in time.
    async fn open(&self) -> Result<Option<Keeper>, Trouble> {
        let url = std::env::var(STORE).map_err(|_| Trouble::new(format!("{STORE} does not say where the store is")))?;
        let access = access(&url, std::env::var(PASSWORD).ok());
        let plan = &self.orders.plan;
        let owner = Owner::new(&format!("verify {}", self.orders.life)).map_err(|error| told(&error))?;
        while !self.is_over() {
            let opened = tokio::time::timeout(plan.call_limit(), lockkeeper::open_as(&url, &access)).await;
            match opened {
                Ok(Ok(store)) => {
                    let keeper = Keeper::builder().owner(owner).timeout(plan.call_limit()).layer(how::Watch);
                    return Ok(Some(Keeper::from(keeper.with_store(store))));
                }
                Ok(Err(error)) if !error.is_transient() => return Err(told(&error)),
                Ok(Err(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Ok(None)
    }

    async fn all_tasks(self: &Arc<Self>, keeper: &Keeper) {
        let runtime = tokio::runtime::Handle::current();
        let tasks: Vec<_> = (0..self.orders.plan.tasks)
            .map(|number| {
                let (worker, keeper, runtime) = (self.clone(), keeper.clone(), runtime.clone());
                tokio::task::spawn_blocking(move || runtime.block_on(task::run(&worker, &keeper, number)))
            })
            .collect();
        for task in tasks {
            if let Err(error) = task.await {
                self.fail(Trouble::new(format!("a task of {} ended badly: {error}", self.orders.life)));
            }
        }
    }
}

/// What lets us in: a password is of use only where the store has one, and on etcd where there is somebody whose it is.
pub(crate) fn access(url: &str, password: Option<String>) -> Access {
    let has_one = url.starts_with("redis") || (url.starts_with("etcd") && url.contains('@'));
    Access { password: password.filter(|_| has_one).map(Secret::new) }
}

/// What a store's error says, for people.
fn told(error: &lockkeeper::Error) -> Trouble {
    let trouble = Trouble::new(error.to_string());
    match error.hint() {
        Some(hint) => trouble.hint(hint),
        None => trouble,
    }
}

/// Whoever started the worker holds the other end of its standard input, and lets go of it to end the worker. The signal is
/// for people.
fn stop_when_told(worker: &Arc<Worker>) -> Result<(), Trouble> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error: std::io::Error| Trouble::new(format!("cannot listen for the end: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let told = worker.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        told.end();
    });
    let told = worker.clone();
    let listen = move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
        told.end();
    };
    std::thread::Builder::new().name("orders".to_owned()).spawn(listen).map_err(cannot)?;
    Ok(())
}
