//! Mutations: from inputs that mean something to inputs that almost do.
//!
//! Surprise: what comes out is a function of the corpus and the seed alone, so that a seed replays an input.

use fastrand::Rng;

/// No input grows beyond this.
const LONGEST: usize = 64 * 1024;

/// Numbers at which something ends.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "+1",
    "00",
    "01",
    "127",
    "255",
    "256",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "9000000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211455",
    "1e9",
    "0.5",
    "nan",
];

/// Bytes that formats are made of.
const BYTES: &[u8] = b"\0\x01\t\n\r \"#$%&'()*+,-./09:;=?@AZ[\\]_`az{|}~\x7f\x80\xbf\xc0\xe2\xef\xf4\xff";

/// One input: a mutation of one or two of the corpus, from this seed. Without a corpus it is noise.
pub fn input(corpus: &[Vec<u8>], words: &[&str], seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let mut bytes = match corpus {
        [] => (0..rng.usize(..64)).map(|_| rng.u8(..)).collect(),
        corpus => corpus[rng.usize(..corpus.len())].clone(),
    };
    // Mostly few: an input with many faults is refused for the first.
    let steps = 1 + (rng.f64() * rng.f64() * 8.0) as usize;
    for _ in 0..steps {
        step(&mut bytes, corpus, words, &mut rng);
    }
    if rng.bool() {
        bytes = with_lengths(&bytes);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// The same with the lengths of texts as the protocol of Redis announces them (`$5`) made right again: an answer with one
/// wrong length is refused before anything looks at what it says.
fn with_lengths(bytes: &[u8]) -> Vec<u8> {
    let end_of = |rest: &[u8]| rest.windows(2).position(|pair| pair == b"\r\n");
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(end) = end_of(rest) {
        let (line, behind) = (&rest[..end], &rest[end + 2..]);
        let announces = line.strip_prefix(b"$").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
        match end_of(behind).filter(|_| announces) {
            Some(length) => {
                out.extend_from_slice(format!("${length}\r\n").as_bytes());
                out.extend_from_slice(&behind[..length + 2]);
                rest = &behind[length + 2..];
            }
            None => {
                out.extend_from_slice(&rest[..end + 2]);
                rest = behind;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn step(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], rng: &mut Rng) {
    match rng.u8(..12) {
        0 => {
            if let Some(at) = place(bytes, rng) {
                bytes[at] ^= 1 << rng.u8(..8);
            }
        }
        1 => {
            if let Some(at) = place(bytes, rng) {
                bytes[at] = BYTES[rng.usize(..BYTES.len())];
            }
        }
        2 => insert(bytes, &[BYTES[rng.usize(..BYTES.len())]], rng),
        3 | 4 if !words.is_empty() => insert(bytes, words[rng.usize(..words.len())].as_bytes(), rng),
        5 | 6 => number(bytes, rng),
        7 => {
            let piece = piece(bytes, rng);
            bytes.drain(piece);
        }
        8 => {
            let again = bytes[piece(bytes, rng)].repeat(1 + rng.usize(..4));
            insert(bytes, &again, rng);
        }
        9 => bytes.truncate(rng.usize(..=bytes.len())),
        10 if !corpus.is_empty() => {
            let other = &corpus[rng.usize(..corpus.len())];
            bytes.truncate(rng.usize(..=bytes.len()));
            bytes.extend_from_slice(&other[rng.usize(..=other.len())..]);
        }
        _ => line(bytes, rng),
    }
}

/// Another number in the place of one that is there.
fn number(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let new = NUMBERS[rng.usize(..NUMBERS.len())].as_bytes();
    let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
    let Some(at) = rng.choice(digits) else { return insert(bytes, new, rng) };
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let begin = at - bytes[..at].iter().rev().take_while(|byte| is_digit(byte)).count();
    let end = at + bytes[at..].iter().take_while(|byte| is_digit(byte)).count();
    bytes.splice(begin..end, new.iter().copied());
}

/// One line less, or twice, or in another place.
fn line(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let one = lines[rng.usize(..lines.len())].clone();
    match rng.u8(..3) {
        0 => drop(lines.remove(rng.usize(..lines.len()))),
        1 => lines.insert(rng.usize(..=lines.len()), one),
        _ => {
            let other = rng.usize(..lines.len());
            lines[other] = one;
        }
    }
    *bytes = lines.concat();
}

fn insert(bytes: &mut Vec<u8>, new: &[u8], rng: &mut Rng) {
    let at = rng.usize(..=bytes.len());
    bytes.splice(at..at, new.iter().copied());
}

fn place(bytes: &[u8], rng: &mut Rng) -> Option<usize> {
    (!bytes.is_empty()).then(|| rng.usize(..bytes.len()))
}

fn piece(bytes: &[u8], rng: &mut Rng) -> std::ops::Range<usize> {
    let from = rng.usize(..=bytes.len());
    from..(from + rng.usize(..=16)).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_an_input_and_seeds_differ() {
        let corpus = [b"one 1\ntwo 22\n".to_vec(), b"{\"a\": 3}".to_vec()];
        let all: Vec<_> = (0..200).map(|seed| input(&corpus, &["word"], seed)).collect();
        assert_eq!(all, (0..200).map(|seed| input(&corpus, &["word"], seed)).collect::<Vec<_>>());
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(different.len() > 150, "{}", different.len());
    }

    #[test]
    fn lengths_are_made_right_again() {
        assert_eq!(with_lengths(b"*2\r\n$3\r\nfour\r\n$-1\r\n:5\r\n"), b"*2\r\n$4\r\nfour\r\n$-1\r\n:5\r\n");
        assert_eq!(with_lengths(b"$9\r\n\r\nx"), b"$0\r\n\r\nx");
        assert_eq!(with_lengths(b"plain $5 text\n"), b"plain $5 text\n");
    }

    #[test]
    fn nothing_at_all_is_mutated_too() {
        for seed in 0..500 {
            input(&[], &[], seed);
            assert!(input(&[Vec::new()], &["word"], seed).len() <= LONGEST);
        }
    }
}
