//! Where things stand in etcd: the one place that knows.
//!
//! The claims of the lock `a/b` are the keys `a/b/<slot>`: the layout of etcd's own recipes, whose locks end in the id of a
//! lease instead. A slot is a client and a number, and is used again by the client's next claim on that name: a key that was
//! deleted is walked past by every look at the line until the server is compacted, so there must be few. Surprise: the keys of the
//! lock `a/b` lie between those of the lock `a`, and are told apart by what follows the name: a claim of `a` has no further `/`.
//! Cells stand where no lock can, since no name has a brace.

use lockkeeper_core::{ClaimId, Name};

const CELLS: &str = "{cell}/";
/// Between the name and the claim of a claim that must not come any more.
const GONE: &str = "{gone}";

/// All keys of a lock begin with this.
pub(crate) fn line(lock: &Name) -> Vec<u8> {
    [lock.as_str().as_bytes(), b"/"].concat()
}

/// Where a client puts its claims: 24 digits that are its own, and 8 that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) client: u128,
    pub(crate) number: u32,
}

impl Slot {
    /// The key of whatever claim is there.
    pub(crate) fn key(self, lock: &Name) -> Vec<u8> {
        let place = (self.client >> 32 << 32) | u128::from(self.number);
        [lock.as_str().as_bytes(), b"/", &ClaimId::from_bytes(place.to_be_bytes()).to_hex()].concat()
    }
}

/// Is that how a slot is written? Ours are written in one way only.
pub(crate) fn is_slot(text: &[u8]) -> bool {
    text.len() == 32 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A claim that has left, but may still be on its way in, is kept out by this key.
pub(crate) fn gone(lock: &Name, id: ClaimId) -> Vec<u8> {
    [CELLS.as_bytes(), lock.as_str().as_bytes(), GONE.as_bytes(), &id.to_hex()].concat()
}

/// The key of a cell.
pub(crate) fn cell(name: &Name) -> Vec<u8> {
    [CELLS.as_bytes(), name.as_str().as_bytes()].concat()
}

/// The end of the range of all keys that begin so, not included.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Everything: etcd's own sign for it.
    vec![0]
}

/// The name of the lock that a key belongs to, and what stands for the claim; `None` if it cannot be a claim of ours to see.
pub(crate) fn parse(key: &[u8]) -> Option<(Name, &str)> {
    let (name, claim) = std::str::from_utf8(key).ok()?.rsplit_once('/')?;
    Some((Name::new(name).ok()?, claim))
}

/// The id that another client's claim is shown with: that of its lease.
pub(crate) fn id_of(claim: &str) -> Option<ClaimId> {
    let lease = u64::from_str_radix(claim, 16).ok().filter(|lease| format!("{lease:x}") == claim)?;
    Some(ClaimId::from_bytes(u128::from(lease).to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let lock = Name::new("a/b").unwrap();
        let slot = Slot { client: u128::MAX / 3, number: 7 };
        let key = slot.key(&lock);
        let (name, text) = parse(&key).unwrap();
        assert_eq!((name, text), (lock.clone(), "55555555555555555555555500000007"));
        assert!(is_slot(text.as_bytes()));
        assert_ne!(Slot { number: 8, ..slot }.key(&lock), key);
    }

    #[test]
    fn another_clients_key_has_the_id_of_its_lease() {
        assert_eq!(id_of("694d8a3b5f3c2a01"), Some(ClaimId::from_bytes(0x694d_8a3b_5f3c_2a01_u128.to_be_bytes())));
        for odd in ["", "+5", "x", "05", "A", "55555555555555555555555500000007"] {
            assert_eq!(id_of(odd), None, "{odd}");
        }
        for odd in [&b""[..], b"5555", b"5555555555555555555555550000000G", b"555555555555555555555555000000AB"] {
            assert!(!is_slot(odd));
        }
    }

    #[test]
    fn a_range_ends_after_its_prefix() {
        assert_eq!(end_of(b"a/"), b"a0");
        assert_eq!(end_of(&[b'a', 255]), b"b");
        assert_eq!(end_of(&[]), [0]);
    }

    #[test]
    fn cells_stand_in_no_line() {
        let name = Name::new("a/b").unwrap();
        assert!(parse(&cell(&name)).is_none());
        assert!(parse(&gone(&name, ClaimId::from_bytes([7; 16]))).is_none());
    }
}
