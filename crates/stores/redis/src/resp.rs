//! The protocol, RESP2 and RESP3: how commands are written, where an answer ends, and what it says.
//!
//! Surprise: an answer is gone through twice. First only its ends are looked for, which goes on where it stopped when more
//! bytes come; an answer of megabytes that comes in pieces is not read anew with each. Then it is read as a whole.

use redis::{PushKind, Value, VerbatimFormat};

/// How deep lists may lie in lists: ours lie three deep.
const DEPTH_MAX: usize = 16;
/// The most items that a list may say it has.
const ITEMS_MAX: i64 = 1 << 31;
/// The longest text that an answer may say it has; the server's own limit.
const TEXT_MAX: i64 = 512 << 20;
/// The longest line without a length in front of it: an error's, for instance.
const LINE_MAX: usize = 1 << 20;
/// How much room there is for answers at first, and again when a long one was read.
const ROOM: usize = 16 << 10;

/// What came is not the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Garbled;

/// Writes the name of a command; so many words are to follow.
pub(crate) fn begin(out: &mut Vec<u8>, name: &str, words: usize) {
    length(out, b'*', words + 1);
    word(out, name.as_bytes());
}

/// Writes one word of a command.
pub(crate) fn word(out: &mut Vec<u8>, word: &[u8]) {
    length(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Writes one word that is a number.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    let (digits, from) = digits(number);
    word(out, &digits[from..]);
}

/// Writes one word that is joined of pieces.
pub(crate) fn joined(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    length(out, b'$', pieces.iter().map(|piece| piece.len()).sum());
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    out.extend_from_slice(b"\r\n");
}

/// Writes a whole command.
pub(crate) fn command(out: &mut Vec<u8>, name: &str, words: &[&[u8]]) {
    begin(out, name, words.len());
    words.iter().for_each(|each| word(out, each));
}

fn length(out: &mut Vec<u8>, mark: u8, length: usize) {
    let (digits, from) = digits(length as u64);
    out.push(mark);
    out.extend_from_slice(&digits[from..]);
    out.extend_from_slice(b"\r\n");
}

/// A number in text: the last of these digits, from there on; before them stand zeros.
pub(crate) fn digits(mut number: u64) -> ([u8; 20], usize) {
    let (mut digits, mut from) = ([b'0'; 20], 20);
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return (digits, from);
        }
    }
}

/// Bytes as they come, and the answers in them.
#[derive(Debug)]
pub(crate) struct Answers {
    bytes: Vec<u8>,
    /// The answer that is being looked for begins here.
    start: usize,
    /// Its end has been looked for up to here.
    seen: usize,
    /// So many values of it are still to be found.
    missing: u64,
    /// Bytes came up to here.
    end: usize,
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; ROOM], start: 0, seen: 0, missing: 1, end: 0 }
    }

    /// Where the next bytes go; never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.seen, self.end) = (0, self.seen - self.start, 0);
            if self.bytes.len() > ROOM {
                self.bytes = vec![0; ROOM];
            }
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.seen, self.end) = (self.seen - self.start, self.end - self.start);
            self.start = 0;
            if self.end > self.bytes.len() / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes came there.
    pub(crate) fn came(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// The next answer, if all of it has come.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Garbled> {
        if !self.is_whole()? {
            return Ok(None);
        }
        let mut rest = &self.bytes[self.start..self.seen];
        let value = read(&mut rest, 0)?;
        (self.start, self.missing) = (self.seen, 1);
        Ok(Some(value))
    }

    /// Looks for the end of the answer, as far as bytes have come.
    fn is_whole(&mut self) -> Result<bool, Garbled> {
        while self.missing > 0 {
            let bytes = &self.bytes[self.seen..self.end];
            let Some(line) = line(bytes) else {
                return if bytes.len() > LINE_MAX { Err(Garbled) } else { Ok(false) };
            };
            let after = line.len() + 2;
            let (&mark, rest) = line.split_first().ok_or(Garbled)?;
            match mark {
                b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {
                    self.seen += after;
                    self.missing -= 1;
                }
                b'$' | b'!' | b'=' => {
                    let text = match counted(rest, TEXT_MAX)? {
                        Some(length) => length + 2,
                        None => 0,
                    };
                    if bytes.len() < after + text {
                        return Ok(false);
                    }
                    self.seen += after + text;
                    self.missing -= 1;
                }
                b'*' | b'~' | b'>' | b'%' | b'|' => {
                    let items = counted(rest, ITEMS_MAX)?.unwrap_or(0) as u64;
                    let values = if matches!(mark, b'%' | b'|') { 2 * items } else { items };
                    self.seen += after;
                    // What is told about a value comes before it, and does not count as one.
                    self.missing = self.missing.checked_add(values).ok_or(Garbled)? - u64::from(mark != b'|');
                }
                _ => return Err(Garbled),
            }
        }
        Ok(true)
    }
}

/// The first line, without its end.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    bytes[..end].strip_suffix(b"\r").or(Some(&[]))
}

/// How many follow; nothing where there is nothing.
fn counted(text: &[u8], at_most: i64) -> Result<Option<usize>, Garbled> {
    match whole(text)? {
        -1 => Ok(None),
        count if (0..=at_most).contains(&count) => Ok(Some(count as usize)),
        _ => Err(Garbled),
    }
}

fn whole(text: &[u8]) -> Result<i64, Garbled> {
    std::str::from_utf8(text).map_err(|_| Garbled)?.parse().map_err(|_| Garbled)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a value of which all has come, and goes on behind it.
fn read(rest: &mut &[u8], depth: usize) -> Result<Value, Garbled> {
    let line = line(rest).ok_or(Garbled)?;
    *rest = &rest[line.len() + 2..];
    let (&mark, told) = line.split_first().ok_or(Garbled)?;
    if depth > DEPTH_MAX {
        return Err(Garbled);
    }
    Ok(match mark {
        b'+' if told == b"OK" => Value::Okay,
        b'+' | b'(' => Value::SimpleString(text(told)),
        b'-' => refused(told)?,
        b':' => Value::Int(whole(told)?),
        b'_' => Value::Nil,
        b'#' => Value::Boolean(told == b"t"),
        b',' => Value::Double(std::str::from_utf8(told).ok().and_then(|text| text.parse().ok()).ok_or(Garbled)?),
        b'$' | b'!' | b'=' => {
            let Some(length) = counted(told, TEXT_MAX)? else { return Ok(Value::Nil) };
            let (said, behind) = rest.split_at_checked(length).ok_or(Garbled)?;
            *rest = behind.strip_prefix(b"\r\n").ok_or(Garbled)?;
            match mark {
                b'$' => Value::BulkString(said.to_vec()),
                b'!' => refused(said)?,
                _ => verbatim(said),
            }
        }
        b'*' => match counted(told, ITEMS_MAX)? {
            Some(count) => Value::Array(items(rest, count, depth)?),
            None => Value::Nil,
        },
        b'~' => Value::Set(items(rest, counted(told, ITEMS_MAX)?.unwrap_or(0), depth)?),
        b'>' => pushed(items(rest, counted(told, ITEMS_MAX)?.unwrap_or(0), depth)?),
        b'%' => Value::Map(pairs(rest, counted(told, ITEMS_MAX)?.unwrap_or(0), depth)?),
        b'|' => {
            pairs(rest, counted(told, ITEMS_MAX)?.unwrap_or(0), depth)?;
            read(rest, depth + 1)?
        }
        _ => return Err(Garbled),
    })
}

fn items(rest: &mut &[u8], count: usize, depth: usize) -> Result<Vec<Value>, Garbled> {
    // Each has three bytes at the least: no more is set aside than can have come.
    let mut items = Vec::with_capacity(count.min(rest.len() / 3 + 1));
    for _ in 0..count {
        items.push(read(rest, depth + 1)?);
    }
    Ok(items)
}

fn pairs(rest: &mut &[u8], count: usize, depth: usize) -> Result<Vec<(Value, Value)>, Garbled> {
    let mut pairs = Vec::with_capacity(count.min(rest.len() / 6 + 1));
    for _ in 0..count {
        pairs.push((read(rest, depth + 1)?, read(rest, depth + 1)?));
    }
    Ok(pairs)
}

/// An error, in the words of the driver's types: they are only made by reading one.
fn refused(words: &[u8]) -> Result<Value, Garbled> {
    let words = text(words).replace(['\r', '\n'], " ");
    redis::parse_redis_value(format!("-{words}\r\n").as_bytes()).map_err(|_| Garbled)
}

fn verbatim(said: &[u8]) -> Value {
    match said.split_at_checked(4) {
        Some((b"txt:", said)) => Value::VerbatimString { format: VerbatimFormat::Text, text: text(said) },
        Some((b"mkd:", said)) => Value::VerbatimString { format: VerbatimFormat::Markdown, text: text(said) },
        _ => Value::SimpleString(text(said)),
    }
}

fn pushed(mut data: Vec<Value>) -> Value {
    let kind = match data.first() {
        Some(Value::BulkString(kind)) => match kind.as_slice() {
            b"message" => PushKind::Message,
            b"subscribe" => PushKind::Subscribe,
            b"unsubscribe" => PushKind::Unsubscribe,
            other => PushKind::Other(text(other)),
        },
        _ => PushKind::Other(String::new()),
    };
    if !data.is_empty() {
        data.remove(0);
    }
    Value::Push { kind, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(bytes: &[u8], piece: usize) -> Result<Vec<Value>, Garbled> {
        match crate::fuzzing::answers(bytes, piece) {
            (found, true) => Ok(found),
            (_, false) => Err(Garbled),
        }
    }

    const ALL: &[u8] = b"+OK\r\n+PONG\r\n:-7\r\n$-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*-1\r\n*2\r\n:1\r\n*1\r\n_\r\n%1\r\n+k\r\n#t\r\n\
        ~1\r\n,1.5\r\n|1\r\n+a\r\n:1\r\n:9\r\n=8\r\ntxt:abcd\r\n(123\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nn\r\n*0\r\n";

    #[test]
    fn answers_are_the_same_in_whatever_pieces_they_come() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let expected = vec![
            Value::Okay,
            Value::SimpleString("PONG".into()),
            Value::Int(-7),
            Value::Nil,
            bulk(""),
            bulk("a\r\nb"),
            Value::Nil,
            Value::Array(vec![Value::Int(1), Value::Array(vec![Value::Nil])]),
            Value::Map(vec![(Value::SimpleString("k".into()), Value::Boolean(true))]),
            Value::Set(vec![Value::Double(1.5)]),
            Value::Int(9),
            Value::VerbatimString { format: VerbatimFormat::Text, text: "abcd".into() },
            Value::SimpleString("123".into()),
            Value::Push { kind: PushKind::Message, data: vec![bulk("c"), bulk("n")] },
            Value::Array(Vec::new()),
        ];
        for piece in 1..=ALL.len() {
            assert_eq!(answers(ALL, piece).as_ref(), Ok(&expected), "in pieces of {piece}");
        }
    }

    #[test]
    fn errors_keep_their_code_and_their_words() {
        let found = answers(b"-NOSCRIPT No such script\r\n!8\r\nERR a\r\nb\r\n*1\r\n-OOM full\r\n", 3).unwrap();
        let Value::ServerError(first) = &found[0] else { panic!("{found:?}") };
        assert_eq!((first.code(), first.details()), ("NOSCRIPT", Some("No such script")));
        assert!(matches!(&found[1], Value::ServerError(error) if error.details() == Some("a  b")), "{found:?}");
        let Value::Array(within) = &found[2] else { panic!("{found:?}") };
        assert!(matches!(&within[0], Value::ServerError(error) if error.code() == "OOM"), "{found:?}");
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        let deep = b"*1\r\n".repeat(DEPTH_MAX + 2);
        for bad in
            [&b"hello\r\n"[..], b"\r\n", b"$x\r\n", b"$-2\r\n", b"*99999999999\r\n", b":1x\r\n", b"$1\r\nabc\r\n"]
        {
            assert_eq!(answers(bad, 1), Err(Garbled), "{:?}", String::from_utf8_lossy(bad));
        }
        assert_eq!(answers(&[&deep[..], b"_\r\n"].concat(), 7), Err(Garbled));
        assert_eq!(answers(&vec![b'+'; LINE_MAX + ROOM], 4096), Err(Garbled), "a line without an end");
        assert_eq!(answers(b"*3\r\n:1\r\n", 100), Ok(Vec::new()), "not all has come");
    }

    #[test]
    fn long_answers_come_in_pieces() {
        let long = "x".repeat(10 * ROOM);
        let bytes = format!("*2\r\n${}\r\n{long}\r\n:1\r\n+OK\r\n", long.len());
        let expected = vec![Value::Array(vec![Value::BulkString(long.into()), Value::Int(1)]), Value::Okay];
        assert_eq!(answers(bytes.as_bytes(), 1000), Ok(expected));
    }

    #[test]
    fn commands_are_written_word_by_word() {
        let mut out = Vec::new();
        command(&mut out, "SET", &[b"k", b""]);
        begin(&mut out, "GET", 2);
        number(&mut out, 1_700_000_000_000_042);
        number(&mut out, 0);
        joined(&mut out, &[b"{", b"a", b"}:last"]);
        assert_eq!(
            out,
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*3\r\n$3\r\nGET\r\n$16\r\n1700000000000042\r\n$1\r\n0\r\n\
            $8\r\n{a}:last\r\n"
        );
    }
}
