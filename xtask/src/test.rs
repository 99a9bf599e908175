//! `test`: set-up, servers, every test of the workspace, and the laws counted.
//!
//! The surprise: servers that were up before stay up; those started for the run end with it, whatever happens to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkeeper_rig::{SERVERS, Spec, Trouble, rig_dir};

use crate::laws::{EXPECTED, Laws};
use crate::lifecycle::Fleet;
use crate::{run, setup};

/// A fresh machine compiles everything first; a test that hangs must still end.
const ALL_TAKE: Duration = Duration::from_secs(45 * 60);

/// What was asked for.
pub struct Options {
    /// These stores only, or all.
    pub only: Option<Vec<String>>,
    /// Install what is missing, with sudo.
    pub install: bool,
    /// Leave the servers up.
    pub keep: bool,
}

/// `cargo xtask test`.
pub fn test(options: &Options) -> Result<(), Trouble> {
    let expected = expected(options.only.as_deref())?;
    let servers: Vec<&'static Spec> =
        SERVERS.iter().filter(|spec| options.only.is_none() || expected.contains(&spec.store())).collect();
    setup::setup(options.install, Some(&servers))?;
    let shared: Vec<&'static Spec> = servers.iter().copied().filter(|spec| spec.is_shared()).collect();
    let fleet = Fleet::up(&rig_dir(), &shared)?;
    let folder = LawsFolder::fresh(&rig_dir())?;
    let tests = run_tests(options, &folder.0, !servers.is_empty());
    let laws = Laws::read(&folder.0);
    if options.keep {
        fleet.keep()?;
        println!("\nthe servers stay up: `cargo xtask down` stops them");
    } else {
        if !fleet.found().is_empty() {
            println!("\nwhat was up before stays up: {}", fleet.found().join(", "));
        }
        drop(fleet);
    }
    let laws = laws?;
    println!("\n{}", laws.table());
    if options.only.is_some() {
        println!("PARTIAL: only {} had to run", expected.join(", "));
    }
    let mut problems = laws.problems(&expected);
    problems.extend(tests.err().map(|trouble| trouble.to_string()));
    if problems.is_empty() {
        return Ok(());
    }
    Err(Trouble::new(format!("the tests did not pass:\n  - {}", problems.join("\n  - ")))
        .hint("the first failure above is the one to read; `cargo test -p CRATE NAME` runs one test"))
}

/// The stores that have to run.
fn expected(only: Option<&[String]>) -> Result<Vec<&'static str>, Trouble> {
    let Some(only) = only else { return Ok(EXPECTED.to_vec()) };
    let find = |name: &String| {
        let known = EXPECTED.iter().copied().find(|store| store == name);
        known.ok_or_else(|| {
            Trouble::new(format!("there is no store `{name}`")).hint(format!("one of: {}", EXPECTED.join(", ")))
        })
    };
    only.iter().map(find).collect()
}

/// `cargo test --workspace` runs unit, integration and documentation tests, and builds the examples.
fn run_tests(options: &Options, folder: &Path, with_servers: bool) -> Result<(), Trouble> {
    let mut command = run::cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    command.env("LOCKKEEPER_LAWS_DIR", folder);
    command.env("LOCKKEEPER_RIG_DIR", rig_dir());
    command.env("LOCKKEEPER_RIG", if with_servers { "1" } else { "0" });
    command.env("LOCKKEEPER_ONLY", options.only.as_deref().unwrap_or_default().join(","));
    run::run_at_most(&mut command, ALL_TAKE)
}

/// Where the test programs write what came of each law; gone afterwards.
struct LawsFolder(PathBuf);

impl LawsFolder {
    fn fresh(rig: &Path) -> Result<LawsFolder, Trouble> {
        let folder = rig.join(format!("lockkeeper-laws-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder); // of a killed run that had our pid
        fs::create_dir_all(&folder).map_err(|e| Trouble::new(format!("cannot make {}: {e}", folder.display())))?;
        Ok(LawsFolder(folder))
    }
}

impl Drop for LawsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_stores_can_be_asked_for() {
        assert_eq!(expected(None).unwrap(), EXPECTED);
        assert_eq!(expected(Some(&["sqlite".to_string()])).unwrap(), ["sqlite"]);
        let trouble = expected(Some(&["oracle".to_string()])).unwrap_err().to_string();
        assert!(trouble.contains("no store `oracle`") && trouble.contains("hint: one of: memory"), "{trouble}");
    }
}
