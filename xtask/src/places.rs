//! Other people's clients, installed from their registries: pinned in a folder of the tree, kept in one of the target
//! folder.
//!
//! The surprise: what is installed once is used again for as long as its pins and its tools stay the same.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lockkeeper_rig::{Process, Trouble, rig_dir};

use crate::run;

/// A registry may be slow, and some clients are compiled.
const INSTALLING_TAKES: Duration = Duration::from_secs(8 * 60);
const VERSION_TAKES: Duration = Duration::from_secs(30);
const LOG_TAIL_LINES: usize = 15;

/// Where things are.
pub struct Places {
    /// Pins and programs, in the tree.
    pub source: PathBuf,
    /// What was installed, in the target folder.
    pub installed: PathBuf,
}

impl Places {
    /// Pins from this folder of the tree, installed into this folder below `target`.
    pub fn new(source: &str, installed: &str) -> Result<Places, Trouble> {
        let rig = rig_dir();
        let installed = rig.parent().unwrap_or(&rig).join(installed);
        fs::create_dir_all(&installed).map_err(|e| refused("make", &installed, &e))?;
        Ok(Places { source: run::root().join(source), installed })
    }

    /// A virtual environment of Python with what `NAME/requirements.txt` says.
    pub fn pip(&self, name: &str) -> Result<PathBuf, Trouble> {
        self.once(name, &["requirements.txt"], |folder| {
            self.quietly(name, Command::new("python3").args(["-m", "venv"]).arg(folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--requirement"]);
            self.quietly(name, pip.arg(self.source.join(name).join("requirements.txt")))
        })
    }

    /// A folder with `node_modules` as `NAME/package-lock.json` says.
    pub fn npm(&self, name: &str) -> Result<PathBuf, Trouble> {
        const PINS: &[&str] = &["package.json", "package-lock.json"];
        self.once(name, PINS, |folder| {
            for pin in PINS {
                let (from, to) = (self.source.join(name).join(pin), folder.join(pin));
                fs::copy(&from, &to).map_err(|e| refused("copy", &from, &e))?;
            }
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
            self.quietly(name, &mut npm)
        })
    }

    /// A target folder of cargo with what `NAME/Cargo.toml` makes. Cargo knows best what must be built again.
    pub fn cargo(&self, name: &str, profile: &[&str]) -> Result<PathBuf, Trouble> {
        let folder = self.installed.join(name);
        let mut command = run::cargo();
        command.args(["build", "--locked"]).args(profile).arg("--manifest-path");
        command.arg(self.source.join(name).join("Cargo.toml")).arg("--target-dir").arg(&folder);
        self.quietly(name, &mut command)?;
        Ok(folder)
    }

    /// A program with what `NAME/go.mod` and `NAME/go.sum` say. Go knows best what must be built again.
    pub fn go(&self, name: &str) -> Result<PathBuf, Trouble> {
        let program = self.installed.join(name).join(name);
        let mut command = Command::new("go");
        command.args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o"]).arg(&program).arg(".");
        // No other Go than the machine's own, no C compiler, and no workspace that happens to lie above.
        command.envs([("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0"), ("GOWORK", "off")]);
        self.quietly(name, command.current_dir(self.source.join(name)))?;
        Ok(program)
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
            wanted += &fs::read_to_string(&path).map_err(|e| refused("read", &path, &e))?;
        }
        wanted += &tools();
        if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
            return Ok(folder);
        }
        let _ = fs::remove_dir_all(&folder); // of other pins, or half made
        fs::create_dir_all(&folder).map_err(|e| refused("make", &folder, &e))?;
        make(&folder)?;
        fs::write(&mark, wanted).map_err(|e| refused("write", &mark, &e))?;
        Ok(folder)
    }

    /// Runs a command to its end; what it prints is shown only if it fails.
    fn quietly(&self, name: &str, command: &mut Command) -> Result<(), Trouble> {
        let path = self.installed.join(format!("{name}.log"));
        let log = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|e| refused("write", &path, &e))?;
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

/// The first line of what a command prints.
pub fn said(command: &mut Command) -> Result<String, Trouble> {
    let line = run::shown(command);
    let mut process = Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let out = process.stdout();
    let status = process.wait(VERSION_TAKES)?;
    let text = out.map(io::read_to_string).transpose();
    let text = text.ok().flatten().unwrap_or_default();
    let first = text.lines().next().filter(|_| status.success()).map(str::to_string);
    first.ok_or_else(|| Trouble::new(format!("`{line}` does not say what it is ({status})")))
}

/// The tools of the machine that peers come by and run on, with their versions.
pub fn tools() -> String {
    let version = |(tool, word): (&str, &str)| {
        let said = said(Command::new(tool).arg(word).stderr(Stdio::null()));
        format!("{tool}: {}\n", said.unwrap_or_else(|_| "does not say its version".to_string()))
    };
    let tools = ["python3", "node", "npm", "cargo"].map(|tool| (tool, "--version"));
    tools.into_iter().chain([("go", "version")]).map(version).collect()
}

fn refused(what: &str, path: &Path, error: &io::Error) -> Trouble {
    Trouble::new(format!("cannot {what} {}: {error}", path.display()))
}
