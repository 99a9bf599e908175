//! The optimistic way: read under `WATCH`, apply the operation here, write the difference in `MULTI`; when somebody came
//! between, again.
//!
//! For servers whose access rules keep scripts from cells, and as the twin that the scripts are held to. Surprise: a
//! connection with something watched belongs to one operation alone. It goes back to the others only after its last
//! answer came; a caller that gave up takes it along, and the server forgets what it watched.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_core::cell::{CellOp, CellReply};
use lockkeeper_core::{Effect, Error, ErrorKind, Result};
use redis::{Cmd, Pipeline, Value};
use tokio::sync::Semaphore;

use super::state::Found;
use super::{LOOKS, Told, look, moment, seen};
use crate::link::Link;
use crate::pipe::{Broken, Pipe};
use crate::trouble;

/// How many operations of one client may be under way; the more there are, the more often they come between each other.
const CONNECTIONS: usize = 4;
/// So often an operation is tried again at once; after that it pauses first.
const AT_ONCE: u32 = 3;
const PAUSE_MAX_MS: u64 = 16;

/// Connections of its own, each used by one operation at a time.
pub(crate) struct Watch {
    link: Arc<Link>,
    idle: Mutex<Vec<Pipe>>,
    places: Semaphore,
}

/// What came of one try.
enum Try {
    Told(Told),
    /// Somebody came between; nothing was done.
    Lost,
    /// There is a hash without a field of ours: foreign, or a cell that came or went between two commands.
    Unclear,
}

impl Watch {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, idle: Mutex::default(), places: Semaphore::new(CONNECTIONS) }
    }

    /// Applies one operation.
    ///
    /// # Cancel safety
    /// Dropped before its last answer, the operation may have been done or not; the connection is closed.
    ///
    /// # Round trips
    /// Two while nobody comes between.
    pub(super) async fn update(&self, key: &str, op: &CellOp) -> Result<Told> {
        let within = self.link.patience();
        let end = Instant::now() + within;
        let Ok(Ok(_place)) = tokio::time::timeout(within, self.places.acquire()).await else {
            return Err(crowded(within));
        };
        let (mut tries, mut unclear) = (0, 0);
        loop {
            match self.attempt(key, op).await? {
                Try::Told(told) => return Ok(told),
                Try::Unclear if unclear >= LOOKS => return Err(trouble::foreign()),
                Try::Unclear => unclear += 1,
                Try::Lost => tries += 1,
            }
            if Instant::now() >= end {
                return Err(crowded(within));
            }
            if tries > AT_ONCE {
                let longest = PAUSE_MAX_MS.min(u64::from(tries));
                tokio::time::sleep(Duration::from_millis(fastrand::u64(..=longest))).await;
            }
        }
    }

    /// No connection is kept any longer.
    pub(super) fn close(&self) {
        self.idle().clear();
    }

    async fn attempt(&self, key: &str, op: &CellOp) -> Result<Try> {
        // Until it writes, an operation that fails has done nothing.
        let watched = self.watched(key).await.map_err(|error| error.with_effect(Effect::None))?;
        let (connection, Some((asked_us, found))) = watched else {
            return Ok(Try::Unclear);
        };
        let (commands, reply) = decide(key, op, &found, asked_us);
        if !commands.is_empty() && !self.written(&connection, commands).await? {
            self.give_back(connection);
            return Ok(Try::Lost);
        }
        self.give_back(connection);
        Ok(Try::Told((moment(asked_us), reply)))
    }

    /// A connection that watches the key, and what it saw there. What the operation before watched is forgotten first.
    async fn watched(&self, key: &str) -> Result<(Pipe, Option<(u64, Found)>)> {
        let mut pipe = Pipeline::with_capacity(5);
        let mut watch = redis::cmd("WATCH");
        watch.arg(key);
        pipe.add_command(redis::cmd("UNWATCH")).add_command(watch);
        look(&mut pipe, key);
        let kept = self.idle().pop();
        if let Some(connection) = kept {
            match connection.ask_commands(&pipe).await {
                Ok(answers) => return Ok((connection, self.saw(answers)?)),
                Err(why @ Broken::Silent(_)) => return Err(self.unanswered(why)),
                // It broke while nobody used it, or with the runtime that drove it: another one is made.
                Err(_) => {}
            }
        }
        let connection = self.fresh_connection().await?;
        let answers = connection.ask_commands(&pipe).await;
        let answers = answers.map_err(|error| self.unanswered(error))?;
        Ok((connection, self.saw(answers)?))
    }

    /// What it saw, if it obeyed `UNWATCH` and `WATCH`.
    fn saw(&self, mut answers: Vec<Value>) -> Result<Option<(u64, Found)>> {
        let looks = answers.split_off(2.min(answers.len()));
        for answer in answers {
            self.link.no_error(answer)?;
        }
        seen(&self.link, looks)
    }

    /// A connection that may do transactions. One that refused `MULTI` would do the commands after it one by one.
    async fn fresh_connection(&self) -> Result<Pipe> {
        let connection = self.link.another().await?;
        let mut nothing = Pipeline::with_capacity(2);
        nothing.add_command(redis::cmd("MULTI")).add_command(redis::cmd("EXEC"));
        let done = connection.ask_commands(&nothing).await;
        for answer in done.map_err(|error| self.unanswered(error))? {
            self.link.no_error(answer)?;
        }
        Ok(connection)
    }

    /// Writes, unless somebody came between: then false, and nothing was written.
    async fn written(&self, connection: &Pipe, commands: Vec<Cmd>) -> Result<bool> {
        let mut pipe = Pipeline::with_capacity(commands.len() + 2);
        pipe.add_command(redis::cmd("MULTI"));
        for command in commands {
            pipe.add_command(command);
        }
        pipe.add_command(redis::cmd("EXEC"));
        let answers = connection.ask_commands(&pipe).await;
        let mut answers = answers.map_err(|error| self.unanswered(error))?;
        let done = answers.pop().unwrap_or_default();
        // A command that was refused while it was queued has stopped the transaction as a whole.
        for answer in answers {
            self.link.no_error(answer).map_err(|error| error.with_effect(Effect::None))?;
        }
        match self.link.no_error(done)? {
            Value::Nil => Ok(false),
            Value::Array(results) => {
                for result in results {
                    self.link.no_error(result).map_err(|error| error.with_effect(Effect::Unknown))?;
                }
                Ok(true)
            }
            _ => Err(trouble::unexpected("EXEC")),
        }
    }

    fn give_back(&self, connection: Pipe) {
        if !self.link.is_closed() {
            self.idle().push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pipe>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unanswered(&self, why: Broken) -> Error {
        trouble::unanswered(self.link.address(), why)
    }
}

/// What an operation does to what was found: the commands that write it, and the answer.
pub(super) fn decide(key: &str, op: &CellOp, found: &Found, asked_us: u64) -> (Vec<Cmd>, Result<CellReply>) {
    match op.apply(found.state.as_ref(), moment(asked_us), found.fresh(asked_us)) {
        Err(error) => (Vec::new(), Err(error)),
        Ok((after, reply)) if changes(&reply) => (found.become_after(key, after.as_ref(), asked_us), Ok(reply)),
        Ok((_, reply)) => (Vec::new(), Ok(reply)),
    }
}

/// Does an operation that was answered so change the cell?
fn changes(reply: &CellReply) -> bool {
    match reply {
        CellReply::Done { .. } | CellReply::Number { .. } | CellReply::Admitted { .. } | CellReply::Entered { .. } => {
            true
        }
        CellReply::Conflict { .. } | CellReply::TooLow { .. } | CellReply::Limited { .. } | CellReply::Stale { .. } => {
            false
        }
    }
}

fn crowded(within: Duration) -> Error {
    Error::new(ErrorKind::Unavailable, format!("others changed the cell again and again, for {within:?}"))
        .with_hint("ask again, or leave out `?cells=watch`: scripts do not come between each other")
}
