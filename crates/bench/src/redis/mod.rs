//! The Redis store against a bare client and against its peers, on one server, in one run.
//!
//! Surprise: the server is the machine's other processor. A figure of pairs per second is as much about the server's work
//! as about the client's, so what is saved at the server (see `lanes`) is seen in both.

mod gather;
mod holds;
mod lane;
mod lanes;
mod pairs;
mod trips;
mod turns;
mod waiters;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Keeper;
use lockkeeper_conformance::rig;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;

pub use lanes::run as lanes;

use crate::harness::{Arm, Bar, Plan, compare, compare_beside};
use crate::local::{self, Turns};
use crate::pairs::{Many, One, Ours, TASKS};
use crate::peers::{self, Peer, Peers};
use crate::report::{Figure, Ratio, Report};
use crate::stats::quantile;
use crate::turns::{self as games, Game, Two};
use crate::{Outcome, machine};
use lane::{Alone, Own, OwnLeave, SHAPE, Together};
use pairs::{Bare, Pings};
use wire::Scripts;

/// Everything that is measured stands on this.
struct Bench {
    plan: Plan,
    url: String,
    server: u32,
    runtime: Arc<Runtime>,
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    peers: Peers,
}

/// Measures everything; `peers` is where other people's clients are installed.
pub fn run(plan: Plan, peers: Option<&Path>) -> Outcome<Report> {
    let server = rig::Server::named("redis")?;
    // Half a second is what a figure needs at the least; there are many of them.
    let plan = Plan { slice: plan.slice.min(Duration::from_millis(500)), ..plan };
    let bench = Bench::at(plan, &server, peers)?;
    let mut ratios = bench.one_task()?;
    ratios.extend(bench.many_tasks()?);
    ratios.extend(bench.two_processes()?);
    ratios.extend(bench.one_hand_over()?);
    let mut figures = vec![trips::figure(&bench.runtime, server.port())?];
    figures.extend(bench.one_name()?);
    eprintln!("measuring: long lines, many holds");
    figures.extend(waiters::figures(&bench.runtime, &bench.url)?);
    figures.extend(holds::figures(&bench.runtime, &bench.url, bench.server, if plan.quick { 1 } else { 3 })?);
    let mut beside = vec![format!("redis-server {}", server.entry()?.version)];
    beside.extend(bench.peers.versions(peers::REDIS)?);
    server.stop()?;
    let about = "the Redis store against a bare client and against other people's, on one server on this host";
    Ok(Report { name: "redis", about, ratios, figures, beside })
}

impl Bench {
    fn at(plan: Plan, server: &rig::Server, peers: Option<&Path>) -> Outcome<Self> {
        let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?);
        let url = server.url();
        let (connection, scripts) = runtime.block_on(async {
            let mut connection = wire::connect(&url, true).await?;
            let scripts = Scripts::load(&mut connection).await?;
            Outcome::Ok((connection, Arc::new(scripts)))
        })?;
        let pid = server.identity().ok_or("the server is gone")?.pid;
        Ok(Self { plan, url, server: pid, runtime, connection, scripts, peers: Peers::in_folder(peers, "redis") })
    }

    fn bare(&self, enter: Own, leave: OwnLeave) -> Bare<Alone> {
        Bare(Alone::new(self.connection.clone(), self.scripts.clone(), enter, leave))
    }

    fn keeper(&self) -> Outcome<Keeper> {
        Ok(self.runtime.block_on(Keeper::connect(&self.url))?)
    }

    /// One after the other.
    fn one_task(&self) -> Outcome<Vec<Ratio>> {
        eprintln!("measuring: one task");
        let keeper = self.keeper()?;
        let runtime = || self.runtime.clone();
        let mut ours = One { runtime: runtime(), client: Ours(keeper.clone()) };
        let mut pair = One { runtime: runtime(), client: self.bare(Own::Set, OwnLeave::Delete) };
        let mut pings = One { runtime: runtime(), client: Pings(self.connection.clone()) };
        let (what, unit, bar) = ("lock + release, one after the other", "µs p50", Some(Bar::AtMost(1.15)));
        let against = "two bare round trips: SET NX PX, compare-and-delete";
        let found = compare(&mut ours, &mut pair, self.plan)?;
        let mut rows = vec![Ratio { what, against, unit, bar, found }];
        let mut same = One { runtime: runtime(), client: self.bare(Own::AsTheStore, OwnLeave::AsTheStore) };
        let found = compare(&mut ours, &mut same, self.plan)?;
        rows.push(Ratio { what, against: "the same commands from a bare client", unit, bar: None, found });
        let found = compare(&mut ours, &mut pings, self.plan)?;
        rows.push(Ratio { what, against: "two bare round trips that do nothing: PING, PING", unit, bar, found });
        self.runtime.block_on(keeper.close())?;
        Ok(rows)
    }

    /// 64 tasks, a name each. Bare clients have the default settings of their driver here: its sockets gather small
    /// writes by themselves (Nagle's algorithm), which carries more of them than `nodelay` does.
    fn many_tasks(&self) -> Outcome<Vec<Ratio>> {
        eprintln!("measuring: 64 tasks, a name each");
        let (unit, plain_name) = ("pairs/s", "the bare pair without tokens");
        let row = |what, against, bar, found| Ratio { what, against, unit, bar, found };
        let by_default = self.runtime.block_on(wire::connect(&self.url, false))?;
        let bare = |connection: &MultiplexedConnection, enter, leave| {
            let client = Bare(Alone::new(connection.clone(), self.scripts.clone(), enter, leave));
            Many { runtime: self.runtime.clone(), client }
        };
        let keeper = self.keeper()?;
        let mut ours = Many { runtime: self.runtime.clone(), client: Ours(keeper.clone()) };
        let what = "lock + release of 64 tasks, a name each, with tokens";
        let found = compare(&mut ours, &mut bare(&by_default, Own::AsTheStore, OwnLeave::AsTheStore), self.plan)?;
        let mut rows = vec![row(what, "the same commands from a bare client", Some(Bar::AtLeast(0.9)), found)];
        let mut plain = bare(&by_default, Own::Set, OwnLeave::Delete);
        let found = compare(&mut ours, &mut plain, self.plan)?;
        let mut beside = Vec::new();
        let gathered = Together::new(self.connection.clone(), self.scripts.clone(), SHAPE);
        let gathered = Many { runtime: self.runtime.clone(), client: Bare(gathered) };
        let mut arms: Vec<(&'static str, Box<dyn Arm>)> = vec![
            ("a bare client that gathers as ours does, 64 tasks, with tokens", Box::new(gathered)),
            ("the bare pair without tokens, nodelay", Box::new(bare(&self.connection, Own::Set, OwnLeave::Delete))),
        ];
        for (peer, what) in [
            (Peer::Rslock, "rslock, 64 tasks, without tokens"),
            (Peer::NodeRedlock, "node-redlock, 64 tasks, without tokens"),
        ] {
            if let Some(player) = self.peers.start(peer, "pairs", &self.url)? {
                arms.push((what, Box::new(peers::Pairs(player))));
            }
        }
        for (what, mut arm) in arms {
            beside.push(row(what, plain_name, None, compare_beside(&found, &mut *arm, &mut plain, self.plan)?));
        }
        // 0.7 is the bar; 0.8 is hoped for.
        rows.push(row(what, plain_name, Some(Bar::AtLeast(0.7)), found));
        rows.extend(beside);
        self.runtime.block_on(keeper.close())?;
        Ok(rows)
    }

    /// One name, two processes with 8 tasks each.
    fn two_processes(&self) -> Outcome<Vec<Ratio>> {
        eprintln!("measuring: one name, two processes");
        let (game, against, unit) = (Game::Turns, "a bare BLPOP token passed between two processes", "hand-overs/s");
        let mut token = turns::token(game, &self.url)?;
        let found = compare(&mut Two::ours(game, "redis", &self.url, false)?, &mut token, self.plan)?;
        let row = |what, bar, found| Ratio { what, against, unit, bar, found };
        let mut beside = Vec::new();
        let mut arms: Vec<(&'static str, Two)> = vec![(
            "the same with local hand-over on (most turns then stay in a process)",
            Two::ours(game, "redis", &self.url, true)?,
        )];
        arms.extend(self.peer_pair(game, Peer::PythonRedisLock, "python-redis-lock, 2 processes × 8 threads")?);
        arms.extend(self.peer_pair(game, Peer::Rslock, "rslock, 2 processes × 8 tasks")?);
        for (what, mut arm) in arms {
            beside.push(row(what, None, compare_beside(&found, &mut arm, &mut token, self.plan)?));
        }
        let what = "one name, 2 processes × 8 tasks, local hand-over off: hand-overs between processes";
        let mut rows = vec![row(what, Some(Bar::AtLeast(0.5)), found)];
        rows.extend(beside);
        Ok(rows)
    }

    /// From `release()` in one process to `lock()` returned in another that waits.
    fn one_hand_over(&self) -> Outcome<Vec<Ratio>> {
        eprintln!("measuring: one hand-over at a time");
        let (game, against, unit) = (Game::Ball, "LPUSH to BLPOP returned, at the same pace", "µs p50");
        let mut token = turns::token(game, &self.url)?;
        let found = compare(&mut Two::ours(game, "redis", &self.url, true)?, &mut token, self.plan)?;
        let row = |what, bar, found| Ratio { what, against, unit, bar, found };
        let mut beside = Vec::new();
        let mut arms = Vec::new();
        arms.extend(self.peer_pair(game, Peer::PythonRedisLock, "the same with python-redis-lock")?);
        arms.extend(self.peer_pair(game, Peer::Rslock, "the same with rslock")?);
        for (what, mut arm) in arms {
            beside.push(row(what, None, compare_beside(&found, &mut arm, &mut token, self.plan)?));
        }
        let what = "from release to acquired in another waiting process";
        let mut rows = vec![row(what, Some(Bar::AtMost(1.5)), found)];
        rows.extend(beside);
        Ok(rows)
    }

    fn peer_pair(&self, game: Game, peer: Peer, what: &'static str) -> Outcome<Option<(&'static str, Two)>> {
        Ok(self.peers.two(peer, game, &self.url)?.map(|two| (what, two)))
    }

    /// 64 tasks of one process on one name, while another process waits for its turn.
    fn one_name(&self) -> Outcome<Vec<Figure>> {
        eprintln!("measuring: 64 tasks, one name");
        let mut turns = Turns::new(self.runtime.clone(), self.keeper()?, TASKS);
        turns.run(self.plan.slice)?;
        let length = if self.plan.quick { Duration::from_secs(2) } else { Duration::from_secs(10) };
        let found = turns.while_another_waits(&["redis", "another", &self.url], length)?;
        turns.close()?;
        let what = "64 tasks of one process on one name";
        Ok(vec![
            Figure::new(format!("{what}: acquisitions"), found.rate, "per second").at_least(100_000.0),
            Figure::new(format!("{what}: turns of another process meanwhile"), found.waits.len() as f64, ""),
            Figure::new(format!("{what}: the other's wait, p50"), quantile(&found.waits, 0.5), "ms"),
            Figure::new(format!("{what}: the other's wait, p99"), quantile(&found.waits, 0.99), "ms").at_most(50.0),
        ])
    }
}

/// The hidden mode for a profiler: one side of a comparison alone, for some slices of a second, on a server of its own.
fn alone(side: &str, seconds: u64) -> Outcome<()> {
    let server = rig::Server::named("redis")?;
    let bench = Bench::at(Plan::QUICK, &server, None)?;
    let (runtime, keeper) = (bench.runtime.clone(), bench.keeper()?);
    let mut arm: Box<dyn Arm> = match side {
        "ours" => Box::new(Many { runtime, client: Ours(keeper) }),
        "ours-one" => Box::new(One { runtime, client: Ours(keeper) }),
        "raw" => Box::new(Many { runtime, client: bench.bare(Own::Set, OwnLeave::Delete) }),
        "same-one" => Box::new(One { runtime, client: bench.bare(Own::AsTheStore, OwnLeave::AsTheStore) }),
        "raw-one" => Box::new(One { runtime, client: bench.bare(Own::Set, OwnLeave::Delete) }),
        "turns" => Box::new(Two::ours(Game::Turns, "redis", &bench.url, false)?),
        "turns-raw" => Box::new(turns::token(Game::Turns, &bench.url)?),
        "ball" => Box::new(Two::ours(Game::Ball, "redis", &bench.url, true)?),
        "ball-raw" => Box::new(turns::token(Game::Ball, &bench.url)?),
        other => return Err(format!("there is no side `{other}`").into()),
    };
    for _ in 0..seconds {
        let before = machine::cpu_of(bench.server)?;
        let work = arm.run(Duration::from_secs(1))?;
        let server_cpu = machine::cpu_of(bench.server)?.saturating_sub(before).as_secs_f64() * 1e6;
        let server_cpu = server_cpu / work.count.max(1) as f64;
        println!("{side}: {:.1}, processor µs: client {:.1}, server {server_cpu:.1}", work.score, work.cpu_micros());
    }
    Ok(server.stop()?)
}

/// The hidden modes.
pub fn child(args: &[&str]) -> Outcome<()> {
    match args {
        ["alone", side, seconds] => alone(side, seconds.parse()?),
        ["token", url, mode, role] => turns::child(url, Game::of_mode(mode), role.parse::<usize>()?.min(1)),
        ["another", url, millis] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let length = Duration::from_millis(millis.parse()?);
            runtime.block_on(async { local::another(&Keeper::connect(url).await?, length).await })
        }
        [mode, url, hand_over] => games::play(Game::of_mode(mode), lockkeeper::open(url), hand_over.parse()?),
        _ => Err("this mode is for this program alone".into()),
    }
}
