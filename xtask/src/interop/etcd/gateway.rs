//! The judge's own way to etcd: its JSON gateway, in a few lines instead of a dependency.
//!
//! The surprise: it speaks HTTP/1.0, a connection for each call, because that has no chunks: an answer ends with its
//! connection. The gateway leaves out what is zero, and numbers of 64 bits are texts.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lockkeeper_rig::Trouble;
use serde_json::Value;

/// The server is on this machine and does nothing else.
const ANSWER_TAKES: Duration = Duration::from_secs(10);

/// No answer to what is asked here is larger.
const LONGEST: u64 = 16 * 1024 * 1024;

/// One call and its answer. What etcd refuses is [`Trouble`].
pub fn call(port: u16, path: &str, body: &Value) -> Result<Value, Trouble> {
    let said =
        ask(port, path, &body.to_string()).map_err(|e| Trouble::new(format!("the judge cannot ask etcd: {e}")))?;
    let garbled = || Trouble::new(format!("etcd said {said:?} to {path}, which is no answer"));
    let (_, text) = said.split_once("\r\n\r\n").ok_or_else(garbled)?;
    let answer: Value = serde_json::from_str(text).map_err(|_| garbled())?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(Trouble::new(format!("etcd refused {path}: {error}"))),
    }
}

fn ask(port: u16, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TAKES))?;
    let length = body.len();
    let request = format!("POST /v3/{path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut said = String::new();
    stream.take(LONGEST).read_to_string(&mut said)?;
    Ok(said)
}

/// A number of an answer.
pub fn number(value: &Value) -> Result<i64, Trouble> {
    let text = match value {
        Value::Null => "0",
        Value::String(text) => text,
        _ => "",
    };
    text.parse().map_err(|_| Trouble::new(format!("etcd said {value} where a number was to come")))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as the gateway has them: in base 64.
pub fn coded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize];
            text.push(if n <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes of a field of an answer.
pub fn decoded(value: &Value) -> Result<Vec<u8>, Trouble> {
    let odd = || Trouble::new(format!("etcd said {value} where bytes were to come"));
    let text = if value.is_null() { "" } else { value.as_str().ok_or_else(odd)? };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for n in 0..4 {
            let digit = four.get(n).map_or(Some(0), |digit| DIGITS.iter().position(|known| known == digit));
            bits = bits << 6 | u32::try_from(digit.ok_or_else(odd)?).map_err(|_| odd())?;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for (plain, code) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("a/b~?\u{ff}", "YS9ifj/Dvw==")]
        {
            assert_eq!(coded(plain.as_bytes()), code);
            assert_eq!(decoded(&Value::from(code)).unwrap(), plain.as_bytes());
        }
        assert_eq!(decoded(&Value::Null).unwrap(), b"");
        assert!(decoded(&Value::from("!!!!")).is_err() && decoded(&Value::from(7)).is_err());
    }

    #[test]
    fn a_number_is_a_text_or_left_out() {
        assert_eq!(number(&Value::Null).unwrap(), 0);
        assert_eq!(number(&Value::from("-1")).unwrap(), -1);
        assert!(number(&Value::from("x")).is_err() && number(&Value::from(true)).is_err());
    }
}
