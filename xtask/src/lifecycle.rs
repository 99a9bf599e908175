//! `up` and `down`: the servers that tests share.
//!
//! The surprise: what `up` starts belongs to `up` until every server is ready and written down; only then are they let
//! go. A failure, a Ctrl-C or a kill half-way takes all of them down again.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockkeeper_rig::{Cluster, Entry, SERVERS, Spec, Trouble, entries, forget, remember, rig_dir};

/// Somebody else's `up` takes seconds.
const OTHERS_TAKE: Duration = Duration::from_secs(60);

/// Servers for one run: those found running, and those started for it, which end with this value.
pub struct Fleet {
    /// Where they live and are written down.
    rig: PathBuf,
    found: Vec<Entry>,
    started: Vec<Cluster>,
}

/// The servers and clusters that tests share. Variants of them are started by the tests that need one.
pub fn shared_servers() -> Vec<&'static Spec> {
    SERVERS.iter().filter(|spec| spec.is_shared()).collect()
}

/// `cargo xtask up`.
pub fn up() -> Result<(), Trouble> {
    let fleet = Fleet::up(&rig_dir(), &shared_servers())?;
    for entry in fleet.keep()? {
        println!("up: {:<10} {}  ({}, {})", entry.name, entry.url, pids(&entry), entry.version);
    }
    println!("up: written to {}", rig_dir().join("servers.json").display());
    Ok(())
}

/// Its processes, for people.
fn pids(entry: &Entry) -> String {
    let pids: Vec<String> = entry.members.iter().map(|member| member.identity.pid.to_string()).collect();
    format!("pid {}", pids.join(" "))
}

/// `cargo xtask down`.
pub fn down() -> Result<(), Trouble> {
    down_in(&rig_dir())
}

fn down_in(rig: &Path) -> Result<(), Trouble> {
    let _turn = turn(rig)?;
    let mut stuck = Vec::new();
    for entry in entries(rig)? {
        let was_alive = entry.is_alive();
        match (entry.stop(rig), was_alive) {
            (true, true) => println!("down: {} ({}) stopped", entry.name, pids(&entry)),
            (true, false) => println!("down: {} was gone already", entry.name),
            (false, _) => stuck.push(entry),
        }
    }
    if stuck.is_empty() {
        forget(rig);
        sweep(rig);
        println!("down: nothing is up");
        return Ok(());
    }
    remember(rig, &stuck)?;
    let names: Vec<String> = stuck.iter().map(|entry| format!("{} ({})", entry.name, pids(entry))).collect();
    Err(Trouble::new(format!("cannot stop {}", names.join(", ")))
        .hint("it may belong to another user; stop it as that one"))
}

impl Fleet {
    /// Reuses what runs and starts the rest, all or nothing, and writes it down for the tests.
    pub fn up(rig: &Path, specs: &[&'static Spec]) -> Result<Fleet, Trouble> {
        let _turn = turn(rig)?;
        let mut known = Vec::new();
        for entry in entries(rig)? {
            if entry.is_ready() {
                known.push(entry);
            } else {
                entry.stop(rig); // dead, or alive and deaf
            }
        }
        let mut started = Vec::new();
        for spec in specs.iter().filter(|spec| !known.iter().any(|entry| entry.name == spec.name)) {
            started.push(Cluster::start(spec, rig)?);
        }
        let fleet = Fleet { rig: rig.to_path_buf(), found: known, started };
        remember(rig, &fleet.entries()?)?;
        Ok(fleet)
    }

    /// Lets all of them live on.
    pub fn keep(mut self) -> Result<Vec<Entry>, Trouble> {
        let all = self.entries()?;
        for cluster in self.started.drain(..) {
            cluster.release()?;
        }
        Ok(all)
    }

    /// Names of those that ran before, and go on running.
    pub fn found(&self) -> Vec<&str> {
        self.found.iter().map(|entry| entry.name.as_str()).collect()
    }

    fn entries(&self) -> Result<Vec<Entry>, Trouble> {
        let own: Result<Vec<Entry>, Trouble> = self.started.iter().map(Cluster::entry).collect();
        Ok(self.found.iter().cloned().chain(own?).collect())
    }
}

impl Drop for Fleet {
    /// Stops what was started for this run; what was found running stays.
    fn drop(&mut self) {
        if self.started.is_empty() {
            return;
        }
        if self.found.is_empty() {
            forget(&self.rig);
        } else if let Err(trouble) = remember(&self.rig, &self.found) {
            eprintln!("warning: {trouble}");
        }
        self.started.clear();
    }
}

/// One `up` or `down` at a time per target folder. The lock goes with the file handle, so a killed one leaves none.
fn turn(rig: &Path) -> Result<File, Trouble> {
    let path = rig.join("lock");
    let refused = |e: std::io::Error| Trouble::new(format!("cannot lock {}: {e}", path.display()));
    fs::create_dir_all(rig).map_err(refused)?;
    let file = File::options().create(true).write(true).truncate(false).open(&path).map_err(refused)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(refused(e)),
            Err(TryLockError::WouldBlock) if began.elapsed() > OTHERS_TAKE => {
                return Err(Trouble::new(format!("another `cargo xtask` has held {} for a minute", path.display()))
                    .hint("wait for it, or end it"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Removes folders that are in no list: left by a run that was killed, or by a machine that went down.
fn sweep(rig: &Path) {
    let Ok(folders) = rig.read_dir() else { return };
    for folder in folders.flatten().filter(|f| f.file_name().to_string_lossy().starts_with("lockkeeper-")) {
        let _ = fs::remove_dir_all(folder.path());
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_rig::{Ready, Signal, wanted};

    use super::*;

    static BREAKS: Spec = Spec {
        name: "breaks",
        variant_of: None,
        program: "false",
        args: &[],
        files: &[],
        env: &[],
        prepare: &[],
        ready: Ready { say: b"", hear: b"never" },
        stop: Signal::TERM,
        starts_within: Duration::from_secs(10),
        url: "none:{port}",
        version: &["--version"],
        package: "coreutils",
        library: None,
        beside: &[],
        members: &[],
        leader: None,
    };

    fn rig(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lockkeeper-xtask-{name}-{}", std::process::id()))
    }

    /// What is in the folder besides the lock file.
    fn contents(rig: &Path) -> Vec<String> {
        let names = rig.read_dir().unwrap().map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "lock").collect()
    }

    #[test]
    fn a_start_that_fails_leaves_nothing_behind() {
        let rig = rig("half");
        let specs: Vec<&'static Spec> =
            if wanted() { shared_servers().into_iter().chain([&BREAKS]).collect() } else { vec![&BREAKS] };
        assert!(Fleet::up(&rig, &specs).is_err());
        assert_eq!(contents(&rig), Vec::<String>::new());
        fs::remove_dir_all(&rig).unwrap();
    }

    #[test]
    fn up_again_keeps_what_runs_and_down_ends_it() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        let rig = rig("again");
        let specs = shared_servers();
        let first = Fleet::up(&rig, &specs).unwrap().keep().unwrap();
        let second = Fleet::up(&rig, &specs).unwrap();
        assert_eq!(second.found().len(), first.len());
        assert_eq!(second.keep().unwrap(), first);
        let cluster = first.iter().find(|entry| entry.members.len() > 1).expect("a cluster is among them");
        for killed in [&first[0].members[0], &cluster.members[1]] {
            killed.identity.signal(Signal::KILL);
            assert!(killed.identity.wait_gone(Duration::from_secs(10)));
        }
        assert!(cluster.is_alive() && !cluster.is_ready(), "the other members go on");
        let third = Fleet::up(&rig, &specs).unwrap().keep().unwrap();
        assert!(third.iter().all(Entry::is_ready) && !first[0].is_alive());
        assert!(!cluster.is_alive(), "what lost a member was started anew as a whole");
        down_in(&rig).unwrap();
        assert!(!third.iter().any(Entry::is_alive));
        assert_eq!(contents(&rig), Vec::<String>::new());
        down_in(&rig).unwrap();
        fs::remove_dir_all(&rig).unwrap();
    }

    #[test]
    fn a_fleet_that_is_not_kept_ends_with_its_value() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        let rig = rig("drop");
        let specs = shared_servers();
        let fleet = Fleet::up(&rig, &specs).unwrap();
        let entries = fleet.entries().unwrap();
        drop(fleet);
        assert!(!entries.iter().any(Entry::is_alive));
        assert_eq!(contents(&rig), Vec::<String>::new());
        fs::remove_dir_all(&rig).unwrap();
    }
}
