//! `setup`: what the tests need from the machine, and how to get it there.
//!
//! The surprise: it decides by looking for programs, not packages, so whatever brought them is fine, and a machine that
//! has everything is not touched at all.

use std::process::Command;

use lockkeeper_rig::{SERVERS, Spec, Trouble, program_path};

/// Needed whatever the stores: program, Debian packages, what for.
const TOOLS: &[(&str, &[&str], &str)] = &[
    ("cc", &["gcc", "libc6-dev"], "SQLite is compiled from its C source"),
    ("sh", &["dash"], "the rig's launcher and reaper"),
    ("git", &["git"], "`cargo xtask tidy` lists the tree with it"),
];

const INSTALL: &str = include_str!("install.sh");

/// Makes sure everything is there for these servers, or for all.
pub fn setup(may_use_sudo: bool, servers: Option<&[&Spec]>) -> Result<(), Trouble> {
    let all: Vec<&Spec> = SERVERS.iter().collect();
    let servers = servers.unwrap_or(&all);
    let missing = missing(servers);
    if missing.is_empty() {
        println!("setup: everything is there ({})", present(servers).join(", "));
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|(_, packages)| packages.iter().copied()).collect();
    let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    println!("setup: missing {}; Debian packages: {}", programs.join(", "), packages.join(" "));
    install(&packages, may_use_sudo)?;
    match self::missing(servers).first() {
        None => {
            println!("setup: everything is there ({})", present(servers).join(", "));
            Ok(())
        }
        Some((program, _)) => Err(Trouble::new(format!("`{program}` is still missing after the installation"))),
    }
}

fn missing(servers: &[&Spec]) -> Vec<(&'static str, Vec<&'static str>)> {
    let tools = TOOLS.iter().map(|(program, packages, _)| (*program, packages.to_vec()));
    let servers = servers.iter().map(|spec| (spec.program, vec![spec.package]));
    tools.chain(servers).filter(|(program, _)| program_path(program).is_none()).collect()
}

fn present(servers: &[&Spec]) -> Vec<String> {
    let tools = TOOLS.iter().map(|(program, ..)| (*program).to_string());
    let versions = |spec: &&Spec| format!("{} {}", spec.name, spec.installed_version().unwrap_or_default());
    tools.chain(servers.iter().map(versions)).collect()
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
    use super::*;

    #[test]
    fn the_script_is_a_shell_script() {
        let status = Command::new("sh").args(["-n", "-c", INSTALL]).status().expect("sh runs");
        assert!(status.success());
    }

    #[test]
    fn every_server_names_its_package() {
        for spec in SERVERS {
            assert!(!spec.package.is_empty() && !spec.program.is_empty(), "{}", spec.name);
        }
    }
}
