//! One connection to the server, made when it is first needed and again after it broke.
//!
//! Surprise: it is driven by the runtime of whoever made it. The watchdog's renewals have a link of their own, made from
//! the watchdog's thread, so user code that blocks its own runtime does not stop them (C3).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_core::{Error, Result};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, PushInfo, RedisConnectionInfo, Value};
use tokio::sync::Notify;

use crate::hub::Hub;
use crate::options::{Address, Options};
use crate::pulse::Pulse;
use crate::scripts::Script;
use crate::stream::{self, Stream};
use crate::trouble;

/// How many requests may wait for the socket before callers have to.
const PIPELINE: usize = 1_024;

/// What moves the bytes of a connection; spawned by whoever made it.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that comes back by itself.
pub(crate) struct Link {
    options: Arc<Options>,
    /// Where pushed news go; a link without one does not subscribe.
    hub: Option<Arc<Hub>>,
    live: Mutex<Option<Live>>,
    /// Held by the one that connects; the last failure is for those who waited for it meanwhile.
    connecting: tokio::sync::Mutex<Option<(Instant, Error)>>,
    closed: AtomicBool,
}

/// A connection that was made.
#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    broken: Arc<AtomicBool>,
    pulse: Arc<Pulse>,
    _in_use: Arc<InUse>,
}

/// Somebody has the connection; when the last one drops it, it is closed.
struct InUse(Arc<Notify>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.notify_one();
    }
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
        let mut live = self.live().await?;
        live.pulse.asks();
        let answer = live.connection.send_packed_command(command).await;
        self.settled(&live, answer).and_then(|value| self.no_error(value))
    }

    /// Several commands in one write, and their answers; error replies are among them.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>> {
        let mut live = self.live().await?;
        live.pulse.asks();
        let answers = live.connection.send_packed_commands(commands, 0, commands.len()).await;
        self.settled(&live, answers)
    }

    /// Runs a script by its hash; the server is given the text if it does not know it.
    pub(crate) async fn run(&self, script: &Script, keys: &[&[u8]], args: &[&[u8]]) -> Result<Value> {
        let mut live = self.live().await?;
        live.pulse.asks();
        let answer = live.connection.send_packed_command(&call(script, keys, args)).await;
        match self.settled(&live, answer)? {
            Value::ServerError(error) if is_unknown_script(&error) => {
                let mut by_text = redis::cmd("EVAL");
                by_text.arg(script.text()).arg(keys.len()).arg(keys).arg(args);
                let answer = live.connection.send_packed_command(&by_text).await;
                self.settled(&live, answer).and_then(|value| self.no_error(value))
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
    pub(crate) async fn another(&self) -> Result<MultiplexedConnection> {
        if self.is_closed() {
            return Err(trouble::closed());
        }
        let (connection, driver) = self.connect(None, Some(self.options.timeout)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// No more questions.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.lock().take();
    }

    /// A silent connection is given up: the next question makes another one.
    fn settled<T>(&self, live: &Live, answer: redis::RedisResult<T>) -> Result<T> {
        live.pulse.hears();
        answer.map_err(|error| {
            if error.is_timeout() || error.is_unrecoverable_error() {
                live.broken.store(true, Ordering::SeqCst);
                if let Some(hub) = &self.hub {
                    hub.ring_all();
                }
            }
            trouble::unanswered(self.address(), error)
        })
    }

    async fn live(&self) -> Result<Live> {
        match self.current()? {
            Some(live) => Ok(live),
            // Apart, so that it takes no room in the future of every call.
            None => Box::pin(self.once_connected()).await,
        }
    }

    async fn once_connected(&self) -> Result<Live> {
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

    fn current(&self) -> Result<Option<Live>> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(trouble::closed());
        }
        let live = self.lock();
        Ok(live.as_ref().filter(|live| !live.broken.load(Ordering::SeqCst)).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reconnect(&self) -> Result<Live> {
        let (mut connection, driver) = self.connect(self.hub.clone(), None).await?;
        let broken = Arc::new(AtomicBool::new(false));
        let ended = Ended { broken: broken.clone(), hub: self.hub.clone() };
        let pulse = Arc::new(Pulse::new());
        let (beat, patience) = (pulse.clone(), self.options.timeout);
        let (mut own, unused) = (connection.clone(), Arc::new(Notify::new()));
        let in_use = Arc::new(InUse(unused.clone()));
        // A task of its own, so that nothing but bytes is looked at when bytes come.
        let mut driver = tokio::spawn(async move {
            let _ended = ended;
            driver.await;
        });
        tokio::spawn(async move {
            tokio::select! {
                _ = &mut driver => {}
                () = beat.stops(&mut own, patience) => {}
                () = unused.notified() => {}
            }
            // Dropping the driver closes the connection: whoever waits for an answer is told that it is not known.
            driver.abort();
        });
        if let Some(hub) = &self.hub {
            let subscribed = tokio::time::timeout(self.options.timeout, connection.subscribe(hub.channel())).await;
            let subscribed =
                subscribed.map_err(|_| trouble::unreachable(self.address(), Silence(self.options.timeout)))?;
            subscribed.map_err(|error| trouble::not_let_in(&self.options, error))?;
        }
        let live = Live { connection, broken, pulse, _in_use: in_use };
        *self.lock() = Some(live.clone());
        if self.closed.load(Ordering::SeqCst) {
            self.lock().take();
            return Err(trouble::closed());
        }
        Ok(live)
    }

    /// With `patience`, every answer is waited for no longer than that.
    async fn connect(
        &self,
        hub: Option<Arc<Hub>>,
        patience: Option<Duration>,
    ) -> Result<(MultiplexedConnection, Driver)> {
        let within = self.options.timeout;
        let connecting = async {
            let stream = stream::open(&self.options.address).await?;
            self.come_in(stream, hub, patience).await
        };
        match tokio::time::timeout(within, connecting).await {
            Ok(made) => made,
            Err(_) => Err(trouble::unreachable(self.address(), Silence(within))),
        }
    }

    async fn come_in(
        &self,
        stream: Box<dyn Stream>,
        hub: Option<Arc<Hub>>,
        patience: Option<Duration>,
    ) -> Result<(MultiplexedConnection, Driver)> {
        let who = who(&self.options, ProtocolVersion::RESP3);
        let mut how = AsyncConnectionConfig::new().set_response_timeout(patience).set_pipeline_buffer_size(PIPELINE);
        if let Some(hub) = hub {
            how = how.set_push_sender(move |news: PushInfo| {
                hub.hear(&news);
                Ok::<(), ()>(())
            });
        }
        match MultiplexedConnection::new_with_config(&who, stream, how).await {
            Ok((connection, driver)) => Ok((connection, Box::pin(driver))),
            Err(error) => Err(trouble::not_let_in(&self.options, error)),
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

/// Who we are to the server.
pub(crate) fn who(options: &Options, protocol: ProtocolVersion) -> RedisConnectionInfo {
    let mut who = RedisConnectionInfo::default()
        .set_db(i64::from(options.database))
        .set_protocol(protocol)
        .set_lib_name("lockkeeper", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &options.user {
        who = who.set_username(user);
    }
    if let Some(password) = &options.password {
        who = who.set_password(password.reveal());
    }
    who
}

/// A script by its hash.
pub(crate) fn call(script: &Script, keys: &[&[u8]], args: &[&[u8]]) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.hash()).arg(keys.len()).arg(keys).arg(args);
    command
}

pub(crate) fn is_unknown_script(error: &redis::ServerError) -> bool {
    error.code() == "NOSCRIPT"
}

#[derive(Debug)]
pub(crate) struct Silence(pub(crate) Duration);

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there was no answer within {:?}", self.0)
    }
}

impl std::error::Error for Silence {}
