//! The ways to take and release a free lock that are measured against each other.

use std::sync::Arc;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, Value};

use super::gather::{Gather, Write};
use super::wire::{self, Lock, Scripts};
use crate::Outcome;

/// How one lock is taken and released.
pub trait Lane: Clone + Send + Sync + 'static {
    /// Takes a free lock; its number, or anything if this lane has no tokens.
    fn enter(&self, lock: &Arc<Lock>, record: &Arc<str>) -> impl Future<Output = Outcome<u64>> + Send;

    /// Releases it.
    fn leave(&self, lock: &Arc<Lock>, record: &Arc<str>, number: u64) -> impl Future<Output = Outcome<()>> + Send;
}

/// What a task that sends its own commands sends to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// A bare `SET`.
    Set,
    /// `SET`, `GET last`, `TIME`.
    Pipeline,
    /// The same between `MULTI` and `EXEC`.
    Multi,
    /// What the store sends: `SET`, `MGET` of the clock's mark and `last`, `TIME`.
    AsTheStore,
}

/// What it sends to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnLeave {
    /// Compare and delete.
    Delete,
    /// The script for many, with one.
    Many,
    /// The script for one.
    One,
    /// The store's own script.
    AsTheStore,
    /// The script for many that needs no look at the line, with one.
    Marked,
    /// The script for one that checks less than it must.
    Short,
}

/// Every task sends its own commands.
#[derive(Clone)]
pub struct Alone {
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    enter: Own,
    leave: OwnLeave,
}

impl Alone {
    /// On this connection.
    pub fn new(connection: MultiplexedConnection, scripts: Arc<Scripts>, enter: Own, leave: OwnLeave) -> Self {
        Self { connection, scripts, enter, leave }
    }
}

impl Lane for Alone {
    async fn enter(&self, lock: &Arc<Lock>, record: &Arc<str>) -> Outcome<u64> {
        let mut connection = self.connection.clone();
        if self.enter == Own::Set {
            let set = wire::set(lock, record);
            return taken(&connection.req_packed_command(&set).await?).map(|()| 0);
        }
        let enter = match self.enter {
            Own::AsTheStore => wire::enter_as_the_store(lock, record),
            _ => wire::enter_one(lock, record, self.enter == Own::Multi),
        };
        let values = match self.enter {
            Own::Multi => connection.req_packed_commands(&enter, 4, 1).await?,
            _ => connection.req_packed_commands(&enter, 0, 3).await?,
        };
        let values = if self.enter == Own::Multi { wire::items(one(&values)?)? } else { &values[..] };
        let [set, last, time] = values else { return Err("three answers were expected".into()) };
        taken(set)?;
        let micros = wire::micros(wire::items(time)?)?;
        // Another lock may have been released in this very microsecond; its mark is read, as the store does, and no more.
        let last = if self.enter == Own::AsTheStore { wire::items(last)?.last().unwrap_or(&Value::Nil) } else { last };
        wire::numbered(micros, last)
    }

    async fn leave(&self, lock: &Arc<Lock>, record: &Arc<str>, number: u64) -> Outcome<()> {
        let mut leave = Cmd::with_capacity(7, 256);
        leave.arg("EVALSHA");
        match self.leave {
            OwnLeave::Delete => leave.arg(&self.scripts.delete).arg(1).arg(&lock.holder).arg(&**record),
            OwnLeave::Short => leave.arg(&self.scripts.leave_short).arg(1).arg(&lock.holder).arg(wire::id(record)),
            OwnLeave::AsTheStore => {
                leave.arg(&self.scripts.release).arg(2).arg(&lock.holder).arg(wire::CLOCK);
                leave.arg(wire::claim(record)).arg(number)
            }
            OwnLeave::Marked => {
                leave.arg(&self.scripts.leave_marked).arg(1).arg(&lock.holder).arg(wire::id(record)).arg(number)
            }
            OwnLeave::Many | OwnLeave::One => {
                let many = self.leave == OwnLeave::Many;
                leave.arg(if many { &self.scripts.leave } else { &self.scripts.leave_one }).arg(2);
                leave.arg(&lock.holder).arg(&lock.line).arg(wire::id(record)).arg(number)
            }
        };
        let value = self.connection.clone().req_packed_command(&leave).await?;
        match self.leave {
            OwnLeave::Many | OwnLeave::Marked => released(one(wire::items(&value)?)?),
            OwnLeave::Delete | OwnLeave::Short | OwnLeave::One | OwnLeave::AsTheStore => released(&value),
        }
    }
}

/// How a batch takes its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enters {
    /// The `SET`s alone, without tokens.
    Tokenless,
    /// All `SET`s, one `MGET` of the floors, one `TIME`.
    Commands,
    /// The same between `MULTI` and `EXEC`.
    Multi,
    /// One script for all.
    Script,
}

/// How a batch releases its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// One script for all.
    Script,
    /// One call of the script for each.
    ScriptEach,
    /// One script for all, that needs no look at the line.
    Marked,
    /// One function for all.
    Function,
    /// One compare-and-delete for each, for locks without tokens.
    Delete,
}

/// Requests of concurrent tasks as one write.
#[derive(Clone)]
pub struct Together {
    gather: Arc<Gather<Writer>>,
    /// A gathering of their own for releases, if they do not go with the enters.
    leaves: Option<Arc<Gather<Writer>>>,
}

/// What there is to choose.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How locks are taken.
    pub enters: Enters,
    /// How they are released.
    pub leaves: Leaves,
    /// How many batches may be in flight.
    pub limit: usize,
    /// Whether a batch steps back before it takes the queue.
    pub steps_back: bool,
    /// Whether enters and releases are batches of their own.
    pub apart: bool,
}

/// What carried most in trials; `lanes` shows what each part of it is worth.
pub const SHAPE: Shape =
    Shape { enters: Enters::Commands, leaves: Leaves::Script, limit: 2, steps_back: true, apart: false };

impl Together {
    /// On this connection.
    pub fn new(connection: MultiplexedConnection, scripts: Arc<Scripts>, shape: Shape) -> Self {
        let gather = || {
            let writer = Writer { connection: connection.clone(), scripts: scripts.clone(), shape };
            Gather::new(writer, shape.limit, shape.steps_back)
        };
        Self { gather: gather(), leaves: shape.apart.then(gather) }
    }
}

impl Lane for Together {
    async fn enter(&self, lock: &Arc<Lock>, record: &Arc<str>) -> Outcome<u64> {
        self.gather.ask(Ask { lock: lock.clone(), record: record.clone(), number: None }).await
    }

    async fn leave(&self, lock: &Arc<Lock>, record: &Arc<str>, number: u64) -> Outcome<()> {
        let gather = self.leaves.as_ref().unwrap_or(&self.gather);
        gather.ask(Ask { lock: lock.clone(), record: record.clone(), number: Some(number) }).await.map(drop)
    }
}

/// A request; one with a number is a release.
pub struct Ask {
    lock: Arc<Lock>,
    record: Arc<str>,
    number: Option<u64>,
}

/// Writes batches.
pub struct Writer {
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    shape: Shape,
}

impl Write for Writer {
    type Ask = Ask;
    type Answer = u64;

    async fn write(&self, asks: Vec<Ask>) -> Vec<Outcome<u64>> {
        self.send(&asks).await.unwrap_or_else(|error| {
            let error = error.to_string();
            asks.iter().map(|_| Err(error.clone().into())).collect()
        })
    }
}

impl Writer {
    async fn send(&self, asks: &[Ask]) -> Outcome<Vec<Outcome<u64>>> {
        let enters: Vec<&Ask> = asks.iter().filter(|ask| ask.number.is_none()).collect();
        let leaves: Vec<&Ask> = asks.iter().filter(|ask| ask.number.is_some()).collect();
        // Releases first: they may be what an enter of the same batch waits for.
        let mut batch = Pipeline::with_capacity(asks.len() + 2);
        let mut expected = self.add_leaves(&mut batch, &leaves);
        let answered_leaves = expected;
        expected += self.add_enters(&mut batch, &enters);
        let mut connection = self.connection.clone();
        let values = connection.req_packed_commands(&batch, 0, expected).await?;
        let (left, entered) = values.split_at_checked(answered_leaves).ok_or("an answer is missing")?;
        let mut left = self.read_leaves(left)?.into_iter();
        let mut entered = self.read_enters(&enters, entered)?.into_iter();
        let mut answer = |ask: &Ask| if ask.number.is_some() { left.next() } else { entered.next() };
        Ok(asks.iter().map(|ask| answer(ask).unwrap_or_else(|| Err("an answer is missing".into()))).collect())
    }

    fn add_leaves(&self, batch: &mut Pipeline, asks: &[&Ask]) -> usize {
        if asks.is_empty() {
            return 0;
        }
        match self.shape.leaves {
            Leaves::Script => {
                batch.add_command(leave(("EVALSHA", &self.scripts.leave), asks));
                1
            }
            Leaves::Marked => {
                let mut leave = Cmd::with_capacity(asks.len() * 3 + 3, asks.len() * 192);
                leave.arg("EVALSHA").arg(&self.scripts.leave_marked).arg(asks.len());
                for ask in asks {
                    leave.arg(&ask.lock.holder);
                }
                for ask in asks {
                    leave.arg(wire::id(&ask.record)).arg(ask.number.unwrap_or_default());
                }
                batch.add_command(leave);
                1
            }
            Leaves::Function => {
                batch.add_command(leave(("FCALL", "lanes_leave"), asks));
                1
            }
            Leaves::ScriptEach => {
                for ask in asks {
                    batch.add_command(leave(("EVALSHA", &self.scripts.leave), std::slice::from_ref(ask)));
                }
                asks.len()
            }
            Leaves::Delete => {
                for ask in asks {
                    let delete = batch.cmd("EVALSHA").arg(&self.scripts.delete).arg(1);
                    delete.arg(&ask.lock.holder).arg(&*ask.record);
                }
                asks.len()
            }
        }
    }

    fn read_leaves(&self, values: &[Value]) -> Outcome<Vec<Outcome<u64>>> {
        let each: Vec<&Value> = match self.shape.leaves {
            Leaves::Delete => values.iter().collect(),
            Leaves::ScriptEach => values.iter().map(|value| one(wire::items(value)?)).collect::<Outcome<_>>()?,
            Leaves::Script | Leaves::Marked | Leaves::Function => match values.first() {
                Some(value) => wire::items(value)?.iter().collect(),
                None => Vec::new(),
            },
        };
        Ok(each.into_iter().map(|value| released(value).map(|()| 0)).collect())
    }

    fn add_enters(&self, batch: &mut Pipeline, asks: &[&Ask]) -> usize {
        if asks.is_empty() {
            return 0;
        }
        if self.shape.enters == Enters::Script {
            let mut enter = Cmd::with_capacity(asks.len() * 3 + 4, asks.len() * 256);
            enter.arg("EVALSHA").arg(&self.scripts.enter).arg(asks.len() * 2);
            for ask in asks {
                enter.arg(&ask.lock.holder).arg(&ask.lock.last);
            }
            enter.arg(wire::LEASE_MS);
            for ask in asks {
                enter.arg(&*ask.record);
            }
            batch.add_command(enter);
            return 1;
        }
        if self.shape.enters == Enters::Multi {
            batch.cmd("MULTI");
        }
        for ask in asks {
            batch.add_command(wire::set(&ask.lock, &ask.record));
        }
        if self.shape.enters == Enters::Tokenless {
            return asks.len();
        }
        let mut floors = Cmd::with_capacity(asks.len() + 1, asks.len() * 64);
        floors.arg("MGET");
        for ask in asks {
            floors.arg(&ask.lock.last);
        }
        batch.add_command(floors);
        batch.cmd("TIME");
        if self.shape.enters == Enters::Multi {
            batch.cmd("EXEC");
            return asks.len() + 4;
        }
        asks.len() + 2
    }

    fn read_enters(&self, asks: &[&Ask], values: &[Value]) -> Outcome<Vec<Outcome<u64>>> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        match self.shape.enters {
            Enters::Tokenless => Ok(values.iter().map(|set| taken(set).map(|()| 0)).collect()),
            Enters::Commands => read_batch(asks.len(), values),
            Enters::Multi => read_batch(asks.len(), wire::items(values.last().ok_or("EXEC said nothing")?)?),
            Enters::Script => {
                let (time, lasts) = wire::items(one(values)?)?.split_at_checked(2).ok_or("no time")?;
                let now = wire::micros(time)?;
                let read = |last: &Value| match last {
                    Value::Int(_) => Err("the lock was taken".into()),
                    last => wire::numbered(now, last),
                };
                Ok(lasts.iter().map(read).collect())
            }
        }
    }
}

/// The answers to all `SET`s, one `MGET`, one `TIME`.
fn read_batch(count: usize, values: &[Value]) -> Outcome<Vec<Outcome<u64>>> {
    let (sets, rest) = values.split_at_checked(count).ok_or("an answer is missing")?;
    let [lasts, time] = rest else { return Err("MGET and TIME were expected".into()) };
    let now = wire::micros(wire::items(time)?)?;
    let each = sets.iter().zip(wire::items(lasts)?);
    Ok(each.map(|(set, last)| taken(set).and_then(|()| wire::numbered(now, last))).collect())
}

fn leave((command, script): (&str, &str), asks: &[&Ask]) -> Cmd {
    let mut leave = Cmd::with_capacity(asks.len() * 4 + 3, asks.len() * 256);
    leave.arg(command).arg(script).arg(asks.len() * 2);
    for ask in asks {
        leave.arg(&ask.lock.holder).arg(&ask.lock.line);
    }
    for ask in asks {
        leave.arg(wire::id(&ask.record)).arg(ask.number.unwrap_or_default());
    }
    leave
}

fn taken(set: &Value) -> Outcome<()> {
    if wire::is_ok(set) { Ok(()) } else { Err(format!("a free lock was not free: {set:?}").into()) }
}

fn released(value: &Value) -> Outcome<()> {
    if *value == Value::Int(1) { Ok(()) } else { Err(format!("a hold was not released: {value:?}").into()) }
}

fn one(values: &[Value]) -> Outcome<&Value> {
    values.first().ok_or_else(|| "an answer is missing".into())
}

#[cfg(test)]
mod tests {
    use lockkeeper_conformance::rig::{self, Shared};

    use super::*;

    async fn takes_and_releases_once(lane: impl Lane, name: &str) {
        let lock = Arc::new(Lock::new(name));
        let records: [Arc<str>; 2] = [wire::record(1).into(), wire::record(2).into()];
        let number = lane.enter(&lock, &records[0]).await.unwrap();
        assert!(lane.enter(&lock, &records[1]).await.is_err(), "{name}: it was taken twice");
        assert!(lane.leave(&lock, &records[1], number).await.is_err(), "{name}: another one released it");
        lane.leave(&lock, &records[0], number).await.unwrap();
        assert!(lane.leave(&lock, &records[0], number).await.is_err(), "{name}: it was released twice");
    }

    #[test]
    fn every_lane_takes_a_free_lock_once_and_releases_it() {
        let Shared::Up(server) = rig::shared("redis").unwrap() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = wire::connect(&server.url, true).await.unwrap();
            let scripts = Arc::new(Scripts::load(&mut connection).await.unwrap());
            for (enter, leave) in [
                (Own::Set, OwnLeave::Delete),
                (Own::Set, OwnLeave::Short),
                (Own::Pipeline, OwnLeave::One),
                (Own::Pipeline, OwnLeave::Many),
                (Own::AsTheStore, OwnLeave::AsTheStore),
                (Own::Multi, OwnLeave::Marked),
            ] {
                let lane = Alone::new(connection.clone(), scripts.clone(), enter, leave);
                takes_and_releases_once(lane, &format!("lanes/{enter:?}-{leave:?}-{}", std::process::id())).await;
            }
            for (enters, leaves) in [
                (Enters::Tokenless, Leaves::Delete),
                (Enters::Commands, Leaves::Script),
                (Enters::Commands, Leaves::ScriptEach),
                (Enters::Commands, Leaves::Function),
                (Enters::Multi, Leaves::Marked),
                (Enters::Script, Leaves::Script),
            ] {
                let shape = Shape { enters, leaves, ..SHAPE };
                let lane = Together::new(connection.clone(), scripts.clone(), shape);
                takes_and_releases_once(lane, &format!("lanes/{enters:?}-{leaves:?}-{}", std::process::id())).await;
            }
        });
    }
}
