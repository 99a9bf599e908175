//! What an inner and an outer one say to each other, a line of JSON each, and what they make of it.
//!
//! Surprise: both are the same program, but need not be the same version of it, and anybody may have set the variables.

use lockkeeper::time::Moment;
use lockkeeper::{ClaimId, Name, Token};
use serde::{Deserialize, Serialize};

/// What is said is far shorter; a longer line is not ours.
pub const LINE_BYTES: usize = 32 * 1024;

/// What the inner one asks, on one line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub store: String,
    pub names: Vec<String>,
}

/// What the outer one says, each on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// It may run under the outer hold.
    Joined {
        /// The tokens in the order of the names.
        tokens: Vec<Option<u64>>,
        /// Nanoseconds on the machine's clock.
        deadline: u64,
    },
    /// It may not: these are other names, or another store.
    Stranger,
    /// The hold was renewed until then.
    Deadline(u64),
    /// The hold is lost, and why.
    Lost(String),
}

/// The names with the outer one's tokens, and when its hold ends.
pub type Terms = (Vec<(Name, Option<Token>)>, Moment);

/// Takes the first whole line; the inner `None` is one that is not a word.
pub fn next_word(heard: &mut Vec<u8>) -> Option<Option<Word>> {
    let end = heard.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = heard.drain(..=end).collect();
    Some(serde_json::from_slice(&line).ok())
}

/// The question, once its line is whole; the inner `None` is something else.
pub fn question(heard: &[u8]) -> Option<Option<Ask>> {
    heard.strip_suffix(b"\n").map(|line| serde_json::from_slice(line).ok())
}

/// What the first word means to one who asked for these names; nothing if it may not run.
pub fn terms(word: Word, names: &[String]) -> Option<Terms> {
    let Word::Joined { tokens, deadline } = word else { return None };
    // Fewer tokens than names would leave some out of what the command is told.
    if tokens.len() != names.len() {
        return None;
    }
    let named = names.iter().zip(tokens).map(|(name, token)| Some((Name::new(name).ok()?, token.map(Token::from_u64))));
    Some((named.collect::<Option<_>>()?, Moment::from_nanos(deadline)))
}

/// The identity of an outer one's owner, as its variable has it: 32 hexadecimal digits.
pub fn owner_id(text: &str) -> Option<u128> {
    text.parse().ok().map(|id: ClaimId| u128::from_be_bytes(id.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_token() {
        let names = ["a".to_owned(), "b".to_owned()];
        let joined = |tokens: &[Option<u64>]| Word::Joined { tokens: tokens.to_vec(), deadline: 7 };
        let (named, deadline) = terms(joined(&[Some(1), None]), &names).expect("both");
        assert_eq!((named.len(), named[0].1, deadline.as_nanos()), (2, Some(Token::from_u64(1)), 7));
        for bad in [joined(&[]), joined(&[Some(1)]), joined(&[None; 3]), Word::Stranger] {
            assert_eq!(terms(bad, &names), None);
        }
    }

    #[test]
    fn an_owner_is_digits() {
        assert_eq!(owner_id("000000000000000000000000000000ff"), Some(255));
        for bad in ["", "ff", "+00000000000000000000000000000ff"] {
            assert_eq!(owner_id(bad), None, "{bad}");
        }
    }
}
