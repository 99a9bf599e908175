//! What stands behind a flag: times, permits, rates. Nothing is taken that could have been meant differently.
//!
//! Surprise: times are read piece by piece and added here, since the parser panics at the end of its numbers.

use std::time::Duration;

/// The longest time: what is longer was not meant, and could not be added to a clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// So long.
    For(Duration),
    /// Without end.
    Forever,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permits {
    /// How many are taken.
    pub take: u32,
    /// How many there are.
    pub of: u32,
}

/// So many per so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub limit: u64,
    pub per: Duration,
}

/// `30s`, `5m` or `forever`.
pub fn patience(text: &str) -> Result<Patience, String> {
    if text == "forever" { Ok(Patience::Forever) } else { duration(text).map(Patience::For) }
}

/// `500ms`, `30s`, `5m`; `0` needs no unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut time = Duration::ZERO;
    for piece in pieces(text) {
        let read = humantime::parse_duration(piece);
        let more = read.map_err(|error| format!("{error}; write it like `500ms`, `30s` or `5m`"))?;
        time = time.saturating_add(more);
    }
    if time > LONGEST { Err("it is longer than a hundred years".to_owned()) } else { Ok(time) }
}

/// `1m 30s` in its pieces: a number and its unit each. There is at least one.
fn pieces(text: &str) -> Vec<&str> {
    let mut begins = vec![0];
    let mut letters = false;
    for (at, c) in text.char_indices() {
        if letters && c.is_ascii_digit() {
            begins.push(at);
        }
        letters = c.is_alphabetic() || (letters && c.is_whitespace());
    }
    let ends = begins[1..].iter().copied().chain([text.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &text[*begin..end]).collect()
}

/// A number that is written in digits alone; `parse` would also take a `+`.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `1/3`: one of three.
pub fn permits(text: &str) -> Result<Permits, String> {
    let read = || {
        let (take, of) = text.split_once('/')?;
        Some(Permits { take: digits(take)?, of: digits(of)? })
    };
    match read() {
        Some(Permits { take, of }) if take == 0 || take > of => {
            Err(format!("{take} of {of} cannot be taken; the first number is from 1 to the second"))
        }
        Some(permits) => Ok(permits),
        None => Err("write it like `1/3`, for one permit of three".to_owned()),
    }
}

/// `10/1m`: ten a minute.
pub fn rate(text: &str) -> Result<Rate, String> {
    let (limit, per) = text.split_once('/').ok_or("write it like `10/1m`, for ten a minute")?;
    let limit = digits(limit).ok_or_else(|| format!("`{limit}` is not a whole number; write it like `10/1m`"))?;
    let per = duration(per)?;
    if limit == 0 || per.is_zero() {
        return Err("neither the number nor the time may be zero".to_owned());
    }
    Ok(Rate { limit, per })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(patience("forever"), Ok(Patience::Forever));
        assert_eq!(patience("0"), Ok(Patience::For(Duration::ZERO)));
        assert_eq!(patience("1m 30s"), Ok(Patience::For(Duration::from_secs(90))));
        assert_eq!(duration("1h30m 5s"), Ok(Duration::from_secs(5_405)));
        for bad in ["", " ", "30", "soon", "1m 30", "18446744073709551615s 1000000000ns", "101y", "1m é"] {
            assert!(patience(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_are_so_many_per_so_long() {
        assert_eq!(rate("10/1m"), Ok(Rate { limit: 10, per: Duration::from_secs(60) }));
        for bad in ["", "10", "10/", "/1m", "0/1m", "1/0", "-1/1m", "+1/1m", "1/m", "10/1"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn permits_are_some_of_some() {
        assert_eq!(permits("2/3"), Ok(Permits { take: 2, of: 3 }));
        for bad in ["", "3", "0/3", "4/3", "1/", "/3", "-1/3", "+1/3", "1/3/4", "1 / 3"] {
            assert!(permits(bad).is_err(), "{bad}");
        }
    }
}
