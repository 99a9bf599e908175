//! Leaving the line: with the name free at once, or taken for a while longer.
//!
//! Surprise: a claim whose question was not answered may still be on its way in. Its leaving leaves a mark on the same lease
//! that keeps it out, for as long as it could hang on that lease; where the lease is its own, ending the lease does that.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::store::{Keep, Left};
use lockkeeper_core::{ClaimId, Error, ErrorKind, Name, Result, Verdict};

use crate::claims::Known;
use crate::keys;
use crate::line::Line;
use crate::link::{Link, Told};
use crate::proto::{Do, KeyValue, TxnResponse, path};
use crate::record::Record;
use crate::session::Session;
use crate::store::Etcd;
use crate::{trouble, txn};

const TRIES: usize = 5;

impl Etcd {
    pub(crate) async fn leave_line(&self, lock: &Name, id: ClaimId, keep: Keep) -> Result<Left> {
        let known = self.claims.get(lock, id);
        let left = match keep {
            Keep::Nothing => take_out(&self.link, lock, id, known.as_ref()).await?,
            keep => self.keep_name(lock, id, keep, known.as_ref()).await?,
        };
        self.claims.forget(lock, id);
        self.let_go(known);
        Ok(left)
    }

    /// A claim that was put and must not stand: it is taken out, and nothing of it comes later.
    pub(crate) async fn is_out(&self, lock: &Name, id: ClaimId) -> Result<()> {
        self.leave_line(lock, id, Keep::Nothing).await.map(|_| ())
    }

    /// A claim that was refused without having been put; one of its questions may have strayed.
    pub(crate) async fn never_came(&self, lock: &Name, id: ClaimId) -> Result<()> {
        if self.claims.get(lock, id).is_some_and(|known| known.stray) {
            return self.is_out(lock, id).await;
        }
        self.did_not_come(lock, id);
        Ok(())
    }

    /// A claim that surely was not put is forgotten, and nobody will take it out.
    pub(crate) fn did_not_come(&self, lock: &Name, id: ClaimId) {
        if self.claims.get(lock, id).is_some_and(|known| known.order.is_none() && !known.stray) {
            let known = self.claims.forget(lock, id);
            self.let_go(known);
        }
    }

    /// Claims on a shared lease that have run out by their own time are taken out.
    pub(crate) async fn sweep(&self, link: &Link) {
        for ((id, lock), known) in self.claims.overdue() {
            match take_out(link, &lock, id, Some(&known)).await {
                Ok(_) => drop(self.claims.forget(&lock, id)),
                Err(error) => {
                    tracing::debug!(target: "lockkeeper", name = %lock, %error, "a claim that ran out is still there");
                    self.claims.not_swept(&lock, id);
                }
            }
        }
    }

    /// A lease of its own ends with its claim.
    fn let_go(&self, known: Option<Known>) {
        if let Some(session) = known.and_then(|known| known.session) {
            self.not_needed(&session);
        }
    }

    /// Nothing of ours hangs on this lease any more, unless it is the shared one.
    pub(crate) fn not_needed(&self, session: &Arc<Session>) {
        if session.shared || session.is_over() {
            return;
        }
        session.ends();
        let (link, session) = (self.link.clone(), session.clone());
        self.endings.spawn(async move {
            if let Err(error) = session.revoke(&link).await {
                tracing::debug!(target: "lockkeeper", %error, "a lease was not ended; it runs out by itself");
            }
        });
    }

    /// The holder is out, and the name stays taken.
    async fn keep_name(&self, lock: &Name, id: ClaimId, keep: Keep, known: Option<&Known>) -> Result<Left> {
        for _ in 0..TRIES {
            let seen = self.read_line(lock).await?;
            let Some(at) = seen.line.position(id) else { return Ok(Left::NotHeld) };
            let own = &seen.line.0[at];
            let Some(record) = &own.record else {
                return Err(Error::new(ErrorKind::Unsupported, "a claim of another client cannot be left to run out")
                    .with_hint("take it out at once with `break --now`"));
            };
            if record.left {
                return Ok(Left::NotHeld);
            }
            if seen.line.verdict(at) != Verdict::In {
                return take_out(&self.link, lock, id, known).await;
            }
            let length = match keep {
                Keep::For(length) => length,
                // Its holder may have prolonged it until this very moment.
                _ => record.lease,
            };
            // Longer by all the time that putting it there may take. When it is over it is taken out; should this client
            // be gone by then, the lease does it.
            let lease = Session::grant(&self.link, length + self.link.options().timeout, false).await?;
            let kept = Record { left: true, ..record.clone() };
            let then = vec![txn::put(&own.key, kept.write(), lease.id)];
            let question = txn::txn(vec![txn::changed(&own.key, own.mod_revision)], then, Vec::new());
            let answer: TxnResponse = self.link.ask(path::TXN, &question).await?.answer;
            if answer.succeeded {
                if let Some(session) = known.filter(|known| known.stray).and_then(|known| known.session.as_ref()) {
                    let question = txn::txn(Vec::new(), vec![mark(lock, id, session)], Vec::new());
                    self.link.ask_for(path::TXN, &question, unless_over).await?;
                }
                let revision = answer.header.map_or(0, |header| header.revision);
                self.claims.change(lock, id, |known| known.kept = true);
                let slot = known.map(|known| (lock.clone(), known.number));
                self.free_after(length, (own.key.clone(), revision), lease, slot);
                return Ok(Left::Released);
            }
            let link = self.link.clone();
            self.endings.spawn(async move { lease.revoke(&link).await });
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the claim on `{lock}` is changed by others all the time")))
    }

    /// Frees a name that was kept, if nobody has touched it since; then its slot is free, too.
    fn free_after(
        &self,
        length: Duration,
        (key, revision): (Vec<u8>, i64),
        lease: Arc<Session>,
        slot: Option<(Name, u32)>,
    ) {
        let (link, claims) = (self.link.clone(), self.claims.clone());
        tokio::spawn(async move {
            tokio::time::sleep(length).await;
            let question = txn::txn(vec![txn::changed(&key, revision)], vec![txn::delete(&key)], Vec::new());
            let freed = link.ask::<_, TxnResponse>(path::TXN, &question).await.map(|_| ());
            if let Err(error) = freed.and(lease.revoke(&link).await) {
                tracing::debug!(target: "lockkeeper", %error, "a kept name was not freed; it runs out by itself");
            }
            if let Some((lock, number)) = slot {
                claims.give_back(&lock, number);
            }
        });
    }
}

/// Takes a claim out, and sees to it that nothing of it comes later.
///
/// Compared by its create-revision: the slot may be another claim's when the question is heard.
pub(crate) async fn take_out(link: &Link, lock: &Name, id: ClaimId, known: Option<&Known>) -> Result<Left> {
    if let Some((key, order)) = known.filter(|known| !known.stray).and_then(|known| Some((&known.key, known.order?))) {
        let then = vec![Do::Range(txn::get(key)), txn::delete(key)];
        return outcome(link.ask(path::TXN, &txn::txn(vec![txn::created(key, order)], then, Vec::new())).await?);
    }
    let mut steps = vec![Do::Range(txn::line(lock))];
    // If the lease is over, nothing can hang on it any more.
    let stray = known.filter(|known| known.stray).and_then(|known| known.session.as_ref());
    let mut marked = None;
    if let Some(session) = stray {
        steps.push(mark(lock, id, session));
        marked = link.ask_for(path::TXN, &txn::txn(Vec::new(), steps.clone(), Vec::new()), unless_over).await?.answer;
        steps.pop();
    }
    let answer = match marked {
        Some(answer) => answer,
        None => link.ask(path::TXN, &txn::txn(Vec::new(), steps, Vec::new())).await?.answer,
    };
    let line = Line::of(lock, txn::last_range(answer)?);
    let mut left = Left::NotHeld;
    // Mostly one. A put that was heard late, at the slot it had first, is there beside the one that was heard in time.
    for own in line.0.iter().filter(|standee| standee.id == id) {
        let order = i64::try_from(own.order).unwrap_or(0);
        let then = vec![Do::Range(txn::get(&own.key)), txn::delete(&own.key)];
        let told = link.ask(path::TXN, &txn::txn(vec![txn::created(&own.key, order)], then, Vec::new())).await?;
        match outcome(told)? {
            Left::NotHeld => {}
            out => left = out,
        }
    }
    Ok(left)
}

/// A mark on the lease that a claim could hang on: whatever of it was not answered finds that and does nothing.
fn mark(lock: &Name, id: ClaimId, session: &Session) -> Do {
    txn::put(&keys::gone(lock, id), Vec::new(), session.id)
}

/// `None` if the lease is over.
pub(crate) fn unless_over(answer: Result<TxnResponse, tonic::Status>) -> Result<Option<TxnResponse>, tonic::Status> {
    match answer {
        Err(status) if trouble::is_lease_gone(&status) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Was it there?
fn outcome(told: Told<TxnResponse>) -> Result<Left> {
    let alone = told.alone;
    let found: Vec<KeyValue> = txn::ranges(told.answer).flat_map(|range| range.kvs).collect();
    Ok(match found.first().map(|kv| Record::read(&kv.value).is_some_and(|record| record.left)) {
        Some(false) => Left::Released,
        Some(true) => Left::NotHeld,
        // Asked twice, the first of which may have done it.
        None if !alone => Left::Unknown,
        None => Left::NotHeld,
    })
}
