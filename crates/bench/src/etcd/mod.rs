//! The etcd store against a bare client and against its peers, in one run.
//!
//! Surprise: most of every figure is the server. On one host it, its log and the client share the processors, so a client
//! that costs little more than a bare one also leaves the server more of them.

mod turns;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Keeper;
use lockkeeper_conformance::rig;
use tokio::runtime::Runtime;

use crate::harness::{Arm, Bar, Comparison, Plan, Work, compare, compare_beside};
use crate::local::{self, Turns};
use crate::pairs::{Many, One, Ours, TASKS};
use crate::peers::{self, Peer, Peers};
use crate::report::{Figure, Ratio, Report};
use crate::stats::quantile;
use crate::turns::{self as games, Game, Two};
use crate::{Outcome, machine};
use wire::Bare;

/// What the bare client does.
const SAME: &str = "the same two transactions from a bare client";

/// An arm whose slices begin on a server that has been compacted.
struct Compacted<A> {
    arm: A,
    runtime: Arc<Runtime>,
    bare: Bare,
}

impl<A: Arm> Arm for Compacted<A> {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        self.runtime.block_on(self.bare.compact())?;
        self.arm.run(length)
    }
}

/// Everything that is measured stands on this.
struct Bench {
    plan: Plan,
    url: String,
    runtime: Arc<Runtime>,
    peers: Peers,
}

/// Measures everything; `peers` is where other people's clients are installed.
pub fn run(plan: Plan, peers: Option<&Path>) -> Outcome<Report> {
    let plan = Plan { slice: plan.slice.min(Duration::from_millis(500)), ..plan };
    let server = rig::Server::named("etcd")?;
    let bench = Bench::at(plan, server.url(), Peers::in_folder(peers, "etcd"))?;
    let mut ratios = vec![
        bench.one_task("lock + release, one after the other", Some(Bar::AtMost(1.15)))?,
        bench.many_tasks("lock + release of 64 tasks, a name each", Some(Bar::AtLeast(0.85)))?,
    ];
    ratios.extend(bench.two_processes()?);
    ratios.extend(bench.one_hand_over()?);
    let mut figures = bench.one_name()?;
    figures.extend(bench.without_compaction()?);
    let mut beside = vec![server.entry()?.version];
    beside.extend(bench.peers.versions(peers::ETCD)?);
    server.stop()?;
    ratios.extend(of_three(plan, bench.peers)?);
    let about =
        "the etcd store against a bare client and against other people's, on one host; nothing is forced to disk";
    Ok(Report { name: "etcd", about, ratios, figures, beside })
}

/// The same on three members, for information.
fn of_three(plan: Plan, peers: Peers) -> Outcome<Vec<Ratio>> {
    let cluster = rig::Cluster::named("etcd-3")?;
    let bench = Bench::at(plan, cluster.url(), peers)?;
    let rows = vec![
        bench.one_task("lock + release, one after the other, three members", None)?,
        bench.many_tasks("lock + release of 64 tasks, a name each, three members", None)?,
    ];
    cluster.stop()?;
    Ok(rows)
}

impl Bench {
    fn at(plan: Plan, url: String, peers: Peers) -> Outcome<Self> {
        let runtime = Arc::new(games::runtime()?);
        Ok(Self { plan, url, runtime, peers })
    }

    fn keeper(&self) -> Outcome<Keeper> {
        Ok(self.runtime.block_on(Keeper::connect(&self.url))?)
    }

    /// A bare client whose lease lasts for as long as the benchmark.
    fn bare(&self) -> Outcome<Bare> {
        let bare = self.runtime.block_on(Bare::open(&self.url))?;
        let kept = bare.clone();
        self.runtime.spawn(async move {
            while kept.keep_alive().await.is_ok() {
                tokio::time::sleep(Duration::from_secs(wire::LEASE_S.unsigned_abs() / 3)).await;
            }
        });
        Ok(bare)
    }

    fn compacted<A: Arm>(&self, bare: &Bare, arm: A) -> Compacted<A> {
        Compacted { arm, runtime: self.runtime.clone(), bare: bare.clone() }
    }

    /// One after the other.
    fn one_task(&self, what: &'static str, bar: Option<Bar>) -> Outcome<Ratio> {
        eprintln!("measuring: {what}");
        let (keeper, bare, runtime) = (self.keeper()?, self.bare()?, || self.runtime.clone());
        let mut ours = self.compacted(&bare, One { runtime: runtime(), client: Ours(keeper.clone()) });
        let mut base = self.compacted(&bare, One { runtime: runtime(), client: bare.clone() });
        let found = compare(&mut ours, &mut base, self.plan)?;
        self.runtime.block_on(keeper.close())?;
        Ok(Ratio { what, against: SAME, unit: "µs p50", bar, found })
    }

    /// 64 tasks, a name each.
    fn many_tasks(&self, what: &'static str, bar: Option<Bar>) -> Outcome<Ratio> {
        eprintln!("measuring: {what}");
        let (keeper, bare, runtime) = (self.keeper()?, self.bare()?, || self.runtime.clone());
        let mut ours = self.compacted(&bare, Many { runtime: runtime(), client: Ours(keeper.clone()) });
        let mut base = self.compacted(&bare, Many { runtime: runtime(), client: bare.clone() });
        let found = compare(&mut ours, &mut base, self.plan)?;
        self.runtime.block_on(keeper.close())?;
        Ok(Ratio { what, against: SAME, unit: "pairs/s", bar, found })
    }

    /// What it costs that the server is not compacted.
    fn without_compaction(&self) -> Outcome<Vec<Figure>> {
        eprintln!("measuring: a name that was released often");
        let keeper = self.keeper()?;
        self.runtime.block_on(self.bare()?.compact())?;
        let mut one = One { runtime: self.runtime.clone(), client: Ours(keeper.clone()) };
        let fresh = one.run(self.plan.slice)?;
        let releases: u64 = if self.plan.quick { 5_000 } else { 50_000 };
        let mut done = fresh.count;
        while done < releases {
            done += one.run(Duration::from_secs(1))?.count;
        }
        let used = one.run(self.plan.slice)?;
        self.runtime.block_on(keeper.close())?;
        let what = "lock + release, one after the other, p50";
        Ok(vec![
            Figure::new(format!("{what}: just compacted"), fresh.score, "µs"),
            Figure::new(format!("{what}: after {done} releases of that name without compaction"), used.score, "µs"),
        ])
    }

    /// One name, two processes with 8 tasks each.
    fn two_processes(&self) -> Outcome<Vec<Ratio>> {
        let what = "one name, 2 processes × 8 tasks, local hand-over off: turns by way of the server";
        eprintln!("measuring: {what}");
        // Theirs come in lots of 100 ms: a slice has more than a few.
        let plan = Plan { slice: self.plan.slice * 2, ..self.plan };
        let bare = self.bare()?;
        let mut ours = self.compacted(&bare, Two::ours(Game::Line, "etcd", &self.url, false)?);
        let mut rows = Vec::new();
        for (peer, against, bar) in [
            (Peer::EtcdClient, "etcd-client, which asks for the server's own lock", Bar::AtLeast(4.0)),
            (Peer::GoConcurrency, "Go's concurrency.Mutex", Bar::AtLeast(1.0)),
        ] {
            if let Some(theirs) = self.peers.two(peer, Game::Line, &self.url)? {
                let found = compare(&mut ours, &mut self.compacted(&bare, theirs), plan)?;
                rows.push(Ratio { what, against, unit: "turns/s", bar: Some(bar), found });
            }
        }
        Ok(rows)
    }

    /// From `release()` in one process to `lock()` returned in another that waits.
    fn one_hand_over(&self) -> Outcome<Vec<Ratio>> {
        let what = "from release to acquired in another waiting process";
        eprintln!("measuring: {what}");
        let row = |what, bar, found| Ratio {
            what,
            against: "a bare put, heard of by a watch that was there, then a transaction, at the same pace",
            unit: "µs p50",
            bar,
            found,
        };
        let bare = self.bare()?;
        let mut token = self.compacted(&bare, turns::token(&self.url)?);
        let mut ours = self.compacted(&bare, Two::ours(Game::Ball, "etcd", &self.url, true)?);
        let found = compare(&mut ours, &mut token, self.plan)?;
        let mut beside: Vec<(&'static str, Comparison)> = Vec::new();
        for (peer, what) in [
            (Peer::EtcdClient, "the same with etcd-client"),
            (Peer::GoConcurrency, "the same with Go's concurrency.Mutex"),
        ] {
            if let Some(mut theirs) = self.peers.two(peer, Game::Ball, &self.url)? {
                beside.push((what, compare_beside(&found, &mut theirs, &mut token, self.plan)?));
            }
        }
        let mut rows = vec![row(what, Some(Bar::AtMost(2.0)), found)];
        rows.extend(beside.into_iter().map(|(what, found)| row(what, None, found)));
        Ok(rows)
    }

    /// 64 tasks of one process on one name, while another process waits for its turn.
    fn one_name(&self) -> Outcome<Vec<Figure>> {
        eprintln!("measuring: 64 tasks, one name");
        let mut turns = Turns::new(self.runtime.clone(), self.keeper()?, TASKS);
        turns.run(self.plan.slice)?;
        let length = if self.plan.quick { Duration::from_secs(2) } else { Duration::from_secs(10) };
        let found = turns.while_another_waits(&["etcd", "another", &self.url], length)?;
        turns.close()?;
        let what = "64 tasks of one process on one name";
        Ok(vec![
            Figure::new(format!("{what}: acquisitions"), found.rate, "per second"),
            Figure::new(format!("{what}: turns of another process meanwhile"), found.waits.len() as f64, ""),
            Figure::new(format!("{what}: the other's wait, p50"), quantile(&found.waits, 0.5), "ms"),
            Figure::new(format!("{what}: the other's wait, p99"), quantile(&found.waits, 0.99), "ms"),
        ])
    }
}

/// The hidden mode for a profiler: one side of a comparison alone, for some slices of a second, on a server of its own.
fn alone(side: &str, seconds: u64) -> Outcome<()> {
    let server = rig::Server::named("etcd")?;
    let pid = server.identity().ok_or("the server is gone")?.pid;
    let bench = Bench::at(Plan::QUICK, server.url(), Peers::in_folder(None, "etcd"))?;
    let (runtime, url, bare) = (bench.runtime.clone(), bench.url.as_str(), bench.bare()?);
    let mut arm: Box<dyn Arm> = match side {
        "ours" => Box::new(Many { runtime, client: Ours(bench.keeper()?) }),
        "ours-one" => Box::new(One { runtime, client: Ours(bench.keeper()?) }),
        "raw" => Box::new(Many { runtime, client: bare.clone() }),
        "raw-one" => Box::new(One { runtime, client: bare.clone() }),
        "turns" => Box::new(Two::ours(Game::Line, "etcd", url, false)?),
        "ball" => Box::new(Two::ours(Game::Ball, "etcd", url, true)?),
        "ball-raw" => Box::new(turns::token(url)?),
        other => return Err(format!("there is no side `{other}`").into()),
    };
    for _ in 0..seconds {
        bench.runtime.block_on(bare.compact())?;
        let before = machine::cpu_of(pid)?;
        let work = arm.run(Duration::from_secs(1))?;
        let server_cpu = machine::cpu_of(pid)?.saturating_sub(before).as_secs_f64() * 1e6 / work.count.max(1) as f64;
        println!("{side}: {:.1}, processor µs: client {:.1}, server {server_cpu:.1}", work.score, work.cpu_micros());
    }
    Ok(server.stop()?)
}

/// The hidden modes.
pub fn child(args: &[&str]) -> Outcome<()> {
    match args {
        ["alone", side, seconds] => alone(side, seconds.parse()?),
        ["token", url, role] => turns::child(url, role.parse::<usize>()?.min(1)),
        ["another", url, millis] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let length = Duration::from_millis(millis.parse()?);
            runtime.block_on(async { local::another(&Keeper::connect(url).await?, length).await })
        }
        [mode, url, hand_over] => games::play(Game::of_mode(mode), lockkeeper::open(url), hand_over.parse()?),
        _ => Err("this mode is for this program alone".into()),
    }
}
