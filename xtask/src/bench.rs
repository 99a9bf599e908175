//! `bench`: the program that measures, and other people's clients for it to measure beside ours.
//!
//! The surprise: which benchmarks there are only that program knows; here one looks for the word `redis` alone.

use std::path::PathBuf;

use lockkeeper_rig::{SERVERS, Spec, Trouble};

use crate::places::Places;
use crate::{run, setup};

/// Runs the program that measures.
pub fn bench(words: Vec<String>) -> Result<(), Trouble> {
    let mut command = run::cargo();
    command.args(["run", "--release", "--locked", "--package", "lockkeeper-bench", "--"]).args(words);
    run::run(&mut command)
}

/// The same, with peers installed first.
pub fn with_peers(mut words: Vec<String>) -> Result<(), Trouble> {
    let folder = install().map_err(|trouble| {
        Trouble::new(format!("other people's clients cannot be installed: {trouble}"))
            .hint("they come from their registries by the machine's own configuration; or leave them out: --no-peers")
    })?;
    words.extend(["--peers".to_string(), folder.display().to_string()]);
    bench(words)
}

/// Whether what is asked for has peers: `redis`, or everything.
pub fn wants_peers(words: &[String]) -> bool {
    let (mut names, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--render" | "--peers" => return false,
            "--note" | "--dir" => drop(words.next()),
            flag if flag.starts_with("--") => {}
            name => names.push(name),
        }
    }
    names.is_empty() || names.contains(&"redis")
}

fn install() -> Result<PathBuf, Trouble> {
    let redis: Vec<&Spec> = SERVERS.iter().filter(|spec| spec.name == "redis").collect();
    setup::for_peers(false, setup::FOR_REDIS_PEERS, &redis)?;
    let places = Places::new("bench/peers", "peers")?;
    places.cargo("rslock", &["--release"])?;
    places.npm("node-redlock")?;
    places.pip("python-redis-lock")?;
    Ok(places.installed)
}

#[cfg(test)]
mod tests {
    use super::wants_peers;

    #[test]
    fn peers_are_for_redis_and_for_everything() {
        let wants = |line: &str| wants_peers(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        assert!(wants("") && wants("--quick") && wants("redis --quick") && wants("memory redis"));
        assert!(wants("--record --note quiet") && !wants("--note redis memory"));
        assert!(!wants("memory") && !wants("redis-lanes --quick") && !wants("--render") && !wants("redis --peers x"));
    }
}
