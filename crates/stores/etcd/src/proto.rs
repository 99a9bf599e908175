//! The messages of etcd's own protocol that locks need, as structures, and the paths they are sent to.
//!
//! Written by hand from the field numbers of `rpc.proto`, `kv.proto` and `v3lock.proto` of etcd 3.4, which later versions
//! only add to: what is not read here is left out. Field numbers must never be changed.

use prost::{Enumeration, Message, Oneof};

pub mod cluster;
pub mod lease;
pub mod watch;

/// Where each question is sent.
pub mod path {
    /// Reads a key or a range.
    pub const RANGE: &str = "/etcdserverpb.KV/Range";
    /// Compares, then reads and changes, as one.
    pub const TXN: &str = "/etcdserverpb.KV/Txn";
    /// Forgets what was before a revision.
    pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
    /// Makes a lease.
    pub const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    /// Ends a lease and all that hangs on it.
    pub const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    /// Keeps leases alive; a stream both ways.
    pub const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    /// What is left of a lease.
    pub const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    /// Tells of changes; a stream both ways.
    pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
    /// Turns a user and a password into a token.
    pub const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
    /// How a member is.
    pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    /// What a cluster complains of.
    pub const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    /// Who belongs to the cluster.
    pub const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
    /// The server's own lock, which grants to waiters whose lease has ended: for showing that, and for nothing else.
    pub const LOCK: &str = "/v3lockpb.Lock/Lock";
    /// Lets go of the server's own lock.
    pub const UNLOCK: &str = "/v3lockpb.Lock/Unlock";
}

/// What stands at the head of every answer.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ResponseHeader {
    /// The cluster.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// The member that answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// The revision of the store.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// The term the member was in: another term is another leader.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// A key and all that belongs to it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyValue {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The revision it was made at; it keeps it until it is deleted.
    #[prost(int64, tag = "2")]
    pub create_revision: i64,
    /// The revision of its last change.
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    /// How many changes it has seen.
    #[prost(int64, tag = "4")]
    pub version: i64,
    /// The value.
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
    /// The lease it hangs on; zero for none.
    #[prost(int64, tag = "6")]
    pub lease: i64,
}

/// Reads a key, or all keys from `key` to before `range_end`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RangeRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The end, not included; empty for just the key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// At most so many; zero for all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// As of this revision; zero for now.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    /// Leave the values out.
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
    /// Only count.
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RangeResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The keys, in their order.
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    /// Are there more than the limit?
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// How many there are in all.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// Sets a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PutRequest {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The value.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
    /// The lease to hang it on; zero for none.
    #[prost(int64, tag = "3")]
    pub lease: i64,
    /// Leave the value as it is.
    #[prost(bool, tag = "5")]
    pub ignore_value: bool,
    /// Leave the lease as it is.
    #[prost(bool, tag = "6")]
    pub ignore_lease: bool,
}

/// It was set.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PutResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Deletes a key, or all from `key` to before `range_end`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeleteRangeRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The end, not included; empty for just the key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// What was deleted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeleteRangeResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// How many keys.
    #[prost(int64, tag = "2")]
    pub deleted: i64,
}

/// One step of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RequestOp {
    /// What to do.
    #[prost(oneof = "Do", tags = "1, 2, 3")]
    pub request: Option<Do>,
}

/// What a step of a transaction does.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Do {
    /// It reads.
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    /// It sets.
    #[prost(message, tag = "2")]
    Put(PutRequest),
    /// It deletes.
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

impl From<Do> for RequestOp {
    fn from(request: Do) -> Self {
        Self { request: Some(request) }
    }
}

/// What became of one step.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ResponseOp {
    /// The answer.
    #[prost(oneof = "Done", tags = "1, 2, 3")]
    pub response: Option<Done>,
}

/// The answer to a step of a transaction.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Done {
    /// It read this.
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    /// It set it.
    #[prost(message, tag = "2")]
    Put(PutResponse),
    /// It deleted this.
    #[prost(message, tag = "3")]
    Delete(DeleteRangeResponse),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CompareResult {
    /// The same.
    Equal = 0,
    /// Not the same.
    NotEqual = 3,
}

/// What of a key is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CompareTarget {
    /// How many changes it has seen.
    Version = 0,
    /// The revision it was made at.
    Create = 1,
    /// The revision of its last change.
    Mod = 2,
}

/// A condition of a transaction. A key that is not there has zero everywhere; of a range all keys must meet it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Compare {
    /// How.
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub result: i32,
    /// What of it.
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub target: i32,
    /// The key.
    #[prost(bytes = "vec", tag = "3")]
    pub key: Vec<u8>,
    /// With what.
    #[prost(oneof = "Operand", tags = "4, 5, 6")]
    pub operand: Option<Operand>,
    /// The end of a range, not included; empty for just the key.
    #[prost(bytes = "vec", tag = "64")]
    pub range_end: Vec<u8>,
}

/// What a key is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub enum Operand {
    /// A number of changes.
    #[prost(int64, tag = "4")]
    Version(i64),
    /// The revision it was made at.
    #[prost(int64, tag = "5")]
    Create(i64),
    /// The revision of its last change.
    #[prost(int64, tag = "6")]
    Mod(i64),
}

/// If all of `compare` is so, does `success`, else `failure`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TxnRequest {
    /// The conditions.
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// What to do then.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    /// What to do otherwise.
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TxnResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Were the conditions met?
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    /// An answer for each step that was done.
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// Forgets what was before a revision: values that were changed, and keys that were deleted, until then.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CompactionRequest {
    /// The revision.
    #[prost(int64, tag = "1")]
    pub revision: i64,
    /// Answer only when it is done.
    #[prost(bool, tag = "2")]
    pub physical: bool,
}

/// It is forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CompactionResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}
