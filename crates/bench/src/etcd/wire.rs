//! A bare client: the two transactions that take and release a free lock, and nothing else of this library.
//!
//! Surprise: its questions are the store's own to the letter, with the claim's key, its record and the lease of the client.
//! What is measured is what the whole client costs beyond them. And every slice begins on a server that has forgotten what was
//! deleted before: until then it goes past every key that was there, and those of a peer's turns are many.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use lockkeeper_etcd::proto::{
    CompactionRequest, CompactionResponse, Compare, CompareResult, CompareTarget, DeleteRangeRequest, Do, Done,
    Operand, PutRequest, RangeRequest, RangeResponse, TxnRequest, TxnResponse, path,
};
use lockkeeper_etcd::raw::Client;
use lockkeeper_etcd::{Endpoint, Options};

use crate::Outcome;
use crate::pairs::{self, name};

/// Where the client's claims stand.
const SLOT: &[u8] = b"3f2b8c6d90e145a7b8c6d90e00000000";

/// The lease of every lock here.
pub const LEASE_S: i64 = 30;

/// Where the members of this URL are.
pub fn options(url: &str) -> Options {
    let hosts = url.trim_start_matches("etcd://").split(',').filter_map(|host| host.rsplit_once(':'));
    let endpoint = |(host, port): (&str, &str)| port.parse().ok().map(|port| Endpoint { host: host.to_owned(), port });
    Options::at(hosts.filter_map(endpoint).collect())
}

/// A bare client with a lease.
#[derive(Debug, Clone)]
pub struct Bare {
    client: Client,
    /// The lease.
    lease: i64,
    /// Every claim has an id of its own; the key that it stands at is used again, as ours are.
    claims: Arc<AtomicU64>,
    compacted: Arc<AtomicI64>,
}

impl Bare {
    /// Connects and makes a lease.
    pub async fn open(url: &str) -> Outcome<Self> {
        let client = Client::open(options(url)).await?;
        let lease = client.grant(LEASE_S).await?;
        Ok(Self { client, lease, claims: Arc::default(), compacted: Arc::default() })
    }

    /// To be called at least once in the time of a lease.
    pub async fn keep_alive(&self) -> Outcome<()> {
        Ok(self.client.keep_alive(&[self.lease]).await?)
    }

    /// Lets the server forget all that is deleted.
    pub async fn compact(&self) -> Outcome<()> {
        let look = RangeRequest { key: b"a".to_vec(), count_only: true, ..RangeRequest::default() };
        let now: RangeResponse = self.client.ask(path::RANGE, &look).await?;
        let revision = now.header.ok_or("an answer without a head")?.revision;
        if revision > self.compacted.fetch_max(revision, Ordering::Relaxed) {
            let question = CompactionRequest { revision, physical: true };
            self.client.ask::<_, CompactionResponse>(path::COMPACT, &question).await?;
        }
        Ok(())
    }

    async fn enter(&self, lock: &Lock, claim: &str) -> Outcome<i64> {
        let key = [&lock.line[..], SLOT].concat();
        let mark = [&lock.gone, claim.as_bytes()].concat();
        let record = format!("lk1 mutex 1 1 30000 - {claim} {claim} 12345 a-host-name orders\n").into_bytes();
        let line =
            || Do::Range(RangeRequest { key: lock.line.clone(), range_end: lock.end.clone(), ..Default::default() });
        let put = Do::Put(PutRequest { key: key.clone(), value: record, lease: self.lease, ..Default::default() });
        let question = txn(vec![created(&key, 0), created(&mark, 0)], vec![put, line()], vec![line()]);
        let answer: TxnResponse = self.client.ask(path::TXN, &question).await?;
        let read = answer.responses.into_iter().find_map(|step| match step.response {
            Some(Done::Range(range)) => range.kvs.into_iter().find(|kv| kv.key == key),
            _ => None,
        });
        Ok(read.filter(|_| answer.succeeded).ok_or("a name of this program alone is taken")?.create_revision)
    }

    async fn leave(&self, lock: &Lock, order: i64) -> Outcome<()> {
        let key = [&lock.line[..], SLOT].concat();
        let look = Do::Range(RangeRequest { key: key.clone(), ..Default::default() });
        let delete = Do::Delete(DeleteRangeRequest { key: key.clone(), range_end: Vec::new() });
        let question = txn(vec![created(&key, order)], vec![look, delete], Vec::new());
        let answer: TxnResponse = self.client.ask(path::TXN, &question).await?;
        if answer.succeeded { Ok(()) } else { Err("a lock of this program alone was taken away".into()) }
    }
}

/// The keys of one lock.
#[derive(Debug)]
pub struct Lock {
    line: Vec<u8>,
    end: Vec<u8>,
    gone: Vec<u8>,
}

impl pairs::Client for Bare {
    type Lock = Arc<Lock>;

    fn lock(&self, task: usize) -> Arc<Lock> {
        // Not the names of ours: both are measured on one server.
        let name = format!("lockkeeper/{}", name(task + 1_000));
        let gone = format!("{{cell}}/{name}{{gone}}").into_bytes();
        Arc::new(Lock { line: format!("{name}/").into_bytes(), end: format!("{name}0").into_bytes(), gone })
    }

    async fn pair(&self, lock: &Arc<Lock>, _claim: u128) -> Outcome<()> {
        // Scattered, as ours are.
        let number = self.claims.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let claim = format!("{number:016x}{number:016x}");
        let order = self.enter(lock, &claim).await?;
        self.leave(lock, order).await
    }
}

/// The key was made at this revision; zero if it is not there.
fn created(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Create, Operand::Create(revision))
}

/// The key was last changed at this revision.
pub fn changed(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, Operand::Mod(revision))
}

fn compare(key: &[u8], target: CompareTarget, operand: Operand) -> Compare {
    let (result, target) = (CompareResult::Equal as i32, target as i32);
    Compare { result, target, key: key.to_vec(), operand: Some(operand), range_end: Vec::new() }
}

/// A transaction.
pub fn txn(compare: Vec<Compare>, then: Vec<Do>, otherwise: Vec<Do>) -> TxnRequest {
    let steps = |all: Vec<Do>| all.into_iter().map(Into::into).collect();
    TxnRequest { compare, success: steps(then), failure: steps(otherwise) }
}
