//! `setup`: what the tests need from the machine, and how to get it there.
//!
//! The surprise: it decides by looking for programs and libraries, not packages, so whatever brought them is fine, and a machine that
//! has everything is not touched at all.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use lockkeeper_rig::{SERVERS, Spec, Trouble, program_path};

/// Needed whatever the stores: program, Debian packages, what for.
const TOOLS: &[Tool] = &[
    ("cc", &["gcc", "libc6-dev"], "SQLite is compiled from its C source"),
    ("sh", &["dash"], "the rig's launcher and reaper"),
    ("git", &["git"], "`cargo xtask tidy` lists the tree with it"),
];

/// What other people's clients of Redis need besides.
pub const FOR_REDIS_PEERS: &[Tool] = &[
    ("python3", &["python3"], "redis-py, and the judge's stand-in"),
    (PYTHON_VENV, &["python3-venv"], "redis-py is installed into an environment of its own"),
    ("node", &["nodejs"], "node-redlock"),
    ("npm", &["npm"], "node-redlock comes by it"),
];

/// What other people's clients of etcd need besides.
pub const FOR_ETCD_PEERS: &[Tool] = &[
    ("python3", &["python3"], "the judge's stand-in"),
    ("go", &["golang-go"], "etcd's own client comes by it"),
    ("etcdctl", &["etcd-client"], "its `lock` is a peer"),
];

/// What the benchmark of etcd needs besides.
pub const FOR_ETCD_BENCH: &[Tool] = &[
    ("go", &["golang-go"], "etcd's own client comes by it"),
    ("protoc", &["protobuf-compiler"], "etcd-client makes its code from etcd's protocol"),
    (PROTO_FILES, &["libprotobuf-dev"], "the protocol names them"),
];

/// No program but a module, which Debian has in a package of its own.
const PYTHON_VENV: &str = "python3 -m venv";

/// No program but files.
const PROTO_FILES: &str = "google/protobuf/descriptor.proto";

/// Program, Debian packages, what for.
pub type Tool = (&'static str, &'static [&'static str], &'static str);

const INSTALL: &str = include_str!("install.sh");

/// Makes sure everything is there for these servers, or for all.
pub fn setup(may_use_sudo: bool, servers: Option<&[&Spec]>) -> Result<(), Trouble> {
    let all: Vec<&Spec> = SERVERS.iter().collect();
    ensure(may_use_sudo, TOOLS, servers.unwrap_or(&all))
}

/// Makes sure that peers can be installed, too.
pub fn for_peers(may_use_sudo: bool, peers: &[Tool], servers: &[&Spec]) -> Result<(), Trouble> {
    let tools: Vec<Tool> = TOOLS.iter().chain(peers).copied().collect();
    ensure(may_use_sudo, &tools, servers)
}

fn ensure(may_use_sudo: bool, tools: &[Tool], servers: &[&Spec]) -> Result<(), Trouble> {
    let missing = missing(tools, servers);
    if missing.is_empty() {
        println!("setup: everything is there ({})", present(tools, servers).join(", "));
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().flat_map(|(_, packages)| packages.iter().copied()).collect();
    let mut seen = BTreeSet::new();
    packages.retain(|package| seen.insert(*package));
    let wanted: Vec<&str> = missing.iter().map(|(what, _)| *what).collect();
    println!("setup: missing {}; Debian packages: {}", wanted.join(", "), packages.join(" "));
    install(&packages, may_use_sudo)?;
    match self::missing(tools, servers).first() {
        None => {
            println!("setup: everything is there ({})", present(tools, servers).join(", "));
            Ok(())
        }
        Some((what, _)) => Err(Trouble::new(format!("`{what}` is still missing after the installation"))),
    }
}

/// Programs and libraries that are not there, each once, and the Debian packages that bring them.
fn missing(tools: &[Tool], servers: &[&Spec]) -> Vec<(&'static str, Vec<&'static str>)> {
    let tools = tools.iter().filter(|(program, ..)| !is_there(program));
    let tools = tools.map(|(program, packages, _)| (*program, packages.to_vec()));
    let servers = servers.iter().flat_map(|spec| spec.missing()).map(|(what, package)| (what, vec![package]));
    let mut seen = BTreeSet::new();
    tools.chain(servers).filter(|(what, _)| seen.insert(*what)).collect()
}

fn is_there(program: &str) -> bool {
    if program == PROTO_FILES {
        return ["/usr/include", "/usr/local/include"].iter().any(|folder| Path::new(folder).join(program).is_file());
    }
    if program != PYTHON_VENV {
        return program_path(program).is_some();
    }
    // Debian has `venv` everywhere; what the package brings is what makes one with pip.
    let mut asked = Command::new("python3");
    asked.args(["-c", "import venv, ensurepip"]).stdin(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

fn present(tools: &[Tool], servers: &[&Spec]) -> Vec<String> {
    let tools = tools.iter().map(|(program, ..)| (*program).to_string());
    let versions = |spec: &&Spec| format!("{} {}", spec.name, spec.installed_version().unwrap_or_default());
    tools.chain(servers.iter().filter(|spec| spec.is_shared()).map(versions)).collect()
}

fn install(packages: &[&str], may_use_sudo: bool) -> Result<(), Trouble> {
    if program_path("apt-get").is_none() {
        return Err(Trouble::new("this machine has no apt-get, so the packages cannot be installed here")
            .hint(format!("install what Debian calls {} by its own means", packages.join(" "))));
    }
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && !may_use_sudo {
        return Err(Trouble::new("installing packages needs root").hint(format!(
            "type `sudo apt-get install -y --no-install-recommends {}`, or `cargo xtask setup --install`",
            packages.join(" ")
        )));
    }
    if !is_root && program_path("sudo").is_none() {
        return Err(Trouble::new("installing packages needs root, and there is no sudo here")
            .hint(format!("as root, type `apt-get install -y --no-install-recommends {}`", packages.join(" "))));
    }
    let mut command = Command::new(if is_root { "sh" } else { "sudo" });
    if !is_root {
        command.arg("sh");
    }
    command.args(["-c", INSTALL, "lockkeeper-setup"]).args(packages);
    let status = command.status().map_err(|e| Trouble::new(format!("cannot start the installation: {e}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Trouble::new(format!("the installation failed ({status})")).hint(format!(
        "try `apt-get update && apt-get install --no-install-recommends {}` by hand",
        packages.join(" ")
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use lockkeeper_rig::{Library, Ready, Signal};

    use super::*;

    /// Runs the script with an apt-get that writes down the policy it sees and ends with `code`.
    fn installed(name: &str, before: Option<&str>, code: u8) -> (String, Option<String>, bool, usize) {
        let folder = std::env::temp_dir().join(format!("lockkeeper-setup-{name}-{}", std::process::id()));
        let (policy, apt, seen) = (folder.join("policy-rc.d"), folder.join("apt-get"), folder.join("seen"));
        fs::create_dir_all(&folder).unwrap();
        if let Some(text) = before {
            fs::write(&policy, text).unwrap();
        }
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>'{0}'; cat '{1}' >>'{0}'; exit {code}\n",
            seen.display(),
            policy.display()
        );
        fs::write(&apt, script).unwrap();
        fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", INSTALL, "setup", "a-package"]).env("PATH", path).env("LOCKKEEPER_POLICY_FILE", &policy);
        let success = command.status().unwrap().success();
        let outcome = (fs::read_to_string(&seen).unwrap(), fs::read_to_string(&policy).ok(), success);
        let files = folder.read_dir().unwrap().count();
        fs::remove_dir_all(&folder).unwrap();
        (outcome.0, outcome.1, outcome.2, files)
    }

    #[test]
    fn the_machine_s_own_policy_is_put_back() {
        let (seen, after, success, files) = installed("own", Some("#!/bin/sh\nexit 0\n"), 0);
        assert!(seen.contains("--no-install-recommends install a-package") && seen.contains("exit 101"), "{seen}");
        assert!(success && files == 3, "{files}");
        assert_eq!(after.as_deref(), Some("#!/bin/sh\nexit 0\n"));
    }

    #[test]
    fn no_policy_is_left_where_there_was_none_even_after_a_failure() {
        let (seen, after, success, files) = installed("none", None, 1);
        assert!(seen.contains("exit 101") && !success && files == 2, "{seen} {files}");
        assert_eq!(after, None);
    }

    #[test]
    fn every_server_names_its_package() {
        for spec in SERVERS {
            assert!(!spec.package.is_empty() && !spec.program.is_empty(), "{}", spec.name);
            assert!(spec.library.as_ref().is_none_or(|library| !library.package.is_empty()), "{}", spec.name);
        }
    }

    #[test]
    fn what_several_servers_need_is_named_once() {
        const GONE: &str = "lockkeeper-no-such-program";
        let library = || Some(Library { file: "no/such.so", package: "libnone", leaves: &[] });
        let spec = |library| Spec { program: GONE, package: "none", library, ..example() };
        let (one, two) = (spec(None), spec(library()));
        let servers: Vec<_> = missing(TOOLS, &[&one, &two, &two])
            .into_iter()
            .filter(|(what, _)| TOOLS.iter().all(|(tool, ..)| tool != what))
            .collect();
        assert_eq!(servers, [(GONE, vec!["none"]), ("no/such.so", vec!["libnone"])]);
    }

    fn example() -> Spec {
        Spec {
            name: "example",
            variant_of: None,
            program: "sh",
            args: &[],
            files: &[],
            env: &[],
            prepare: &[],
            ready: Ready { say: b"", hear: b"" },
            stop: Signal::TERM,
            starts_within: Duration::from_secs(1),
            url: "",
            version: &[],
            package: "dash",
            library: None,
            beside: &[],
            members: &[],
            leader: None,
        }
    }
}
