//! What the store costs over bare SQLite. Run by hand: `cargo run --release -p lockkeeper-sqlite --example measure`.
//!
//! *Pairs*: 64 tasks on names of their own enter and leave, through the store and through a bare thread that runs
//! the same statements with the same group commit. Slices of both alternate, in the order A B B A.
//! *Hand-over*: from a release here to a hold in another process, beside one and two bare commits.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lockkeeper_core::store::{Standing, Store, Waiter};
use lockkeeper_core::{Claim, ClaimId, LockKind, Name, Owner, Patience};
use lockkeeper_sqlite::{Options, Sqlite, Sync};
use rusqlite::{Connection, Statement, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

const START: &str = include_str!("../queries/start.sql");
const LAST: &str = include_str!("../queries/last.sql");
const LINE: &str = include_str!("../queries/line.sql");
const PUT: &str = include_str!("../queries/claim_put.sql");
const DROP: &str = include_str!("../queries/claim_drop.sql");

const TASKS: usize = 64;
const SLICE: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_secs(30);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(path) = std::env::args().nth(1).filter(|first| first.starts_with('/')) {
        return runtime.block_on(relay(Path::new(&path)));
    }
    // The directory of the file: on the disk that counts, not on a tmpfs.
    let root = tempfile::tempdir_in(std::env::var_os("MEASURE_IN").unwrap_or_else(|| ".".into())).unwrap();
    for (word, sync) in [("full", Sync::Full), ("normal", Sync::Normal)] {
        runtime.block_on(pairs(root.path(), word, sync));
    }
    runtime.block_on(handover(root.path()));
}

/// All tasks at once; how many seconds they took together.
async fn slice<F, P>(pair: F) -> f64
where
    F: Fn(usize) -> P,
    P: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    (0..TASKS).for_each(|at| drop(running.spawn(pair(at))));
    running.join_all().await;
    began.elapsed().as_secs_f64()
}

async fn pairs(root: &Path, word: &str, sync: Sync) {
    let store = Sqlite::open(Options { sync, ..Options::at(root.join(format!("{word}-ours.db"))) }).await.unwrap();
    let bare = Bare::open(&root.join(format!("{word}-bare.db")), sync).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..32 {
        let order = if round % 2 == 0 { [true, false] } else { [false, true] };
        for through_store in order {
            let count = Arc::new(AtomicU64::new(0));
            let end = Instant::now() + SLICE;
            let took = if through_store {
                slice(|at| store_pairs(Arc::clone(&store), at, end, Arc::clone(&count))).await
            } else {
                slice(|at| bare_pairs(bare.clone(), at, end, Arc::clone(&count))).await
            };
            let rate = count.load(Ordering::SeqCst) as f64 / took;
            if through_store { ours.push(rate) } else { theirs.push(rate) }
        }
    }
    let mut ratios: Vec<_> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    let (low, high) = quartiles(&mut ratios);
    println!(
        "{word}: store {:.0} pairs/s, bare {:.0} pairs/s, ratio {:.3} (quartiles {low:.3} to {high:.3})",
        median(&mut ours),
        median(&mut theirs),
        median(&mut ratios)
    );
    store.close().await.unwrap();
}

fn claim() -> Claim {
    Claim {
        id: ClaimId::random().unwrap(),
        owner: Owner::new("measure").unwrap(),
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease: LEASE,
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    }
}

async fn store_pairs(store: Arc<Sqlite>, at: usize, end: Instant, count: Arc<AtomicU64>) {
    let lock = Name::new(&format!("measured/{at}")).unwrap();
    let mut claim = claim();
    while Instant::now() < end {
        // Another claim each time, without asking the system for randomness: that is the client's cost.
        claim.id = ClaimId::from_bytes((u128::from_be_bytes(claim.id.to_bytes()).wrapping_add(1)).to_be_bytes());
        store.enter(&lock, &claim).await.unwrap();
        store.leave(&lock, claim.id, Duration::ZERO).await.unwrap();
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn bare_pairs(bare: Bare, at: usize, end: Instant, count: Arc<AtomicU64>) {
    let lock: Arc<str> = format!("measured/{at}").into();
    while Instant::now() < end {
        for enters in [true, false] {
            let (reply, replied) = oneshot::channel();
            bare.0.send(Job { lock: Arc::clone(&lock), enters, reply }).unwrap();
            replied.await.unwrap();
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

struct Job {
    lock: Arc<str>,
    enters: bool,
    reply: oneshot::Sender<i64>,
}

/// The same statements by the shortest way there is.
#[derive(Clone)]
struct Bare(mpsc::Sender<Job>);

impl Bare {
    async fn open(path: &Path, sync: Sync) -> Self {
        // The store makes the schema, and is gone before the bare connection comes.
        Sqlite::open(Options::at(path)).await.unwrap().close().await.unwrap();
        let connection = Connection::open(path).unwrap();
        let level = if sync == Sync::Full { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", level).unwrap();
        let (jobs, queue) = mpsc::channel();
        std::thread::spawn(move || bare_thread(&connection, &queue));
        Self(jobs)
    }
}

fn bare_thread(connection: &Connection, queue: &mpsc::Receiver<Job>) {
    let prepare = |text| connection.prepare(text).unwrap();
    let (mut start, mut last_put) = (prepare(START), prepare(LAST));
    let mut statements = Statements { line: prepare(LINE), put: prepare(PUT), drop: prepare(DROP) };
    while let Ok(first) = queue.recv() {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).unwrap();
        let mut last: i64 = start.query_row([], |row| row.get(0)).unwrap();
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            last += 1;
            let answer = statements.run(&job, last);
            done.push((job.reply, answer));
            next = if done.len() < 64 { queue.try_recv().ok() } else { None };
        }
        last_put.execute([last]).unwrap();
        transaction.commit().unwrap();
        done.into_iter().for_each(|(reply, answer)| _ = reply.send(answer));
    }
}

/// Prepared once for all: no bare program could be faster.
struct Statements<'a> {
    line: Statement<'a>,
    put: Statement<'a>,
    drop: Statement<'a>,
}

impl Statements<'_> {
    fn run(&mut self, job: &Job, number: i64) -> i64 {
        let mut rows = self.line.query([&*job.lock]).unwrap();
        let mut found = None;
        while let Some(row) = rows.next().unwrap() {
            found = Some(row.get::<_, i64>(0).unwrap());
        }
        drop(rows);
        if job.enters {
            let (id, text) = ([7_u8; 16], "measure");
            let row = params![
                &*job.lock, number, id, id, text, 1, text, "mutex", 1, 1, number, number, number, number, number, 0,
                b""
            ];
            self.put.execute(row).unwrap();
        } else if let Some(order) = found {
            self.drop.execute(params![&*job.lock, order]).unwrap();
        }
        number
    }
}

async fn acquire(store: &Sqlite, lock: &Name, claim: &Claim) {
    loop {
        let seen = store.enter(lock, claim).await.unwrap();
        if matches!(seen, Standing::Held { .. }) {
            return;
        }
        store.wait(lock, Waiter::Claim { id: claim.id, seen: &seen }, claim.ask_every()).await.unwrap();
    }
}

/// The other process: waits for the lock, says so, leaves, and waits to be told to go on.
async fn relay(path: &Path) {
    let store = Sqlite::open(Options::at(path)).await.unwrap();
    let lock = Name::new("relay").unwrap();
    loop {
        let claim = claim();
        store.enter(&lock, &claim).await.unwrap();
        say("waiting");
        acquire(&store, &lock, &claim).await;
        say("held");
        store.leave(&lock, claim.id, Duration::ZERO).await.unwrap();
        let go_on = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await.unwrap();
        if go_on.is_none() {
            return;
        }
    }
}

fn say(text: &str) {
    println!("{text}");
    std::io::stdout().flush().unwrap();
}

async fn handover(root: &Path) {
    let path = std::path::absolute(root.join("handed.db")).unwrap();
    let store = Sqlite::open(Options::at(&path)).await.unwrap();
    let lock = Name::new("relay").unwrap();
    let mut mine = claim();
    acquire(&store, &lock, &mine).await;
    let this = std::env::current_exe().unwrap();
    let mut other =
        Command::new(this).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the other process");
    let (mut says, mut tell) = (BufReader::new(other.stdout.take().unwrap()), other.stdin.take().unwrap());
    let mut hear = || {
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        line
    };
    let raw = Connection::open(root.join("raw.db")).unwrap();
    raw.pragma_update(None, "journal_mode", "WAL").unwrap();
    raw.pragma_update(None, "synchronous", "FULL").unwrap();
    let (mut handed, mut commits) = (Vec::new(), Vec::new());
    for round in 0..300_i32 {
        assert_eq!(hear(), "waiting\n");
        tokio::time::sleep(Duration::from_millis(3)).await;
        let began = Instant::now();
        // A release and an acquire are two commits.
        for half in [0, 1] {
            raw.pragma_update(None, "user_version", round * 2 + half).unwrap();
        }
        commits.push(began.elapsed().as_secs_f64() * 1e6);
        let began = Instant::now();
        store.leave(&lock, mine.id, Duration::ZERO).await.unwrap();
        assert_eq!(hear(), "held\n");
        handed.push(began.elapsed().as_secs_f64() * 1e6);
        mine = claim();
        acquire(&store, &lock, &mine).await;
        writeln!(tell, "go on").unwrap();
    }
    drop(tell);
    other.kill().ok();
    other.wait().unwrap();
    println!(
        "hand-over to another process: median {:.0} µs (p99 {:.0}), two bare commits {:.0} µs (p99 {:.0})",
        median(&mut handed),
        handed[handed.len() * 99 / 100],
        median(&mut commits),
        commits[commits.len() * 99 / 100]
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn quartiles(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 4], values[values.len() * 3 / 4])
}
