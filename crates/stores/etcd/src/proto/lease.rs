//! Messages about leases.

use prost::Message;

use super::ResponseHeader;

/// Makes a lease.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseGrantRequest {
    /// How long it shall last, in seconds; the server may give more.
    #[prost(int64, tag = "1")]
    pub ttl: i64,
    /// Its id; zero lets the server choose.
    #[prost(int64, tag = "2")]
    pub id: i64,
}

/// It was made.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LeaseGrantResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its id.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// How long it lasts, in seconds.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
    /// What went wrong, if anything.
    #[prost(string, tag = "4")]
    pub error: String,
}

/// Ends a lease and deletes all keys that hang on it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseRevokeRequest {
    /// Its id.
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// It was ended.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseRevokeResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Keeps a lease alive for its whole length from now.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseKeepAliveRequest {
    /// Its id.
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseKeepAliveResponse {
    /// The head, made before the leader was asked.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its id.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// How long it lasts from now, in seconds; zero or less if there is no such lease.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
}

/// Asks what is left of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LeaseTimeToLiveRequest {
    /// Its id.
    #[prost(int64, tag = "1")]
    pub id: i64,
    /// Also which keys hang on it.
    #[prost(bool, tag = "2")]
    pub keys: bool,
}

/// What is left of it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LeaseTimeToLiveResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its id.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// What is left, in seconds; below zero if there is no such lease.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
    /// How long it lasts when it is kept alive, in seconds.
    #[prost(int64, tag = "4")]
    pub granted_ttl: i64,
    /// The keys that hang on it.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub keys: Vec<Vec<u8>>,
}
