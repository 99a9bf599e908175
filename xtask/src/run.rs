//! Running cargo and other programs, and where the tree is.
//!
//! The surprise: the output is passed straight through; only the exit code is looked at.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lockkeeper_rig::{Process, Trouble};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The cargo that runs us, at the root of the tree.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; anything but success is trouble.
pub fn run(command: &mut Command) -> Result<(), Trouble> {
    let line = shown(command);
    let status = command.status().map_err(|e| Trouble::new(format!("cannot start `{line}`: {e}")))?;
    if status.success() { Ok(()) } else { Err(Trouble::new(format!("`{line}` failed ({status})"))) }
}

/// Runs a command to its end, but no longer than this. If we are killed meanwhile, it ends too.
pub fn run_at_most(command: &mut Command, at_most: Duration) -> Result<(), Trouble> {
    let line = shown(command);
    // It gets a process group of its own, which must not read from the terminal.
    let mut process = Process::spawn(command.stdin(Stdio::null()))?;
    let status = process.wait(at_most).map_err(|_| {
        Trouble::new(format!("`{line}` did not end within {} minutes", at_most.as_secs() / 60))
            .hint("the last test named above without a result is the one that hangs")
    })?;
    if status.success() { Ok(()) } else { Err(Trouble::new(format!("`{line}` failed ({status})"))) }
}

/// Runs a command to its end and gives what it printed.
pub fn output(command: &mut Command) -> Result<String, Trouble> {
    let line = shown(command);
    command.stderr(Stdio::inherit());
    let out = command.output().map_err(|e| Trouble::new(format!("cannot start `{line}`: {e}")))?;
    if !out.status.success() {
        return Err(Trouble::new(format!("`{line}` failed ({})", out.status)));
    }
    String::from_utf8(out.stdout).map_err(|_| Trouble::new(format!("`{line}` printed something that is not UTF-8")))
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program()).to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
}
