//! A connection of the judge's own to the Redis server, in a few lines instead of a dependency.
//!
//! The surprise: it speaks the old protocol (RESP2) only and one call at a time, which is all that judging takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lockkeeper_rig::Trouble;

/// The server is on this machine and does nothing else.
const ANSWER_TAKES: Duration = Duration::from_secs(10);

/// No reply to what is asked here is larger.
const LONGEST: usize = 16 * 1024 * 1024;

/// What the server says to one call. Errors are [`Trouble`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Number(i64),
    Text(Vec<u8>),
    List(Vec<Reply>),
}

impl Reply {
    /// The number, where one must come.
    pub fn number(&self) -> Result<i64, Trouble> {
        match self {
            Reply::Number(number) => Ok(*number),
            other => Err(unexpected("a number", other)),
        }
    }

    /// The text, where one must come.
    pub fn text(&self) -> Result<String, Trouble> {
        match self {
            Reply::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            other => Err(unexpected("a text", other)),
        }
    }

    /// The parts, where a list must come.
    pub fn list(&self) -> Result<&[Reply], Trouble> {
        match self {
            Reply::List(parts) => Ok(parts),
            other => Err(unexpected("a list", other)),
        }
    }
}

fn unexpected(wanted: &str, got: &Reply) -> Trouble {
    Trouble::new(format!("the Redis server answered {got:?} instead of {wanted}"))
}

/// One connection.
#[derive(Debug)]
pub struct Wire(BufReader<TcpStream>);

impl Wire {
    pub fn connect(port: u16) -> Result<Wire, Trouble> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_read_timeout(Some(ANSWER_TAKES)).map_err(broken)?;
        Ok(Wire(BufReader::new(stream)))
    }

    /// One command and its reply.
    pub fn call(&mut self, words: &[&str]) -> Result<Reply, Trouble> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(request.as_bytes()).map_err(broken)?;
        read(&mut self.0)
    }
}

fn broken(error: std::io::Error) -> Trouble {
    Trouble::new(format!("the judge lost its connection to the Redis server: {error}"))
}

fn read<R: BufRead>(from: &mut R) -> Result<Reply, Trouble> {
    let mut line = Vec::new();
    from.by_ref().take(64 * 1024).read_until(b'\n', &mut line).map_err(broken)?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let garbled = || Trouble::new(format!("the Redis server said {line:?}, which is no reply"));
    let rest = line.strip_suffix("\r\n").ok_or_else(garbled)?;
    let (mark, rest) = rest.split_at_checked(1).ok_or_else(garbled)?;
    let number = || rest.parse::<i64>().map_err(|_| garbled());
    match (mark, rest) {
        ("+", _) => Ok(Reply::Text(rest.as_bytes().to_vec())),
        ("-", _) => Err(Trouble::new(format!("the Redis server refused: {rest}"))),
        (":", _) => Ok(Reply::Number(number()?)),
        ("$" | "*", "-1") => Ok(Reply::Nil),
        ("$", _) => {
            let length = usize::try_from(number()?).ok().filter(|length| *length <= LONGEST).ok_or_else(garbled)?;
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes).map_err(broken)?;
            bytes.truncate(length);
            Ok(Reply::Text(bytes))
        }
        ("*", _) => (0..number()?).map(|_| read(from)).collect::<Result<_, _>>().map(Reply::List),
        _ => Err(garbled()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_of_reply_is_read() {
        let mut said: &[u8] = b"*5\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n+OK\r\n*0\r\n";
        let text = |bytes: &[u8]| Reply::Text(bytes.to_vec());
        let parts = vec![Reply::Number(-7), text(b"a\r\nb"), Reply::Nil, text(b"OK"), Reply::List(Vec::new())];
        assert_eq!(read(&mut said).unwrap(), Reply::List(parts));
        assert!(said.is_empty());
    }

    #[test]
    fn a_refusal_and_rubbish_are_trouble() {
        assert!(read(&mut &b"-ERR no\r\n"[..]).unwrap_err().to_string().contains("refused: ERR no"));
        for rubbish in [&b""[..], b"\r\n", b":x\r\n", b"$9999999999\r\n", b"?\r\n", b"+OK", b"$5\r\nab"] {
            assert!(read(&mut &rubbish[..]).is_err(), "{rubbish:?}");
        }
    }
}
