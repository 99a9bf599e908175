//! The witness: whoever holds the lock goes in and out before it, on the very server that keeps the lock.
//!
//! The surprise: a party is in here from *after* it said `held` until *before* it is told to release, so what the witness
//! sees is a little shorter than each hold. It can miss an overlap of some ten microseconds; it cannot invent one.

use lockkeeper_rig::Trouble;

use super::log::Event;
use super::wire::{Reply, Wire};

const ENTER: &str = include_str!("enter.lua");
const LEAVE: &str = include_str!("leave.lua");

/// A connection of its own for one party, or for the judge.
#[derive(Debug)]
pub struct Witness {
    wire: Wire,
    /// Count, last one, log and the lock itself, as the scripts take them.
    keys: [String; 4],
}

/// What a party met when it came in or went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many are inside, itself among them.
    pub inside: i64,
    /// What stands at the lock's key.
    pub value: Option<Vec<u8>>,
}

impl Witness {
    /// A witness of the lock `key`.
    pub fn connect(port: u16, key: &str) -> Result<Witness, Trouble> {
        let keys = ["inside", "last", "log"].map(|what| format!("witness/{key}/{what}"));
        let [inside, last, log] = keys;
        Ok(Witness { wire: Wire::connect(port)?, keys: [inside, last, log, key.to_string()] })
    }

    /// A party says that it holds the lock; also gives how often the lock has passed between the sides.
    pub fn enter(&mut self, party: &str, side: &str) -> Result<(Seen, u32), Trouble> {
        let parts = self.script(ENTER, &[party, side])?;
        let seen = Seen { inside: number(&parts, 0)?, value: text(&parts, 2) };
        Ok((seen, number(&parts, 1)?.try_into().unwrap_or(0)))
    }

    /// A party is about to release; also gives who went in last, which must be itself.
    pub fn leave(&mut self, party: &str) -> Result<(Seen, String), Trouble> {
        let parts = self.script(LEAVE, &[party])?;
        let last = text(&parts, 1).unwrap_or_default();
        let seen = Seen { inside: number(&parts, 0)?, value: text(&parts, 2) };
        Ok((seen, String::from_utf8_lossy(&last).into_owned()))
    }

    /// All who went in and out, in the server's order.
    pub fn log(&mut self) -> Result<Vec<Event>, Trouble> {
        let lines = self.wire.call(&["LRANGE", &self.keys[2], "0", "-1"])?;
        lines.list()?.iter().map(|line| Event::read(&line.text()?)).collect()
    }

    /// What stands at the lock's key.
    pub fn value(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        match self.wire.call(&["GET", &self.keys[3]])? {
            Reply::Nil => Ok(None),
            Reply::Text(bytes) => Ok(Some(bytes)),
            other => Err(Trouble::new(format!("the lock's key holds {other:?}"))),
        }
    }

    /// The server's time in µs, and the µs after which the lock's key ends by itself; nothing if it never does.
    pub fn ends(&mut self) -> Result<(u64, Option<u64>), Trouble> {
        let left = self.wire.call(&["PTTL", &self.keys[3]])?.number()?;
        let time = self.wire.call(&["TIME"])?;
        let part = |n: usize| time.list()?.get(n).unwrap_or(&Reply::Nil).text();
        let whole = |text: String| text.parse::<u64>().map_err(|e| Trouble::new(format!("the server's TIME: {e}")));
        let micros = whole(part(0)?)? * 1_000_000 + whole(part(1)?)?;
        Ok((micros, u64::try_from(left).ok().map(|ms| ms * 1000)))
    }

    /// Whether a plain `SET NX` of anybody would get the lock now. If it does, it is taken away again.
    pub fn would_get_in(&mut self) -> Result<bool, Trouble> {
        let [.., key] = self.keys.clone();
        if self.wire.call(&["SET", &key, "the judge", "NX", "PX", "10000"])? == Reply::Nil {
            return Ok(false);
        }
        self.wire.call(&["DEL", &key])?;
        Ok(true)
    }

    /// How many stand in our line for the lock; the key is that of our layout.
    pub fn in_our_line(&mut self) -> Result<i64, Trouble> {
        let key = format!("{{{}}}:wait", self.keys[3]);
        self.wire.call(&["ZCARD", &key])?.number()
    }

    /// Puts something else in the place of the lock's key, or nothing, whoever holds it.
    pub fn rob(&mut self, value: Option<&str>) -> Result<(), Trouble> {
        let [.., key] = self.keys.clone();
        match value {
            Some(value) => self.wire.call(&["SET", &key, value, "PX", "60000"])?,
            None => self.wire.call(&["DEL", &key])?,
        };
        Ok(())
    }

    fn script(&mut self, script: &str, args: &[&str]) -> Result<Vec<Reply>, Trouble> {
        let keys = self.keys.clone();
        let mut words = vec!["EVAL", script, "4"];
        words.extend(keys.iter().map(String::as_str));
        words.extend(args);
        self.wire.call(&words)?.list().map(<[Reply]>::to_vec)
    }
}

/// A key's value for people.
pub fn shown(value: Option<&[u8]>) -> String {
    value.map_or("nothing".to_string(), |value| format!("`{}`", value.escape_ascii()))
}

fn number(parts: &[Reply], n: usize) -> Result<i64, Trouble> {
    parts.get(n).unwrap_or(&Reply::Nil).number()
}

fn text(parts: &[Reply], n: usize) -> Option<Vec<u8>> {
    match parts.get(n) {
        Some(Reply::Text(bytes)) => Some(bytes.clone()),
        _ => None,
    }
}
