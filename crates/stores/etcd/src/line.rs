//! A line as etcd tells it: keys under a name in the order of their create-revisions, judged by the one rule of admission.
//!
//! Pure. Surprise: a key that is not ours to read is a claim all the same, one that shares with nobody: it is how the locks of
//! other clients keep ours out (C13).

use lockkeeper_core::line::agree;
use lockkeeper_core::{Claim, ClaimId, Name, Result, Spot, Verdict, admit};

use crate::keys;
use crate::proto::KeyValue;
use crate::record::Record;

/// One who stands in the line.
#[derive(Debug, Clone)]
pub(crate) struct Standee {
    /// The create-revision: its place, and the number its token is made of.
    pub(crate) order: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) id: ClaimId,
    /// `None` for what another client made.
    pub(crate) record: Option<Record>,
    pub(crate) mod_revision: i64,
    pub(crate) lease: i64,
}

impl Standee {
    fn weight(&self, capacity: u32) -> u32 {
        self.record.as_ref().map_or(capacity, |record| record.weight)
    }
}

/// All who stand, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(pub(crate) Vec<Standee>);

impl Line {
    /// The line of a lock, out of all keys that begin with its name.
    pub(crate) fn of(lock: &Name, found: Vec<KeyValue>) -> Self {
        let begin = keys::line(lock);
        let mut standees: Vec<Standee> = found.into_iter().filter_map(|kv| standee(kv, &begin)).collect();
        standees.sort_by_key(|standee| standee.order);
        Self(standees)
    }

    pub(crate) fn position(&self, id: ClaimId) -> Option<usize> {
        self.0.iter().position(|standee| standee.id == id)
    }

    /// Where the one at this place stands.
    pub(crate) fn verdict(&self, at: usize) -> Verdict {
        let Some(own) = &self.0[at].record else { return self.judge(at, 1, 1) };
        match self.first_of_ours(at) {
            // Whoever does not agree is told so and taken out. Until then it stands, and is not in.
            Some((order, first)) if (first.kind, first.capacity) != (own.kind, own.capacity) => Verdict::Behind(order),
            _ => self.judge(at, own.weight, own.capacity),
        }
    }

    /// Where a claim of this weight would stand behind the first `ahead`.
    pub(crate) fn judge(&self, ahead: usize, weight: u32, capacity: u32) -> Verdict {
        let spots: Vec<Spot> = self.0[..ahead]
            .iter()
            .map(|standee| Spot { order: standee.order, weight: standee.weight(capacity) })
            .collect();
        admit(&spots, weight, capacity)
    }

    /// The key of the one with this order.
    pub(crate) fn key_of(&self, order: u64) -> Option<&[u8]> {
        self.0.iter().find(|standee| standee.order == order).map(|standee| standee.key.as_slice())
    }

    /// One name is one kind with one capacity: that of the first of ours who stands ahead. Whoever stands behind is told.
    pub(crate) fn agree(&self, ahead: usize, claim: &Claim) -> Result<()> {
        let Some((_, record)) = self.first_of_ours(ahead) else { return Ok(()) };
        agree(record.kind, record.capacity, claim)
    }

    /// The first of ours among the first `ahead`, and its order: it says what the name is used as.
    pub(crate) fn first_of_ours(&self, ahead: usize) -> Option<(u64, &Record)> {
        self.0[..ahead].iter().find_map(|standee| Some((standee.order, standee.record.as_ref()?)))
    }
}

fn standee(kv: KeyValue, begin: &[u8]) -> Option<Standee> {
    let claim = kv.key.strip_prefix(begin)?;
    // A key of a longer name's lock.
    if claim.contains(&b'/') {
        return None;
    }
    // Ours are written in one way only: what looks like one and is written in another stands beside it.
    let record = Record::read(&kv.value).filter(|_| keys::is_slot(claim));
    // Whatever stands there is in the way of others, so it is in ours: a name that says nothing gets a number of its own.
    let id = record.as_ref().map(|record| record.id).or_else(|| keys::id_of(std::str::from_utf8(claim).ok()?));
    let id = id.unwrap_or_else(|| {
        let [high, low] = [u64::MAX, kv.create_revision.unsigned_abs()].map(u64::to_be_bytes);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        ClaimId::from_bytes(bytes)
    });
    // No etcd has such a revision; whoever comes with one stands ahead of all, since nobody must get past it.
    let order = u64::try_from(kv.create_revision).unwrap_or(0);
    Some(Standee { order, id, record, mod_revision: kv.mod_revision, lease: kv.lease, key: kv.key })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockkeeper_core::{ErrorKind, LockKind, Owner, Patience};

    use super::*;

    fn claim(kind: LockKind, weight: u32, capacity: u32) -> Claim {
        Claim {
            id: ClaimId::random().unwrap(),
            owner: Owner::new("test").unwrap(),
            kind,
            weight,
            capacity,
            lease: Duration::from_secs(30),
            delay: Duration::ZERO,
            fair: false,
            patience: Patience::Queue,
            note: Vec::new(),
        }
    }

    /// Any slot does.
    fn key_of(lock: &Name, claim: &Claim) -> Vec<u8> {
        let client = u128::from_be_bytes(claim.id.to_bytes());
        keys::Slot { client, number: 0 }.key(lock)
    }

    fn kv(key: Vec<u8>, create_revision: i64, value: Vec<u8>) -> KeyValue {
        KeyValue { key, create_revision, mod_revision: create_revision, version: 1, value, lease: 9 }
    }

    #[test]
    fn order_is_by_create_revision_and_longer_names_are_left_out() {
        let (a, ab) = (Name::new("a").unwrap(), Name::new("a/b").unwrap());
        let [one, two, other] = [(); 3].map(|()| claim(LockKind::Mutex, 1, 1));
        let found = vec![
            kv(key_of(&a, &two), 12, Record::of(&two).write()),
            kv(key_of(&ab, &other), 3, Record::of(&other).write()),
            kv(key_of(&a, &one), 5, Record::of(&one).write()),
        ];
        let line = Line::of(&a, found);
        assert_eq!((line.position(one.id), line.position(two.id), line.position(other.id)), (Some(0), Some(1), None));
        assert_eq!((line.verdict(0), line.verdict(1)), (Verdict::In, Verdict::Behind(5)));
    }

    #[test]
    fn what_others_hold_shares_with_nobody() {
        let lock = Name::new("a").unwrap();
        let reader = claim(LockKind::ReadWrite, 1, 5);
        let shouted = format!("a/{}", reader.id.to_string().to_uppercase());
        for foreign in [&b"a/694d8a3b5f3c2a01"[..], b"a/anything", b"a/\xff", b"a/", shouted.as_bytes()] {
            let found = vec![
                kv(foreign.to_vec(), 4, b"leader-1".to_vec()),
                kv(key_of(&lock, &reader), 5, Record::of(&reader).write()),
            ];
            let line = Line::of(&lock, found);
            assert_eq!(line.0.len(), 2, "{}", String::from_utf8_lossy(foreign));
            assert_eq!(line.verdict(1), Verdict::Behind(4));
            assert_eq!(line.position(reader.id), Some(1));
            assert!(line.agree(1, &reader).is_ok());
        }
        let odd = kv(b"a/anything".to_vec(), -4, Vec::new());
        let own = kv(key_of(&lock, &reader), 5, Record::of(&reader).write());
        assert_eq!(Line::of(&lock, vec![own, odd]).verdict(1), Verdict::Behind(0), "nobody gets past it");
    }

    #[test]
    fn kinds_must_agree() {
        let lock = Name::new("a").unwrap();
        let permit = claim(LockKind::Semaphore, 1, 5);
        let line = Line::of(&lock, vec![kv(key_of(&lock, &permit), 4, Record::of(&permit).write())]);
        assert!(line.agree(1, &claim(LockKind::Semaphore, 2, 5)).is_ok());
        for other in [claim(LockKind::Mutex, 1, 1), claim(LockKind::Semaphore, 1, 4)] {
            assert!(line.agree(0, &other).is_ok(), "whoever is ahead decides");
            assert_eq!(line.agree(1, &other).unwrap_err().kind(), ErrorKind::Mismatch);
        }
        let other = claim(LockKind::Semaphore, 1, 9);
        let both = [(&permit, 4), (&other, 5)];
        let found = both.map(|(it, at)| kv(key_of(&lock, it), at, Record::of(it).write()));
        assert_eq!(Line::of(&lock, found.to_vec()).verdict(1), Verdict::Behind(4), "there is room, but not for it");
    }
}
