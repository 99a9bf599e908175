//! Coming into the line, and asking where one stands.
//!
//! A new claim is put and the line read in one transaction; a claim that stands is only read. Surprise: most of what can go
//! wrong is not the answer but the question. One that was not answered may be heard later, when the claim has long left, so
//! every put is made on the condition that its claim is not known to be gone (`keys::gone`).

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::line::may_not_grow;
use lockkeeper_core::store::Standing;
use lockkeeper_core::time::Clock;
use lockkeeper_core::{Claim, ClaimId, Effect, Error, ErrorKind, Name, Patience, Result, Token, Verdict};

use crate::claims::Awaited;
use crate::keys;
use crate::leave::unless_over;
use crate::line::{Line, Standee};
use crate::proto::{Do, RangeResponse, ResponseHeader, TxnResponse, path};
use crate::record::Record;
use crate::session::{KeptAlive, Session, keep_alive};
use crate::store::Etcd;
use crate::{trouble, txn};

/// How often a question is put again that the server could not take as it was: a lease had ended, another was faster.
const TRIES: usize = 5;
/// How long a member may be silent about a lease before the next one is asked.
const SILENCE: Duration = Duration::from_secs(1);

/// A line, and what the cluster was like when it was read.
pub(crate) struct Seen {
    pub(crate) line: Line,
    pub(crate) revision: i64,
    pub(crate) term: u64,
}

impl Seen {
    fn new(lock: &Name, header: Option<ResponseHeader>, kvs: Vec<crate::proto::KeyValue>) -> Result<Self> {
        let header = header.ok_or_else(|| trouble::garbled("an answer without a head"))?;
        Ok(Self { line: Line::of(lock, kvs), revision: header.revision, term: header.raft_term })
    }
}

impl Etcd {
    pub(crate) async fn enter_line(&self, lock: &Name, claim: &Claim) -> Result<Standing> {
        if self.claims.is_swept(lock, claim.id) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the claim on `{lock}` ran out and is being taken out"),
            ));
        }
        let stands =
            self.claims.goes_on(lock, claim.id, claim.waiting_lease()).is_some_and(|known| known.order.is_some());
        if stands || claim.patience == Patience::Present {
            if let Some(standing) = self.ask(lock, claim).await? {
                return Ok(standing);
            }
            // Its lease ended while it stood: it comes again, at the end of the line.
            self.claims.change(lock, claim.id, |known| known.order = None);
        }
        self.come(lock, claim).await
    }

    /// Puts a new claim at the end of the line.
    async fn come(&self, lock: &Name, claim: &Claim) -> Result<Standing> {
        let mut only_if_empty = claim.patience == Patience::Now;
        for _ in 0..TRIES {
            let (session, kept) = self.session_for(lock, claim).await?;
            let (key, strayed) = self.claims.asks(lock, claim.id, &session);
            let mut conditions = vec![txn::created(&key, 0), txn::created(&keys::gone(lock, claim.id), 0)];
            if only_if_empty {
                conditions.push(txn::nothing_under(&keys::line(lock)));
            }
            let put = txn::put(&key, Record::of(claim).write(), session.id);
            let question =
                txn::txn(conditions, vec![put, Do::Range(txn::line(lock))], vec![Do::Range(txn::line(lock))]);
            let told = self.link.ask_for(path::TXN, &question, unless_over).await;
            let stray = match &told {
                Ok(told) => strayed || !told.alone,
                Err(error) => strayed || error.effect() == Effect::Unknown,
            };
            self.claims.change(lock, claim.id, |known| known.stray = stray);
            let told = told?;
            let Some(answer) = told.answer else {
                self.ended(&session);
                continue;
            };
            let (header, put) = (answer.header, answer.succeeded);
            let seen = Seen::new(lock, header, txn::last_range(answer)?)?;
            if let Some(kept) = kept {
                session.confirm(kept, seen.term);
            }
            let own = seen.line.0.iter().position(|standee| put && standee.key == key);
            let earlier = seen.line.0.iter().find(|standee| standee.id == claim.id && !(put && standee.key == key));
            match (own, earlier) {
                (Some(at), None) => return self.settle(lock, claim, &session, &seen, at).await,
                (own, Some(earlier)) => {
                    let twin = own.map(|at| &seen.line.0[at]);
                    match self.came_before(lock, claim, &session, (twin, earlier)).await? {
                        Some(standing) => return Ok(standing),
                        None => continue,
                    }
                }
                (None, None) => {}
            }
            if seen.line.0.iter().any(|standee| standee.key == key) {
                // A name that is kept after its holder went, or what nobody has heard of since: another slot is free.
                self.claims.moves(lock, claim.id);
                if !only_if_empty {
                    continue;
                }
            }
            if only_if_empty {
                let ahead = seen.line.0.len();
                let disagrees = seen.line.agree(ahead, claim).err();
                if disagrees.is_none() && seen.line.judge(ahead, claim.weight, claim.capacity) == Verdict::In {
                    only_if_empty = false;
                    continue;
                }
                self.never_came(lock, claim.id).await?;
                return disagrees.map_or(Ok(Standing::Refused { retry_after: None }), Err);
            }
            // Known to be gone: it has left before.
            self.claims.forget(lock, claim.id);
            return Ok(Standing::Refused { retry_after: None });
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("`{lock}` could not be entered: leases end faster than they are made"),
        ))
    }

    /// It stands already: an earlier question was heard, and its answer lost. It may have been broken since, and hang on
    /// another lease than the one it would be put on now; so it is asked for, as any that stands. `None` if it may come again.
    async fn came_before(
        &self,
        lock: &Name,
        claim: &Claim,
        fresh: &Arc<Session>,
        (twin, found): (Option<&Standee>, &Standee),
    ) -> Result<Option<Standing>> {
        if let Some(twin) = twin {
            // It was at another slot then. The one that came first is the claim.
            let is_it = txn::created(&twin.key, i64::try_from(twin.order).unwrap_or(0));
            let question = txn::txn(vec![is_it], vec![txn::delete(&twin.key)], Vec::new());
            self.link.ask::<_, TxnResponse>(path::TXN, &question).await?;
        }
        self.claims.change(lock, claim.id, |known| known.key.clone_from(&found.key));
        if found.lease != fresh.id {
            let hung_on = Session::of_another(found.lease);
            self.claims.change(lock, claim.id, |known| known.session = Some(hung_on));
            self.not_needed(fresh);
        }
        self.ask(lock, claim).await
    }

    /// Where a claim that stands is in the line; `None` if it does not stand and may come.
    async fn ask(&self, lock: &Name, claim: &Claim) -> Result<Option<Standing>> {
        for _ in 0..TRIES {
            let (key, known) = match self.claims.get(lock, claim.id) {
                Some(known) => (known.key, known.session),
                None => (Vec::new(), None),
            };
            let (session, kept) = match known {
                Some(session) => (session.clone(), self.refresh(&session).await?),
                None => match self.look_up(lock, claim.id).await? {
                    Some(found) => found,
                    None => return Ok(absent(claim)),
                },
            };
            let seen = self.read_line(lock).await?;
            if let Some(kept) = kept {
                session.confirm(kept, seen.term);
            }
            if seen.line.0.iter().any(|standee| standee.key == key && standee.record.is_none()) {
                return Err(Error::new(ErrorKind::Foreign, format!("somebody else wrote over the claim on `{lock}`")));
            }
            let Some(at) = seen.line.position(claim.id) else { return Ok(absent(claim)) };
            let own = &seen.line.0[at];
            let Some(record) = &own.record else { return Ok(absent(claim)) };
            may_not_grow(record.weight, claim)?;
            if record.left {
                return Ok(Some(Standing::Refused { retry_after: None }));
            }
            if (claim.weight, &claim.note) == (record.weight, &record.note) {
                return self.settle(lock, claim, &session, &seen, at).await.map(Some);
            }
            let changed = Record { weight: claim.weight, note: claim.note.clone(), ..record.clone() };
            let put = txn::put_value(&own.key, changed.write());
            let question = txn::txn(vec![txn::changed(&own.key, own.mod_revision)], vec![put], Vec::new());
            // Changed or not, the line is read again: it says so.
            self.link.ask::<_, TxnResponse>(path::TXN, &question).await?;
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the claim on `{lock}` is changed by others all the time")))
    }

    /// What a claim that stands at this place is told.
    async fn settle(
        &self,
        lock: &Name,
        claim: &Claim,
        session: &Arc<Session>,
        seen: &Seen,
        at: usize,
    ) -> Result<Standing> {
        if let Err(disagrees) = seen.line.agree(at, claim) {
            self.is_out(lock, claim.id).await?;
            return Err(disagrees);
        }
        let order = seen.line.0[at].order;
        let now = Clock::system().now();
        let (standing, waits_for, keeps) = match seen.line.verdict(at) {
            Verdict::In => {
                let lease = session.left().min(claim.store_lease());
                (Standing::Held { token: Token::of_number(order), lease }, None, claim.store_lease())
            }
            _ if claim.patience == Patience::Now => {
                self.is_out(lock, claim.id).await?;
                return Ok(Standing::Refused { retry_after: None });
            }
            verdict => {
                let behind = match verdict {
                    Verdict::Behind(order) => Some(order),
                    _ => None,
                };
                let rival = behind.and_then(|order| seen.line.key_of(order)).map(<[u8]>::to_vec);
                let (key, range_end) = match rival {
                    Some(key) => (key, Vec::new()),
                    None => (keys::line(lock), keys::end_of(&keys::line(lock))),
                };
                let ahead = u32::try_from(at).unwrap_or(u32::MAX);
                let awaited = Awaited { key, range_end, revision: seen.revision };
                (Standing::Waiting { ahead, behind, moves_in: None }, Some(awaited), claim.waiting_lease())
            }
        };
        self.claims.change(lock, claim.id, |known| {
            known.order = i64::try_from(order).ok();
            known.ear = known.ear.take().filter(|ear| waits_for.as_ref().is_some_and(|awaited| ear.is_for(awaited)));
            known.waits_for = waits_for;
            known.until = session.shared.then(|| now + keeps);
        });
        Ok(standing)
    }

    pub(crate) async fn read_line(&self, lock: &Name) -> Result<Seen> {
        let answer: RangeResponse = self.link.ask(path::RANGE, &txn::line(lock)).await?.answer;
        Seen::new(lock, answer.header, answer.kvs)
    }

    /// The lease that a claim is to hang on, and that it was kept alive if it was due.
    async fn session_for(&self, lock: &Name, claim: &Claim) -> Result<(Arc<Session>, Option<KeptAlive>)> {
        for _ in 0..TRIES {
            let known = self.claims.get(lock, claim.id).and_then(|known| known.session);
            let session = match known.filter(|session| !session.left().is_zero()) {
                Some(session) => session,
                None if claim.store_lease() == self.link.options().lease => self.shared_session().await?,
                None => Session::grant(&self.link, claim.store_lease(), false).await?,
            };
            let kept = self.refresh(&session).await?;
            if kept.is_none_or(|kept| !kept.is_gone()) {
                return Ok((session, kept));
            }
            self.ended(&session);
        }
        Err(Error::new(ErrorKind::Unavailable, "leases of this client end faster than they are made"))
    }

    /// The lease of all claims of the usual length.
    async fn shared_session(&self) -> Result<Arc<Session>> {
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let _granting = self.granting.lock().await;
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let session = Session::grant(&self.link, self.link.options().lease, true).await?;
        *self.shared() = Some(session.clone());
        Ok(session)
    }

    /// The shared lease, if there is enough left of it to be relied on.
    fn session(&self) -> Option<Arc<Session>> {
        self.shared().as_ref().filter(|session| session.left() > session.length / 10).cloned()
    }

    /// Keeps a lease alive if it is due; what is on it and has run out is taken out first.
    async fn refresh(&self, session: &Arc<Session>) -> Result<Option<KeptAlive>> {
        if !session.is_due() {
            return Ok(None);
        }
        // One who comes does it for all.
        let Some(_refreshing) = session.refreshing() else { return Ok(None) };
        if session.shared {
            self.sweep(&self.link).await;
        }
        Ok(keep_alive(&self.link, &[session.id], SILENCE).await?.first().copied())
    }

    /// A lease is gone at the cluster.
    fn ended(&self, session: &Arc<Session>) {
        session.ends();
        let mut shared = self.shared();
        if shared.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *shared = None;
        }
    }

    /// The lease of a claim that this client does not know, kept alive.
    async fn look_up(&self, lock: &Name, id: ClaimId) -> Result<Option<(Arc<Session>, Option<KeptAlive>)>> {
        let seen = self.read_line(lock).await?;
        let Some(at) = seen.line.position(id) else { return Ok(None) };
        let session = Session::of_another(seen.line.0[at].lease);
        let kept = keep_alive(&self.link, &[session.id], SILENCE).await?.first().copied();
        Ok(Some((session, kept)))
    }
}

/// What a claim that does not stand is told, if it must not come.
fn absent(claim: &Claim) -> Option<Standing> {
    (claim.patience == Patience::Present).then_some(Standing::Refused { retry_after: None })
}
