//! Messages of the stream that tells of changes.

use prost::{Enumeration, Message, Oneof};

use super::{KeyValue, ResponseHeader};

/// One question on the stream.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchRequest {
    /// What it asks for.
    #[prost(oneof = "Watching", tags = "1, 2")]
    pub request: Option<Watching>,
}

/// What is asked of the stream.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Watching {
    /// To tell of changes.
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
    /// To tell no more.
    #[prost(message, tag = "2")]
    Cancel(WatchCancelRequest),
}

/// Asks to be told of changes of a key, or of all keys from `key` to before `range_end`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchCreateRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The end, not included; empty for just the key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// From this revision on; zero for now. One in the past makes the watch a slow one.
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
    /// The id it shall have on this stream; zero lets the server choose.
    #[prost(int64, tag = "7")]
    pub watch_id: i64,
}

/// Asks to be told no more.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct WatchCancelRequest {
    /// Of this one.
    #[prost(int64, tag = "1")]
    pub watch_id: i64,
}

/// What the stream tells.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchResponse {
    /// The head. When a watch is made, its revision is the last one that it does *not* tell of.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Whom it is for.
    #[prost(int64, tag = "2")]
    pub watch_id: i64,
    /// The watch was made.
    #[prost(bool, tag = "3")]
    pub created: bool,
    /// The watch has ended.
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// It ended because what it would have to tell is no longer kept, before this revision.
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    /// Why it ended.
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    /// The changes.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EventKind {
    /// It was set.
    Put = 0,
    /// It was deleted.
    Delete = 1,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Event {
    /// What happened.
    #[prost(enumeration = "EventKind", tag = "1")]
    pub kind: i32,
    /// The key as it is now; of a deleted one only the key and the revision.
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
}
