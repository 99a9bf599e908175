//! Answers of etcd as lines of words, which can be written by hand, and mutated without becoming nothing at all.
//!
//! Surprise: bytes of the protocol are tried, too, but a byte more in them makes a length wrong, and nothing is read.

use lockkeeper_etcd::proto::KeyValue;

/// Words of lines.
pub(crate) const LINES: &[&str] = &[
    "range\n",
    "put\n",
    "kv 5 5 9 a/11111111111111111111111111111111 ",
    "kv 4 4 9 a/694d8a3b5f3c2a01 ",
    "kv 3 3 9 a/b/22222222222222222222222222222222 ",
    "lk1 mutex 1 1 30000 - 07 42 web-3 importer\\n",
    "lk1 semaphore 2 5 30000 - 07 42 web-3 importer\\n",
    "lk1 read-write 1 5 30000 left 07 42 web-3 importer\\n",
    "a/",
    "\\xff",
    "\\x1b[2J",
    "\n",
];

/// Words of news.
pub(crate) const NEWS: &[&str] = &[
    "begin\n",
    "end\n",
    "listen a/ a0\n",
    "listen a/1\n",
    "drop 0\n",
    "tell 0 1 40 created\n",
    "tell 0 1 40 canceled\n",
    "tell 0 -1 40 created,canceled\n",
    "event 1 5 41 a/1\n",
    "event 0 42 42 a/2\n",
];

/// Words of what members tell.
pub(crate) const DOCTOR: &[&str] = &[
    "place 3.4.23\n",
    "refuses 7 ",
    "is leader 1\n",
    "is member 1\n",
    "is cluster 9\n",
    "is size 2147483648\n",
    "before etcd_disk_wal_fsync_duration_seconds_count 5\n",
    "after etcd_disk_wal_fsync_duration_seconds_count 9\n",
    "after etcd_server_proposals_applied_total 90\n",
    "before etcd_server_quota_backend_bytes 8e9\n",
    "before etcd_server_leader_changes_seen_total 1e308\n",
    "member 1 voter http://127.0.0.1:1\n",
    "member 2 learner https://me:hushhush@[::1]:2379\n",
    "alarms 1,2\n",
    "\u{1b}[2J",
];

/// `\n`, `\\` and `\xff` are bytes; everything else is itself.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let (byte, after) = match (first, behind) {
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [b'x', high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, after),
                _ => (*first, behind),
            },
            _ => (*first, behind),
        };
        out.push(byte);
        rest = after;
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// `CREATE MOD LEASE KEY VALUE`; what is missing is nothing.
pub(crate) fn key_value(text: &str) -> KeyValue {
    let mut words = text.splitn(5, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
    let (create_revision, mod_revision, lease) = (number(), number(), number());
    let [key, value] = [(); 2].map(|()| words.next().map(bytes).unwrap_or_default());
    KeyValue { key, create_revision, mod_revision, version: 1, value, lease }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_bytes() {
        assert_eq!(bytes(r"a\n\\n\xff\xg\x"), b"a\n\\n\xff\\xg\\x");
        let kv = key_value(r"5 -6 7 a/b some text\n");
        assert_eq!((kv.create_revision, kv.mod_revision, kv.lease), (5, -6, 7));
        assert_eq!((&kv.key[..], &kv.value[..]), (&b"a/b"[..], &b"some text\n"[..]));
    }
}
