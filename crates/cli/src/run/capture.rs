//! The command's output, passed through and kept.
//!
//! Surprise: it ends with the command, not with the pipe. A background process may keep the pipe open for ever, and
//! what it writes later is neither passed nor kept.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Output on its way. It is passed by a thread, since whoever reads ours may be slow.
#[derive(Debug)]
pub struct Capture {
    /// Handed to the command.
    output: Option<PipeWriter>,
    /// Closed when the command has ended.
    command: Option<PipeWriter>,
    kept: Arc<Mutex<Vec<u8>>>,
    passed: oneshot::Receiver<()>,
}

impl Capture {
    /// Starts to pass output to ours, and keeps up to so many bytes of it.
    pub fn start(limit: usize) -> io::Result<Self> {
        let (from, output) = io::pipe()?;
        let (end, command) = io::pipe()?;
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (tell, passed) = oneshot::channel();
        let keep = kept.clone();
        std::thread::spawn(move || {
            pass(from, &end, |bytes| {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let room = limit - kept.len();
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            });
            let _ = tell.send(());
        });
        Ok(Self { output: Some(output), command: Some(command), kept, passed })
    }

    /// Makes it the output of a command that is about to be started.
    pub fn attach(&mut self, command: &mut Command) {
        if let Some(output) = self.output.take() {
            command.stdout(output);
        }
    }

    /// The command has ended: waits until the last of its output is passed on.
    pub async fn finish(&mut self) {
        self.command = None;
        let _ = (&mut self.passed).await;
    }

    /// What was kept.
    pub fn kept(self) -> Vec<u8> {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn pass(from: PipeReader, end: &PipeReader, keep: impl Fn(&[u8])) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let mut fds = [PollFd::new(&from, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        // First what there is to read: the command wrote it before it ended.
        if fds[0].revents().is_empty() {
            if !fds[1].revents().is_empty() {
                return;
            }
            continue;
        }
        match rustix::io::read(&from, &mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                keep(&bytes[..count]);
                let mut out = io::stdout().lock();
                // Nobody reads: then nobody reads the command either, and it ends of SIGPIPE as it would without us.
                if out.write_all(&bytes[..count]).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}
