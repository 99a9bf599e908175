//! The witness: whoever holds the lock goes in and out before it, on the very server that keeps the lock.
//!
//! The surprise: a party is in here from *after* it said `held` until *before* it is told to release, so what the witness
//! sees is a little shorter than each hold. It can miss an overlap of some ten microseconds; it cannot invent one.

use lockkeeper_rig::Trouble;

use super::log::Event;

/// What a party met when it came in or went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many are inside, itself among them.
    pub inside: i64,
    /// What stands there for whoever holds the lock, in the store's own form.
    pub value: Option<Vec<u8>>,
}

/// A witness of one lock, with a connection of its own: for one party, or for the judge.
pub trait Witness {
    /// A party of this side says that it holds the lock; also says whether the lock came from the other side.
    fn enter(&mut self, party: &str, side: &str) -> Result<(Seen, bool), Trouble>;

    /// A party is about to release; also gives who went in last, which must be itself.
    fn leave(&mut self, party: &str) -> Result<(Seen, String), Trouble>;

    /// All who went in and out, in the server's order.
    fn log(&mut self) -> Result<Vec<Event>, Trouble>;

    /// What stands there for whoever holds the lock; it changes with the holder.
    fn value(&mut self) -> Result<Option<Vec<u8>>, Trouble>;

    /// The time in µs, by one clock, and the µs after which the holder's lease ends by itself; nothing if it never does.
    fn ends(&mut self) -> Result<(u64, Option<u64>), Trouble>;

    /// Whether anybody who asked now would get the lock.
    fn would_get_in(&mut self) -> Result<bool, Trouble>;

    /// How many stand in our line for the lock.
    fn in_our_line(&mut self) -> Result<i64, Trouble>;

    /// Takes the lock from whoever holds it, for somebody whom the store knows by this value, or for nobody.
    fn rob(&mut self, value: Option<&str>) -> Result<(), Trouble>;
}

/// A value for people.
pub fn shown(value: Option<&[u8]>) -> String {
    value.map_or("nothing".to_string(), |value| format!("`{}`", value.escape_ascii()))
}
