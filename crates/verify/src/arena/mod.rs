//! The store under test, and everything of it that can be hurt: servers that this run started, and a proxy before each.
//!
//! Surprise: workers reach a server by the proxy even where nothing is to be done to connections, so that figures of runs
//! with different faults can be compared.

mod clocks;
pub(crate) mod etcd;
mod leftovers;
pub(crate) mod resp;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkeeper::store::{Order, StoreTime, Survives, Tokens, Wake};
use lockkeeper::time::Clock;
use lockkeeper_rig::{Cluster, Proxy, Server, Trouble};

pub use self::clocks::Clocks;
use crate::history::{Clutter, Fault};
use crate::nemesis::{Battle, Workers};
use crate::plan::{Nemesis, Plan, Promised};
use crate::targets::{self, Facts, Target};

/// What is left is looked for again after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Connections need a moment to go, and claims to be found over.
const GOING_TAKES: Duration = Duration::from_secs(2);

/// The store of a run. Dropping it stops what it started.
pub struct Arena {
    facts: Facts,
    /// Known of those in the table; of others the store says it.
    durable: Option<bool>,
    /// Past the proxy. It may have a password in it.
    url: String,
    worker_url: String,
    /// One before each member.
    proxies: Vec<Proxy>,
    servers: Option<Cluster>,
    clocks: Option<Clocks>,
}

impl Arena {
    /// Starts the store that the table of targets has under this name, or takes the one at this address, and puts a proxy
    /// in front of each of its members where it is reached by TCP. Refuses a nemesis that would hurt what it did not start.
    pub fn start(target: &str, nemesis: &[Nemesis], folder: &Path) -> Result<Self, Trouble> {
        let known = Target::named(target);
        let facts = known.map_or_else(|| Facts::of_address(target), |known| Ok(known.facts()))?;
        nemesis.iter().try_for_each(|nemesis| facts.allow(*nemesis))?;
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let servers = known.and_then(|known| known.server).map(Cluster::named).transpose()?;
        let url = match known {
            Some(known) => address(known, servers.as_ref(), &folder)?,
            None => target.to_owned(),
        };
        let proxies = if facts.by_tcp { before(&url, &facts)? } else { Vec::new() };
        let ports: Vec<u16> = proxies.iter().map(Proxy::port).collect();
        let worker_url = facts.by_tcp.then(|| targets::by_way_of(&url, &ports)).flatten();
        let clocks = nemesis.contains(&Nemesis::StepClient).then(|| Clocks::new(&folder)).transpose()?;
        let durable = known.map(|known| known.durable);
        Ok(Self {
            facts,
            durable,
            worker_url: worker_url.unwrap_or_else(|| url.clone()),
            url,
            proxies,
            servers,
            clocks,
        })
    }

    /// The target as the plan has it, and as people may read it: without a password.
    pub fn target(&self) -> &str {
        &self.facts.shown
    }

    /// The address that workers use, through the proxies. It may have a password in it: for the environment of a worker.
    pub fn worker_url(&self) -> String {
        self.worker_url.clone()
    }

    /// The environment that workers need besides, as for a wall clock that can be stepped.
    pub fn worker_env(&self, worker: u32) -> Vec<(String, String)> {
        self.clocks.as_ref().map_or_else(Vec::new, |clocks| clocks.env(worker))
    }

    /// The wall clocks of the workers, where they can be stepped: what is behind [`Workers::step_clock`].
    pub fn clocks(&self) -> Option<Clocks> {
        self.clocks.clone()
    }

    /// What the store promises, and its version.
    ///
    /// # Errors
    /// What keeps the store from answering.
    pub async fn promised(&self) -> Result<(Promised, Option<String>), Trouble> {
        let store = lockkeeper::open(&self.url).await.map_err(|error| self.silent(&error))?;
        let profile = store.profile().clone();
        let _ = store.close().await;
        let version = self.servers.as_ref().and_then(|servers| servers.entry().ok()).map(|entry| entry.version);
        let promised = Promised {
            scheme: profile.scheme.to_owned(),
            tokens: profile.tokens != Tokens::None,
            fifo: profile.order == Order::Fifo,
            push: profile.wake == Wake::Push,
            has_time: profile.time == StoreTime::Store,
            expiry_slack_ms: u64::try_from(profile.late.as_millis()).unwrap_or(u64::MAX),
            durable: self.durable.unwrap_or(profile.survives != Survives::Nothing),
            quorum: profile.survives == Survives::Quorum,
            ends_early: profile.scheme == "etcd" && version.as_deref().is_some_and(etcd::ends_early),
            lease_min_ms: u64::try_from(profile.lease_min.as_millis()).unwrap_or(u64::MAX),
        };
        Ok((promised, version.filter(|version| !version.is_empty())))
    }

    fn silent(&self, error: &lockkeeper::Error) -> Trouble {
        let trouble = Trouble::new(format!("`{}` cannot be used: {error}", self.facts.shown));
        match error.hint() {
            Some(hint) => trouble.hint(hint),
            None => trouble,
        }
    }

    /// Hurts, as the plan says, until `ended` says so; then everything is made whole again. Blocks: it has a thread.
    ///
    /// # Errors
    /// What could not be done or made whole again. The history is worth nothing then.
    pub fn rampage(
        &mut self,
        plan: &Plan,
        workers: &dyn Workers,
        ended: &dyn Fn() -> bool,
        note: &mut dyn FnMut(Fault),
    ) -> Result<(), Trouble> {
        self.battle(workers, ended, note).fight(plan)
    }

    /// The ports of the servers that this run started, past the proxies.
    pub(crate) fn server_ports(&self) -> Vec<u16> {
        self.servers.iter().flat_map(Cluster::members).map(Server::port).collect()
    }

    pub(crate) fn battle<'a>(
        &'a mut self,
        workers: &'a dyn Workers,
        ended: &'a dyn Fn() -> bool,
        note: &'a mut dyn FnMut(Fault),
    ) -> Battle<'a> {
        Battle::new(self.servers.as_mut(), &self.proxies, workers, ended, note)
    }

    /// What is left at the store now that all workers have gone. Looks until nothing is, or until all leases of the run
    /// must be over.
    pub async fn after(&self, plan: &Plan) -> Clutter {
        let leases = Duration::from_millis(plan.lease_ms + plan.delay_ms + plan.store.expiry_slack_ms);
        let end = tokio::time::Instant::now() + leases + GOING_TAKES;
        loop {
            let clutter = self.look(&format!("verify/{}/", plan.seed)).await;
            let is_over = tokio::time::Instant::now() >= end;
            if is_over || (clutter.left.is_empty() && clutter.unseen.len() <= self.hidden().len()) {
                if let Some(clocks) = &self.clocks {
                    clocks.sweep();
                }
                return clutter;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn look(&self, under: &str) -> Clutter {
        let mut clutter = Clutter { unseen: self.hidden(), ..Clutter::default() };
        // First, because whoever looks at the lines is a client too, and its connection needs a moment to go.
        if self.facts.started {
            let (ports, scheme) = (self.server_ports(), self.facts.scheme.clone());
            let seen = tokio::task::spawn_blocking(move || leftovers::of_servers(&scheme, &ports)).await;
            match seen.unwrap_or_else(|broken| Err(std::io::Error::other(broken))) {
                Ok(left) => clutter.left = left,
                Err(error) => clutter.unseen.push(format!("keys, subscriptions and connections: {error}")),
            }
            let open: u64 = self.proxies.iter().map(|proxy| proxy.counts().open).sum();
            if open > 0 && !leftovers::tells_connections(&self.facts.scheme) {
                clutter.left.push(leftovers::leftover("connection", format!("{open} through the proxies")));
            }
        }
        match leftovers::claims(&self.url, under).await {
            Ok(left) => clutter.left.extend(left),
            Err(error) => clutter.unseen.push(format!("claims: {error}")),
        }
        clutter.left.truncate(leftovers::MOST);
        clutter.at = Clock::system().now().as_nanos();
        clutter
    }

    /// What is never looked at here, and why.
    fn hidden(&self) -> Vec<String> {
        match (self.facts.scheme.as_str(), self.facts.started) {
            ("sqlite", _) => {
                vec!["rows: only what its lines show was looked at, not the tables of the file".to_owned()]
            }
            (_, true) => Vec::new(),
            _ => vec!["keys, subscriptions and connections: its server was not started by this run".to_owned()],
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(clocks) = &self.clocks {
            clocks.sweep();
        }
    }
}

/// The address of a target of the table.
fn address(target: &Target, servers: Option<&Cluster>, folder: &Path) -> Result<String, Trouble> {
    if let Some(servers) = servers {
        return Ok(target.url.replace("{server}", &servers.url()));
    }
    let store: PathBuf = folder.join("store");
    std::fs::create_dir_all(&store).map_err(|e| Trouble::new(format!("cannot make {}: {e}", store.display())))?;
    let folder = folder.to_str().ok_or_else(|| {
        Trouble::new(format!("the folder {} has a name that is not UTF-8", folder.display()))
            .hint("choose another one for the report")
    })?;
    Ok(target.url.replace("{folder}", &encoded(folder)))
}

/// A path inside a URL.
fn encoded(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3F")
}

fn before(url: &str, facts: &Facts) -> Result<Vec<Proxy>, Trouble> {
    let hosts = targets::hosts_and_ports(url).ok_or_else(|| {
        Trouble::new(format!("the host and the port of `{}` cannot be read", facts.shown))
            .hint("write it like `redis://127.0.0.1:6379`")
    })?;
    hosts.iter().map(|(host, port)| Proxy::before(host, *port)).collect()
}
