//! Leases: what claims hang on, and until when we may believe in them.
//!
//! A lease ends, for us, at the moment we *sent* the last question that kept it alive plus its length (C2). Surprise: not
//! every server that keeps a lease alive may do so. A leader that was stopped and does not know yet that there is another one
//! answers as if nothing had happened, and the answer is worth nothing. So an answer counts only together with a read that
//! a majority has confirmed, sent after it and answered in the same term: see decision 17.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{ClaimId, Error, Result};

use crate::link::Link;
use crate::proto::lease::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse,
};
use crate::proto::path;
use crate::trouble;

/// How many leases are kept alive one after the other, and how many such rows at once.
const LEASES_ON_A_STREAM: usize = 8;
const STREAMS: usize = 32;

/// One lease at the cluster.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    /// How long it lasts from when it is kept alive.
    pub(crate) length: Duration,
    /// Is it shared by all claims of the usual length, or may it be?
    pub(crate) shared: bool,
    /// Until when it surely lasts.
    until: AtomicU64,
    over: AtomicBool,
    /// Somebody is keeping it alive.
    busy: AtomicBool,
}

/// While this is there, nobody else keeps the lease alive unless it is urgent.
pub(crate) struct Refreshing<'a>(&'a Session);

impl Drop for Refreshing<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

/// That a lease was kept alive, if the term is still the same when a majority has been asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptAlive {
    sent: Moment,
    term: u64,
    /// How long from then; zero if the server knows no such lease.
    length: Duration,
}

impl Session {
    /// Makes a lease of at least this length.
    pub(crate) async fn grant(link: &Link, length: Duration, shared: bool) -> Result<Arc<Self>> {
        let question = LeaseGrantRequest { ttl: whole_seconds(length), id: fresh_id()? };
        let sent = Clock::system().now();
        let granted =
            link.ask_for(path::LEASE_GRANT, &question, |answer: Result<LeaseGrantResponse, _>| match answer {
                Ok(answer) => Ok(answer.ttl),
                // The id is ours: an earlier try was heard after all.
                Err(status) if trouble::is_lease_there(&status) => Ok(question.ttl),
                Err(status) => Err(status),
            });
        let length = seconds(granted.await?.answer);
        if length.is_zero() {
            return Err(trouble::garbled("a lease without a length"));
        }
        let until = AtomicU64::new((sent + length).as_nanos());
        Ok(Arc::new(Self {
            id: question.id,
            length,
            shared,
            until,
            over: AtomicBool::new(false),
            busy: AtomicBool::new(false),
        }))
    }

    /// A lease that somebody else made, or this client long ago, of which nothing is known but that it is there. Others
    /// may hang on it, too.
    pub(crate) fn of_another(id: i64) -> Arc<Self> {
        let (length, until) = (Duration::ZERO, AtomicU64::new(0));
        Arc::new(Self { id, length, shared: true, until, over: AtomicBool::new(false), busy: AtomicBool::new(false) })
    }

    /// What surely is left of it.
    pub(crate) fn left(&self) -> Duration {
        if self.is_over() {
            return Duration::ZERO;
        }
        Clock::system().now().until(Moment::from_nanos(self.until.load(Ordering::SeqCst)))
    }

    /// Should it be kept alive before it is relied on? One of unknown length always.
    pub(crate) fn is_due(&self) -> bool {
        self.length.is_zero() || self.left() < self.length * 2 / 3
    }

    /// The right to keep it alive; `None` while another does and there is time.
    pub(crate) fn refreshing(&self) -> Option<Refreshing<'_>> {
        let busy = self.busy.swap(true, Ordering::SeqCst);
        (!busy || self.length.is_zero() || self.left() < self.length / 3).then_some(Refreshing(self))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// The cluster has no such lease.
    pub(crate) fn ends(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// A majority has answered in this term, after the lease was kept alive: does that count?
    pub(crate) fn confirm(&self, kept: KeptAlive, term: u64) -> bool {
        let counts = kept.term == term && !kept.length.is_zero();
        if counts {
            self.until.fetch_max((kept.sent + kept.length).as_nanos(), Ordering::SeqCst);
        }
        counts
    }

    /// Ends it, and with it all that hangs on it.
    pub(crate) async fn revoke(&self, link: &Link) -> Result<()> {
        self.ends();
        let question = LeaseRevokeRequest { id: self.id };
        let judge = |answer: Result<LeaseRevokeResponse, tonic::Status>| match answer {
            Err(status) if !trouble::is_lease_gone(&status) => Err(status),
            _ => Ok(()),
        };
        link.ask_for(path::LEASE_REVOKE, &question, judge).await.map(|_| ())
    }
}

impl KeptAlive {
    /// The server knows no such lease.
    pub(crate) fn is_gone(self) -> bool {
        self.length.is_zero()
    }

    pub(crate) fn length(self) -> Duration {
        self.length
    }
}

/// Keeps leases alive; answers in the order asked. A server does one after the other on a stream, and asks the leader for
/// each, so many leases are many streams.
pub(crate) async fn keep_alive(link: &Link, leases: &[i64], silence: Duration) -> Result<Vec<KeptAlive>> {
    if leases.len() <= LEASES_ON_A_STREAM {
        return keep_piece_alive(link, leases, silence).await;
    }
    let pieces: Vec<_> =
        leases.chunks(LEASES_ON_A_STREAM).map(|piece| keep_piece_alive(link, piece, silence)).collect();
    let kept: Vec<Vec<KeptAlive>> = stream::iter(pieces).buffered(STREAMS).try_collect().await?;
    Ok(kept.concat())
}

async fn keep_piece_alive(link: &Link, leases: &[i64], silence: Duration) -> Result<Vec<KeptAlive>> {
    let told = link.in_turn(silence, |at| async move {
        let sent = Clock::system().now();
        let questions: Vec<_> = leases.iter().map(|id| LeaseKeepAliveRequest { id: *id }).collect();
        let questions = stream::iter(questions);
        let mut answers = link.stream::<_, LeaseKeepAliveResponse>(at, path::LEASE_KEEP_ALIVE, questions).await?;
        let mut kept = vec![None; leases.len()];
        for _ in leases {
            let answer = match answers.message().await {
                Ok(Some(answer)) => answer,
                Ok(None) => return Err(Error::unanswered("the etcd server ended the stream that keeps leases alive")),
                Err(status) => return Err(trouble::refused(link.endpoint(at), &status)),
            };
            let term = answer.header.map_or(0, |header| header.raft_term);
            let fact = KeptAlive { sent, term, length: seconds(answer.ttl) };
            for (place, id) in kept.iter_mut().zip(leases) {
                if *id == answer.id {
                    *place = Some(fact);
                }
            }
        }
        kept.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| trouble::garbled("another lease than asked for"))
    });
    told.await.map(|told| told.answer)
}

/// Leases last whole seconds: never shorter than asked for.
pub(crate) fn whole_seconds(length: Duration) -> i64 {
    let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    i64::try_from(seconds.max(1)).unwrap_or(i64::MAX)
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

/// Chosen by us, so that a grant whose answer was lost can be asked for again.
fn fresh_id() -> Result<i64> {
    let random = u128::from_be_bytes(ClaimId::random()?.to_bytes());
    Ok(((random as u64) >> 1).max(1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_never_shortened() {
        assert_eq!(whole_seconds(Duration::from_millis(2_001)), 3);
        assert_eq!(whole_seconds(Duration::from_secs(2)), 2);
        assert_eq!(whole_seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(-1), Duration::ZERO);
    }

    #[test]
    fn an_answer_of_another_term_does_not_count() {
        let session = Session::of_another(7);
        let now = Clock::system().now();
        let kept = KeptAlive { sent: now, term: 3, length: Duration::from_secs(5) };
        assert!(!session.confirm(kept, 4));
        assert_eq!(session.left(), Duration::ZERO);
        assert!(session.confirm(kept, 3));
        assert!(session.left() > Duration::from_secs(4));
        assert!(!session.confirm(KeptAlive { length: Duration::ZERO, ..kept }, 3));
        session.ends();
        assert_eq!(session.left(), Duration::ZERO);
    }
}
