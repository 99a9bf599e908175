//! The store as the core sees it: every call becomes data in the queue, and `wait` listens to the hub.
//!
//! Surprise: a future that is dropped does not take its call back. The call is in the queue and runs in its turn, so
//! a `leave` that follows a cancelled `enter` is done after it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lockkeeper_core::cell::{CellOp, CellReply, Versioned};
use lockkeeper_core::store::{
    Expiry, Held, Keep, Left, LockView, Order, Page, Profile, Renewal, Reply, Sharing, Standing, Store, StoreTime,
    Survives, Tokens, Waiter, Wake,
};
use lockkeeper_core::{Claim, ClaimId, Effect, Error, ErrorKind, Name, Result, limits};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::Options;
use crate::epoch::Epoch;
use crate::hub::{Hub, Who};
use crate::place::Place;
use crate::queue::{Queue, RENEWALS_MAX, Task};
use crate::scribe::Scribe;
use crate::trouble::closed;
use crate::wake::Ear;
use crate::work::{Answer, Op, Setting};

/// While wake-ups are heard, a waiter still looks by itself this often, in milliseconds.
const NET_MILLIS: std::ops::Range<u64> = 250..500;
/// While they are not, it looks after this long at first, and then ever less often.
const POLL_FIRST: Duration = Duration::from_millis(20);
const POLL_LAST: Duration = Duration::from_millis(250);

/// Locks and cells in one SQLite file.
///
/// Use this when all who take locks run on one machine; use a store with a server when they do not. Each value has a
/// thread and a connection of its own, so that a client's watchdog may open a second one on the same file. Dropping
/// it ends its threads, after what has been asked of it is done; [`close`](Store::close) also waits for that.
pub struct Sqlite {
    queue: Arc<Queue>,
    hub: Arc<Hub>,
    place: Place,
    profile: Profile,
    /// Wake-ups from other processes; `None` inside if they cannot be had.
    ear: OnceLock<Option<Ear>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Its sender lives in the thread: when it is gone, so is the thread.
    ended: watch::Receiver<()>,
}

impl Sqlite {
    /// Opens the file, and makes it and its directories if they are missing.
    ///
    /// Directories are made for this user alone, and so is the file, unless its directory may be written by a group:
    /// then the file may be, too.
    ///
    /// # Errors
    /// `Foreign` if the file is something else (it is not touched), `Denied` without the permission to write,
    /// `Unsupported` on file systems that are shared between machines, or for a file of a newer version.
    pub async fn open(options: Options) -> Result<Arc<Self>> {
        Self::open_with(options, Epoch::here()).await
    }

    /// As if on another boot of the machine, for tests.
    #[doc(hidden)]
    pub async fn open_in_epoch(options: Options, epoch: &str) -> Result<Arc<Self>> {
        Self::open_with(options, Epoch::named(epoch)).await
    }

    async fn open_with(options: Options, epoch: Epoch) -> Result<Arc<Self>> {
        let (queue, hub) = (Arc::new(Queue::default()), Arc::new(Hub::new()));
        let (opened, open) = oneshot::channel();
        let (alive, ended) = watch::channel(());
        let scribes = (Arc::clone(&queue), Arc::clone(&hub));
        let thread = std::thread::Builder::new().name("lockkeeper-sqlite".to_owned()).spawn(move || {
            let _alive = alive;
            let (queue, hub) = scribes;
            let setting = Setting { clock: options.clock, epoch, hub };
            match Scribe::open(options.path, options.sync, queue, setting) {
                Err(error) => drop(opened.send(Err(error))),
                // Whoever opens it may have gone away: then there is nobody to work for.
                Ok(scribe) => {
                    if opened.send(Ok(scribe.place().clone())).is_ok() {
                        scribe.run();
                    }
                }
            }
        });
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "no thread could be started for the sqlite store").with_source(error)
        })?;
        let place = open.await.map_err(|_| Error::bug("the sqlite store ended while it was opened"))??;
        let thread = Mutex::new(Some(thread));
        Ok(Arc::new(Self { queue, hub, place, profile: profile(), ear: OnceLock::new(), thread, ended }))
    }

    /// Puts an operation in the queue; awaiting what it gives back is waiting for the answer.
    fn submit(&self, op: Op) -> Result<oneshot::Receiver<Result<Answer>>> {
        let (task, answer) = Task::new(op);
        self.queue.push(task)?;
        Ok(answer)
    }

    async fn ask(&self, op: Op) -> Result<Answer> {
        answer_of(self.submit(op)?).await
    }

    /// Are wake-ups from other processes heard? Begins to listen if nobody did before.
    pub(crate) fn hears(&self) -> bool {
        let ear = self.ear.get_or_init(|| {
            let (queue, hub) = (Arc::clone(&self.queue), Arc::clone(&self.hub));
            let heard = move |bucket| !hub.mark_unread(bucket) || queue.push(Task::quiet(Op::Scan { bucket })).is_ok();
            Ear::listen(&self.place, heard)
                .inspect_err(|error| tracing::debug!(%error, "no wake-ups can be heard; waiters look by themselves"))
                .ok()
        });
        ear.as_ref().is_some_and(Ear::hears)
    }

    /// Subscribe, then look, then wait for news, and look again every now and then in case they were missed.
    async fn wait_for_news(&self, lock: &Name, who: Who, at_most: Duration) -> Result<Option<Standing>> {
        // Nobody waits longer than a lease can last.
        let end = Instant::now() + at_most.min(limits::LEASE_MAX);
        // Listening begins before the look, so that nothing falls between the two.
        let mut hears = self.hears();
        let subscription = self.hub.subscribe(lock, who);
        // Once is enough for the whole wait. A claim needs not say so: who lets it in knows that it is there.
        let mut registers = hears && matches!(who, Who::Observer(_));
        let mut poll = POLL_FIRST;
        loop {
            let lasting = end.saturating_duration_since(Instant::now());
            let lock = lock.clone();
            let look = match std::mem::take(&mut registers) {
                true => Op::Observe { lock, who, lasting },
                false => Op::Look { lock, who },
            };
            let Answer::News(news) = self.ask(look).await? else { return Err(unexpected()) };
            if news.is_some() || lasting.is_zero() {
                return Ok(news.flatten());
            }
            let pause = if hears {
                Duration::from_millis(fastrand::u64(NET_MILLIS))
            } else {
                poll = (poll * 2).min(POLL_LAST);
                poll / 2
            };
            if let Ok(standing) = timeout_at(end.min(Instant::now() + pause), subscription.rung()).await {
                return if self.hub.is_closed() { Err(closed()) } else { Ok(standing) };
            }
            hears = self.hears();
        }
    }

    async fn stop(&self) {
        self.queue.close();
        self.hub.close();
        // An error means that the sender is gone, and with it the thread.
        self.ended.clone().changed().await.ok();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.join().ok();
        }
        if let Some(Some(ear)) = self.ear.get() {
            ear.join();
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.queue.close();
        self.hub.close();
        if let Some(Some(ear)) = self.ear.get() {
            ear.stop();
        }
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.place.path).finish_non_exhaustive()
    }
}

impl Store for Sqlite {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        Box::pin(async move {
            claim.check(self.profile.lease_min, self.profile.lease_max)?;
            match self.ask(Op::Enter { lock: lock.clone(), claim: claim.clone() }).await? {
                Answer::Standing(standing) => Ok(standing),
                _ => Err(unexpected()),
            }
        })
    }

    /// # Cancel safety
    /// Dropping it leaves nothing behind, except that an observer's wish to be told lasts for some seconds.
    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        let who = match waiter {
            Waiter::Claim { id, .. } => Who::Claim(id),
            Waiter::Observer { seen } => Who::Observer(seen),
        };
        Box::pin(async move { self.wait_for_news(lock, who, at_most).await })
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(async move {
            let pieces = held.chunks(RENEWALS_MAX).map(|piece| self.submit(Op::Renew(piece.to_vec())));
            let mut renewals = Vec::with_capacity(held.len());
            for answer in pieces.collect::<Result<Vec<_>>>()? {
                match answer_of(answer).await? {
                    Answer::Renewals(piece) => renewals.extend(piece),
                    _ => return Err(unexpected()),
                }
            }
            Ok(renewals)
        })
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        Box::pin(async move {
            match self.ask(Op::Leave { lock: lock.clone(), id, keep }).await? {
                Answer::Left(left) => Ok(left),
                _ => Err(unexpected()),
            }
        })
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        Box::pin(async move {
            let limit = page.limit.min(limits::PAGE_ROWS);
            match self.ask(Op::Inspect { only: page.only.cloned(), after: page.after.cloned(), limit }).await? {
                Answer::Views(views) => Ok(views),
                _ => Err(unexpected()),
            }
        })
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        Box::pin(async move {
            match self.ask(Op::Read(cell.clone())).await? {
                Answer::Value(value) => Ok(value),
                _ => Err(unexpected()),
            }
        })
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        Box::pin(async move {
            match self.ask(Op::Update { cell: cell.clone(), op: op.clone() }).await? {
                Answer::Cell(reply) => Ok(reply),
                _ => Err(unexpected()),
            }
        })
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        Box::pin(async move {
            self.stop().await;
            Ok(())
        })
    }
}

/// A thread that ends without an answer has failed; what it did is not known.
async fn answer_of(answer: oneshot::Receiver<Result<Answer>>) -> Result<Answer> {
    answer.await.unwrap_or_else(|_| Err(Error::bug("the sqlite thread ended").with_effect(Effect::Unknown)))
}

fn unexpected() -> Error {
    Error::bug("the sqlite store answered another question").with_effect(Effect::Unknown)
}

fn profile() -> Profile {
    Profile {
        scheme: "sqlite",
        order: Order::Fifo,
        sharing: Sharing::Permits,
        tokens: Tokens::Floored,
        expiry: Expiry::StoreClock,
        early: Duration::ZERO,
        late: Duration::ZERO,
        wake: if cfg!(target_os = "linux") { Wake::Push } else { Wake::Poll },
        survives: Survives::PrimaryOnly,
        time: StoreTime::Store,
        lease_min: limits::LEASE_MIN,
        lease_max: limits::LEASE_MAX,
    }
}
