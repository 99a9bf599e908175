//! The inner side: a hold that is somebody else's.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper::time::{Clock, Moment};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::VARIABLE;
use super::talk::{Ask, LINE_BYTES, Word, next_word, terms};
use crate::run::held::Named;

/// How long an outer one may take to answer. It is there and has nothing else to do, unless it is stopped.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// As deep as anybody nests.
const DEPTH: usize = 32;

/// The hold of an outer `run` that this one has joined.
#[derive(Debug)]
pub struct Joined {
    stream: UnixStream,
    names: Vec<Named>,
    /// Ours ends here whatever the outer one's does (`--at-most`).
    until: Moment,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    deadline: Moment,
    lost: Option<String>,
    heard: Vec<u8>,
}

/// Asks the outer ones, the nearest first; `None` if none of them holds these names in this store.
pub async fn join(store: &str, names: &[String], at_most: Option<Duration>) -> Option<Joined> {
    let paths = std::env::var(VARIABLE).ok()?;
    let until = at_most.map_or(Moment::NEVER, |time| Clock::system().now() + time);
    for path in paths.split(':').filter(|path| !path.is_empty()).take(DEPTH) {
        // A socket that is dead, or does not answer, is no outer one.
        if let Ok(Ok(Some(joined))) = tokio::time::timeout(ANSWER_WITHIN, ask(path, store, names, until)).await {
            return Some(joined);
        }
    }
    None
}

async fn ask(path: &str, store: &str, names: &[String], until: Moment) -> io::Result<Option<Joined>> {
    let mut stream = UnixStream::connect(path).await?;
    let mut line = serde_json::to_vec(&Ask { store: store.to_owned(), names: names.to_vec() })?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut heard = Vec::new();
    let word = loop {
        if let Some(word) = next_word(&mut heard) {
            break word;
        }
        stream.readable().await?;
        if read(&stream, &mut heard)? == Read::End {
            return Ok(None);
        }
    };
    let Some((names, deadline)) = word.and_then(|word| terms(word, names)) else { return Ok(None) };
    let state = Mutex::new(State { deadline, lost: None, heard });
    Ok(Some(Joined { stream, names, until, state }))
}

impl Joined {
    /// The names with the outer one's tokens.
    pub fn tokens(&self) -> Vec<Named> {
        self.names.clone()
    }

    /// When it ends if the outer one does not tell of a renewal.
    pub fn deadline(&self) -> Moment {
        self.look().deadline.min(self.until)
    }

    /// Why it is lost, if it is.
    pub fn why_lost(&self) -> Option<String> {
        let state = self.look();
        if let Some(why) = &state.lost {
            return Some(why.clone());
        }
        let over = Clock::system().now() >= state.deadline.min(self.until);
        over.then(|| "the outer hold's time ran out, or the time given here".to_owned())
    }

    /// Completes when it is lost.
    pub async fn lost(&self) -> String {
        loop {
            if let Some(why) = self.why_lost() {
                return why;
            }
            self.news().await;
        }
    }

    /// Waits until the deadline is past `seen`, and says where it is now.
    pub async fn deadline_after(&self, seen: Moment) -> Moment {
        loop {
            let deadline = self.deadline();
            if deadline > seen {
                return deadline;
            }
            self.news().await;
        }
    }

    /// Waits for a word, or for the deadline, which nobody has to tell.
    async fn news(&self) {
        let left = Clock::system().now().until(self.deadline()).clamp(Duration::from_millis(1), Duration::from_secs(1));
        if self.look().lost.is_some() {
            // The end of a stream stays readable; whoever asks for more waits in vain.
            return tokio::time::sleep(left).await;
        }
        let _ = tokio::time::timeout(left, self.stream.readable()).await;
    }

    /// Hears what has been said by now.
    fn look(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.lost.is_none() {
            match next_word(&mut state.heard) {
                Some(Some(Word::Deadline(deadline))) => state.deadline = Moment::from_nanos(deadline),
                Some(Some(Word::Lost(why))) => state.lost = Some(why),
                Some(_) => state.lost = Some("the outer `lockkeeper` said something that is not understood".to_owned()),
                None => match read(&self.stream, &mut state.heard) {
                    Ok(Read::Some) => {}
                    Ok(Read::Nothing) => break,
                    Ok(Read::End) | Err(_) => state.lost = Some("the outer `lockkeeper` is gone".to_owned()),
                },
            }
        }
        state
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Read {
    Some,
    Nothing,
    End,
}

fn read(stream: &UnixStream, heard: &mut Vec<u8>) -> io::Result<Read> {
    let mut bytes = [0; 4096];
    match stream.try_read(&mut bytes) {
        Ok(0) => Ok(Read::End),
        Ok(_) if heard.len() > LINE_BYTES => Err(io::Error::from(io::ErrorKind::InvalidData)),
        Ok(count) => {
            heard.extend_from_slice(&bytes[..count]);
            Ok(Read::Some)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
        Err(error) => Err(error),
    }
}
