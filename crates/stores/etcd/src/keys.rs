//! Where things stand in etcd: the one place that knows.
//!
//! The claims of the lock `a/b` are the keys `a/b/<claim id>`: the layout of etcd's own recipes, whose locks end in the id of
//! a lease instead. Surprise: the keys of the lock `a/b` lie between those of the lock `a`, and are told apart by what
//! follows the name: a claim of `a` has no further `/`. Cells stand where no lock can, since no name has a brace.

use lockkeeper_core::{ClaimId, Name};

const CELLS: &str = "{cell}/";
/// Between the name and the claim of a claim that must not come any more.
const GONE: &str = "{gone}";

/// All keys of a lock begin with this.
pub(crate) fn line(lock: &Name) -> Vec<u8> {
    [lock.as_str().as_bytes(), b"/"].concat()
}

/// The key of a claim.
pub(crate) fn claim(lock: &Name, id: ClaimId) -> Vec<u8> {
    [lock.as_str().as_bytes(), b"/", &id.to_hex()].concat()
}

/// The key that another client made with its lease, under the id it is shown with.
pub(crate) fn foreign(lock: &Name, id: ClaimId) -> Option<Vec<u8>> {
    let lease = u64::try_from(u128::from_be_bytes(id.to_bytes())).ok()?;
    Some(format!("{lock}/{lease:x}").into_bytes())
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

/// The id that a claim is shown with: its own, or the lease of another client's. It leads back to this one key: the same
/// number written in another way is something else.
pub(crate) fn id_of(claim: &str) -> Option<ClaimId> {
    if let Ok(id) = claim.parse::<ClaimId>() {
        return (id.to_hex() == *claim.as_bytes()).then_some(id);
    }
    let lease = u64::from_str_radix(claim, 16).ok().filter(|lease| format!("{lease:x}") == claim)?;
    Some(ClaimId::from_bytes(u128::from(lease).to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let (lock, id) = (Name::new("a/b").unwrap(), ClaimId::random().unwrap());
        let key = claim(&lock, id);
        let (name, text) = parse(&key).unwrap();
        assert_eq!((name, id_of(text)), (lock, Some(id)));
    }

    #[test]
    fn another_clients_key_has_an_id_that_leads_back() {
        let lock = Name::new("a").unwrap();
        let id = id_of("694d8a3b5f3c2a01").unwrap();
        assert_eq!(foreign(&lock, id).unwrap(), b"a/694d8a3b5f3c2a01");
        assert_eq!(foreign(&lock, ClaimId::from_bytes([1; 16])), None);
        for odd in ["", "+5", "x", "05", "A", &ClaimId::from_bytes([0xab; 16]).to_string().to_uppercase()] {
            assert_eq!(id_of(odd), None, "{odd}");
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
