//! The reaper: a small shell beside each process, which ends it when its owner is gone.
//!
//! The surprise: it knows only by the pipe. The owner writes a word to dismiss it; end-of-file without a word means the
//! owner died, however it died. The pipe is close-on-exec, so no other child keeps it open.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Identity, Trouble};

const REAPER: &str = include_str!("reaper.sh");

/// Waits for the owner's word before it becomes the server, so that a server never runs without its reaper.
const LAUNCHER: &str = "read -r go || exit 125; exec \"$@\" </dev/null";

/// A running reaper. Dropping it without [`dismiss`](Reaper::dismiss) makes it reap.
#[derive(Debug)]
pub(super) struct Reaper(Child);

impl Reaper {
    /// Guards a process: first `signal`, and a kill of its whole group five seconds later. `belongings`, its folder and
    /// files elsewhere, are removed too.
    pub(super) fn guard(identity: Identity, signal: i32, belongings: &[PathBuf]) -> Result<Reaper, Trouble> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", REAPER, "lockkeeper-rig-reaper"]);
        command.args([identity.pid.to_string(), identity.start.to_string(), signal.to_string()]);
        command.args(belongings);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Away from the owner's process group, or Ctrl-C would end the reaper together with the owner.
        command.current_dir("/").process_group(0);
        let child = command.spawn().map_err(|e| Trouble::new(format!("cannot start the reaper `/bin/sh`: {e}")))?;
        Ok(Reaper(child))
    }

    /// The process is gone, or may stay: the reaper leaves without doing anything.
    pub(super) fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(b"done\n"); // a reaper that is gone needs no word
        }
        let _ = self.0.wait();
    }
}

/// A command that becomes `command` once it reads a line, and never if its owner dies before.
pub(super) fn held_back(program: &Path, args: &[String]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", LAUNCHER, "lockkeeper-rig-launcher"]).arg(program).args(args).stdin(Stdio::piped());
    command
}
