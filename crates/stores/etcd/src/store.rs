//! The store: what it promises, and which part answers a call.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper_core::cell::{CellOp, CellReply, Versioned};
use lockkeeper_core::store::{
    Expiry, Held, Keep, Left, LockView, Order, Page, Profile, Renewal, Reply, Sharing, Standing, Store, StoreTime,
    Survives, Tokens, Waiter, Wake,
};
use lockkeeper_core::{Claim, ClaimId, Effect, Error, ErrorKind, Name, Result, limits};
use tokio_util::task::TaskTracker;

use crate::claims::{Claims, Known};
use crate::link::Link;
use crate::news::{Heard, News};
use crate::options::Options;
use crate::proto::cluster::{MemberListRequest, MemberListResponse};
use crate::proto::{RangeRequest, RangeResponse, path};
use crate::session::Session;
use crate::{cells, keys, look};

/// The shortest lease that a server with the usual election time gives.
const LEASE_MIN: Duration = Duration::from_secs(2);
/// Leases last whole seconds, are looked over every half, and a new leader begins all of them anew.
pub(crate) const LATE: Duration = Duration::from_secs(3);
/// How long after a stream of news broke the next one is opened.
const PAUSE: Duration = Duration::from_millis(50);

/// How long leases that are being ended are waited for when the store is closed; they run out by themselves.
const ENDING_TAKES: Duration = Duration::from_secs(1);

/// Locks on an etcd cluster.
///
/// Use this where two holders would cost money; use Redis instead where speed matters more than the loss of a server, and
/// SQLite when all are on one host.
pub struct Etcd {
    profile: Profile,
    /// For everything but renewals, and for news.
    pub(crate) link: Arc<Link>,
    /// For renewals, made by whoever renews: the watchdog's own thread.
    pub(crate) renewals: Link,
    pub(crate) claims: Arc<Claims>,
    pub(crate) news: News,
    /// The lease of all claims of the usual length.
    shared: Mutex<Option<Arc<Session>>>,
    /// Held while that is made, so that many who come make one.
    pub(crate) granting: tokio::sync::Mutex<()>,
    /// Leases that are being ended.
    pub(crate) endings: TaskTracker,
}

impl Etcd {
    /// Connects to a cluster.
    ///
    /// # Errors
    /// `Unavailable` if no member can be reached, `Denied` if the cluster does not let us in.
    pub async fn open(options: Options) -> Result<Arc<Self>> {
        if options.endpoints.is_empty() {
            return Err(Error::invalid("store", "it names no server"));
        }
        limits::lease(options.lease, LEASE_MIN, limits::LEASE_MAX)?;
        let options = Arc::new(options);
        let link = Arc::new(Link::new(options.clone()));
        // May we read where locks stand? Asked of a majority: a member alone does not do.
        let key = if options.listed_under.is_empty() {
            b"{cell}/".to_vec()
        } else {
            options.listed_under.clone().into_bytes()
        };
        let question = RangeRequest { key, count_only: true, ..RangeRequest::default() };
        link.ask::<_, RangeResponse>(path::RANGE, &question).await?;
        let members = link.ask::<_, MemberListResponse>(path::MEMBER_LIST, &MemberListRequest {}).await;
        let voters = match members {
            Ok(told) => told.answer.members.iter().filter(|member| !member.is_learner).count(),
            // Not allowed to ask.
            Err(error) if error.kind() == ErrorKind::Denied => options.endpoints.len(),
            Err(error) => return Err(error),
        };
        Ok(Arc::new(Self {
            profile: profile(voters),
            renewals: Link::new(options),
            claims: Arc::new(Claims::new()?),
            news: News::new(link.clone()),
            link,
            shared: Mutex::default(),
            granting: tokio::sync::Mutex::default(),
            endings: TaskTracker::new(),
        }))
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for news of the one thing that a claim waits for.
    async fn wait_for(&self, lock: &Name, id: ClaimId, known: Known, at_most: Duration) -> Result<()> {
        let Known { waits_for: Some(awaited), ear, .. } = known else { return Ok(()) };
        let ear = match ear.filter(|ear| ear.is_for(&awaited)) {
            Some(ear) => ear,
            None => {
                let ear = Arc::new(self.news.listen(&awaited.key, &awaited.range_end)?);
                self.claims.change(lock, id, |known| known.ear = Some(ear.clone()));
                ear
            }
        };
        let whole_line = !awaited.range_end.is_empty();
        let mut hearing = ear.hearing();
        let waiting = async {
            // What happened before the watch was there is found by asking again; then it has been there before.
            let is_news = |heard: &Heard| {
                let last = if whole_line { heard.last_not_new } else { heard.last };
                heard.over || last.max(heard.since.unwrap_or(0)) > awaited.revision
            };
            let over = hearing.wait_for(is_news).await.map_or(true, |heard| heard.over);
            if over {
                self.claims.change(lock, id, |known| known.ear = None);
                tokio::time::sleep(PAUSE).await;
            }
        };
        // The time is up, or there are news: either way it is time to ask again.
        let _ = tokio::time::timeout(at_most, waiting).await;
        Ok(())
    }

    /// Waits for any change of the line.
    async fn observe(&self, lock: &Name, seen: u64, at_most: Duration) -> Result<()> {
        let key = keys::line(lock);
        let ear = self.news.listen(&key, &keys::end_of(&key))?;
        let mut hearing = ear.hearing();
        let waiting = async {
            let made = hearing.wait_for(|heard| heard.over || heard.since.is_some()).await.map(|heard| heard.over);
            if !matches!(made, Ok(false)) {
                tokio::time::sleep(PAUSE).await;
                return Ok(());
            }
            loop {
                let before = hearing.borrow_and_update().last;
                let line = look::line(&self.link, lock).await?;
                if line.as_ref().map_or(0, LockView::fingerprint) != seen {
                    return Ok(());
                }
                match hearing.wait_for(|heard| heard.over || heard.last > before).await {
                    Ok(heard) if !heard.over => {}
                    _ => return Ok(()),
                }
            }
        };
        tokio::time::timeout(at_most, waiting).await.unwrap_or(Ok(()))
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("endpoints", &self.link.options().endpoints).finish_non_exhaustive()
    }
}

impl Store for Etcd {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        Box::pin(async move {
            claim.check(self.profile.lease_min, self.profile.lease_max)?;
            let standing = self.enter_line(lock, claim).await;
            if standing.as_ref().is_err_and(|error| error.effect() == Effect::None) {
                self.did_not_come(lock, claim.id);
            }
            standing
        })
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        Box::pin(async move {
            match waiter {
                Waiter::Claim { id, .. } => {
                    if let Some(known) = self.claims.get(lock, id) {
                        self.wait_for(lock, id, known, at_most).await?;
                    }
                }
                Waiter::Observer { seen } => self.observe(lock, seen, at_most).await?,
            }
            Ok(None)
        })
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(self.renew_all(held))
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        Box::pin(self.leave_line(lock, id, keep))
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        Box::pin(async move {
            match page.only {
                Some(name) => Ok(look::line(&self.link, name).await?.into_iter().collect()),
                None => look::lines(&self.link, page.after, page.limit.min(limits::PAGE_ROWS)).await,
            }
        })
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        Box::pin(cells::read(&self.link, cell))
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        Box::pin(cells::update(&self.link, cell, op))
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        Box::pin(async move {
            let session = self.shared().take();
            if let Some(session) = session
                && let Err(error) = session.revoke(&self.link).await
            {
                tracing::debug!(target: "lockkeeper", %error, "the lease was not ended; it runs out by itself");
            }
            self.endings.close();
            let _ = tokio::time::timeout(ENDING_TAKES, self.endings.wait()).await;
            self.news.close();
            self.link.close();
            self.renewals.close();
            Ok(())
        })
    }
}

pub(crate) fn profile(voters: usize) -> Profile {
    Profile {
        scheme: "etcd",
        order: Order::Fifo,
        sharing: Sharing::Permits,
        tokens: Tokens::Monotone,
        expiry: Expiry::Session,
        early: Duration::ZERO,
        late: LATE,
        wake: Wake::Push,
        survives: if voters >= 3 { Survives::Quorum } else { Survives::PrimaryOnly },
        time: StoreTime::None,
        lease_min: LEASE_MIN,
        lease_max: limits::LEASE_MAX,
    }
}
