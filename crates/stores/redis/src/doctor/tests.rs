//! Answers as servers gave them, for the judges of this folder; those of Valkey and KeyDB as their documentation has them.

use super::seen::{Fields, Seen};

/// Redis 7.0.15 without persistence.
pub(super) const PLAIN: &str = include_str!("recorded/plain.txt");
/// Redis 7.0.15 with `appendonly yes` and `appendfsync always`.
pub(super) const DURABLE: &str = include_str!("recorded/durable.txt");
/// A replica of it.
pub(super) const REPLICA: &str = include_str!("recorded/replica.txt");
/// Valkey with an append-only file.
pub(super) const VALKEY: &str = include_str!("recorded/valkey.txt");
/// KeyDB with two servers that both take writes.
pub(super) const KEYDB: &str = include_str!("recorded/keydb.txt");

/// As if a server had told this: lines of `INFO`, and after a line `= CONFIG`, settings.
pub(super) fn seen(recorded: &str) -> Seen {
    let (info, config) = recorded.split_once("= CONFIG\n").unwrap_or((recorded, ""));
    Seen {
        info: Some(Fields::of_info(info)),
        config: Fields::of_info(config),
        config_seen: !config.is_empty(),
        user: Some("default".to_owned()),
        default_user_writes: Some(true),
        ..Seen::default()
    }
}

/// The same with another setting.
pub(super) fn with(seen: &Seen, setting: &str, value: &str) -> Seen {
    let mut seen = seen.clone();
    seen.config.set(setting, value);
    seen
}

#[test]
fn recorded_answers_are_complete() {
    for recorded in [PLAIN, DURABLE, REPLICA, VALKEY, KEYDB] {
        for field in ["redis_version:", "role:", "aof_enabled:", "maxmemory_policy:", "= CONFIG\n", "appendfsync:"] {
            assert!(recorded.contains(field), "{field} in\n{recorded}");
        }
    }
}
