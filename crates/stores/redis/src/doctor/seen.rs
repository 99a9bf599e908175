//! What the server tells of itself, as data: `INFO`, `CONFIG GET`, `HELLO`, the slow log, its users.
//!
//! Surprise: nothing here has to be there. Managed servers forbid most of it, and then `None` says so.

use std::collections::BTreeMap;

use lockkeeper_core::Result;
use redis::{Value, cmd};

use super::visit::{Answer, Visit};
use crate::fast::number;
use crate::store::text_of;
use crate::trouble::shown;

/// Settings that are asked for.
const SETTINGS: [&str; 14] = [
    "appendfsync",
    "save",
    "no-appendfsync-on-rewrite",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "timeout",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "busy-reply-threshold",
    "lua-time-limit",
    "io-threads",
    "stop-writes-on-bgsave-error",
    "active-replica",
];

/// How many entries of the slow log are looked at.
const SLOW_ENTRIES: usize = 128;

/// Names and values, such as `INFO` gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// `name:value` lines.
    pub(crate) fn of_info(text: &str) -> Self {
        let pairs = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
        Self(pairs.map(|(name, value)| (name.to_owned(), shown(value.trim_end()))).collect())
    }

    /// A map, or a list of names and values in turn.
    pub(crate) fn of_value(value: &Value) -> Self {
        let pairs: Vec<(&Value, &Value)> = match value {
            Value::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
            Value::Array(parts) => parts.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
            _ => Vec::new(),
        };
        Self(pairs.into_iter().map(|(name, value)| (text_of(name), plain(value))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    #[cfg(test)]
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        value => shown(&text_of(value)),
    }
}

/// The slowest command that the server remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slow {
    /// Its name only: what it was asked may be secret.
    pub(crate) command: String,
    pub(crate) micros: u64,
}

/// All that was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// What everybody is told who comes in.
    pub(crate) hello: Fields,
    /// `None` if we may not ask.
    pub(crate) info: Option<Fields>,
    /// Settings that could be seen.
    pub(crate) config: Fields,
    /// Could any be?
    pub(crate) config_seen: bool,
    pub(crate) user: Option<String>,
    /// `None` if we may not ask; the inner one if there is nothing slow.
    pub(crate) slow: Option<Option<Slow>>,
    /// May the user without a name write? `None` if we may not ask.
    pub(crate) default_user_writes: Option<bool>,
}

impl Seen {
    /// `key` is one that locks could use.
    pub(crate) async fn look(visit: &Visit, key: &str) -> Result<Self> {
        let mut seen = Self::default();
        let hello = match visit.resp3 {
            true => visit.ask(cmd("HELLO").arg(3)).await?.value(),
            false => None,
        };
        seen.hello = hello.as_ref().map(Fields::of_value).unwrap_or_default();
        seen.info = visit.ask(&cmd("INFO")).await?.text().map(|text| Fields::of_info(&text));
        let mut pipe = redis::pipe();
        for setting in SETTINGS {
            pipe.cmd("CONFIG").arg("GET").arg(setting);
        }
        for answer in visit.ask_all(&pipe).await? {
            if let Answer::Value(value) = answer {
                seen.config_seen = true;
                seen.config.0.append(&mut Fields::of_value(&value).0);
            }
        }
        seen.user = visit.ask(cmd("ACL").arg("WHOAMI")).await?.text().map(|user| shown(&user));
        let slow = visit.ask(cmd("SLOWLOG").arg("GET").arg(SLOW_ENTRIES)).await?;
        seen.slow = slow.value().map(|log| slowest(&log));
        seen.default_user_writes = default_user_writes(visit, key).await?;
        Ok(seen)
    }

    /// A field of `INFO`.
    pub(crate) fn info(&self, name: &str) -> Option<&str> {
        self.info.as_ref()?.get(name)
    }

    /// A number of `INFO`.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.info.as_ref()?.number(name)
    }

    /// A setting, as `INFO` has it or as `CONFIG GET` says.
    pub(crate) fn setting(&self, info: &str, config: &str) -> Option<&str> {
        self.info(info).or_else(|| self.config.get(config))
    }
}

/// The slowest of a slow log.
pub(crate) fn slowest(log: &Value) -> Option<Slow> {
    let Value::Array(entries) = log else { return None };
    let each = entries.iter().filter_map(|entry| {
        let Value::Array(parts) = entry else { return None };
        let Some(Value::Array(words)) = parts.get(3) else { return None };
        let command = shown(&words.first().map(text_of)?).to_ascii_uppercase();
        Some(Slow { command, micros: parts.get(2).and_then(number)? })
    });
    each.max_by_key(|slow| slow.micros)
}

/// Writes of scripts are kept as transactions, and those are read back with the rights of the user without a name.
async fn default_user_writes(visit: &Visit, key: &str) -> Result<Option<bool>> {
    let mut pipe = redis::pipe();
    for words in [&["SET", key, "v"][..], &["HSET", key, "f", "v"], &["ZADD", key, "1", "m"], &["DEL", key]] {
        pipe.cmd("ACL").arg("DRYRUN").arg("default").arg(words);
    }
    let answers = visit.ask_all(&pipe).await?;
    if answers.iter().all(|answer| matches!(answer, Answer::Value(_))) {
        let fine = |answer: &Answer| matches!(answer, Answer::Value(Value::Okay));
        return Ok(Some(answers.iter().all(fine)));
    }
    // Before 7.0 there is no dry run; what is written down as all and nothing less is all.
    let rules = visit.ask(cmd("ACL").arg("GETUSER").arg("default")).await?.value();
    let rules = rules.as_ref().map(Fields::of_value);
    Ok(rules.as_ref().and_then(|rules| rules.get("commands")).map(|commands| commands.starts_with("+@all")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn fields_of_all_shapes() {
        let info = Fields::of_info("# Server\r\nredis_version:7.0.15\r\n\r\nos:Linux: odd\r\nempty:\r\n");
        assert_eq!(info.get("redis_version"), Some("7.0.15"));
        assert_eq!((info.get("os"), info.get("empty"), info.get("# Server")), (Some("Linux: odd"), Some(""), None));
        let pairs = Fields::of_value(&Value::Array(vec![bulk("timeout"), bulk("300"), bulk("odd")]));
        assert_eq!((pairs.number("timeout"), pairs.get("odd")), (Some(300), None));
        let map = Fields::of_value(&Value::Map(vec![(bulk("proto"), Value::Int(3))]));
        assert!(map.is("proto", "3"));
        assert_eq!(Fields::of_value(&Value::Nil), Fields::default());
    }

    #[test]
    fn the_slowest_command_is_named_without_what_it_was_asked() {
        let entry = |micros: i64, words: &[&str]| {
            let words = words.iter().map(|word| bulk(word)).collect();
            Value::Array(vec![Value::Int(1), Value::Int(1), Value::Int(micros), Value::Array(words)])
        };
        let log = Value::Array(vec![entry(20, &["get", "a"]), entry(90_000, &["keys", "secret*"]), Value::Nil]);
        assert_eq!(slowest(&log), Some(Slow { command: "KEYS".to_owned(), micros: 90_000 }));
        assert_eq!(slowest(&Value::Array(Vec::new())), None);
    }
}
