//! Servers that are one store: started together, hurt one by one, gone when dropped.
//!
//! The surprise: a server by itself is a cluster of one, so whatever starts, lists and stops what tests share needs to
//! know clusters only.

use std::path::Path;
use std::time::Duration;

use super::identity::poll;
use super::server::wait_ready;
use super::{Entry, Server, Spec, Trouble};

/// An election takes a second or two; on a busy machine several may fail.
const LEADER_TAKES: Duration = Duration::from_secs(30);

/// A cluster of our own.
///
/// Use this in tests that hurt members of a cluster; use [`Server`] where one is enough, and
/// [`shared`](super::shared()) in tests that only need it to be there. Members are counted from 0.
#[derive(Debug)]
pub struct Cluster {
    spec: &'static Spec,
    members: Vec<Server>,
}

impl Cluster {
    /// Starts a cluster by its name in the table, in temporary folders.
    pub fn named(name: &str) -> Result<Cluster, Trouble> {
        Cluster::start(Spec::named(name)?, &std::env::temp_dir())
    }

    /// Starts all members at once, each in a fresh folder under `parent`, and waits until all are ready.
    pub fn start(spec: &'static Spec, parent: &Path) -> Result<Cluster, Trouble> {
        Ok(Cluster { spec, members: Server::start_all(spec, parent, &[])? })
    }

    /// Where a client connects: all members in one address. A member's own is that of [`members`](Cluster::members).
    pub fn url(&self) -> String {
        self.members[0].filled(self.spec.url)
    }

    /// The members, running or killed.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// One member, to be killed, stopped, continued or restarted.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn member(&mut self, number: usize) -> &mut Server {
        &mut self.members[number]
    }

    /// Waits until the members agree on a leader, and gives its number. Those that are killed or stopped are not asked.
    ///
    /// # Errors
    /// When there is none for half a minute: more than half must be there.
    pub fn leader(&self) -> Result<usize, Trouble> {
        let ask = self.spec.leader.ok_or_else(|| Trouble::new(format!("`{}` has no leader", self.spec.name)))?;
        let led = poll(LEADER_TAKES, || {
            let answering = |server: &Server| server.identity().is_some_and(|it| it.is_alive() && !it.is_paused());
            let ports: Vec<Option<u16>> = self.members.iter().map(|it| answering(it).then(|| it.port())).collect();
            ask(&ports)
        });
        led.ok_or_else(|| {
            let running = self.members.iter().filter_map(Server::identity).filter(|it| !it.is_paused()).count();
            let all = self.members.len();
            Trouble::new(format!("`{}` has no leader after {LEADER_TAKES:?}", self.spec.name))
                .hint(format!("{running} of {all} members run; more than half must"))
        })
    }

    /// `kill -9` of every member that runs. Their folders stay, for [`restart`](Cluster::restart).
    pub fn kill(&mut self) -> Result<(), Trouble> {
        let mut running = self.members.iter_mut().filter(|server| server.identity().is_some());
        running.try_for_each(Server::kill)
    }

    /// Starts all members that were killed, at once, on the same ports and in the same folders, and waits until all are
    /// ready.
    pub fn restart(&mut self) -> Result<(), Trouble> {
        let mut killed: Vec<&mut Server> =
            self.members.iter_mut().filter(|server| server.identity().is_none()).collect();
        killed.iter_mut().try_for_each(|server| server.spawn())?;
        wait_ready(&mut killed)
    }

    /// Ends all members and removes their folders.
    pub fn stop(self) -> Result<(), Trouble> {
        let ends: Vec<Result<(), Trouble>> = self.members.into_iter().map(Server::stop).collect();
        ends.into_iter().collect()
    }

    /// Lets it live on without us; what is needed to find and stop it later.
    pub fn release(self) -> Result<Entry, Trouble> {
        let entry = self.entry()?;
        self.members.into_iter().for_each(Server::release);
        Ok(entry)
    }

    /// What others need to connect to it, while we own it.
    pub fn entry(&self) -> Result<Entry, Trouble> {
        Ok(Entry {
            name: self.spec.name.to_string(),
            url: self.url(),
            members: self.members.iter().map(Server::member).collect::<Result<_, _>>()?,
            version: self.spec.installed_version().unwrap_or_default(),
        })
    }
}
