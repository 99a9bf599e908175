//! The peers: how each is installed from its registry, and how it is started.
//!
//! The surprise: what is installed once is used again for as long as its pins and its interpreter stay the same; all of it
//! is below `target/interop`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lockkeeper_rig::{Process, Trouble, program_path, rig_dir};
use serde_json::Value;

use super::party::Program;
use crate::run;

/// A registry may be slow, and rslock is compiled.
const INSTALLING_TAKES: Duration = Duration::from_secs(8 * 60);
const VERSION_TAKES: Duration = Duration::from_secs(30);
const LOG_TAIL_LINES: usize = 15;

/// A client that takes part.
pub struct Peer {
    pub name: &'static str,
    install: fn(&Places) -> Result<Program, Trouble>,
}

/// All of them.
pub const PEERS: &[Peer] = &[
    Peer { name: "redis-py", install: redis_py },
    Peer { name: "node-redlock", install: node_redlock },
    Peer { name: "rslock", install: rslock },
];

/// Where things are.
pub struct Places {
    /// `interop` in the tree.
    source: PathBuf,
    /// `interop` in the target folder.
    installed: PathBuf,
}

impl Places {
    pub fn new() -> Result<Places, Trouble> {
        let rig = rig_dir();
        let installed = rig.parent().unwrap_or(&rig).join("interop");
        fs::create_dir_all(&installed).map_err(|e| refused("make", &installed, e))?;
        Ok(Places { source: run::root().join("interop"), installed })
    }

    /// Makes a folder for what these pins say, unless it is there already.
    fn once(
        &self,
        name: &str,
        pins: &[&str],
        make: impl FnOnce(&Path) -> Result<(), Trouble>,
    ) -> Result<PathBuf, Trouble> {
        let folder = self.installed.join(name);
        let mark = folder.join("installed.txt");
        let mut wanted = String::new();
        for pin in pins {
            let path = self.source.join(name).join(pin);
            wanted += &fs::read_to_string(&path).map_err(|e| refused("read", &path, e))?;
        }
        wanted += &tools();
        if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
            return Ok(folder);
        }
        let _ = fs::remove_dir_all(&folder); // of other pins, or half made
        fs::create_dir_all(&folder).map_err(|e| refused("make", &folder, e))?;
        make(&folder)?;
        fs::write(&mark, wanted).map_err(|e| refused("write", &mark, e))?;
        Ok(folder)
    }

    /// Runs a command to its end; what it prints is shown only if it fails.
    fn quietly(&self, name: &str, command: &mut Command) -> Result<(), Trouble> {
        let path = self.installed.join(format!("{name}.log"));
        let log = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|e| refused("write", &path, e))?;
        let mut process = Process::spawn(command.stdin(Stdio::null()).stdout(out).stderr(err))?;
        let ended = process.wait(INSTALLING_TAKES);
        if ended.as_ref().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let how = ended.map_or_else(|trouble| trouble.to_string(), |status| status.to_string());
        let said = fs::read(&path).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n    ");
        Err(Trouble::new(format!("`{}` failed ({how}); it said:\n    {tail}", run::shown(command))))
    }
}

/// Installs a peer; how to start it.
pub fn installed(peer: &Peer, places: &Places) -> Result<Program, Trouble> {
    (peer.install)(places).map_err(|trouble| {
        Trouble::new(format!("`{}` cannot be installed: {trouble}", peer.name))
            .hint("it comes from its registry by the machine's own configuration of pip, npm or cargo")
    })
}

/// What a program says that it is: name and version, and what it stands on.
pub fn version(program: &Program) -> Result<String, Trouble> {
    said(program.command().arg("--version"))
}

/// The first line of what a command prints.
fn said(command: &mut Command) -> Result<String, Trouble> {
    let line = run::shown(command);
    let mut process = Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let out = process.stdout();
    let status = process.wait(VERSION_TAKES)?;
    let text = out.map(std::io::read_to_string).transpose();
    let text = text.ok().flatten().unwrap_or_default();
    let first = text.lines().next().filter(|_| status.success()).map(str::to_string);
    first.ok_or_else(|| Trouble::new(format!("`{line}` does not say what it is ({status})")))
}

/// The tools of the machine that peers come by and run on, with their versions.
pub fn tools() -> String {
    let version = |tool: &str| {
        let said = said(Command::new(tool).arg("--version").stderr(Stdio::null()));
        said.unwrap_or_else(|_| "does not say its version".to_string())
    };
    ["python3", "node", "npm", "cargo"].map(|tool| format!("{tool}: {}\n", version(tool))).concat()
}

/// The judge's own stand-in, which needs nothing but Python.
pub fn stand_in(places: &Places) -> Result<Program, Trouble> {
    let python = program_path("python3").ok_or_else(|| Trouble::new("there is no `python3`"))?;
    Ok(plain("stand-in", python, &[places.source.join("stand-in/peer.py")]))
}

/// Ours: alone, and sharing through the command line.
pub fn ours(places: &Places) -> Result<(Program, Program), Trouble> {
    let mut command = run::cargo();
    command.args(["build", "--quiet", "--locked", "--message-format=json"]);
    command.args(["--package", "lockkeeper-conformance", "--bin", "taker"]);
    command.args(["--package", "lockkeeper-cli", "--bin", "lockkeeper"]);
    let said = run::output(&mut command)?;
    let built = |name: &str| {
        let found = said.lines().find_map(|line| program_in(line, name));
        found.ok_or_else(|| Trouble::new(format!("cargo did not say where it built `{name}`")))
    };
    let shell = program_path("sh").ok_or_else(|| Trouble::new("there is no `sh`"))?;
    let mut alone = plain("ours", built("taker")?, &[]);
    let mut sharing = plain("ours", shell, &[places.source.join("ours/shared.sh")]);
    sharing.env.push(("LOCKKEEPER_PROGRAM", built("lockkeeper")?.into()));
    for program in [&mut alone, &mut sharing] {
        program.url_tail = "/?prefix=";
        program.mark = Some(b"lk1");
    }
    Ok((alone, sharing))
}

/// The program of this name that one line of cargo's messages is about, if it is about it.
fn program_in(line: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let program = message["executable"].as_str()?;
    (message["target"]["name"] == name).then(|| PathBuf::from(program))
}

fn plain(name: &str, program: PathBuf, before: &[PathBuf]) -> Program {
    let before: Vec<OsString> = before.iter().map(|path| path.clone().into()).collect();
    let (after, env) = (Vec::new(), Vec::new());
    Program { name: name.to_string(), program, before, after, env, url_tail: "", mark: None, endless: false }
}

fn redis_py(places: &Places) -> Result<Program, Trouble> {
    let folder = places.once("redis-py", &["requirements.txt"], |folder| {
        places.quietly("redis-py", Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--requirement"]);
        places.quietly("redis-py", pip.arg(places.source.join("redis-py/requirements.txt")))
    })?;
    let mut program = plain("redis-py", folder.join("bin/python"), &[places.source.join("redis-py/peer.py")]);
    program.endless = true;
    Ok(program)
}

fn node_redlock(places: &Places) -> Result<Program, Trouble> {
    const PINS: &[&str] = &["package.json", "package-lock.json"];
    let folder = places.once("node-redlock", PINS, |folder| {
        for pin in PINS {
            let (from, to) = (places.source.join("node-redlock").join(pin), folder.join(pin));
            fs::copy(&from, &to).map_err(|e| refused("copy", &from, e))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
        places.quietly("node-redlock", &mut npm)
    })?;
    let node = program_path("node").ok_or_else(|| Trouble::new("there is no `node`"))?;
    let mut program = plain("node-redlock", node, &[places.source.join("node-redlock/peer.js")]);
    program.env.push(("NODE_PATH", folder.join("node_modules").into()));
    Ok(program)
}

/// Cargo knows best what must be built again.
fn rslock(places: &Places) -> Result<Program, Trouble> {
    let folder = places.installed.join("rslock");
    let mut command = run::cargo();
    command.args(["build", "--locked", "--manifest-path"]).arg(places.source.join("rslock/Cargo.toml"));
    command.arg("--target-dir").arg(&folder);
    places.quietly("rslock", &mut command)?;
    Ok(plain("rslock", folder.join("debug/rslock-peer"), &[]))
}

fn refused(what: &str, path: &Path, error: std::io::Error) -> Trouble {
    Trouble::new(format!("cannot {what} {}: {error}", path.display()))
}
