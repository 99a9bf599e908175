//! What a claim's key holds: a line for people and for us, then the note.
//!
//! `lk1` kind weight capacity lease-in-ms state claim-id owner-id pid host label, parted by blanks, a line feed, the note.
//! State is `-`, or `left` for a claim whose holder is out while the name stays taken.

use std::time::Duration;

use lockkeeper_core::{Claim, ClaimId, LockKind, Owner};

/// Everything that a claim's value says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: ClaimId,
    pub(crate) kind: LockKind,
    pub(crate) weight: u32,
    pub(crate) capacity: u32,
    /// What the claim asked for, lock-delay included.
    pub(crate) lease: Duration,
    pub(crate) left: bool,
    pub(crate) owner: Owner,
    pub(crate) note: Vec<u8>,
}

impl Record {
    pub(crate) fn of(claim: &Claim) -> Self {
        Self {
            id: claim.id,
            kind: claim.kind,
            weight: claim.weight,
            capacity: claim.capacity,
            lease: claim.store_lease(),
            left: false,
            owner: claim.owner.clone(),
            note: claim.note.clone(),
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let Self { id, kind, weight, capacity, lease, left, owner, note } = self;
        let state = if *left { "left" } else { "-" };
        let mut text = format!(
            "lk1 {kind} {weight} {capacity} {} {state} {id} {:032x} {} {} {}\n",
            lease.as_millis(),
            owner.id(),
            owner.pid(),
            owner.host(),
            owner.label()
        )
        .into_bytes();
        text.extend_from_slice(note);
        text
    }

    /// Reads a value; `None` if it is not one of ours.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let end = value.iter().position(|byte| *byte == b'\n')?;
        let (line, note) = (std::str::from_utf8(&value[..end]).ok()?, &value[end + 1..]);
        let mut parts = line.strip_prefix("lk1 ")?.splitn(10, ' ');
        let mut next = || parts.next();
        let kind = next()?.parse().ok()?;
        let weight: u32 = next()?.parse().ok()?;
        let capacity: u32 = next()?.parse().ok()?;
        let lease = Duration::from_millis(next()?.parse().ok()?);
        let left = match next()? {
            "-" => false,
            "left" => true,
            _ => return None,
        };
        let id = next()?.parse().ok()?;
        let owner = u128::from_str_radix(next()?, 16).ok()?;
        let pid = next()?.parse().ok()?;
        let owner = Owner::stored(owner, next()?, pid, next()?);
        let fits = weight > 0 && weight <= capacity;
        fits.then(|| Self { id, kind, weight, capacity, lease, left, owner, note: note.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            id: ClaimId::from_bytes([0xab; 16]),
            kind: LockKind::Semaphore,
            weight: 2,
            capacity: 5,
            lease: Duration::from_millis(2_500),
            left: true,
            owner: Owner::stored(7, "web-3", 42, "a label with blanks"),
            note: b"note\n\xff\0".to_vec(),
        };
        assert_eq!(Record::read(&record.write()), Some(record.clone()));
        let bare = Record { owner: Owner::stored(7, "web-3", 42, ""), note: Vec::new(), left: false, ..record };
        assert_eq!(Record::read(&bare.write()), Some(bare));
    }

    #[test]
    fn what_others_wrote_is_not_a_record() {
        for foreign in [
            &b""[..],
            b"leader-1",
            b"lk1 mutex 1 1 30000 -",
            b"lk1 mutex 1 1 30000 - abababababababababababababababab 0 1 h l",
            b"lk1 mutex 2 1 30000 - abababababababababababababababab 0 1 h l\n",
            b"lk1 mutex 0 1 30000 - abababababababababababababababab 0 1 h l\n",
            b"lk1 mutex 1 1 -5 - abababababababababababababababab 0 1 h l\n",
            b"lk1 mutex 1 1 30000 out abababababababababababababababab 0 1 h l\n",
            b"lk2 mutex 1 1 30000 - abababababababababababababababab 0 1 h l\n",
        ] {
            assert_eq!(Record::read(foreign), None, "{}", String::from_utf8_lossy(foreign));
        }
    }
}
