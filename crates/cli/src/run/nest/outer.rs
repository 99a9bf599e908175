//! The outer side: who has joined, and what they are told.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::task::{Context, Poll};

use lockkeeper::ClaimId;
use tokio::net::{UnixListener, UnixStream};

use super::VARIABLE;
use super::talk::{Ask, LINE_BYTES, Word, question};
use crate::run::held::Held;
use crate::run::record::Watch;

/// More than any command nests.
const INNERS: usize = 256;
/// What a socket's path may have on every system.
const PATH_BYTES: usize = 100;

/// A hold that inner ones can join. Dropping it ends that.
#[derive(Debug)]
pub struct Outer {
    store: String,
    folder: PathBuf,
    /// Nobody comes in any more once this is gone.
    listener: Option<UnixListener>,
    inners: Vec<Inner>,
}

#[derive(Debug)]
struct Inner {
    stream: UnixStream,
    heard: Vec<u8>,
    joined: bool,
}

impl Outer {
    /// Starts to listen; `None` where that is not possible, which only means that inner ones wait as strangers do.
    pub fn open(store: &str) -> Option<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let place = runtime.unwrap_or_else(std::env::temp_dir);
        let number = ClaimId::random().ok()?.to_string();
        let folder = place.join(format!("lockkeeper-{}", &number[..16]));
        let path = socket(&folder);
        if !folder.is_absolute() || path.as_os_str().len() > PATH_BYTES || path.to_str()?.contains(':') {
            return None;
        }
        // Made, not found: nobody else can have put anything there.
        std::fs::DirBuilder::new().mode(0o700).create(&folder).ok()?;
        let mut outer = Self { store: store.to_owned(), folder, listener: None, inners: Vec::new() };
        outer.listener = Some(UnixListener::bind(path).ok()?);
        Some(outer)
    }

    /// The folder that is to be gone in the end.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets a command know where to ask.
    pub fn describe(&self, command: &mut Command) {
        let mut value = socket(&self.folder).into_os_string();
        if let Some(further) = std::env::var_os(VARIABLE).filter(|further| !further.is_empty()) {
            value.push(":");
            value.push(further);
        }
        command.env(VARIABLE, value);
    }

    /// Has nobody joined who is still there?
    pub fn is_idle(&self) -> bool {
        self.inners.iter().all(|inner| !inner.joined)
    }

    /// Lets nobody else come in.
    pub fn stop(&mut self) {
        self.listener = None;
        remove(&self.folder);
        self.inners.retain(|inner| inner.joined);
    }

    /// Tells all who have joined. It is written when this returns, so that they know before anything else happens
    /// to them; one that cannot be told is cut off, which it takes for a loss.
    pub fn tell(&mut self, word: &Word) {
        self.inners.retain(|inner| !inner.joined || inner.tell(word));
    }

    /// Lets inner ones join and notices their end; returns when either has happened.
    ///
    /// # Cancel safety
    /// Nothing is lost when this is dropped.
    pub async fn news(&mut self, held: &Held, watch: Watch) {
        std::future::poll_fn(|task| self.poll(task, held, watch)).await;
    }

    fn poll(&mut self, task: &mut Context<'_>, held: &Held, watch: Watch) -> Poll<()> {
        while let Some(Poll::Ready(Ok((stream, _)))) = self.listener.as_ref().map(|listener| listener.poll_accept(task))
        {
            if self.inners.len() < INNERS {
                self.inners.push(Inner { stream, heard: Vec::new(), joined: false });
            }
        }
        let before: Vec<bool> = self.inners.iter().map(|inner| inner.joined).collect();
        let store = &self.store;
        self.inners.retain_mut(|inner| inner.listen(task, |ask| answer(store, ask, held, watch)));
        let after: Vec<bool> = self.inners.iter().map(|inner| inner.joined).collect();
        if before == after { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("run")
}

/// Takes the socket and its folder away; done by the guard where `lockkeeper` cannot.
pub fn remove(folder: &Path) {
    let _ = std::fs::remove_file(socket(folder));
    let _ = std::fs::remove_dir(folder);
}

fn answer(store: &str, ask: &Ask, held: &Held, watch: Watch) -> Word {
    let mine = held.tokens();
    let token = |name: &String| mine.iter().find(|(held, _)| held.as_str() == name).map(|(_, token)| *token);
    let tokens: Option<Vec<_>> = ask.names.iter().map(token).collect();
    match tokens {
        Some(tokens) if ask.store == store && !tokens.is_empty() && held.is_held() => Word::Joined {
            tokens: tokens.into_iter().map(|token| token.map(|token| token.as_u64())).collect(),
            deadline: watch.deadline.as_nanos(),
        },
        _ => Word::Stranger,
    }
}

impl Inner {
    /// False if it is gone, or is to go.
    fn listen(&mut self, task: &mut Context<'_>, answer: impl Fn(&Ask) -> Word) -> bool {
        loop {
            match self.stream.poll_read_ready(task) {
                Poll::Pending => return true,
                Poll::Ready(Err(_)) => return false,
                Poll::Ready(Ok(())) => {}
            }
            let mut bytes = [0; 4096];
            match self.stream.try_read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return false,
            }
            // Nothing is expected after the question.
            if self.joined || self.heard.len() > LINE_BYTES {
                return false;
            }
            if let Some(ask) = question(&self.heard) {
                let Some(ask) = ask else { return false };
                let word = answer(&ask);
                self.joined = matches!(word, Word::Joined { .. });
                if !self.tell(&word) || !self.joined {
                    return false;
                }
            }
        }
    }

    fn tell(&self, word: &Word) -> bool {
        let Ok(mut line) = serde_json::to_vec(word) else { return false };
        line.push(b'\n');
        self.stream.try_write(&line).is_ok_and(|count| count == line.len())
    }
}
