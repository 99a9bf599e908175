//! The witness on etcd: transactions that write who came and went, and look at the lock in the same step.
//!
//! The surprise: etcd has no clock to ask, so the stamps are the judge's; the order is that of etcd's revisions.

use std::time::{SystemTime, UNIX_EPOCH};

use lockkeeper_rig::Trouble;
use serde_json::{Value, json};

use super::gateway::{call, coded, decoded, number};
use crate::interop::log::Event;
use crate::interop::witness::{Seen, Witness};

/// A witness of the lock of one name. It keeps no connection.
#[derive(Debug)]
pub struct EtcdWitness {
    port: u16,
    /// All keys of the lock begin with this.
    under: String,
    /// All keys of the witness begin with this.
    own: String,
}

impl EtcdWitness {
    /// A witness of the lock `name`.
    pub fn new(port: u16, name: &str) -> EtcdWitness {
        EtcdWitness { port, under: format!("{name}/"), own: format!("witness/{name}/") }
    }

    /// Does all of it in one step; gives each one's own answer.
    fn at_once(&self, steps: &[Value]) -> Result<Vec<Value>, Trouble> {
        let answer = call(self.port, "kv/txn", &json!({ "success": steps }))?;
        let parts = answer["responses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let inner = |part: &Value| part.as_object().and_then(|part| part.values().next().cloned());
        let parts: Vec<Value> = parts.iter().filter_map(inner).collect();
        if parts.len() == steps.len() {
            return Ok(parts);
        }
        Err(Trouble::new(format!("etcd answered {answer} to a transaction of {} steps", steps.len())))
    }

    /// A line for the log.
    fn note(&self, what: &str, party: &str) -> Result<Value, Trouble> {
        let micros = now()?;
        Ok(put(&format!("{}log/{micros}/{party}", self.own), &format!("{micros} {what} {party}")))
    }

    fn inside(&self) -> String {
        format!("{}inside/", self.own)
    }

    /// The entry of whoever holds the lock: the one that was made first.
    fn holder(&self) -> Result<Option<Value>, Trouble> {
        let answer = self.at_once(&[first_under(&self.under)])?;
        Ok(answer[0]["kvs"].get(0).cloned())
    }
}

impl Witness for EtcdWitness {
    fn enter(&mut self, party: &str, side: &str) -> Result<(Seen, bool), Trouble> {
        let mut last = put(&format!("{}last", self.own), &format!("{side} {party}"));
        last["request_put"]["prev_kv"] = true.into();
        let steps = [
            put(&format!("{}{party}", self.inside()), ""),
            count_under(&self.inside()),
            first_under(&self.under),
            last,
            self.note("enter", party)?,
        ];
        let said = self.at_once(&steps)?;
        let before = decoded(&said[3]["prev_kv"]["value"])?;
        // The first to come in has it from nobody.
        let from_the_other = !before.is_empty() && !before.starts_with(format!("{side} ").as_bytes());
        Ok((seen(&said[1], &said[2])?, from_the_other))
    }

    fn leave(&mut self, party: &str) -> Result<(Seen, String), Trouble> {
        let steps = [
            count_under(&self.inside()),
            first_under(&self.under),
            json!({ "request_range": { "key": coded(format!("{}last", self.own).as_bytes()) } }),
            json!({ "request_delete_range": { "key": coded(format!("{}{party}", self.inside()).as_bytes()) } }),
            self.note("leave", party)?,
        ];
        let said = self.at_once(&steps)?;
        let last = decoded(&said[2]["kvs"][0]["value"])?;
        let last = String::from_utf8_lossy(&last).into_owned();
        let party = last.split_once(' ').map_or(last.clone(), |(_, party)| party.to_string());
        Ok((seen(&said[0], &said[1])?, party))
    }

    fn log(&mut self) -> Result<Vec<Event>, Trouble> {
        let said = self.at_once(&[under(
            &format!("{}log/", self.own),
            json!({ "sort_target": "CREATE", "sort_order": "ASCEND" }),
        )])?;
        let lines = said[0]["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        lines.iter().map(|entry| Event::read(&String::from_utf8_lossy(&decoded(&entry["value"])?))).collect()
    }

    /// The holder's key, which is another for each hold, or at least for each client.
    fn value(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        self.holder()?.map(|entry| decoded(&entry["key"])).transpose()
    }

    /// etcd says what is left in whole seconds that are over only later, so the end is never before what this gives.
    fn ends(&mut self) -> Result<(u64, Option<u64>), Trouble> {
        let now = now()?;
        let lease = self.holder()?.map_or(Value::Null, |entry| entry["lease"].clone());
        if number(&lease)? == 0 {
            return Ok((now, None));
        }
        let left = number(&call(self.port, "lease/timetolive", &json!({ "ID": lease }))?["TTL"])?;
        Ok((now, u64::try_from(left).ok().map(|seconds| seconds * 1_000_000)))
    }

    /// Nobody would have to wait.
    fn would_get_in(&mut self) -> Result<bool, Trouble> {
        Ok(self.holder()?.is_none())
    }

    /// All stand in one line: after the holder come those that wait.
    fn in_our_line(&mut self) -> Result<i64, Trouble> {
        let said = self.at_once(&[count_under(&self.under)])?;
        Ok((number(&said[0]["count"])? - 1).max(0))
    }

    fn rob(&mut self, value: Option<&str>) -> Result<(), Trouble> {
        if let Some(value) = value {
            return Err(Trouble::new(format!("`{value}` cannot be put before those that stand in line already")));
        }
        let entry = self.holder()?.ok_or_else(|| Trouble::new("there is nobody to rob"))?;
        call(self.port, "kv/deleterange", &json!({ "key": entry["key"] })).map(drop)
    }
}

fn put(key: &str, value: &str) -> Value {
    json!({ "request_put": { "key": coded(key.as_bytes()), "value": coded(value.as_bytes()) } })
}

/// All keys that begin with a text which ends with `/`; the next character after that is `0`.
fn under(start: &str, how: Value) -> Value {
    let mut range = how;
    let end = format!("{}0", start.trim_end_matches('/'));
    range["key"] = coded(start.as_bytes()).into();
    range["range_end"] = coded(end.as_bytes()).into();
    json!({ "request_range": range })
}

fn first_under(start: &str) -> Value {
    under(start, json!({ "sort_target": "CREATE", "sort_order": "ASCEND", "limit": 1 }))
}

fn count_under(start: &str) -> Value {
    under(start, json!({ "count_only": true }))
}

fn seen(inside: &Value, first: &Value) -> Result<Seen, Trouble> {
    let key = first["kvs"].get(0).map(|entry| decoded(&entry["key"])).transpose()?;
    Ok(Seen { inside: number(&inside["count"])?, value: key })
}

fn now() -> Result<u64, Trouble> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let micros = since.and_then(|since| u64::try_from(since.as_micros()).ok());
    micros.ok_or_else(|| Trouble::new("this machine's clock is out of range"))
}
