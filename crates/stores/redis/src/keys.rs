//! The keys of one lock. All of them share the hash tag that is the lock's name, so that they live on one node of a
//! cluster; the holder key *is* the name, so that other clients' plain locks and ours exclude each other on it (C13).

use lockkeeper_core::Name;

/// The latest time at which a hold of any lock ended or was renewed, by the server's clock: what shows that the clock went
/// back while a lock was free.
pub(crate) const CLOCK: &str = "lockkeeper:clock";

/// What follows `{name}` in the keys of a line, in the order that its scripts expect: the claims while there is a line;
/// those that wait, by order; those that are in, by their end; those that wait, by their end; the floor of the numbers.
const PARTS: [&str; 5] = [":line", ":wait", ":in", ":ends", ":last"];

/// The keys of one lock, all in one text.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    text: String,
    /// Where each ends.
    cuts: [usize; 6],
}

impl Keys {
    pub(crate) fn of(lock: &Name) -> Self {
        let name = lock.as_str();
        let mut text = String::with_capacity(6 * name.len() + 36);
        text.push_str(name);
        let mut cuts = [text.len(); 6];
        for (part, cut) in PARTS.iter().zip(&mut cuts[1..]) {
            for piece in ["{", name, "}", part] {
                text.push_str(piece);
            }
            *cut = text.len();
        }
        Self { text, cuts }
    }

    fn at(&self, nth: usize) -> &str {
        let from = if nth == 0 { 0 } else { self.cuts[nth - 1] };
        &self.text[from..self.cuts[nth]]
    }

    /// `name`: a string while somebody is in.
    pub(crate) fn holder(&self) -> &str {
        self.at(0)
    }

    /// `{name}:line`: the claims, while there is a line.
    pub(crate) fn line(&self) -> &str {
        self.at(1)
    }

    /// `{name}:last`: the floor of the numbers.
    pub(crate) fn floor(&self) -> &str {
        self.at(5)
    }

    /// In the order that the scripts of the line expect.
    pub(crate) fn all(&self) -> [&[u8]; 7] {
        let own: [&[u8]; 6] = std::array::from_fn(|nth| self.at(nth).as_bytes());
        let [holder, line, waiting, inside, ends, floor] = own;
        [holder, line, waiting, inside, ends, floor, CLOCK.as_bytes()]
    }
}

/// `name`: a string while somebody is in.
pub(crate) fn holder(name: &Name) -> &str {
    name.as_str()
}

/// `{name}:last`: the floor of the numbers.
pub(crate) fn floor(name: &Name) -> String {
    floor_pieces(name).concat()
}

/// The same in pieces.
pub(crate) fn floor_pieces(name: &Name) -> [&str; 4] {
    ["{", name.as_str(), "}", PARTS[4]]
}

/// `{name}:cell`.
pub(crate) fn cell(name: &Name) -> String {
    format!("{{{name}}}:cell")
}

/// `{name}:line` back to the name.
pub(crate) fn name_of_line(key: &str) -> Option<&str> {
    key.strip_prefix('{')?.strip_suffix("}:line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_lock_share_its_name() {
        let keys = Keys::of(&Name::new("a/b").unwrap());
        let all = keys.all().map(|key| std::str::from_utf8(key).unwrap());
        assert_eq!(all, ["a/b", "{a/b}:line", "{a/b}:wait", "{a/b}:in", "{a/b}:ends", "{a/b}:last", CLOCK]);
        assert_eq!((keys.holder(), keys.line(), keys.floor()), ("a/b", "{a/b}:line", "{a/b}:last"));
        let name = Name::new("a/b").unwrap();
        assert_eq!((keys.holder(), keys.floor()), (holder(&name), &*floor(&name)));
    }
}
