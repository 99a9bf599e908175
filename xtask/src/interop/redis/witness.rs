//! The witness on Redis: scripts that count who is inside, and write who came and went by the server's clock.
//!
//! The surprise: what it finds at the lock's key it finds in the same step, so no moment lies between the two.

use lockkeeper_rig::Trouble;

use super::wire::{Reply, Wire};
use crate::interop::log::Event;
use crate::interop::witness::{Seen, Witness};

const ENTER: &str = include_str!("enter.lua");
const LEAVE: &str = include_str!("leave.lua");

/// A witness of the lock at one key.
#[derive(Debug)]
pub struct RedisWitness {
    wire: Wire,
    /// Count, last one, log and the lock itself, as the scripts take them.
    keys: [String; 4],
}

impl RedisWitness {
    /// A witness of the lock `key`.
    pub fn connect(port: u16, key: &str) -> Result<RedisWitness, Trouble> {
        let keys = ["inside", "last", "log"].map(|what| format!("witness/{key}/{what}"));
        let [inside, last, log] = keys;
        Ok(RedisWitness { wire: Wire::connect(port)?, keys: [inside, last, log, key.to_string()] })
    }

    fn script(&mut self, script: &str, args: &[&str]) -> Result<Vec<Reply>, Trouble> {
        let keys = self.keys.clone();
        let mut words = vec!["EVAL", script, "4"];
        words.extend(keys.iter().map(String::as_str));
        words.extend(args);
        self.wire.call(&words)?.list().map(<[Reply]>::to_vec)
    }
}

impl Witness for RedisWitness {
    fn enter(&mut self, party: &str, side: &str) -> Result<(Seen, bool), Trouble> {
        let parts = self.script(ENTER, &[party, side])?;
        let seen = Seen { inside: number(&parts, 0)?, value: text(&parts, 2) };
        Ok((seen, number(&parts, 1)? == 1))
    }

    fn leave(&mut self, party: &str) -> Result<(Seen, String), Trouble> {
        let parts = self.script(LEAVE, &[party])?;
        let last = text(&parts, 1).unwrap_or_default();
        let seen = Seen { inside: number(&parts, 0)?, value: text(&parts, 2) };
        Ok((seen, String::from_utf8_lossy(&last).into_owned()))
    }

    fn log(&mut self) -> Result<Vec<Event>, Trouble> {
        let lines = self.wire.call(&["LRANGE", &self.keys[2], "0", "-1"])?;
        lines.list()?.iter().map(|line| Event::read(&line.text()?)).collect()
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        match self.wire.call(&["GET", &self.keys[3]])? {
            Reply::Nil => Ok(None),
            Reply::Text(bytes) => Ok(Some(bytes)),
            other => Err(Trouble::new(format!("the lock's key holds {other:?}"))),
        }
    }

    fn ends(&mut self) -> Result<(u64, Option<u64>), Trouble> {
        let left = self.wire.call(&["PTTL", &self.keys[3]])?.number()?;
        let time = self.wire.call(&["TIME"])?;
        let part = |n: usize| time.list()?.get(n).unwrap_or(&Reply::Nil).text();
        let whole = |text: String| text.parse::<u64>().map_err(|e| Trouble::new(format!("the server's TIME: {e}")));
        let micros = whole(part(0)?)? * 1_000_000 + whole(part(1)?)?;
        Ok((micros, u64::try_from(left).ok().map(|ms| ms * 1000)))
    }

    /// Tries a plain `SET NX`. If it gets the lock, that is taken away again.
    fn would_get_in(&mut self) -> Result<bool, Trouble> {
        let [.., key] = self.keys.clone();
        if self.wire.call(&["SET", &key, "the judge", "NX", "PX", "10000"])? == Reply::Nil {
            return Ok(false);
        }
        self.wire.call(&["DEL", &key])?;
        Ok(true)
    }

    /// The key is that of our layout.
    fn in_our_line(&mut self) -> Result<i64, Trouble> {
        let key = format!("{{{}}}:wait", self.keys[3]);
        self.wire.call(&["ZCARD", &key])?.number()
    }

    fn rob(&mut self, value: Option<&str>) -> Result<(), Trouble> {
        let [.., key] = self.keys.clone();
        match value {
            Some(value) => self.wire.call(&["SET", &key, value, "PX", "60000"])?,
            None => self.wire.call(&["DEL", &key])?,
        };
        Ok(())
    }
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
