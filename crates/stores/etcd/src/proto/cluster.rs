//! Messages about users, members and the cluster's health, and those of the server's own lock.

use prost::{Enumeration, Message};

use super::ResponseHeader;

/// A user and a password.
#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub struct AuthenticateRequest {
    /// The user.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The password.
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The token that goes with every question from now on.
#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub struct AuthenticateResponse {
    /// The token.
    #[prost(string, tag = "2")]
    pub token: String,
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticateResponse")
    }
}

/// Asks a member how it is.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct StatusRequest {}

/// How it is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StatusResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// How large its file is, in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// Whom it takes for the leader; zero for nobody.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// The last entry of its log.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// The term it is in.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// The last entry it has applied.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// What it complains of.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// How much of the file is in use, in bytes.
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    /// Does it only listen, without a vote?
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

/// Asks what the cluster complains of.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct AlarmRequest {
    /// Zero only asks.
    #[prost(int32, tag = "1")]
    pub action: i32,
}

/// What it complains of.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AlarmResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Every complaint.
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

/// A complaint.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct AlarmMember {
    /// Who complains.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// Of what.
    #[prost(enumeration = "Alarm", tag = "2")]
    pub alarm: i32,
}

/// What can be wrong with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Alarm {
    /// Nothing.
    None = 0,
    /// The file has reached its quota: nothing can be written.
    NoSpace = 1,
    /// Members disagree about the data.
    Corrupt = 2,
}

/// Asks who belongs to the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct MemberListRequest {}

/// Who belongs to it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct MemberListResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// One of the cluster.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Member {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name; empty until it has started once.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where the others reach it.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// Where clients reach it.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Does it only listen, without a vote?
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// Asks for the server's own lock.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LockRequest {
    /// Its name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// The lease it hangs on.
    #[prost(int64, tag = "2")]
    pub lease: i64,
}

/// It was granted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LockResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The key that stands for it.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
}

/// Lets go of the server's own lock.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct UnlockRequest {
    /// The key that stands for it.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
}

/// It was let go.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct UnlockResponse {
    /// The head.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}
