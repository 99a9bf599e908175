//! The one background task of a client: renews all its holds in one batch, ends them at their deadlines, and takes
//! out what was dropped.
//!
//! It lives on a thread of its own with a runtime of its own, because a renewal driven by the user's runtime stops
//! when user code blocks it (C3). Surprise: holds put themselves into the schedule under a mutex and wake the thread
//! only if they come due before everything else, so taking and releasing a lock costs no thread switch.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinSet;

use crate::claim::ClaimId;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{HoldState, deadline};
use crate::local::LocalLines;
use crate::meters::{Meters, Renewing};
use crate::mutants::{self, Mutant};
use crate::name::Name;
use crate::store::{Held, Keep, Renewal, SharedStore};
use crate::time::{Clock, Moment};

/// A claim to be taken out in the background, tried again until `until`, when it is gone by itself.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) name: Name,
    pub(crate) id: ClaimId,
    pub(crate) keep: Keep,
    pub(crate) until: Moment,
}

/// The handle that a keeper has of its watchdog; dropping it ends the thread once all departures are done.
#[derive(Debug)]
pub(crate) struct Watchdog {
    beat: Arc<Beat>,
    started: Mutex<bool>,
}

/// What the thread and its clients share.
pub(crate) struct Beat {
    schedule: Mutex<Schedule>,
    /// Something came in that is due before the thread would wake.
    news: Notify,
    /// A batch of renewals was answered.
    renewed: Notify,
    /// A departure was done.
    departed: Notify,
    store: SharedStore,
    clock: Clock,
    /// Where a lost hold makes room for the next task.
    local: Arc<LocalLines>,
    meters: Arc<Meters>,
}

impl std::fmt::Debug for Beat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beat").field("holds", &self.schedule().holds.len()).finish_non_exhaustive()
    }
}

struct Schedule {
    /// By when each hold needs attention next: a renewal or its deadline.
    holds: BTreeMap<(Moment, ClaimId), Arc<HoldState>>,
    departures: Vec<Departure>,
    /// How many departures are waiting or under way.
    departing: usize,
    /// When the thread wakes by itself.
    wakes_at: Moment,
    /// No more holds, please.
    closed: bool,
    /// The keeper is gone: end when nothing is left to do.
    over: bool,
}

/// How many holds are handled at a time, so that a large batch does not keep others from the schedule for long.
const PIECE: usize = 1_024;

/// Who needs attention now.
#[derive(Default)]
struct Round {
    /// Up to when holds are taken along.
    horizon: Option<Moment>,
    ended: Vec<Arc<HoldState>>,
    due: Vec<Arc<HoldState>>,
    departures: Vec<Departure>,
    over: bool,
}

impl Watchdog {
    pub(crate) fn new(store: SharedStore, clock: Clock, local: Arc<LocalLines>) -> Self {
        let schedule = Schedule {
            holds: BTreeMap::new(),
            departures: Vec::new(),
            departing: 0,
            wakes_at: Moment::NEVER,
            closed: false,
            over: false,
        };
        let beat = Beat {
            schedule: Mutex::new(schedule),
            news: Notify::new(),
            renewed: Notify::new(),
            departed: Notify::new(),
            meters: Arc::new(Meters::of(store.profile().scheme)),
            store,
            clock,
            local,
        };
        Self { beat: Arc::new(beat), started: Mutex::new(false) }
    }

    /// Starts the thread with the first claim; a keeper that only looks needs none.
    pub(crate) fn ensure_started(&self) -> Result<()> {
        if self.beat.schedule().closed {
            return Err(Error::new(ErrorKind::Closed, "the keeper has been closed"));
        }
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if *started {
            return Ok(());
        }
        let unavailable = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, "the watchdog's thread could not be started").with_source(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unavailable)?;
        let beat = self.beat.clone();
        let patrol = move || runtime.block_on(beat.patrol());
        std::thread::Builder::new().name("lockkeeper-watchdog".into()).spawn(patrol).map_err(unavailable)?;
        *started = true;
        Ok(())
    }

    /// From now on the hold is renewed (if `renews`) and ended at its deadline. False if the keeper was closed.
    pub(crate) fn watch(&self, hold: &Arc<HoldState>, sent: Moment, renews: bool) -> bool {
        let mut schedule = self.beat.schedule();
        if schedule.closed {
            return false;
        }
        if renews {
            hold.renew_after(sent);
        }
        hold.count_in(&self.beat.meters);
        schedule.put(hold.clone());
        self.beat.wake_if_due(&mut schedule);
        true
    }

    /// The hold is handed on inside this process: the next one is watched in its place.
    pub(crate) fn swap(&self, old: &HoldState, new: &Arc<HoldState>) {
        let mut schedule = self.beat.schedule();
        if schedule.take(old).is_none() && new.has_no_renewal() {
            // Its renewal was under way when it was let go; the next one must not wait for that answer.
            new.renew_after(self.beat.clock.now());
        }
        new.count_in(&self.beat.meters);
        schedule.put(new.clone());
        self.beat.wake_if_due(&mut schedule);
    }

    /// The hold is released: nothing renews it any more (C5).
    pub(crate) fn forget(&self, hold: &HoldState) {
        self.beat.schedule().take(hold);
    }

    /// Takes a claim out in the background.
    pub(crate) fn depart(&self, departure: Departure) {
        let mut schedule = self.beat.schedule();
        schedule.departures.push(departure);
        schedule.departing += 1;
        drop(schedule);
        self.beat.news.notify_one();
    }

    /// Completes after the next batch of renewals.
    pub(crate) fn renewed(&self) -> Notified<'_> {
        self.beat.renewed.notified()
    }

    /// Ends every hold, takes all claims out and returns when that is done.
    pub(crate) async fn close(&self) {
        let holds = {
            let mut schedule = self.beat.schedule();
            schedule.closed = true;
            std::mem::take(&mut schedule.holds)
        };
        self.beat.local.close();
        for hold in holds.into_values() {
            hold.closed();
            let (name, id, until) = (hold.name.clone(), hold.claim.id, hold.deadline());
            self.depart(Departure { name, id, keep: Keep::Nothing, until });
        }
        loop {
            let mut departed = std::pin::pin!(self.beat.departed.notified());
            departed.as_mut().enable();
            if self.beat.schedule().departing == 0 {
                return;
            }
            departed.await;
        }
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.beat.meters
    }

    /// How many holds are being watched.
    pub(crate) fn len(&self) -> usize {
        self.beat.schedule().holds.len()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.beat.schedule().over = true;
        self.beat.news.notify_one();
    }
}

impl Schedule {
    fn put(&mut self, hold: Arc<HoldState>) {
        let renew_at = Moment::from_nanos(hold.renew_at.load(Ordering::Relaxed));
        let ends = if mutants::on(Mutant::LostOnlyFromServer) { Moment::NEVER } else { hold.deadline() };
        let next = renew_at.min(ends);
        hold.scheduled.store(next.as_nanos(), Ordering::Relaxed);
        self.holds.insert((next, hold.claim.id), hold);
    }

    fn take(&mut self, hold: &HoldState) -> Option<Arc<HoldState>> {
        self.holds.remove(&(Moment::from_nanos(hold.scheduled.load(Ordering::Relaxed)), hold.claim.id))
    }

    /// Adds whoever needs attention at `now`, and those that soon will, so that one batch serves them all. Only a piece
    /// of them at a time: true if there may be more.
    fn collect(&mut self, round: &mut Round, now: Moment) -> bool {
        round.departures.append(&mut self.departures);
        round.over = self.over && self.holds.is_empty();
        let first_due = self.holds.first_key_value().filter(|((at, _), _)| *at <= now);
        let horizon = round.horizon.or(first_due.map(|(_, first)| now + first.claim.lease / 6));
        let mut piece = Vec::new();
        if let Some(horizon) = horizon {
            let soon = |hold: &HoldState| {
                let (at, lease) = (Moment::from_nanos(hold.scheduled.load(Ordering::Relaxed)), hold.claim.lease);
                at <= now || (at <= now + lease / 6 && at < hold.deadline())
            };
            let keys = self.holds.range(..=(horizon, ClaimId::from_bytes([0xff; 16])));
            piece.extend(keys.filter(|(_, hold)| soon(hold)).map(|(key, _)| *key).take(PIECE));
        }
        round.horizon = horizon;
        for key in &piece {
            let Some(hold) = self.holds.remove(key) else { continue };
            if hold.has_ended(now) {
                round.ended.push(hold);
                continue;
            }
            // While the renewal is under way, only the deadline can come due.
            hold.renew_at.store(Moment::NEVER.as_nanos(), Ordering::Relaxed);
            self.put(hold.clone());
            round.due.push(hold);
        }
        self.wakes_at = self.holds.first_key_value().map_or(Moment::NEVER, |((at, _), _)| *at);
        piece.len() == PIECE
    }
}

impl Beat {
    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_if_due(&self, schedule: &mut Schedule) {
        let next = schedule.holds.first_key_value().map_or(Moment::NEVER, |((at, _), _)| *at);
        if next < schedule.wakes_at {
            schedule.wakes_at = next;
            self.news.notify_one();
        }
    }

    async fn patrol(self: Arc<Self>) {
        let mut alarm = match self.clock.alarm() {
            Ok(alarm) => alarm,
            Err(error) => {
                tracing::error!(target: "lockkeeper", %error, "the watchdog has no timer: holds will not be renewed");
                return;
            }
        };
        let mut tasks = JoinSet::new();
        loop {
            let (mut round, now) = (Round::default(), self.clock.now());
            while self.schedule().collect(&mut round, now) {
                let_others_in();
            }
            let wakes_at = self.schedule().wakes_at;
            for hold in round.ended {
                hold.ran_out();
                self.local.give_up(&hold);
            }
            if !round.due.is_empty() {
                tasks.spawn(self.clone().renew(round.due));
            }
            for departure in round.departures {
                tasks.spawn(self.clone().leave(departure));
            }
            if round.over && tasks.is_empty() {
                return;
            }
            tokio::select! {
                () = alarm.until(wakes_at) => {}
                () = self.news.notified() => {}
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    /// One batch of renewals, each hold with its own lease.
    async fn renew(self: Arc<Self>, due: Vec<Arc<HoldState>>) {
        let held: Vec<Held> = due
            .iter()
            .map(|hold| Held { lock: hold.name.clone(), id: hold.claim.id, lease: hold.claim.store_lease() })
            .collect();
        let shortest = due.iter().map(|hold| hold.claim.lease).min().unwrap_or_default();
        let sent = self.clock.now();
        let answer = if mutants::on(Mutant::NoRenew) {
            Ok(Ok(held.iter().map(|held| Renewal::Renewed { lease: held.lease }).collect()))
        } else {
            tokio::time::timeout(shortest / 3, self.store.renew(&held)).await
        };
        let sent = if mutants::on(Mutant::DeadlineAfterReply) { self.clock.now() } else { sent };
        let renewals = match answer.unwrap_or_else(|_| Err(Error::unanswered("there was no answer in time"))) {
            Ok(renewals) if renewals.len() == due.len() => renewals.into_iter().map(Some).collect(),
            // Unknown is not gone: the deadlines stay as they are, and it is tried again soon (C3).
            Ok(_) => vec![None; due.len()],
            Err(error) => {
                let holds = due.len();
                tracing::warn!(target: "lockkeeper", %error, holds, "a renewal failed and will be tried again");
                vec![None; due.len()]
            }
        };
        self.count(&renewals);
        let early = self.store.profile().early;
        for (holds, renewals) in due.chunks(PIECE).zip(renewals.chunks(PIECE)) {
            self.settle(holds, renewals, sent, early);
            if due.len() > PIECE {
                let_others_in();
            }
        }
        self.renewed.notify_waiters();
    }

    fn count(&self, renewals: &[Option<Renewal>]) {
        let gone = renewals.iter().filter(|renewal| matches!(renewal, Some(Renewal::Gone))).count();
        let unanswered = renewals.iter().filter(|renewal| renewal.is_none()).count();
        self.meters.renewed(Renewing::Renewed, renewals.len() - gone - unanswered);
        self.meters.renewed(Renewing::Gone, gone);
        self.meters.renewed(Renewing::Unanswered, unanswered);
    }

    fn settle(&self, holds: &[Arc<HoldState>], renewals: &[Option<Renewal>], sent: Moment, early: Duration) {
        let mut gone = Vec::new();
        let mut schedule = self.schedule();
        for (hold, renewal) in holds.iter().zip(renewals) {
            // Not there any more: released, dropped or ended meanwhile.
            let Some(hold) = schedule.take(hold) else { continue };
            match renewal {
                Some(Renewal::Gone) => {
                    gone.push(hold);
                    continue;
                }
                Some(Renewal::Renewed { lease }) => {
                    hold.extend(deadline(sent, *lease, hold.claim.delay, early));
                    hold.renew_after(sent);
                }
                None if mutants::on(Mutant::UnknownIsRenewed) => {
                    hold.extend(deadline(sent, hold.claim.store_lease(), hold.claim.delay, early));
                    hold.renew_after(sent);
                }
                None => {
                    let again = self.clock.now() + (hold.claim.lease / 12).min(Duration::from_secs(1));
                    hold.renew_at.store(again.as_nanos(), Ordering::Relaxed);
                }
            }
            schedule.put(hold);
        }
        self.wake_if_due(&mut schedule);
        drop(schedule);
        for hold in gone {
            hold.gone();
            self.local.give_up(&hold);
        }
    }

    /// Takes a claim out, again and again until it is out or its time is over.
    async fn leave(self: Arc<Self>, departure: Departure) {
        let Departure { name, id, keep, until } = departure;
        let _done = Departed(&self);
        let mut pause = Duration::from_millis(20);
        loop {
            match self.store.leave(&name, id, keep).await {
                Ok(_) => break,
                Err(error) if !error.is_transient() || self.clock.now() + pause >= until => {
                    tracing::warn!(target: "lockkeeper", %name, %error, "a claim could not be taken out; it ends with its lease");
                    break;
                }
                Err(_) => tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await,
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

/// A mutex that is taken again at once is not had by those who wait for it. Between two pieces of a large batch this
/// thread, which has no other work then, rests for a moment that is long enough for them to wake up.
pub(crate) fn let_others_in() {
    std::thread::sleep(Duration::from_micros(20));
}

/// Counts a departure as done, however it ends.
struct Departed<'a>(&'a Beat);

impl Drop for Departed<'_> {
    fn drop(&mut self) {
        self.0.schedule().departing -= 1;
        self.0.departed.notify_waiters();
    }
}
