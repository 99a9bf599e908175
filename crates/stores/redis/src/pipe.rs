//! One connection: questions go out in order, answers come back in that order, news come between.
//!
//! Surprise: who asks writes to the socket itself while nothing is under way, so a lone question wakes nobody but the server.
//! In a crowd it only leaves its bytes here, and the driver writes what has gathered. There is one lock around the stream
//! for both directions, held for no longer than one read or write of it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::resp::{self, Answers};
use crate::stream::Stream;

/// What is kept of the room for bytes that go out, once they are out.
const ROOM_KEPT: usize = 256 << 10;

/// What hears pushed news.
pub(crate) type Ear = Box<dyn Fn(PushInfo) + Send>;

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(crate) enum Broken {
    /// The connection ended, and this is why.
    Ended(Arc<io::Error>),
    /// Nothing came for so long.
    Silent(Duration),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(why) => why.fmt(f),
            Self::Silent(patience) => write!(f, "there was no answer within {patience:?}"),
        }
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Ended(why) => Some(&**why),
            Self::Silent(_) => None,
        }
    }
}

type Answer<T> = Result<T, Broken>;

/// The asking end of a connection. When the last one is dropped, the connection is closed.
#[derive(Clone)]
pub(crate) struct Pipe {
    core: Arc<Core>,
    _used: Arc<Used>,
    /// How long one answer is waited for, if not for as long as the connection lives.
    patience: Option<Duration>,
}

struct Core(Mutex<State>);

struct State {
    /// Closed as soon as it is over, whoever could still ask.
    stream: Option<Box<dyn Stream>>,
    /// Bytes that are to go out, and how many of them did.
    out: Vec<u8>,
    gone: usize,
    /// Everything is out, but may not be flushed.
    unflushed: bool,
    /// Who waits for an answer, in order.
    waiting: VecDeque<Slot>,
    /// How many answers were asked for, and how many came.
    asked: u64,
    came: u64,
    driver: Option<Waker>,
    /// It is over, and why.
    ended: Option<Broken>,
    unused: bool,
}

/// Who waits.
enum Slot {
    One(oneshot::Sender<Answer<Value>>),
    Many {
        left: usize,
        answers: Vec<Value>,
        to: oneshot::Sender<Answer<Vec<Value>>>,
    },
    /// For the word that it is subscribed, which comes as news.
    Subscribed(oneshot::Sender<Answer<Value>>),
}

impl Slot {
    /// How many answers it waits for.
    fn wants(&self) -> u64 {
        match self {
            Self::One(_) | Self::Subscribed(_) => 1,
            Self::Many { left, .. } => *left as u64,
        }
    }

    /// Takes an answer; gives itself back if it waits for more.
    fn answer(self, value: Value) -> Option<Self> {
        match self {
            Self::One(to) | Self::Subscribed(to) => drop(to.send(Ok(value))),
            Self::Many { left, mut answers, to } => {
                answers.push(value);
                if left > 1 {
                    return Some(Self::Many { left: left - 1, answers, to });
                }
                drop(to.send(Ok(answers)));
            }
        }
        None
    }

    fn fail(self, why: Broken) {
        match self {
            Self::One(to) | Self::Subscribed(to) => drop(to.send(Err(why))),
            Self::Many { to, .. } => drop(to.send(Err(why))),
        }
    }
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is over: everybody who waits is told, and everybody who comes.
    fn end(&self, why: Broken) {
        let mut state = self.state();
        let why = state.ended.get_or_insert(why).clone();
        let (waiting, stream) = (std::mem::take(&mut state.waiting), state.stream.take());
        drop(state);
        drop(stream);
        waiting.into_iter().for_each(|slot| slot.fail(why.clone()));
    }
}

impl State {
    /// Writes as much as the socket takes; what it does not take, the driver writes when it can.
    fn write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        while self.gone < self.out.len() {
            match Pin::new(&mut *stream).poll_write(context, &self.out[self.gone..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.gone += count,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
            self.unflushed = true;
        }
        self.gone = 0;
        self.out.clear();
        self.out.shrink_to(ROOM_KEPT);
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(stream).poll_flush(context)
        {
            self.unflushed = false;
            flushed?;
        }
        Ok(())
    }
}

/// Somebody may still ask; when nobody does, the driver ends.
struct Used(Arc<Core>);

impl Drop for Used {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.unused = true;
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Pipe {
    /// Both ends of a connection on which we have come in: one asks, the other has to be run.
    pub(crate) fn new(stream: Box<dyn Stream>, ear: Option<Ear>, patience: Option<Duration>) -> (Self, Driver) {
        let state = State {
            stream: Some(stream),
            out: Vec::new(),
            gone: 0,
            unflushed: false,
            waiting: VecDeque::new(),
            asked: 0,
            came: 0,
            driver: None,
            ended: None,
            unused: false,
        };
        let core = Arc::new(Core(Mutex::new(state)));
        let driver = Driver { core: core.clone(), answers: Answers::new(), answered: None, came: 0, ear };
        (Self { _used: Arc::new(Used(core.clone())), core, patience }, driver)
    }

    /// Asks a question that is written by `write`, and waits for its one answer.
    ///
    /// # Cancel safety
    /// Dropped, the question is asked all the same, and its answer is thrown away.
    pub(crate) async fn ask(&self, write: impl FnOnce(&mut Vec<u8>)) -> Answer<Value> {
        let (to, answer) = oneshot::channel();
        self.send(Slot::One(to), write);
        self.answered(answer).await
    }

    /// The same for so many commands, and as many answers.
    pub(crate) async fn ask_all(&self, count: usize, write: impl FnOnce(&mut Vec<u8>)) -> Answer<Vec<Value>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (to, answer) = oneshot::channel();
        self.send(Slot::Many { left: count, answers: Vec::with_capacity(count), to }, write);
        self.answered(answer).await
    }

    /// The same for commands that are made already.
    pub(crate) async fn ask_commands(&self, commands: &Pipeline) -> Answer<Vec<Value>> {
        let write = |out: &mut Vec<u8>| commands.cmd_iter().for_each(|each| each.write_packed_command(out));
        self.ask_all(commands.len(), write).await
    }

    /// Subscribes, and waits for the word that it is; an error reply is an answer.
    pub(crate) async fn subscribe(&self, channel: &str) -> Answer<Value> {
        let (to, answer) = oneshot::channel();
        self.send(Slot::Subscribed(to), |out| resp::command(out, "SUBSCRIBE", &[channel.as_bytes()]));
        self.answered(answer).await
    }

    /// How many answers have come, if more were asked for.
    pub(crate) fn came_while_more_is_due(&self) -> Option<u64> {
        let state = self.core.state();
        (state.asked > state.came).then_some(state.came)
    }

    fn send(&self, slot: Slot, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.core.state();
        if let Some(why) = &state.ended {
            let why = why.clone();
            drop(state);
            return slot.fail(why);
        }
        let nothing_under_way = state.waiting.is_empty() && state.out.is_empty();
        write(&mut state.out);
        state.asked += slot.wants();
        state.waiting.push_back(slot);
        // Before the driver was run for the first time it is not there to be woken, but it looks by itself then.
        let Some(driver) = state.driver.clone() else { return };
        if nothing_under_way {
            let written = state.write(&mut Context::from_waker(&driver));
            drop(state);
            if let Err(error) = written {
                self.core.end(Broken::Ended(Arc::new(error)));
                driver.wake();
            }
        } else {
            drop(state);
            driver.wake();
        }
    }

    async fn answered<T>(&self, answer: oneshot::Receiver<Answer<T>>) -> Answer<T> {
        let answer = match self.patience {
            None => answer.await,
            Some(patience) => match tokio::time::timeout(patience, answer).await {
                Ok(answer) => answer,
                Err(_) => return Err(Broken::Silent(patience)),
            },
        };
        answer.unwrap_or_else(|_| Err(over("the connection was given up")))
    }
}

fn over(why: &str) -> Broken {
    Broken::Ended(Arc::new(io::Error::new(io::ErrorKind::ConnectionAborted, why)))
}

/// What moves the bytes. It ends with the connection, and dropping it ends that.
pub(crate) struct Driver {
    core: Arc<Core>,
    answers: Answers,
    /// The one whose answers are coming in.
    answered: Option<Slot>,
    /// How many answers came.
    came: u64,
    ear: Option<Ear>,
}

impl Driver {
    /// One read, if there is something; whatever waits to be written goes out first.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = self.core.state();
        if state.unused {
            return Poll::Ready(Ok(0));
        }
        if let Some(why) = &state.ended {
            return Poll::Ready(Err(io::Error::other(why.clone())));
        }
        if !state.driver.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            state.driver = Some(context.waker().clone());
        }
        state.came = self.came;
        state.write(context)?;
        let stream = state.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let mut room = ReadBuf::new(self.answers.room());
        std::task::ready!(Pin::new(stream).poll_read(context, &mut room))?;
        Poll::Ready(Ok(room.filled().len()))
    }

    fn hear(&mut self, value: Value) -> io::Result<()> {
        let slot = match value {
            Value::Push { kind, data } => {
                if kind == PushKind::Subscribe
                    && let Some(Slot::Subscribed(to)) = self.next_subscribed()
                {
                    self.came += 1;
                    drop(to.send(Ok(Value::Okay)));
                }
                if let Some(ear) = &self.ear {
                    ear(PushInfo { kind, data });
                }
                return Ok(());
            }
            value => {
                self.came += 1;
                let slot = self.answered.take().or_else(|| self.core.state().waiting.pop_front());
                slot.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an answer to no question"))?
                    .answer(value)
            }
        };
        self.answered = slot;
        Ok(())
    }

    /// The first one that waits, if it waits to be subscribed.
    fn next_subscribed(&mut self) -> Option<Slot> {
        let mut state = self.core.state();
        match state.waiting.front() {
            Some(Slot::Subscribed(_)) if self.answered.is_none() => state.waiting.pop_front(),
            _ => None,
        }
    }

    fn run(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            match std::task::ready!(self.read(context)) {
                Ok(0) => return Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.answers.came(count),
                Err(error) => return Poll::Ready(error),
            }
            loop {
                match self.answers.next() {
                    Ok(None) => break,
                    Ok(Some(value)) => {
                        if let Err(error) = self.hear(value) {
                            return Poll::Ready(error);
                        }
                    }
                    Err(_) => {
                        let why = "what came is not the protocol of a redis server";
                        return Poll::Ready(io::Error::new(io::ErrorKind::InvalidData, why));
                    }
                }
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let error = std::task::ready!(self.run(context));
        self.core.end(Broken::Ended(Arc::new(error)));
        Poll::Ready(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let why = over("the connection was closed");
        if let Some(slot) = self.answered.take() {
            slot.fail(why.clone());
        }
        self.core.end(why);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn ping(out: &mut Vec<u8>) {
        resp::command(out, "PING", &[]);
    }

    #[tokio::test]
    async fn answers_come_in_order_and_news_between() {
        let (ours, mut theirs) = duplex(64);
        let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let ear: Ear = Box::new(move |news| drop(tell.send(news)));
        let (pipe, driver) = Pipe::new(Box::new(ours), Some(ear), None);
        let driver = tokio::spawn(driver);
        let (asker, subscriber) = (pipe.clone(), pipe.clone());
        let one = tokio::spawn(async move { asker.ask(ping).await });
        let mut asked = [0; 14];
        theirs.read_exact(&mut asked).await.unwrap();
        let two = tokio::spawn(async move { subscriber.subscribe("c").await });
        let mut asked = [0; 26];
        theirs.read_exact(&mut asked).await.unwrap();
        theirs.write_all(b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nn\r\n:1\r\n").await.unwrap();
        theirs.write_all(b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n").await.unwrap();
        assert_eq!(one.await.unwrap().unwrap(), Value::Int(1));
        assert_eq!(two.await.unwrap().unwrap(), Value::Okay);
        assert_eq!(heard.recv().await.unwrap().kind, PushKind::Message);
        let (asker, all) = (pipe.clone(), |out: &mut Vec<u8>| [ping, ping].iter().for_each(|ping| ping(out)));
        let many = tokio::spawn(async move { asker.ask_all(2, all).await });
        theirs.read_exact(&mut [0; 28]).await.unwrap();
        assert_eq!(pipe.came_while_more_is_due(), Some(2));
        theirs.write_all(b":3\r\n").await.unwrap();
        while pipe.came_while_more_is_due() != Some(3) {
            tokio::task::yield_now().await;
        }
        theirs.write_all(b":4\r\n").await.unwrap();
        assert_eq!(many.await.unwrap().unwrap(), [Value::Int(3), Value::Int(4)]);
        while pipe.came_while_more_is_due().is_some() {
            tokio::task::yield_now().await;
        }
        drop(pipe);
        driver.await.unwrap();
        assert_eq!(theirs.read(&mut asked).await.unwrap(), 0, "it is closed when nobody can ask any more");
    }

    #[tokio::test]
    async fn what_ends_it_closes_it_and_is_told_to_all() {
        for nonsense in [&b"hello\r\n"[..], b":1\r\n:2\r\n"] {
            let (ours, mut theirs) = duplex(64);
            let (pipe, driver) = Pipe::new(Box::new(ours), None, None);
            let driver = tokio::spawn(driver);
            let asker = pipe.clone();
            let asked = tokio::spawn(async move { (asker.ask(ping).await, asker.ask(ping).await) });
            theirs.write_all(nonsense).await.unwrap();
            driver.await.unwrap();
            let mut rest = Vec::new();
            theirs.read_to_end(&mut rest).await.unwrap();
            assert!(asked.await.unwrap().1.is_err(), "whoever comes later is told, too");
            assert!(matches!(pipe.ask_all(2, ping).await, Err(Broken::Ended(_))));
        }
    }

    #[tokio::test]
    async fn a_silent_one_is_not_waited_for_longer_than_asked() {
        let (ours, _theirs) = duplex(64);
        let (pipe, driver) = Pipe::new(Box::new(ours), None, Some(Duration::from_millis(50)));
        let driver = tokio::spawn(driver);
        assert!(matches!(pipe.ask(ping).await, Err(Broken::Silent(_))));
        driver.abort();
        assert!(driver.await.is_err());
        assert!(matches!(pipe.ask(ping).await, Err(Broken::Ended(_))), "its driver is gone");
    }
}
