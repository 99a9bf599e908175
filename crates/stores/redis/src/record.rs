//! What a fast-lane hold writes at the holder key: everything there is to know of it, in one string.
//!
//! `lk1:` id `:` number (16 digits, blank until the first renewal) `:` longest lease in ms (10 digits) `:` bytes of the
//! owner `:` owner note.
//! The scripts read it too: change it here and in `settle.lua`, `leave.lua`, `release.lua`, `renew.lua`, `number.lua` together.

use std::sync::{Arc, Mutex, PoisonError};

use lockkeeper_core::{ClaimId, Owner};

use crate::resp::digits;

/// What stands at the holder key while there is a line; at the key itself more may follow (`write.lua`).
pub(crate) const MARKER: &[u8] = b"lk1=";
const FAST: &[u8] = b"lk1:";

/// The record of a claim that is about to be in.
#[derive(Debug)]
pub(crate) struct New {
    pub(crate) id: ClaimId,
    pub(crate) owner: Arc<str>,
    pub(crate) note: Vec<u8>,
    pub(crate) lease_ms: u64,
}

impl New {
    /// Hands on the pieces of which it is joined: it is written straight into what is sent.
    pub(crate) fn with_pieces(&self, join: impl FnOnce(&[&[u8]])) {
        let (lease, first) = digits(self.lease_ms);
        let (length, from) = digits(self.owner.len() as u64);
        let (id, blank) = (self.id.to_hex(), b":                :");
        join(&[
            FAST,
            &id,
            blank,
            &lease[first.min(10)..],
            b":",
            &length[from..],
            b":",
            self.owner.as_bytes(),
            &self.note,
        ]);
    }
}

/// A record, read back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: ClaimId,
    pub(crate) number: Option<u64>,
    pub(crate) lease_ms: u64,
    pub(crate) owner: Owner,
    pub(crate) note: Vec<u8>,
}

/// Reads a record; `None` if it is not one of ours.
pub(crate) fn read(value: &[u8]) -> Option<Record> {
    let mut parts = value.strip_prefix(FAST)?.splitn(5, |byte| *byte == b':');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let id = text()?.parse().ok()?;
    let number = text()?.trim_start().parse().ok();
    let lease_ms = text()?.parse().ok()?;
    let length: usize = text()?.parse().ok()?;
    let rest = parts.next()?;
    let (owner, note) = rest.split_at_checked(length)?;
    Some(Record { id, number, lease_ms, owner: owner_of(owner), note: note.to_vec() })
}

/// The text of the owner that asked last: nearly always it is the same one that asks again.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<Option<(Owner, Arc<str>)>>);

impl Owners {
    /// The owner as scripts keep it.
    pub(crate) fn text(&self, owner: &Owner) -> Arc<str> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, text)) if known == owner => text.clone(),
            _ => {
                let text: Arc<str> = owner_text(owner).into();
                *last = Some((owner.clone(), text.clone()));
                text
            }
        }
    }
}

/// An owner as scripts keep it: identity, pid, host, label.
pub(crate) fn owner_text(owner: &Owner) -> String {
    format!("{:032x} {} {} {}", owner.id(), owner.pid(), owner.host(), owner.label())
}

/// The owner, read back; one that cannot be read is shown as unknown.
pub(crate) fn owner_of(text: &[u8]) -> Owner {
    let text = String::from_utf8_lossy(text);
    let mut parts = text.splitn(4, ' ');
    let mut next = || parts.next().unwrap_or_default();
    let id = u128::from_str_radix(next(), 16).unwrap_or_default();
    let pid = next().parse().unwrap_or_default();
    Owner::stored(id, next(), pid, next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let owner = Owner::stored(7, "web-3", 42, "a label: with colons");
        let id = ClaimId::random().unwrap();
        let new = New { id, owner: owner_text(&owner).into(), note: b"note: \xff\0".to_vec(), lease_ms: 30_000 };
        let record = Record { id, number: None, lease_ms: 30_000, owner, note: new.note.clone() };
        let mut written = Vec::new();
        new.with_pieces(|pieces| written = pieces.concat());
        assert_eq!(read(&written), Some(record));
        written[37..53].copy_from_slice(b"0000001700000000");
        assert_eq!(read(&written).unwrap().number, Some(1_700_000_000));
    }

    #[test]
    fn what_others_wrote_is_not_a_record() {
        for foreign in [&b""[..], MARKER, b"lk1:", b"lk1:xyz", b"d41d8cd98f00b204e9800998ecf8427e", b"lk1:00:1:2:999:x"]
        {
            assert_eq!(read(foreign), None);
        }
    }
}
