//! The peers: how each is installed from its registry, and how it is started.

use std::ffi::OsString;
use std::path::PathBuf;

use lockkeeper_rig::{Trouble, program_path};
use serde_json::Value;

use super::family::Family;
use super::party::Program;
use crate::places::{Places, said};
use crate::run;

/// A client that takes part.
pub struct Peer {
    pub name: &'static str,
    pub install: fn(&Places) -> Result<Program, Trouble>,
}

/// Installs a peer; how to start it.
pub fn installed(peer: &Peer, places: &Places) -> Result<Program, Trouble> {
    (peer.install)(places).map_err(|trouble| {
        Trouble::new(format!("`{}` cannot be installed: {trouble}", peer.name))
            .hint("it comes from its registry by the machine's own configuration of pip, npm, go or cargo")
    })
}

/// What a program says that it is: name and version, and what it stands on.
pub fn version(program: &Program) -> Result<String, Trouble> {
    said(program.command().arg("--version"))
}

/// The judge's own stand-in, which needs nothing but Python.
pub fn stand_in(family: &Family, places: &Places) -> Result<Program, Trouble> {
    let python = program_path("python3").ok_or_else(|| Trouble::new("there is no `python3`"))?;
    Ok(plain("stand-in", python, &[places.source.join(family.stand_in)]))
}

/// Ours: alone, and sharing through the command line.
pub fn ours(family: &Family, places: &Places) -> Result<(Program, Program), Trouble> {
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
        program.url_tail = family.ours_at;
        program.mark = family.mark_of_ours;
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
    Program {
        name: name.to_string(),
        program,
        before,
        after,
        env,
        url_tail: "",
        mark: None,
        endless: false,
        one_process: true,
    }
}

/// redis-py.
pub fn redis_py(places: &Places) -> Result<Program, Trouble> {
    let folder = places.pip("redis-py")?;
    let mut program = plain("redis-py", folder.join("bin/python"), &[places.source.join("redis-py/peer.py")]);
    program.endless = true;
    Ok(program)
}

/// node-redlock.
pub fn node_redlock(places: &Places) -> Result<Program, Trouble> {
    let folder = places.npm("node-redlock")?;
    let node = program_path("node").ok_or_else(|| Trouble::new("there is no `node`"))?;
    let mut program = plain("node-redlock", node, &[places.source.join("node-redlock/peer.js")]);
    program.env.push(("NODE_PATH", folder.join("node_modules").into()));
    Ok(program)
}

/// rslock.
pub fn rslock(places: &Places) -> Result<Program, Trouble> {
    let folder = places.cargo("rslock", &[])?;
    Ok(plain("rslock", folder.join("debug/rslock-peer"), &[]))
}

/// Go's `concurrency`, of etcd's own client.
pub fn go_concurrency(places: &Places) -> Result<Program, Trouble> {
    let program = places.go("go-concurrency")?;
    Ok(plain("go-concurrency", program, &[]))
}

/// `etcdctl lock`, in a script.
pub fn etcdctl(places: &Places) -> Result<Program, Trouble> {
    let shell = program_path("sh").ok_or_else(|| Trouble::new("there is no `sh`"))?;
    let mut program = plain("etcdctl", shell, &[places.source.join("etcdctl/peer.sh")]);
    program.one_process = false;
    Ok(program)
}
