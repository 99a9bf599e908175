//! What decides the fast lane: every way to take and release a free lock, on one server, in slices that take turns.
//!
//! `lockkeeper-bench redis-lanes`. It prints a table and records nothing: it is for whoever writes or questions the
//! store. Surprise: the processor time of the server per pair is the figure to look at. Pairs per second depend on
//! what else runs on the machine, and on two processors the client's own time hides the server's.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig;
use redis::aio::MultiplexedConnection;
use tokio::runtime::{Builder, Runtime};

use super::lane::{Alone, Enters, Lane, Leaves, Own, OwnLeave, SHAPE, Shape, Together};
use super::pairs::{Bare, Pings};
use super::wire::{self, Scripts};
use crate::Outcome;
use crate::harness::Plan;
use crate::machine::{self, Ticks};
use crate::pairs::{Client, TASKS, crowd};
use crate::stats::{interval_of_median, median, quantile};

/// What one slice came to.
#[derive(Debug, Clone, Copy)]
struct Slice {
    rate: f64,
    server_micros: f64,
    client_micros: f64,
    steal: f64,
}

type Tasks = Pin<Box<dyn Future<Output = Outcome<u64>>>>;

/// One way, ready to run.
struct Row {
    what: &'static str,
    run: Box<dyn Fn(Instant) -> Tasks>,
    slices: Vec<Slice>,
}

/// Measures and prints.
pub fn run(plan: Plan) -> Outcome<()> {
    let server = rig::Server::named("redis")?;
    let pid = server.identity().ok_or("the server is gone")?.pid;
    let rounds = if plan.quick { 4 } else { 12 };
    for (name, mut builder) in [("multi_thread(2)", two_threads()), ("current_thread", Builder::new_current_thread())] {
        let runtime = builder.enable_all().build()?;
        let mut rows = runtime.block_on(rows(&server.url()))?;
        for round in 0..=rounds {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let slice = measure(&runtime, &rows[at], pid, plan.slice)?;
                // The first round pays for cold caches.
                if round > 0 {
                    rows[at].slices.push(slice);
                }
            }
        }
        println!("\n## {TASKS} tasks, a name each, {name}, {rounds} rounds of {:?}\n", plan.slice);
        print_rows(&rows);
        println!("\n## one task, {name}: microseconds per pair\n");
        alone(&runtime, &server.url(), pid, plan)?;
    }
    server.stop()?;
    Ok(())
}

fn two_threads() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    builder
}

/// One slice of one row.
fn measure(runtime: &Runtime, row: &Row, pid: u32, length: Duration) -> Outcome<Slice> {
    let (steal, server, client) = (Ticks::now(), machine::cpu_of(pid)?, machine::process_cpu());
    let started = Instant::now();
    let count = runtime.block_on((row.run)(started + length))?;
    let seconds = started.elapsed().as_secs_f64();
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / count.max(1) as f64;
    Ok(Slice {
        rate: count as f64 / seconds,
        server_micros: micros(machine::cpu_of(pid)?.saturating_sub(server)),
        client_micros: micros(machine::process_cpu().saturating_sub(client)),
        steal: Ticks::now().stolen_since(steal),
    })
}

fn row<L: Lane>(what: &'static str, lane: L) -> Row {
    let client = Bare(lane);
    let run = move |end| {
        let client = client.clone();
        Box::pin(async move { crowd(&client, end).await }) as Tasks
    };
    Row { what, run: Box::new(run), slices: Vec::new() }
}

async fn rows(url: &str) -> Outcome<Vec<Row>> {
    let mut connection = wire::connect(url, true).await?;
    let scripts = Arc::new(Scripts::load(&mut connection).await?);
    let nagle = wire::connect(url, false).await?;
    let own = |connection: &MultiplexedConnection, enter, leave| {
        Alone::new(connection.clone(), scripts.clone(), enter, leave)
    };
    let shaped = |shape| Together::new(connection.clone(), scripts.clone(), shape);
    let tokenless = Shape { enters: Enters::Tokenless, leaves: Leaves::Delete, ..SHAPE };
    Ok(vec![
        row("a   tokenless, each its own SET and EVALSHA", own(&connection, Own::Set, OwnLeave::Delete)),
        row("a'  the same with Nagle's algorithm on", own(&nagle, Own::Set, OwnLeave::Delete)),
        row("a\"  tokenless, gathered (2 in flight)", shaped(tokenless)),
        row("b   with token, each its own pipeline", own(&connection, Own::Pipeline, OwnLeave::One)),
        row("c1  gathered: SETs, MGET, TIME; 1 leave script; 1 in flight", shaped(Shape { limit: 1, ..SHAPE })),
        row("c2  the same, 2 in flight", shaped(SHAPE)),
        row("c4  the same, 4 in flight", shaped(Shape { limit: 4, ..SHAPE })),
        row("c2' c2 without stepping back", shaped(Shape { steps_back: false, ..SHAPE })),
        row("c1' c1 without stepping back", shaped(Shape { steps_back: false, limit: 1, ..SHAPE })),
        row("c1s enters and leaves apart, 1 each in flight", shaped(Shape { apart: true, limit: 1, ..SHAPE })),
        row("h2  c2 with a leave script that needs no EXISTS", shaped(Shape { leaves: Leaves::Marked, ..SHAPE })),
        row("d2  c2 with an EVALSHA for each release", shaped(Shape { leaves: Leaves::ScriptEach, ..SHAPE })),
        row("e2  c2 with one script for the enters", shaped(Shape { enters: Enters::Script, ..SHAPE })),
        row("f   b with MULTI/EXEC", own(&connection, Own::Multi, OwnLeave::One)),
        row("f2  c2 with MULTI/EXEC around the enters", shaped(Shape { enters: Enters::Multi, ..SHAPE })),
        row("g2  c2 with FCALL for the releases", shaped(Shape { leaves: Leaves::Function, ..SHAPE })),
    ])
}

fn print_rows(rows: &[Row]) {
    println!(
        "{:<62} {:>9} {:>22} {:>9} {:>9} {:>7}",
        "", "pairs/s", "ratio to a (95 %)", "server µs", "client µs", "steal"
    );
    let Some(base) = rows.first() else { return };
    for row in rows {
        let ratios: Vec<f64> = row.slices.iter().zip(&base.slices).map(|(ours, base)| ours.rate / base.rate).collect();
        let of = |number: fn(&Slice) -> f64| median(&row.slices.iter().map(number).collect::<Vec<_>>());
        let interval = interval_of_median(&ratios);
        println!(
            "{:<62} {:>9.0} {:>8.2} ({:.2}–{:.2})  {:>9.2} {:>9.2} {:>6.1}%",
            row.what,
            of(|slice| slice.rate),
            median(&ratios),
            interval.low,
            interval.high,
            of(|slice| slice.server_micros),
            of(|slice| slice.client_micros),
            row.slices.iter().map(|slice| slice.steal).fold(0.0, f64::max) * 100.0,
        );
    }
}

/// How often a way is run before the next has its turn, when one task is alone.
const EACH: usize = 200;

/// One task alone: what a pair takes, in turns with two bare round trips.
fn alone(runtime: &Runtime, url: &str, pid: u32, plan: Plan) -> Outcome<()> {
    let rounds = if plan.quick { 5 } else { 25 };
    let mut ways = runtime.block_on(ways(url))?;
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let way = &mut ways[at];
            let server = machine::cpu_of(pid)?;
            let turn = runtime.spawn((way.run)(round));
            way.took.extend(runtime.block_on(turn)??);
            way.server += machine::cpu_of(pid)?.saturating_sub(server);
        }
    }
    let base = ways.first().map_or(f64::NAN, |way| quantile(&way.took, 0.5));
    for Way { what, took, server, .. } in &ways {
        let (p50, p99) = (quantile(took, 0.5), quantile(took, 0.99));
        let server = server.as_secs_f64() * 1e6 / took.len() as f64;
        println!("{what:<52} p50 {p50:>7.1}  p99 {p99:>7.1}  {:>5.2} × PING PING  server {server:>5.1} µs", p50 / base);
    }
    Ok(())
}

type Turn = Pin<Box<dyn Future<Output = Outcome<Vec<f64>>> + Send>>;

/// One way, with one task, and how long each of its pairs took.
struct Way {
    what: &'static str,
    run: Box<dyn Fn(usize) -> Turn>,
    took: Vec<f64>,
    server: Duration,
}

fn way<C: Client>(what: &'static str, client: C) -> Way {
    let turn = move |round: usize| {
        let (client, lock) = (client.clone(), client.lock(0));
        Box::pin(async move {
            let mut took = Vec::with_capacity(EACH);
            for step in 0..EACH {
                let started = Instant::now();
                client.pair(&lock, (round * EACH + step) as u128).await?;
                took.push(started.elapsed().as_secs_f64() * 1e6);
            }
            Ok(took)
        }) as Turn
    };
    Way { what, run: Box::new(turn), took: Vec::new(), server: Duration::ZERO }
}

async fn ways(url: &str) -> Outcome<Vec<Way>> {
    let mut connection = wire::connect(url, true).await?;
    let scripts = Arc::new(Scripts::load(&mut connection).await?);
    let own = |enter, leave| Bare(Alone::new(connection.clone(), scripts.clone(), enter, leave));
    let gathered = Together::new(connection.clone(), scripts.clone(), Shape { limit: 1, ..SHAPE });
    Ok(vec![
        way("PING PING", Pings(connection.clone())),
        way("a   SET; compare and delete", own(Own::Set, OwnLeave::Delete)),
        way("    SET; GETRANGE compare and delete", own(Own::Set, OwnLeave::Short)),
        way("    SET, GET, TIME; GETRANGE compare and delete", own(Own::Pipeline, OwnLeave::Short)),
        way("b   SET, GET, TIME; leave script for one", own(Own::Pipeline, OwnLeave::One)),
        way("    SET, GET, TIME; leave script for many", own(Own::Pipeline, OwnLeave::Many)),
        way("    SET, GET, TIME; leave script without EXISTS", own(Own::Pipeline, OwnLeave::Marked)),
        way("c1  gathered", Bare(gathered)),
    ])
}
