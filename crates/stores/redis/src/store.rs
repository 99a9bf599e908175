//! The store: which lane a call takes, and what is remembered of it.
//!
//! What may be changed here: when a call goes by the fast lane. Everything that decides who is in stands in `scripts/`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::cell::{CellOp, CellReply, Versioned};
use lockkeeper_core::mutants::{self, Mutant};
use lockkeeper_core::store::{
    Expiry, Held, Keep, Left, LockView, Order, Page, Profile, Renewal, Reply, Sharing, Standing, Store, StoreTime,
    Survives, Tokens, Waiter, Wake,
};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Claim, ClaimId, Effect, ErrorKind, LockKind, Name, Patience, Result, Token, limits};
use redis::Value;

use crate::cells::Way;
use crate::fast::{self, Answer, Lane, Question};
use crate::gather::Gather;
use crate::hot::Hot;
use crate::hub::Hub;
use crate::keys::{CLOCK, Keys};
use crate::leaving::Leaving;
use crate::lines::Asking;
use crate::link::Link;
use crate::options::Options;
use crate::record::{New, Owners};
use crate::scripts::{OBSERVE, RENEW};
use crate::{lines, look};

/// How many holds are renewed by one call of the script.
const RENEWALS: usize = 200;
/// How long an observer is told of changes before it has to ask again, and how often it looks by itself: a free lock that
/// is taken by the fast lane tells nobody.
const OBSERVED_FOR: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Locks on one Redis server.
///
/// Use this when the programs that take locks already share a Redis; use etcd or ZooKeeper instead when a lost lock must
/// not happen even when a server fails, and SQLite when all are on one host.
pub struct Redis {
    profile: Profile,
    options: Arc<Options>,
    hub: Arc<Hub>,
    /// For everything but renewals, and for news.
    pub(crate) link: Arc<Link>,
    /// For renewals, made by whoever renews: the watchdog's own thread.
    renewals: Link,
    lane: Arc<Gather<Lane>>,
    cells: Way,
    hot: Hot,
    leaving: Leaving,
    owners: Owners,
}

impl Redis {
    /// Connects to a server.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be reached, `Denied` if it does not let us in.
    pub async fn open(options: Options) -> Result<Arc<Self>> {
        let options = Arc::new(options);
        let channel = format!("lockkeeper:wake:{}", ClaimId::random()?);
        let hub = Arc::new(Hub::new(channel));
        let link = Arc::new(Link::new(options.clone(), Some(hub.clone())));
        let persists = link.ask(redis::cmd("INFO").arg("persistence")).await;
        let survives = match persists {
            Ok(info) if text_of(&info).contains("aof_enabled:1") => Survives::PrimaryOnly,
            Ok(_) => Survives::Nothing,
            // Not allowed to ask.
            Err(error) if error.kind() == ErrorKind::Denied => {
                link.ask(&redis::cmd("PING")).await?;
                Survives::Nothing
            }
            Err(error) => return Err(error),
        };
        Ok(Arc::new(Self {
            profile: profile(survives),
            renewals: Link::new(options.clone(), None),
            lane: Gather::new(Lane(link.clone())),
            cells: Way::new(options.cells, &link),
            options,
            hub,
            link,
            hot: Hot::default(),
            leaving: Leaving::default(),
            owners: Owners::default(),
        }))
    }

    /// [`update`](Store::update), and what the server's clock said then: for tests that hold the answer to the model.
    ///
    /// # Errors
    /// The outer error if there was no answer; the inner one is the answer.
    #[doc(hidden)]
    pub async fn update_at(&self, cell: &Name, op: &CellOp) -> Result<(Moment, Result<CellReply>)> {
        self.cells.update(&self.link, cell, op).await
    }

    /// A free mutex in native commands; `None` if it is not free, or cannot be taken so.
    async fn take(&self, lock: &Name, claim: &Claim) -> Result<Option<Standing>> {
        let plain = claim.kind == LockKind::Mutex && claim.capacity == 1 && !claim.fair;
        if !plain || claim.patience == Patience::Present || self.hot.is(lock) {
            return Ok(None);
        }
        let lease_ms = lines::millis(claim.store_lease());
        let owner = self.owners.text(&claim.owner);
        let record = New { id: claim.id, owner, note: claim.note.clone(), lease_ms };
        let number = match self.lane.ask(Question::Take { lock: lock.clone(), record }).await? {
            Answer::In(number) => number,
            Answer::Unnumbered => match Box::pin(fast::number_above_the_floor(&self.link, lock, claim.id)).await? {
                Some(number) => number,
                None => return Ok(None),
            },
            _ => {
                self.hot.found_taken(lock);
                return Ok(None);
            }
        };
        if mutants::on(Mutant::SetThenExpire) {
            Box::pin(fast::expire(&self.link, lock, lease_ms)).await?;
        }
        self.hub.tells(claim.id, number, true);
        Ok(Some(Standing::Held { token: Token::of_number(number), lease: Duration::from_millis(lease_ms) }))
    }

    async fn enter_line(&self, lock: &Name, claim: &Claim, question: u32) -> Result<Standing> {
        let owner = self.owners.text(&claim.owner);
        if claim.capacity == 1 {
            self.leaving.ended(lock).await;
        }
        let asking = Asking { channel: self.hub.channel(), question, told: self.hub.number(claim.id), owner: &owner };
        let standing = lines::enter(&self.link, &Keys::of(lock), claim, asking).await;
        match &standing {
            Ok(Standing::Held { token: Some(token), .. }) => {
                self.hub.tells(claim.id, token.as_u64() >> Token::LOCAL_BITS, false);
            }
            Ok(Standing::Waiting { .. }) => self.hot.found_taken(lock),
            Ok(Standing::Refused { .. }) => {
                self.hot.found_taken(lock);
                self.hub.forgets(claim.id);
            }
            _ => {}
        }
        standing
    }

    /// A seeded bug: looks how many permits are out, and takes one if there are enough, in two calls.
    async fn enter_by_count(&self, lock: &Name, claim: &Claim, question: u32) -> Result<Standing> {
        let line = look::line(&self.link, &self.hub, lock).await?;
        let mine = line.iter().flat_map(|line| &line.claims).any(|other| other.id == claim.id);
        let taken: u32 = line.iter().flat_map(|line| &line.claims).map(|other| other.weight).sum();
        if !mine && taken + claim.weight > claim.capacity {
            let moves_in = Some(Duration::from_millis(5));
            return Ok(Standing::Waiting { ahead: taken, behind: None, moves_in });
        }
        let claim = Claim { capacity: limits::PERMITS_MAX, ..claim.clone() };
        self.enter_line(lock, &claim, question).await
    }

    async fn give(&self, lock: &Name, id: ClaimId, keep: Keep) -> Result<Left> {
        let mut left = None;
        if let (Some(number), Keep::Nothing, false) = (self.hub.fast_number(id), keep, self.hot.is(lock)) {
            let answer = self.lane.ask(Question::Give { lock: lock.clone(), id, number }).await?;
            if answer == Answer::Released {
                left = Some(Left::Released);
            }
        }
        let left = match left {
            Some(left) => left,
            None => {
                let _leaves = self.leaving.begin(lock);
                Box::pin(lines::leave(&self.link, lock, id, keep, self.hub.number(id))).await?
            }
        };
        self.hub.forgets(id);
        Ok(left)
    }

    async fn renew_piece(&self, held: &[Held]) -> Result<Vec<Renewal>> {
        let all: Vec<(Keys, [String; 3], u64)> = held
            .iter()
            .map(|held| {
                let lease_ms = lines::millis(held.lease);
                let told = lines::number_text(self.hub.number(held.id));
                (Keys::of(&held.lock), [held.id.to_string(), lease_ms.to_string(), told], lease_ms)
            })
            .collect();
        let keys: Vec<&[u8]> =
            all.iter().flat_map(|(keys, ..)| [keys.holder().as_bytes(), keys.floor().as_bytes()]).collect();
        let keys = [keys, vec![CLOCK.as_bytes()]].concat();
        let args: Vec<&[u8]> = all.iter().flat_map(|(_, args, _)| args.iter().map(String::as_bytes)).collect();
        let answers = lines::renewals(&self.renewals.run(&RENEW, &keys, &args).await?, held.len())?;
        let mut renewals = Vec::with_capacity(held.len());
        for ((held, (keys, _, lease_ms)), answer) in held.iter().zip(&all).zip(answers) {
            renewals.push(match answer {
                -2 => match lines::prolong(&self.renewals, keys, held.id, *lease_ms, self.hub.number(held.id)).await {
                    // Somebody wrote over its line: it is gone, and the others are not to suffer for it.
                    Err(error) if error.kind() == ErrorKind::Foreign => Renewal::Gone,
                    renewal => renewal?,
                },
                left => lines::renewal(left),
            });
        }
        Ok(renewals)
    }

    /// Waits for a change of the line: told of most, looking for the rest.
    async fn watch(&self, lock: &Name, seen: u64, at_most: Duration) -> Result<()> {
        let keys = Keys::of(lock);
        let end = tokio::time::Instant::now() + at_most;
        let eye = self.hub.observe(keys.holder());
        let ms = OBSERVED_FOR.as_millis().to_string();
        let mut told_until = None;
        loop {
            if told_until.is_none_or(|until| tokio::time::Instant::now() >= until) {
                let observed = [keys.line().as_bytes(), keys.holder().as_bytes()];
                self.link.run(&OBSERVE, &observed, &[self.hub.channel().as_bytes(), ms.as_bytes()]).await?;
                told_until = Some(tokio::time::Instant::now() + OBSERVED_FOR / 2);
            }
            let line = look::line(&self.link, &self.hub, lock).await?;
            if line.as_ref().map_or(0, LockView::fingerprint) != seen {
                return Ok(());
            }
            let next_look = end.min(tokio::time::Instant::now() + LOOK_EVERY);
            if tokio::time::timeout_at(next_look, eye.rung()).await.is_err() && next_look == end {
                return Ok(());
            }
        }
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("address", &self.options.address).finish_non_exhaustive()
    }
}

impl Store for Redis {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        Box::pin(async move {
            claim.check(self.profile.lease_min, self.profile.lease_max)?;
            // Known before it asks: should nobody wait for the answer, its leave says that nobody was told a number.
            let question = self.hub.asks(claim.id);
            // One that asked before may stand in the line, and must not stand twice.
            let first_question = question == 1;
            let taken = if first_question { self.take(lock, claim).await } else { Ok(None) };
            let standing = match taken {
                Ok(None) if claim.kind == LockKind::Semaphore && mutants::on(Mutant::SemaphoreByCount) => {
                    Box::pin(self.enter_by_count(lock, claim, question)).await
                }
                // Apart, as all that is not the free lock's way: a small future is a cheap one.
                Ok(None) => Box::pin(self.enter_line(lock, claim, question)).await,
                Ok(Some(held)) => Ok(held),
                Err(error) => Err(error),
            };
            if standing.as_ref().is_err_and(|error| error.effect() == Effect::None) {
                self.hub.forgets_untold(claim.id);
            }
            standing
        })
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        Box::pin(async move {
            match waiter {
                Waiter::Claim { id, .. } => Ok(self.hub.news_of(id, at_most).await),
                Waiter::Observer { seen } => self.watch(lock, seen, at_most).await.map(|()| None),
            }
        })
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(async move {
            let mut renewals = Vec::with_capacity(held.len());
            for piece in held.chunks(RENEWALS) {
                renewals.extend(self.renew_piece(piece).await?);
            }
            Ok(renewals)
        })
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        Box::pin(async move { self.give(lock, id, keep).await })
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        Box::pin(async move {
            match page.only {
                Some(name) => Ok(look::line(&self.link, &self.hub, name).await?.into_iter().collect()),
                None => {
                    let limit = page.limit.min(limits::PAGE_ROWS);
                    look::lines(&self.link, &self.hub, &self.options.listed_under, page.after, limit).await
                }
            }
        })
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        Box::pin(async move { crate::cells::read(&self.link, cell).await })
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        Box::pin(async move { self.update_at(cell, op).await?.1 })
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        Box::pin(async move {
            self.link.close();
            self.cells.close();
            self.renewals.close();
            self.hub.ring_all();
            Ok(())
        })
    }
}

/// Text, however it is sent.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    }
}

pub(crate) fn profile(survives: Survives) -> Profile {
    Profile {
        scheme: "redis",
        order: Order::Fifo,
        sharing: Sharing::Permits,
        tokens: Tokens::Floored,
        expiry: Expiry::StoreClock,
        early: Duration::ZERO,
        late: Duration::ZERO,
        wake: Wake::Push,
        survives,
        time: StoreTime::Store,
        lease_min: limits::LEASE_MIN,
        lease_max: limits::LEASE_MAX,
    }
}
