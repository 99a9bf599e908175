//! One connection to the server, made when it is first needed and again after it broke.
//!
//! Surprise: it is driven by the runtime of whoever made it. The watchdog's renewals have a link of their own, made from
//! the watchdog's thread, so user code that blocks its own runtime does not stop them (C3).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_core::{Error, Result};
use redis::{Cmd, Pipeline, ServerError, Value};

use crate::greet::{self, Protocol};
use crate::hub::Hub;
use crate::options::{Address, Options};
use crate::pipe::{Broken, Driver, Ear, Pipe};
use crate::scripts::Script;
use crate::{pulse, resp, stream, trouble};

/// A connection that comes back by itself.
pub(crate) struct Link {
    options: Arc<Options>,
    /// Where pushed news go; a link without one does not subscribe.
    hub: Option<Arc<Hub>>,
    live: Mutex<Option<Arc<Live>>>,
    /// Held by the one that connects; the last failure is for those who waited for it meanwhile.
    connecting: tokio::sync::Mutex<Option<(Instant, Error)>>,
    closed: AtomicBool,
}

/// A connection that was made.
struct Live {
    pipe: Pipe,
    broken: Arc<AtomicBool>,
}

impl Link {
    pub(crate) fn new(options: Arc<Options>, hub: Option<Arc<Hub>>) -> Self {
        let closed = AtomicBool::new(false);
        Self { options, hub, live: Mutex::default(), connecting: tokio::sync::Mutex::default(), closed }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.options.address
    }

    /// How long connecting, or one answer, may take.
    pub(crate) fn patience(&self) -> Duration {
        self.options.timeout
    }

    /// Has it been closed?
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// One command and its answer; an error reply is an error.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value> {
        let live = self.live().await?;
        let answer = live.pipe.ask(|out| command.write_packed_command(out)).await;
        self.settled(&live, answer).and_then(|value| self.no_error(value))
    }

    /// Several commands in one write, and their answers; error replies are among them.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        let live = self.live().await?;
        let answers = live.pipe.ask_commands(commands).await;
        self.settled(&live, answers)
    }

    /// The same for commands that `write` writes down: so many.
    pub(crate) async fn ask_written(&self, count: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<Value>> {
        let live = self.live().await?;
        let answers = live.pipe.ask_all(count, write).await;
        self.settled(&live, answers)
    }

    /// Runs a script by its hash; the server is given the text if it does not know it.
    pub(crate) async fn run(&self, script: &Script, keys: &[&[u8]], args: &[&[u8]]) -> Result<Value> {
        let live = self.live().await?;
        let answer = live.pipe.ask(|out| call(out, "EVALSHA", script.hash(), keys, args)).await;
        self.ran(&live, answer, script, keys, args).await
    }

    /// The same for a script that tells others something: they hear it before we are answered.
    ///
    /// After it ran what it was sent, the server writes to its clients, last come first: whoever has something to be told
    /// is put in front of the others. A `PING` before the script puts us behind those whom the script tells.
    pub(crate) async fn run_telling(&self, script: &Script, keys: &[&[u8]], args: &[&[u8]]) -> Result<Value> {
        let live = self.live().await?;
        let write = |out: &mut Vec<u8>| {
            resp::command(out, "PING", &[]);
            call(out, "EVALSHA", script.hash(), keys, args);
        };
        let answer = live.pipe.ask_all(2, write).await.map(|mut both| both.pop().unwrap_or(Value::Nil));
        self.ran(&live, answer, script, keys, args).await
    }

    /// What a script was answered, or is answered once the server was given its text.
    async fn ran(
        &self,
        live: &Live,
        answer: Result<Value, Broken>,
        script: &Script,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Value> {
        match self.settled(live, answer)? {
            Value::ServerError(error) if is_unknown_script(&error) => {
                let answer = live.pipe.ask(|out| call(out, "EVAL", script.text(), keys, args)).await;
                self.settled(live, answer).and_then(|value| self.no_error(value))
            }
            value => self.no_error(value),
        }
    }

    /// An error reply is an error.
    pub(crate) fn no_error(&self, value: Value) -> Result<Value> {
        match value {
            Value::ServerError(error) => Err(trouble::refused(self.address(), &error)),
            value => Ok(value),
        }
    }

    /// A connection of its own, for commands that change the state of a connection (`WATCH`).
    pub(crate) async fn another(&self) -> Result<Pipe> {
        if self.is_closed() {
            return Err(trouble::closed());
        }
        let (pipe, driver) = self.connect(None, Some(self.options.timeout)).await?;
        tokio::spawn(driver);
        Ok(pipe)
    }

    /// No more questions.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.lock().take();
    }

    /// A silent connection is given up: the next question makes another one.
    fn settled<T>(&self, live: &Live, answer: Result<T, Broken>) -> Result<T> {
        answer.map_err(|why| {
            live.broken.store(true, Ordering::SeqCst);
            if let Some(hub) = &self.hub {
                hub.ring_all();
            }
            trouble::unanswered(self.address(), why)
        })
    }

    async fn live(&self) -> Result<Arc<Live>> {
        match self.current()? {
            Some(live) => Ok(live),
            // Apart, so that it takes no room in the future of every call.
            None => Box::pin(self.once_connected()).await,
        }
    }

    async fn once_connected(&self) -> Result<Arc<Live>> {
        let asked = Instant::now();
        let mut last = self.connecting.lock().await;
        if let Some(live) = self.current()? {
            return Ok(live);
        }
        if let Some((at, error)) = &*last
            && *at >= asked
        {
            return Err(error.clone());
        }
        match self.reconnect().await {
            Ok(live) => {
                *last = None;
                Ok(live)
            }
            Err(error) => {
                *last = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn current(&self) -> Result<Option<Arc<Live>>> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(trouble::closed());
        }
        let live = self.lock();
        Ok(live.as_ref().filter(|live| !live.broken.load(Ordering::SeqCst)).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reconnect(&self) -> Result<Arc<Live>> {
        let ear = self.hub.clone().map(|hub| -> Ear { Box::new(move |news| hub.hear(&news)) });
        let (pipe, driver) = self.connect(ear, None).await?;
        let broken = Arc::new(AtomicBool::new(false));
        let ended = Ended { broken: broken.clone(), hub: self.hub.clone() };
        // A task of its own, so that nothing but bytes is looked at when bytes come.
        let mut driver = tokio::spawn(async move {
            let _ended = ended;
            driver.await;
        });
        let live = Arc::new(Live { pipe, broken });
        let (watched, patience) = (Arc::downgrade(&live), self.options.timeout);
        let pipe = move || watched.upgrade().map(|live| live.pipe.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = &mut driver => {}
                () = pulse::stops(pipe, patience) => {}
            }
            // Dropping the driver closes the connection: whoever waits for an answer is told that it is not known.
            driver.abort();
        });
        if let Some(hub) = &self.hub {
            let subscribed = tokio::time::timeout(self.options.timeout, live.pipe.subscribe(hub.channel())).await;
            let subscribed =
                subscribed.map_err(|_| trouble::unreachable(self.address(), Broken::Silent(self.options.timeout)))?;
            let subscribed = subscribed.map_err(|why| trouble::unreachable(self.address(), why))?;
            self.no_error(subscribed)?;
        }
        *self.lock() = Some(live.clone());
        if self.closed.load(Ordering::SeqCst) {
            self.lock().take();
            return Err(trouble::closed());
        }
        Ok(live)
    }

    /// With `patience`, every answer is waited for no longer than that.
    async fn connect(&self, ear: Option<Ear>, patience: Option<Duration>) -> Result<(Pipe, Driver)> {
        let within = self.options.timeout;
        let connecting = async {
            let mut stream = stream::open(&self.options.address).await?;
            greet::greet(&mut *stream, &self.options, Protocol::New).await?;
            Ok(Pipe::new(stream, ear, patience))
        };
        match tokio::time::timeout(within, connecting).await {
            Ok(made) => made,
            Err(_) => Err(trouble::unreachable(self.address(), Broken::Silent(within))),
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("address", &self.options.address).finish_non_exhaustive()
    }
}

/// The end of a connection, also when the runtime that drove it is gone: those who wait hear of it and ask again.
struct Ended {
    broken: Arc<AtomicBool>,
    hub: Option<Arc<Hub>>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.broken.store(true, Ordering::SeqCst);
        if let Some(hub) = &self.hub {
            hub.ring_all();
        }
    }
}

/// Writes the call of a script: `EVALSHA` and its hash, or `EVAL` and its text.
pub(crate) fn call(out: &mut Vec<u8>, command: &str, script: &str, keys: &[&[u8]], args: &[&[u8]]) {
    resp::begin(out, command, 2 + keys.len() + args.len());
    resp::word(out, script.as_bytes());
    resp::number(out, keys.len() as u64);
    keys.iter().chain(args).for_each(|word| resp::word(out, word));
}

pub(crate) fn is_unknown_script(error: &ServerError) -> bool {
    error.code() == "NOSCRIPT"
}
