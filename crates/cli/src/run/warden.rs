//! `lockkeeper`'s side of the guard: starting it, telling it news, and noticing that it is gone.
//!
//! Surprise: nobody waits for the guard's process. It keeps its stdout open all its life and says next to nothing
//! there; the end of that pipe is how its death is noticed.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::record::{Record, Watch};

/// Longer than any machine needs to start a process, shorter than a person waits for nothing.
const POST_WITHIN: Duration = Duration::from_secs(20);

/// What there is to know about a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It has asked the command to end, because the deadline is near.
    Asked,
    /// It has ended; true if it has done its work, which is that nobody of the group is left.
    Ended(bool),
}

/// A guard that is on its post.
#[derive(Debug)]
pub struct Warden {
    child: Child,
    records: ChildStdin,
    life: pipe::Receiver,
}

impl Warden {
    /// Starts a guard and returns when it has said that it watches. It takes `folder` away in the end.
    pub async fn post(watch: Watch, folder: Option<&Path>) -> io::Result<Self> {
        let mut child = Command::new(super::own_executable()?)
            .arg(super::GUARD)
            // From its first moment, so that no key pressed meanwhile reaches it.
            .process_group(0)
            .args(folder)
            // No password, no preload, nothing of the command's.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(records), Some(life)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes to the guard are missing"));
        };
        // A guard that does not read must not stop us from seeing the command end.
        rustix::io::ioctl_fionbio(&records, true)?;
        let life = pipe::Receiver::from_owned_fd(OwnedFd::from(life))?;
        let mut warden = Self { child, records, life };
        match warden.await_post(watch).await {
            Ok(()) => Ok(warden),
            Err(error) => {
                warden.dismiss();
                Err(error)
            }
        }
    }

    async fn await_post(&mut self, watch: Watch) -> io::Result<()> {
        self.tell(Record::Watch(watch))?;
        let answered = tokio::time::timeout(POST_WITHIN, self.life.read_u8()).await;
        answered.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(())
    }

    /// Tells the guard something. An error means that it does not listen any more.
    pub fn tell(&mut self, record: Record) -> io::Result<()> {
        self.records.write_all(&record.to_bytes())
    }

    /// The next thing there is to know about the guard.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn news(&mut self) -> News {
        match self.life.read_u8().await {
            Ok(_) => News::Asked,
            Err(_) => News::Ended(self.child.wait().is_ok_and(|status| status.success())),
        }
    }

    /// Ends a guard that is of no use.
    pub fn dismiss(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
