//! `bench`: the program that measures, and other people's clients for it to measure beside ours.
//!
//! The surprise: what is installed once is used again for as long as its pins stay the same; all of it is below
//! `target/peers`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lockkeeper_rig::{Trouble, rig_dir};

use crate::run;

/// A registry may be slow, and one of them is compiled.
const INSTALLING_TAKES: Duration = Duration::from_secs(8 * 60);

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
    let rig = rig_dir();
    let places =
        Places { source: run::root().join("bench/peers"), installed: rig.parent().unwrap_or(&rig).join("peers") };
    rslock(&places)?;
    node_redlock(&places)?;
    python_redis_lock(&places)?;
    Ok(places.installed)
}

struct Places {
    source: PathBuf,
    installed: PathBuf,
}

impl Places {
    /// Makes a folder for what these pins say, unless it is there already.
    fn once(&self, name: &str, pins: &[&str], make: impl FnOnce(&Path) -> Result<(), Trouble>) -> Result<(), Trouble> {
        let (folder, mut wanted) = (self.installed.join(name), String::new());
        for pin in pins {
            let path = self.source.join(name).join(pin);
            wanted += &fs::read_to_string(&path).map_err(|e| refused("read", &path, &e))?;
        }
        let mark = folder.join("installed.txt");
        if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
            return Ok(());
        }
        println!("bench: installing {name}");
        let _ = fs::remove_dir_all(&folder); // of other pins, or half made
        fs::create_dir_all(&folder).map_err(|e| refused("make", &folder, &e))?;
        make(&folder)?;
        fs::write(&mark, wanted).map_err(|e| refused("write", &mark, &e))
    }
}

/// Cargo knows best what must be built again.
fn rslock(places: &Places) -> Result<(), Trouble> {
    let mut command = run::cargo();
    command.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    command.arg(places.source.join("rslock/Cargo.toml"));
    command.arg("--target-dir").arg(places.installed.join("rslock"));
    run::run_at_most(&mut command, INSTALLING_TAKES)
}

fn node_redlock(places: &Places) -> Result<(), Trouble> {
    const PINS: &[&str] = &["package.json", "package-lock.json"];
    places.once("node-redlock", PINS, |folder| {
        for pin in PINS {
            let (from, to) = (places.source.join("node-redlock").join(pin), folder.join(pin));
            fs::copy(&from, &to).map_err(|e| refused("copy", &from, &e))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(folder);
        run::run_at_most(&mut npm, INSTALLING_TAKES)
    })
}

fn python_redis_lock(places: &Places) -> Result<(), Trouble> {
    places.once("python-redis-lock", &["requirements.txt"], |folder| {
        run::run_at_most(Command::new("python3").args(["-m", "venv"]).arg(folder), INSTALLING_TAKES)?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--requirement"]);
        run::run_at_most(pip.arg(places.source.join("python-redis-lock/requirements.txt")), INSTALLING_TAKES)
    })
}

fn refused(what: &str, path: &Path, error: &io::Error) -> Trouble {
    Trouble::new(format!("cannot {what} {}: {error}", path.display()))
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
