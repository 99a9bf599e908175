//! A bare client: connections as the store makes them, the keys of a lock, and the commands that take and release it.
//!
//! Nothing of this library is in here but the layout of its keys. Surprise: nothing here has a time limit, since a
//! timer for each request is part of no baseline; the whole program is bounded by whoever runs it.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, Connection, IntoConnectionInfo, Pipeline, ProtocolVersion, Value};

use crate::Outcome;

/// The lease of every lock here, in milliseconds.
pub const LEASE_MS: u64 = 30_000;
/// How much of a record is compared: its mark and the claim's id.
const ID: usize = 36;

/// A connection for one thread that blocks.
pub fn connect_alone(url: &str) -> Outcome<Connection> {
    let info = url.into_connection_info()?;
    Ok(Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?.get_connection()?)
}

/// A connection for many tasks.
pub async fn connect(url: &str, nodelay: bool) -> Outcome<MultiplexedConnection> {
    let info = url.into_connection_info()?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let info = info.set_redis_settings(settings).set_tcp_settings(TcpSettings::default().set_nodelay(nodelay));
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(Duration::from_secs(5))).set_response_timeout(None);
    Ok(Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// The keys of one lock.
#[derive(Debug, Clone)]
pub struct Lock {
    /// The holder's record.
    pub holder: String,
    /// The line; there is none while nobody waits.
    pub line: String,
    /// The floor of the tokens.
    pub last: String,
}

impl Lock {
    /// The lock of this name under the default prefix.
    pub fn new(name: &str) -> Self {
        let name = format!("lockkeeper/{name}");
        Self { line: format!("{{{name}}}:line"), last: format!("{{{name}}}:last"), holder: name }
    }
}

/// The record of a claim that is not numbered yet.
pub fn record(claim: u128) -> String {
    format!("lk1:{claim:032x}:{blank:16}:{LEASE_MS}:a-host-name:12345", blank = "")
}

/// The part of a record that says whose it is.
pub fn id(record: &str) -> &str {
    &record[..ID.min(record.len())]
}

/// The claim that a record is of.
pub fn claim(record: &str) -> &str {
    id(record).trim_start_matches("lk1:")
}

/// Where the store keeps how far the clock was.
pub const CLOCK: &str = "lockkeeper:clock";

/// The scripts, by the names that the server gave them.
#[derive(Debug, Clone)]
pub struct Scripts {
    /// Compare and delete.
    pub delete: String,
    /// Release many.
    pub leave: String,
    /// Release one.
    pub leave_one: String,
    /// What the store releases by.
    pub release: String,
    /// Release one, checking less.
    pub leave_short: String,
    /// Release many, by the marker alone.
    pub leave_marked: String,
    /// Take many.
    pub enter: String,
}

impl Scripts {
    /// Loads them.
    pub async fn load(connection: &mut MultiplexedConnection) -> Outcome<Self> {
        let mut load = redis::pipe();
        for text in [
            include_str!("scripts/delete.lua"),
            include_str!("scripts/leave.lua"),
            include_str!("scripts/leave_one.lua"),
            include_str!("../../../stores/redis/src/scripts/release.lua"),
            include_str!("scripts/leave_short.lua"),
            include_str!("scripts/leave_marked.lua"),
            include_str!("scripts/enter.lua"),
        ] {
            load.cmd("SCRIPT").arg("LOAD").arg(text);
        }
        let (delete, leave, leave_one, release, leave_short, leave_marked, enter) =
            load.query_async(connection).await?;
        let library = include_str!("scripts/leave_function.lua");
        redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(library).exec_async(connection).await?;
        Ok(Self { delete, leave, leave_one, release, leave_short, leave_marked, enter })
    }
}

/// `SET key record NX PX lease`.
pub fn set(lock: &Lock, record: &str) -> Cmd {
    let mut set = Cmd::with_capacity(6, 256);
    set.arg("SET").arg(&lock.holder).arg(record).arg("NX").arg("PX").arg(LEASE_MS);
    set
}

/// The commands that take one lock with a token.
pub fn enter_one(lock: &Lock, record: &str, atomic: bool) -> Pipeline {
    let mut enter = Pipeline::with_capacity(3);
    if atomic {
        enter.atomic();
    }
    enter.add_command(set(lock, record));
    enter.cmd("GET").arg(&lock.last);
    enter.cmd("TIME");
    enter
}

/// The commands by which the store takes one.
pub fn enter_as_the_store(lock: &Lock, record: &str) -> Pipeline {
    let mut enter = Pipeline::with_capacity(3);
    enter.add_command(set(lock, record));
    enter.cmd("MGET").arg(CLOCK).arg(&lock.last);
    enter.cmd("TIME");
    enter
}

/// Whether a `SET … NX` took the lock.
pub fn is_ok(value: &Value) -> bool {
    matches!(value, Value::Okay)
}

/// Microseconds, as `TIME` says it.
pub fn micros(time: &[Value]) -> Outcome<u64> {
    let part =
        |at: usize| -> Outcome<u64> { Ok(number(time.get(at).unwrap_or(&Value::Nil))?.ok_or("TIME said nothing")?) };
    Ok(part(0)? * 1_000_000 + part(1)?)
}

/// A number in a string; none in nothing or an empty string.
pub fn number(value: &Value) -> Outcome<Option<u64>> {
    match value {
        Value::BulkString(bytes) if bytes.is_empty() => Ok(None),
        Value::BulkString(bytes) => Ok(Some(std::str::from_utf8(bytes)?.parse()?)),
        Value::Nil => Ok(None),
        other => Err(format!("a number was expected, not {other:?}").into()),
    }
}

/// The number of a lock that was taken at `now`, if it stands without the longer way.
pub fn numbered(now: u64, last: &Value) -> Outcome<u64> {
    match number(last)? {
        Some(last) if last >= now => Err("the clock stands behind the last token".into()),
        _ => Ok(now),
    }
}

/// What is in a list.
pub fn items(value: &Value) -> Outcome<&[Value]> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(format!("a list was expected, not {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn a_record_begins_with_its_claim() {
        let record = record(0xab);
        assert_eq!(id(&record), "lk1:000000000000000000000000000000ab");
        assert!(record.starts_with(&format!("{}:{:16}:30000:", id(&record), "")), "{record}");
    }

    #[test]
    fn a_number_is_the_servers_time_above_the_floor() {
        let now = micros(&[text("1700000000"), text("42")]).unwrap();
        assert_eq!(now, 1_700_000_000_000_042);
        assert_eq!(numbered(now, &Value::Nil).unwrap(), now);
        assert_eq!(numbered(now, &text("1700000000000041")).unwrap(), now);
        assert!(numbered(now, &text("1700000000000042")).is_err());
        assert!(numbered(now, &Value::Okay).is_err() && micros(&[text("1")]).is_err());
    }
}
