//! The keys of one lock. All of them share the hash tag that is the lock's name, so that they live on one node of a
//! cluster; the holder key *is* the name, so that other clients' plain locks and ours exclude each other on it (C13).

use lockkeeper_core::Name;

/// The latest time at which a hold of any lock ended or was renewed, by the server's clock: what shows that the clock went
/// back while a lock was free.
pub(crate) const CLOCK: &str = "lockkeeper:clock";

/// The keys of one lock or cell.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// `name`: a string while somebody is in.
    pub(crate) holder: String,
    /// `{name}:line`: the claims, while there is a line.
    pub(crate) line: String,
    /// `{name}:wait`: those that wait, by order.
    pub(crate) waiting: String,
    /// `{name}:in`: those that are in, by their end.
    pub(crate) inside: String,
    /// `{name}:ends`: those that wait, by their end.
    pub(crate) ends: String,
    /// `{name}:last`: the floor of the numbers.
    pub(crate) floor: String,
}

impl Keys {
    pub(crate) fn of(lock: &Name) -> Self {
        let key = |part: &str| format!("{{{lock}}}:{part}");
        Self {
            holder: lock.as_str().to_owned(),
            line: key("line"),
            waiting: key("wait"),
            inside: key("in"),
            ends: key("ends"),
            floor: key("last"),
        }
    }

    /// In the order that the scripts of the line expect.
    pub(crate) fn all(&self) -> [&[u8]; 7] {
        let own = [&self.holder, &self.line, &self.waiting, &self.inside, &self.ends, &self.floor];
        let [holder, line, waiting, inside, ends, floor] = own.map(|key| key.as_bytes());
        [holder, line, waiting, inside, ends, floor, CLOCK.as_bytes()]
    }
}

/// `{name}:cell`.
pub(crate) fn cell(name: &Name) -> String {
    format!("{{{name}}}:cell")
}

/// `{name}:line` back to the name.
pub(crate) fn name_of_line(key: &str) -> Option<&str> {
    key.strip_prefix('{')?.strip_suffix("}:line")
}
