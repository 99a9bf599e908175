//! Renewals: every lease kept alive by one question, then every hold looked at by a majority.
//!
//! The second is what the first is worth nothing without: a hold that was broken is found out by it, and a leader that is
//! none any more (`session`). Surprise: all of it runs on the watchdog's thread, over a connection made there (C3).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::store::{Held, Renewal};
use lockkeeper_core::{Error, Result, Verdict};

use crate::keys;
use crate::proto::{Do, KeyValue, TxnResponse, path};
use crate::record::Record;
use crate::session::{KeptAlive, Session, keep_alive};
use crate::store::Etcd;
use crate::{trouble, txn};

/// How many keys one transaction looks at; a server refuses more than 128 steps.
const LOOKS: usize = 100;

/// A hold, and the lease it hangs on.
struct Hanging<'a> {
    held: &'a Held,
    /// `None` if it is no hold.
    on: Option<(Vec<u8>, Arc<Session>)>,
}

impl Etcd {
    pub(crate) async fn renew_all(&self, held: &[Held]) -> Result<Vec<Renewal>> {
        let mut hanging = Vec::with_capacity(held.len());
        for held in held {
            hanging.push(Hanging { held, on: self.lease_of(held).await? });
        }
        let sessions: HashMap<i64, Arc<Session>> =
            hanging.iter().filter_map(|hold| hold.on.clone()).map(|(_, session)| (session.id, session)).collect();
        if sessions.is_empty() {
            return Ok(vec![Renewal::Gone; held.len()]);
        }
        self.sweep(&self.renewals).await;
        let shortest = held.iter().map(|held| held.lease).min().unwrap_or_default();
        let silence = (shortest / 12).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let ids: Vec<i64> = sessions.keys().copied().collect();
        let kept = keep_alive(&self.renewals, &ids, silence).await?;
        let kept: HashMap<i64, KeptAlive> = ids.into_iter().zip(kept).collect();
        let mut renewals = Vec::with_capacity(held.len());
        for piece in hanging.chunks(LOOKS) {
            let (term, found) = self.look_at(piece).await?;
            for (hold, kv) in piece.iter().zip(found) {
                renewals.push(self.renewed(hold, kv, &kept, term).await?);
            }
        }
        Ok(renewals)
    }

    /// The key of a hold and the lease it hangs on; `None` if it is no hold.
    async fn lease_of(&self, held: &Held) -> Result<Option<(Vec<u8>, Arc<Session>)>> {
        if self.claims.is_swept(&held.lock, held.id) {
            return Ok(None);
        }
        if let Some(known) = self.claims.goes_on(&held.lock, held.id, held.lease) {
            // One that was told to wait has not been told anything else since.
            let session = known.session.filter(|_| known.waits_for.is_none());
            return Ok(session.map(|session| (known.key, session)));
        }
        // Another client of ours made it.
        let question = txn::line(&held.lock);
        let answer: crate::proto::RangeResponse = self.renewals.ask(path::RANGE, &question).await?.answer;
        let line = crate::line::Line::of(&held.lock, answer.kvs);
        let inside = line.position(held.id).filter(|at| line.verdict(*at) == Verdict::In);
        Ok(inside.map(|at| (line.0[at].key.clone(), Session::of_another(line.0[at].lease))))
    }

    /// The keys of some holds, as a majority has them, and the term they were read in.
    async fn look_at(&self, holds: &[Hanging<'_>]) -> Result<(u64, Vec<Option<KeyValue>>)> {
        // One that is no hold is looked for where no hold can be.
        let nowhere = |hold: &Hanging<'_>| keys::gone(&hold.held.lock, hold.held.id);
        let key = |hold: &Hanging<'_>| hold.on.as_ref().map_or_else(|| nowhere(hold), |(key, _)| key.clone());
        let looks = holds.iter().map(|hold| Do::Range(txn::get(&key(hold)))).collect();
        let answer: TxnResponse = self.renewals.ask(path::TXN, &txn::txn(Vec::new(), looks, Vec::new())).await?.answer;
        let term = answer.header.map_or(0, |header| header.raft_term);
        let found: Vec<_> = txn::ranges(answer).map(|range| range.kvs.into_iter().next()).collect();
        match found.len() == holds.len() {
            true => Ok((term, found)),
            false => Err(trouble::garbled("other keys than were asked for")),
        }
    }

    async fn renewed(
        &self,
        hold: &Hanging<'_>,
        kv: Option<KeyValue>,
        kept: &HashMap<i64, KeptAlive>,
        term: u64,
    ) -> Result<Renewal> {
        let (Some((_, session)), Some(kv)) = (&hold.on, kv) else { return Ok(Renewal::Gone) };
        // Broken, written over, or the slot of another claim: not ours any more.
        let ours = |record: Record| record.id == hold.held.id && !record.left;
        if kv.lease != session.id || !Record::read(&kv.value).is_some_and(ours) {
            return Ok(Renewal::Gone);
        }
        let Some(kept) = kept.get(&session.id).filter(|kept| session.confirm(**kept, term)) else {
            return Err(Error::unanswered("the leader changed while leases were kept alive"));
        };
        let mut length = kept.length();
        if length < hold.held.lease {
            length = self.lengthen(&kv, hold.held).await?;
        }
        Ok(Renewal::Renewed { lease: length })
    }

    /// A hold that asks for more than its lease can give gets another one.
    async fn lengthen(&self, kv: &KeyValue, held: &Held) -> Result<Duration> {
        let session = Session::grant(&self.renewals, held.lease, false).await?;
        let put = txn::put(&kv.key, kv.value.clone(), session.id);
        let question = txn::txn(vec![txn::changed(&kv.key, kv.mod_revision)], vec![put], Vec::new());
        let answer: TxnResponse = self.renewals.ask(path::TXN, &question).await?.answer;
        if !answer.succeeded {
            return Err(Error::unanswered("the claim was changed while it was renewed"));
        }
        self.claims.change(&held.lock, held.id, |known| known.session = Some(session.clone()));
        Ok(session.length)
    }
}
