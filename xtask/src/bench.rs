//! `bench`: the program that measures, and other people's clients for it to measure beside ours.
//!
//! The surprise: which benchmarks there are only that program knows; here one looks only for the words that have peers.

use std::path::PathBuf;

use lockkeeper_rig::{SERVERS, Spec, Trouble};

use crate::places::Places;
use crate::setup::Tool;
use crate::{run, setup};

/// Clients that are measured beside ours: on which server, what they need from the machine, and how they are installed.
type Peers = (&'static str, &'static [Tool], fn(&Places) -> Result<(), Trouble>);

/// All of them.
const PEERS: &[Peers] = &[
    ("redis", setup::FOR_REDIS_PEERS, |places| {
        places.cargo("rslock", &["--release"])?;
        places.npm("node-redlock")?;
        places.pip("python-redis-lock").map(drop)
    }),
    ("etcd", setup::FOR_ETCD_BENCH, |places| {
        places.go("go-concurrency")?;
        places.cargo("etcd-client", &["--release"]).map(drop)
    }),
];

/// Runs the program that measures.
pub fn bench(words: Vec<String>) -> Result<(), Trouble> {
    let mut command = run::cargo();
    command.args(["run", "--release", "--locked", "--package", "lockkeeper-bench", "--"]).args(words);
    run::run(&mut command)
}

/// The same, with peers installed first.
pub fn with_peers(mut words: Vec<String>) -> Result<(), Trouble> {
    let folder = install(&wanted(&words)).map_err(|trouble| {
        Trouble::new(format!("other people's clients cannot be installed: {trouble}"))
            .hint("they come from their registries by the machine's own configuration; or leave them out: --no-peers")
    })?;
    words.extend(["--peers".to_string(), folder.display().to_string()]);
    bench(words)
}

/// Whether what is asked for has peers.
pub fn wants_peers(words: &[String]) -> bool {
    !wanted(words).is_empty()
}

/// The peers of what is asked for, or of everything if nothing is.
fn wanted(words: &[String]) -> Vec<&'static Peers> {
    let (mut names, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--render" | "--peers" => return Vec::new(),
            "--note" | "--dir" => drop(words.next()),
            flag if flag.starts_with("--") => {}
            name => names.push(name),
        }
    }
    PEERS.iter().filter(|(server, ..)| names.is_empty() || names.contains(server)).collect()
}

fn install(wanted: &[&Peers]) -> Result<PathBuf, Trouble> {
    let places = Places::new("bench/peers", "peers")?;
    for (server, tools, install) in wanted {
        let specs: Vec<&Spec> = SERVERS.iter().filter(|spec| spec.name == *server).collect();
        setup::for_peers(false, tools, &specs)?;
        install(&places)?;
    }
    Ok(places.installed)
}

#[cfg(test)]
mod tests {
    use super::{wanted, wants_peers};

    #[test]
    fn peers_are_for_some_and_for_everything() {
        let wants = |line: &str| wants_peers(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        assert!(wants("") && wants("--quick") && wants("redis --quick") && wants("memory redis"));
        assert!(wants("--record --note quiet") && !wants("--note redis memory"));
        assert!(!wants("memory") && !wants("redis-lanes --quick") && !wants("--render") && !wants("redis --peers x"));
        let of = |words: &[String]| wanted(words).iter().map(|(server, ..)| *server).collect::<Vec<_>>();
        assert_eq!(of(&[]), ["redis", "etcd"]);
        assert_eq!(of(&["etcd".to_string(), "memory".to_string()]), ["etcd"]);
    }
}
