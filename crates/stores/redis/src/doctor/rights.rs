//! What the user must be allowed, found out by trying it on keys that nobody else uses.
//!
//! Surprise: what scripts call counts too. The server checks every call of a script against the rights of whoever runs it.

use std::collections::BTreeSet;

use lockkeeper_core::Result;
use lockkeeper_core::checkup::{Finding, Level, Report};

use super::visit::{Answer, Visit};
use crate::keys::{CLOCK, Keys};

const TOPIC: &str = "rights";

/// Every command that is sent, or called by a script, in a form that does no harm. `{s}` is a key of strings, `{h}` of a
/// hash, `{z}` of a sorted set, `{c}` a channel. A test holds this list to the code.
pub(crate) const NEEDED: &[&str] = &[
    "PING",
    "TIME",
    "SET {s} v NX PX 1000",
    "GET {s}",
    "MGET {s}",
    "GET lockkeeper:clock",
    "GETRANGE {s} 0 3",
    "SETRANGE {s} 0 v",
    "EXISTS {s}",
    "PTTL {s}",
    "PERSIST {s}",
    "PEXPIREAT {s} 4102444800000",
    "PEXPIRE {s} 1000",
    "HSET {h} f 1",
    "HGET {h} f",
    "HMGET {h} f",
    "HINCRBY {h} f 1",
    "HDEL {h} f",
    "ZADD {z} 1 m",
    "ZRANK {z} m",
    "ZRANGE {z} 0 0",
    "ZRANGEBYSCORE {z} -inf 0",
    "ZREM {z} m",
    "SCAN 0 COUNT 1",
    "PUBLISH {c} m",
    "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
    "EVAL return(1) 0",
    "DEL {s} {h} {z}",
];

/// What was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Commands that the user may not run.
    pub(crate) commands: BTreeSet<String>,
    /// Commands that the server does not have: it is too old, or somebody took them away.
    pub(crate) absent: BTreeSet<String>,
    /// May it not use the keys?
    pub(crate) keys: bool,
    /// May it not use the channel?
    pub(crate) channels: bool,
}

impl Missing {
    /// What the answers to [`NEEDED`] say.
    fn of(answers: &[Answer]) -> Self {
        let mut missing = Self::default();
        for (needed, answer) in NEEDED.iter().zip(answers) {
            let Answer::Refused(code, words) = answer else { continue };
            let command = needed.split(' ').next().unwrap_or(needed);
            match code.as_str() {
                "NOPERM" if words.contains("channel") => missing.channels = true,
                "NOPERM" if words.contains(" key") => missing.keys = true,
                "NOPERM" => drop(missing.commands.insert(command.to_owned())),
                "ERR" if words.starts_with("unknown command") => drop(missing.absent.insert(command.to_owned())),
                _ => {}
            }
        }
        missing
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Tries every command that is needed, and takes away what that left.
pub(crate) async fn try_all(visit: &Visit, keys: &Keys, channel: &str) -> Result<Missing> {
    let mut pipe = redis::pipe();
    for needed in NEEDED {
        let mut words = needed.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            match word {
                "{s}" => command.arg(keys.floor()),
                "{h}" => command.arg(keys.line()),
                "{z}" => command.arg(keys.all()[2]),
                "{c}" => command.arg(channel),
                word => command.arg(word),
            };
        }
        pipe.add_command(command);
    }
    Ok(Missing::of(&visit.ask_all(&pipe).await?))
}

/// Facts and findings about the user; the rule that would give it what it lacks.
pub(crate) fn tell(
    user: Option<&str>,
    has_password: bool,
    missing: &Missing,
    under: &str,
    report: &mut Report,
) -> Option<String> {
    let how = if has_password { "with a password" } else { "without a password" };
    report.fact("user", format!("{}, {how}", user.unwrap_or("name could not be seen")));
    if missing.is_nothing() {
        report.find(Finding::good(TOPIC, "this user may do all that locks need"));
        return None;
    }
    if !missing.absent.is_empty() {
        let names: Vec<&str> = missing.absent.iter().map(String::as_str).collect();
        let found = format!("the server does not have the commands {}", names.join(", "));
        let means = "locks that need them cannot be taken, renewed or released";
        let change = "use Redis 6.2 or later, and do not rename or disable them";
        report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change));
    }
    if missing.commands.is_empty() && !missing.keys && !missing.channels {
        return None;
    }
    let mut lacks = Vec::new();
    let mut rules = Vec::new();
    if !missing.commands.is_empty() {
        let names: Vec<&str> = missing.commands.iter().map(String::as_str).collect();
        lacks.push(format!("the commands {}", names.join(", ")));
        rules.extend(names.iter().map(|name| format!("+{}", name.to_ascii_lowercase())));
    }
    if missing.keys {
        lacks.push("the keys of locks".to_owned());
        rules.push(format!("~{under}* ~{{{under}* ~{CLOCK}"));
    }
    if missing.channels {
        lacks.push("the channels of wake-ups".to_owned());
        rules.push("&lockkeeper:wake:*".to_owned());
    }
    let found = format!("this user lacks {}", lacks.join(" and "));
    let change = format!("`ACL SETUSER {} {}`", user.unwrap_or("NAME"), rules.join(" "));
    let means = "locks that need them cannot be taken, renewed or released";
    report.find(Finding::new(TOPIC, Level::Danger, found, means).with_change(change.clone()));
    Some(change)
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn answers(refused: &[(&str, &str, &str)]) -> Vec<Answer> {
        let answer = |needed: &&str| {
            let command = needed.split(' ').next().unwrap_or_default();
            match refused.iter().find(|(name, ..)| *name == command) {
                Some((_, code, words)) => Answer::Refused((*code).to_owned(), (*words).to_owned()),
                None => Answer::Value(Value::Okay),
            }
        };
        NEEDED.iter().map(answer).collect()
    }

    #[test]
    fn what_is_refused_is_told_by_its_reason() {
        let missing = Missing::of(&answers(&[
            ("EVAL", "NOPERM", "this user has no permissions to run the 'eval' command"),
            ("EVALSHA", "NOSCRIPT", "No matching script."),
            ("SCAN", "ERR", "unknown command 'SCAN', with args beginning with: '0'"),
            ("HSET", "WRONGTYPE", "Operation against a key holding the wrong kind of value"),
        ]));
        assert_eq!(missing.commands.iter().map(String::as_str).collect::<Vec<_>>(), ["EVAL"]);
        assert_eq!(missing.absent.iter().map(String::as_str).collect::<Vec<_>>(), ["SCAN"]);
        assert!(!missing.keys && !missing.channels);
        let words = "this user has no permissions to access one of the keys used as arguments";
        assert!(Missing::of(&answers(&[("SET", "NOPERM", words)])).keys);
        let words = "No permissions to access a channel";
        assert!(Missing::of(&answers(&[("PUBLISH", "NOPERM", words)])).channels);
        assert!(
            Missing::of(&answers(&[("SET", "READONLY", "You can't write against a read only replica.")])).is_nothing()
        );
    }

    #[test]
    fn the_way_out_can_be_typed() {
        let mut report = Report::new("redis", "");
        let commands = ["EVAL", "SCAN"].map(str::to_owned).into();
        let missing = Missing { commands, absent: BTreeSet::new(), keys: true, channels: true };
        tell(Some("app"), true, &missing, "lockkeeper/", &mut report);
        let change = report.findings[0].change.as_deref().unwrap();
        assert_eq!(
            change,
            "`ACL SETUSER app +eval +scan ~lockkeeper/* ~{lockkeeper/* ~lockkeeper:clock &lockkeeper:wake:*`"
        );
        assert_eq!(report.facts[0].value, "app, with a password");
    }

    /// Asked for and done without if it is refused, or only used where somebody asks for optimistic locks of that sort.
    const DONE_WITHOUT: [&str; 5] = ["INFO", "WATCH", "UNWATCH", "MULTI", "EXEC"];
    /// Said when we come in, which is done by the time that rights are tried; subscribing is tried apart, in `reach`.
    const COMING_IN: [&str; 5] = ["AUTH", "CLIENT", "HELLO", "SELECT", "SUBSCRIBE"];

    /// Words in capitals that follow any of the openings.
    fn commands_in(text: &str, openings: &[&str]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for opening in openings {
            for rest in text.split(opening).skip(1) {
                let word: String = rest.chars().take_while(|c| c.is_ascii_uppercase()).collect();
                found.extend(Some(word).filter(|word| !word.is_empty()));
            }
        }
        found
    }

    #[test]
    fn every_command_of_ours_is_on_the_list() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut used = BTreeSet::new();
        for folder in [source.clone(), source.join("scripts")] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                // Seeded bugs are not what anybody is asked for rights for.
                let is_seeds = path.file_stem().is_some_and(|stem| stem == "seeds");
                if !is_seeds && path.extension().is_some_and(|extension| extension == "lua" || extension == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    used.append(&mut commands_in(&text, &["call('", "cmd(\"", "(out, \""]));
                }
            }
        }
        assert!(used.contains("ZADD") && used.contains("EVALSHA"), "the sources are read: {used:?}");
        let listed: BTreeSet<String> =
            NEEDED.iter().map(|needed| needed.split(' ').next().unwrap_or_default().to_owned()).collect();
        let tried_apart = [DONE_WITHOUT, COMING_IN].concat();
        let missing: Vec<&String> =
            used.difference(&listed).filter(|command| !tried_apart.contains(&command.as_str())).collect();
        assert!(missing.is_empty(), "add to NEEDED: {missing:?}");
        let idle: Vec<&String> = listed.difference(&used).collect();
        assert!(idle.is_empty(), "take out of NEEDED: {idle:?}");
    }
}
