//! The servers that tests share: `cargo xtask up` starts them and writes `servers.json`, tests read it here.
//!
//! The surprise: a test without its server fails only when somebody asked for servers. Plain `cargo test` runs what
//! needs none, and says aloud what it left out; `cargo xtask test` asks for all of them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use serde_json::{Value, json};

use super::identity::poll;
use super::{Identity, Signal, Spec, Trouble, ports};

const FILE: &str = "servers.json";
const STOP_TAKES: Duration = Duration::from_secs(10);
const ANSWER_TAKES: Duration = Duration::from_secs(10);

/// Set to 1 by `cargo xtask test`: a test that needs a server must get it, or fail.
const ASKED_FOR: &str = "LOCKKEEPER_RIG";
/// The stores named by `cargo xtask test --only`, with commas between.
const ONLY: &str = "LOCKKEEPER_ONLY";
/// Where `servers.json` is, if not in this build's own target folder.
const FOLDER: &str = "LOCKKEEPER_RIG_DIR";

/// A server or a cluster that is up, as `servers.json` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the table.
    pub name: String,
    /// Where a client connects.
    pub url: String,
    /// Its processes, in the order of the table: one for a server by itself.
    pub members: Vec<Member>,
    /// The version it printed.
    pub version: String,
}

/// One process of what is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its first port.
    pub port: u16,
    /// The process.
    pub identity: Identity,
    /// Its folder.
    pub folder: PathBuf,
}

/// What a test that needs a server got.
#[derive(Debug)]
pub enum Shared {
    /// The server; it may have other guests, so use names of your own.
    Up(Entry),
    /// Nobody asked for it. The reason has been printed; the test ends here, and passes.
    LeftOut(String),
}

/// The shared server of this name, for a store's tests.
///
/// # Errors
///
/// When servers were asked for and this one is not there. The hint is the command to type.
pub fn shared(name: &str) -> Result<Shared, Trouble> {
    let only = env::var(ONLY).unwrap_or_default();
    if !only.is_empty() && !only.split(',').any(|store| store == name) {
        return Ok(left_out(name, "left out by --only"));
    }
    let known = entries(&rig_dir())?;
    match known.into_iter().find(|entry| entry.name == name) {
        Some(entry) if entry.gets_ready() => Ok(Shared::Up(entry)),
        _ if wanted() => Err(Trouble::new(format!("the shared server `{name}` is not up")).hint("cargo xtask up")),
        _ => Ok(left_out(name, "no servers are up (`cargo xtask test` runs everything)")),
    }
}

/// Whether tests that need servers are to run: asked for by the environment, or servers are up.
///
/// A list whose servers are all gone (a run was killed, the machine started anew) asks for nothing.
pub fn wanted() -> bool {
    env::var(ASKED_FOR).is_ok_and(|value| value == "1")
        || entries(&rig_dir()).is_ok_and(|known| known.iter().any(Entry::is_alive))
}

/// Says aloud that something was not run. Written to the stream itself: the test harness swallows `eprintln!`.
fn left_out(name: &str, why: &str) -> Shared {
    let _ = writeln!(io::stderr(), "\nNOT RUN: tests with a real `{name}`: {why}\n");
    Shared::LeftOut(why.to_string())
}

/// `rig` in the target folder this program was built into.
pub fn rig_dir() -> PathBuf {
    if let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        return PathBuf::from(folder);
    }
    // Cargo marks its target folder, wherever the configuration puts it.
    let program = env::current_exe().unwrap_or_default();
    let target = program.ancestors().skip(1).find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.unwrap_or(Path::new("target")).join("rig")
}

impl Entry {
    /// Whether any process of it still runs.
    pub fn is_alive(&self) -> bool {
        self.members.iter().any(|member| member.identity.is_alive())
    }

    /// Whether they are still the same processes, and all answer.
    pub fn is_ready(&self) -> bool {
        let specs = Spec::named(&self.name).map(Spec::processes).unwrap_or_default();
        specs.len() == self.members.len()
            && self.members.iter().zip(specs).all(|(member, spec)| {
                member.identity.is_alive()
                    && ports::is_owned_by(member.port, member.identity.pid)
                    && ports::answers(member.port, &spec.ready)
            })
    }

    /// The same; on a busy machine it may take a while to answer.
    fn gets_ready(&self) -> bool {
        let all_alive = || self.members.iter().all(|member| member.identity.is_alive());
        let ready_or_gone = || if all_alive() { self.is_ready().then_some(true) } else { Some(false) };
        poll(ANSWER_TAKES, ready_or_gone).unwrap_or(false)
    }

    /// Ends it cleanly, by force if it takes too long, and removes its folders. Says whether it is gone.
    pub fn stop(&self, rig: &Path) -> bool {
        let specs = Spec::named(&self.name).map(Spec::processes).unwrap_or_default();
        let signals = specs.iter().map(|spec| spec.stop).chain(std::iter::repeat(Signal::TERM));
        // Counted, so that one that cannot be stopped does not keep the others from it.
        self.members.iter().zip(signals).filter(|(member, signal)| !member.stop(*signal, rig)).count() == 0
    }

    fn to_json(&self) -> Value {
        let members: Vec<Value> = self.members.iter().map(Member::to_json).collect();
        json!({ "name": self.name, "url": self.url, "version": self.version, "members": members })
    }

    /// The servers in the text of `servers.json`; nothing if it is not what `up` writes.
    pub fn list(text: &str) -> Option<Vec<Entry>> {
        let rows = serde_json::from_str::<Value>(text).ok()?;
        rows["servers"].as_array()?.iter().map(Entry::from_json).collect()
    }

    /// The text of `servers.json`.
    pub fn write_list(known: &[Entry]) -> String {
        let rows: Vec<Value> = known.iter().map(Entry::to_json).collect();
        format!("{:#}\n", json!({ "servers": rows }))
    }

    fn from_json(value: &Value) -> Option<Entry> {
        let text = |key: &str| value[key].as_str().map(str::to_string);
        let members: Vec<Member> = value["members"].as_array()?.iter().map(Member::from_json).collect::<Option<_>>()?;
        let entry = Entry { name: text("name")?, url: text("url")?, members, version: text("version")? };
        (!entry.members.is_empty()).then_some(entry)
    }
}

impl Member {
    fn stop(&self, signal: Signal, rig: &Path) -> bool {
        self.identity.signal(signal);
        self.identity.signal(Signal::CONT); // a stopped process takes no other signal
        let gone = self.identity.wait_gone(STOP_TAKES) || {
            self.identity.signal(Signal::KILL);
            self.identity.wait_gone(STOP_TAKES)
        };
        // The file may have been edited: remove only what `up` can have made.
        if gone && self.folder.parent() == Some(rig) {
            let _ = fs::remove_dir_all(&self.folder);
        }
        gone
    }

    fn to_json(&self) -> Value {
        json!({
            "port": self.port, "pid": self.identity.pid, "start": self.identity.start,
            "dir": self.folder.display().to_string(),
        })
    }

    fn from_json(value: &Value) -> Option<Member> {
        Some(Member {
            port: value["port"].as_u64()?.try_into().ok()?,
            identity: Identity { pid: value["pid"].as_u64()?.try_into().ok()?, start: value["start"].as_u64()? },
            folder: PathBuf::from(value["dir"].as_str()?),
        })
    }
}

/// The servers that `up` wrote down; none without the file.
pub fn entries(rig: &Path) -> Result<Vec<Entry>, Trouble> {
    let path = rig.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Trouble::new(format!("cannot read {}: {e}", path.display()))),
    };
    Entry::list(&text).ok_or_else(|| {
        Trouble::new(format!("{} is not what `cargo xtask up` writes", path.display()))
            .hint("remove it, end the servers it names by hand, and run `cargo xtask up`")
    })
}

/// Writes the servers down, in one step: a reader sees the old list or the new one.
pub fn remember(rig: &Path, known: &[Entry]) -> Result<(), Trouble> {
    let path = rig.join(FILE);
    let fresh = rig.join(format!("{FILE}.{}", std::process::id()));
    let written = fs::create_dir_all(rig)
        .and_then(|()| fs::write(&fresh, Entry::write_list(known)))
        .and_then(|()| fs::rename(&fresh, &path));
    written.map_err(|e| Trouble::new(format!("cannot write {}: {e}", path.display())))
}

/// Removes the list.
pub fn forget(rig: &Path) {
    let _ = fs::remove_file(rig.join(FILE));
}
