//! Other people's clients, as `cargo xtask bench` has installed them. What they are told and say stands in
//! `bench/peers/README.md`.
//!
//! Surprise: without them the rest is measured all the same, and what was left out is said aloud.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Outcome;
use crate::harness::{Arm, Work};
use crate::player::{Player, read_answer};
use crate::turns::{Game, Two};

/// A peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// In Rust, polls.
    Rslock,
    /// In JavaScript, polls.
    NodeRedlock,
    /// In Python, waits by BLPOP.
    PythonRedisLock,
    /// In Rust, the server's own lock.
    EtcdClient,
    /// In Go, the recipe of etcd's own client.
    GoConcurrency,
}

/// Those that lock on Redis.
pub const REDIS: &[Peer] = &[Peer::Rslock, Peer::NodeRedlock, Peer::PythonRedisLock];
/// Those that lock on etcd.
pub const ETCD: &[Peer] = &[Peer::EtcdClient, Peer::GoConcurrency];

/// The folder of what is installed, if anything is.
#[derive(Debug, Clone)]
pub struct Peers(Option<PathBuf>);

impl Peers {
    /// Those in this folder, for the benchmark of this name.
    pub fn in_folder(folder: Option<&Path>, bench: &str) -> Self {
        if folder.is_none() {
            eprintln!("NOT RUN: other people's clients; hint: `cargo xtask bench {bench}` installs and measures them");
        }
        Self(folder.map(Path::to_path_buf))
    }

    /// Starts one, unless there are none.
    pub fn start(&self, peer: Peer, mode: &str, url: &str) -> Outcome<Option<Player>> {
        let Some(folder) = &self.0 else { return Ok(None) };
        Player::start(peer.command(folder).args([mode, url]))?.when_ready().map(Some)
    }

    /// Starts two of them that play one game, unless there are none.
    pub fn two(&self, peer: Peer, game: Game, url: &str) -> Outcome<Option<Two>> {
        let start = || self.start(peer, game.mode(), url);
        Ok(start()?.zip(start()?).map(|(one, two)| Two::of(game, [one, two])))
    }

    /// What these say they are.
    pub fn versions(&self, peers: &[Peer]) -> Outcome<Vec<String>> {
        let Some(folder) = &self.0 else { return Ok(Vec::new()) };
        let version = |peer: &Peer| -> Outcome<String> {
            let said = peer.command(folder).arg("--version").output()?;
            match String::from_utf8_lossy(&said.stdout).trim() {
                "" => Err(format!("{peer:?} does not say its version").into()),
                version => Ok(version.to_owned()),
            }
        };
        peers.iter().map(version).collect()
    }
}

impl Peer {
    fn command(self, installed: &Path) -> Command {
        let source = crate::root().join("bench/peers");
        match self {
            Self::Rslock => Command::new(installed.join("rslock/release/rslock-bench")),
            Self::NodeRedlock => {
                let mut node = Command::new("node");
                node.env("NODE_PATH", installed.join("node-redlock/node_modules"));
                node.arg(source.join("node-redlock/bench.js"));
                node
            }
            Self::PythonRedisLock => {
                let mut python = Command::new(installed.join("python-redis-lock/bin/python"));
                python.arg(source.join("python-redis-lock/bench.py"));
                python
            }
            Self::EtcdClient => Command::new(installed.join("etcd-client/release/etcd-client-bench")),
            Self::GoConcurrency => Command::new(installed.join("go-concurrency/go-concurrency")),
        }
    }
}

/// A peer that locks and releases many names: its answer is how many pairs it came to.
pub struct Pairs(pub Player);

impl Arm for Pairs {
    fn run(&mut self, length: Duration) -> Outcome<Work> {
        self.0.order(&length.as_millis().to_string())?;
        let line = self.0.answer(length)?;
        let (cpu, count) = read_answer(&line)?;
        let count: u64 = count.parse().map_err(|_| format!("a peer said: {line}"))?;
        Ok(Work { score: count as f64 / length.as_secs_f64(), count, cpu, p99: None })
    }
}
