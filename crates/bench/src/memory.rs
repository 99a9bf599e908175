//! 100,000 holds in one process: what they cost in memory, threads and processor time, and what they do to others.
//!
//! The store is the in-memory one, so that what is measured is the client. Surprise: memory is measured in children
//! of their own, because a process that has freed memory does not give it back, and the second measurement would
//! find it free of charge.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockkeeper::layers::{Answer, Call, Layer, Next, wrap};
use lockkeeper::store::{Claim, Patience, Reply};
use lockkeeper::{ClaimId, Hold, Keeper, LockKind, Name, Owner};
use tokio::runtime::Runtime;

use crate::harness::Plan;
use crate::report::{Figure, Report};
use crate::stats::quantile;
use crate::{Outcome, machine};

/// How many holds.
const HOLDS: usize = 100_000;
/// The lease that a lock has if none is asked for.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// Ever shorter leases, to find what the watchdog can carry.
const LEASES_MS: &[u64] = &[3_000, 1_000, 500, 300, 200, 100];

/// Measures everything.
pub fn run(plan: Plan) -> Outcome<Report> {
    let mut figures = memory_figures()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    figures.extend(steady(&runtime, plan)?);
    figures.extend(capacity(&runtime, plan)?);
    Ok(Report {
        name: "memory",
        about: "100,000 holds of one keeper on the memory store",
        ratios: Vec::new(),
        figures,
        beside: Vec::new(),
    })
}

/// Twenty bytes, like the names that people choose.
fn name(number: usize) -> String {
    format!("orders/item-{number:08}")
}

fn memory_figures() -> Outcome<Vec<Figure>> {
    let (all, store) = (grown_by("keeper")?, grown_by("store")?);
    let per_hold = |bytes: f64| bytes / HOLDS as f64;
    Ok(vec![
        Figure::new("memory per hold, client and store", per_hold(all), "bytes"),
        Figure::new("of which the memory store's line", per_hold(store), "bytes"),
        Figure::new("of which the client's hold", per_hold(all - store), "bytes"),
    ])
}

/// By how many bytes a child grows that takes all holds.
fn grown_by(whose: &str) -> Outcome<f64> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["child", "rss", whose, &HOLDS.to_string()]).output()?;
    if !output.status.success() {
        return Err(format!("a child failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The hidden mode behind `grown_by`: prints the growth in bytes.
pub fn child(whose: &str, count: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let grown = runtime.block_on(async {
        match whose {
            "keeper" => grow_by_keeper(count).await,
            _ => grow_by_store(count).await,
        }
    })?;
    println!("{grown}");
    Ok(())
}

async fn grow_by_keeper(count: usize) -> Outcome<u64> {
    let keeper = Keeper::connect("memory:").await?;
    // The first hold starts the watchdog, which is not part of a hold's price.
    let first = keeper.mutex("first").lock().await?;
    let before = machine::resident_bytes()?;
    let mut holds = Vec::with_capacity(count);
    for number in 0..count {
        holds.push(keeper.mutex(&name(number)).lock().await?);
    }
    let grown = machine::resident_bytes()? - before;
    drop((first, holds));
    Ok(grown)
}

async fn grow_by_store(count: usize) -> Outcome<u64> {
    let store = lockkeeper::open("memory:").await?;
    let owner = Owner::new("")?;
    let enter = async |name: &str| {
        let claim = Claim {
            id: ClaimId::random()?,
            owner: owner.clone(),
            kind: LockKind::Mutex,
            weight: 1,
            capacity: 1,
            lease: DEFAULT_LEASE,
            delay: Duration::ZERO,
            fair: false,
            patience: Patience::Queue,
            note: Vec::new(),
        };
        store.enter(&Name::new(name)?, &claim).await
    };
    enter("first").await?;
    let before = machine::resident_bytes()?;
    for number in 0..count {
        enter(&name(number)).await?;
    }
    Ok(machine::resident_bytes()? - before)
}

/// Counts renewals. It stands around the store itself, because the watchdog does not pass through a user's layers.
#[derive(Debug, Default)]
struct Tally {
    batches: AtomicU64,
    holds: AtomicU64,
    slowest_nanos: AtomicU64,
}

#[derive(Debug)]
struct Counted(Arc<Tally>);

impl Layer for Counted {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        let Call::Renew { held } = call else { return next.run(call).reply() };
        self.0.batches.fetch_add(1, Ordering::Relaxed);
        self.0.holds.fetch_add(held.len() as u64, Ordering::Relaxed);
        Box::pin(async move {
            let started = Instant::now();
            let answer = next.run(call).await;
            self.0.slowest_nanos.fetch_max(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
            answer
        })
    }
}

/// A keeper with all its holds.
struct Crowd {
    keeper: Keeper,
    holds: Vec<Hold>,
    tally: Arc<Tally>,
    watchdogs: Vec<u32>,
    took: Duration,
}

/// What happened while a crowd was watched.
struct Watched {
    span: Duration,
    batches: f64,
    renewals: f64,
    watchdog_cpu: Duration,
    /// How long `lock()` and `release()` of another name took meanwhile, in microseconds.
    pairs: Vec<f64>,
    lost: usize,
}

impl Crowd {
    async fn take(lease: Duration) -> Outcome<Self> {
        let tally = Arc::new(Tally::default());
        let store = wrap(lockkeeper::open("memory:").await?, Counted(tally.clone()));
        let keeper = Keeper::with_store(store);
        let mut holds = Vec::with_capacity(HOLDS);
        let started = Instant::now();
        for number in 0..HOLDS {
            holds.push(keeper.mutex(&name(number)).lease(lease).lock().await?);
        }
        let took = started.elapsed();
        let watchdogs = machine::threads_named("lockkeeper-watchdog")?;
        Ok(Self { keeper, holds, tally, watchdogs, took })
    }

    async fn watch(&self, span: Duration) -> Outcome<Watched> {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed) as f64;
        let watchdog = *self.watchdogs.first().ok_or("there is no watchdog")?;
        let (batches, renewals) = (count(&self.tally.batches), count(&self.tally.holds));
        let (started, cpu) = (Instant::now(), machine::thread_cpu(watchdog)?);
        let pairs = probe(&self.keeper, span).await?;
        Ok(Watched {
            span: started.elapsed(),
            batches: count(&self.tally.batches) - batches,
            renewals: count(&self.tally.holds) - renewals,
            watchdog_cpu: machine::thread_cpu(watchdog)?.saturating_sub(cpu),
            pairs,
            lost: self.holds.iter().filter(|hold| !hold.is_held()).count(),
        })
    }

    /// Releases everything, and waits until the watchdog's thread is gone. Says how long the releases took.
    async fn end(self) -> Outcome<Duration> {
        let started = Instant::now();
        for hold in self.holds {
            // A hold that was lost is not the business of this step.
            let _ = hold.release().await;
        }
        let took = started.elapsed();
        self.keeper.close().await?;
        drop(self.keeper);
        let patience = Instant::now() + Duration::from_secs(30);
        while !machine::threads_named("lockkeeper-watchdog")?.is_empty() {
            if Instant::now() > patience {
                return Err("the watchdog's thread did not end within 30 s".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(took)
    }
}

/// Locks and releases free names for a while, with a pause in between; microseconds of every pair.
async fn probe(keeper: &Keeper, span: Duration) -> Outcome<Vec<f64>> {
    let (mut pairs, end) = (Vec::new(), Instant::now() + span);
    while Instant::now() < end {
        let mutex = keeper.mutex(&format!("probe/{}", pairs.len()));
        let started = Instant::now();
        mutex.lock().await?.release().await?;
        pairs.push(started.elapsed().as_secs_f64() * 1e6);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(pairs)
}

fn latency(when: &str, pairs: &[f64]) -> [Figure; 3] {
    let figure = |part: &str, q| Figure::new(format!("lock + release {when}, {part}"), quantile(pairs, q), "µs");
    [figure("p50", 0.5), figure("p99", 0.99), figure("longest", 1.0)]
}

/// The default lease, for a minute.
fn steady(runtime: &Runtime, plan: Plan) -> Outcome<Vec<Figure>> {
    let span = Duration::from_secs(if plan.quick { 12 } else { 60 });
    runtime.block_on(async {
        let alone = probe(&Keeper::connect("memory:").await?, span / 12).await?;
        let crowd = Crowd::take(DEFAULT_LEASE).await?;
        let watched = crowd.watch(span).await?;
        let (threads, took) = (crowd.watchdogs.len() as f64, crowd.took);
        let slowest = crowd.tally.slowest_nanos.load(Ordering::Relaxed) as f64 / 1e6;
        let released = crowd.end().await?;
        let per_hold = |time: Duration| time.as_secs_f64() * 1e6 / HOLDS as f64;
        let intervals = span.as_secs_f64() / (DEFAULT_LEASE / 3).as_secs_f64();
        let minutes = watched.span.as_secs_f64() / 60.0;
        let mut figures = vec![
            Figure::new("threads that renew", threads, "").exactly(1.0),
            Figure::new("taking a hold, one after the other", per_hold(took), "µs"),
            Figure::new("releasing a hold, one after the other", per_hold(released), "µs"),
            Figure::new("holds lost at a lease of 30 s", watched.lost as f64, "").exactly(0.0),
            Figure::new("batches per third of a lease of 30 s", watched.batches / intervals, ""),
            Figure::new("holds per batch", watched.renewals / watched.batches, ""),
            Figure::new("the longest batch at the store", slowest, "ms"),
            Figure::new("processor time of renewing", watched.watchdog_cpu.as_secs_f64() / minutes, "s per minute"),
        ];
        figures.extend(latency("alone", &alone));
        figures.extend(latency("beside 100,000 holds of 30 s", &watched.pairs));
        Ok(figures)
    })
}

/// Ever shorter leases, until a hold is lost: what the watchdog can carry.
fn capacity(runtime: &Runtime, plan: Plan) -> Outcome<Vec<Figure>> {
    let span = Duration::from_secs(if plan.quick { 2 } else { 10 });
    runtime.block_on(async {
        let (mut carried, mut figures) = (0.0_f64, Vec::new());
        for lease in LEASES_MS {
            let crowd = Crowd::take(Duration::from_millis(*lease)).await?;
            let watched = crowd.watch(span).await?;
            crowd.end().await?;
            let rate = watched.renewals / watched.span.as_secs_f64();
            let busy = watched.watchdog_cpu.as_secs_f64() / watched.span.as_secs_f64() * 100.0;
            figures.push(Figure::new(format!("renewals at a lease of {lease} ms"), rate, "per second"));
            figures.push(Figure::new(format!("watchdog's processor at a lease of {lease} ms"), busy, "%"));
            figures.push(Figure::new(format!("holds lost at a lease of {lease} ms"), watched.lost as f64, ""));
            if *lease == LEASES_MS[0] {
                let per_core = watched.renewals / watched.watchdog_cpu.as_secs_f64();
                figures.push(Figure::new("renewals in a second of processor time", per_core, ""));
                figures.extend(latency(&format!("beside 100,000 holds of {lease} ms"), &watched.pairs));
            }
            if watched.lost > 0 {
                break;
            }
            carried = carried.max(rate);
        }
        figures.insert(0, Figure::new("renewals carried without a loss, at least", carried, "per second"));
        Ok(figures)
    })
}
