//! How people are told about times and holders; the same words in every command.

use std::time::Duration;

use lockkeeper::store::{ClaimState, ClaimView, LockView};

/// A span of time as people say it: `4m12s`, `3.2s`, `120ms`; never more exact than is of use.
pub fn span(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_millis());
    }
    if time < Duration::from_secs(10) && time.subsec_millis() >= 100 {
        return format!("{:.1}s", (time.as_secs_f64() * 10.0).floor() / 10.0);
    }
    let seconds = time.as_secs();
    let parts = [("d", seconds / 86_400), ("h", seconds / 3_600 % 24), ("m", seconds / 60 % 60), ("s", seconds % 60)];
    let first = parts.iter().position(|(_, count)| *count > 0).unwrap_or(3);
    // Two units say enough: nobody needs the seconds of a lock that was taken yesterday.
    parts[first..]
        .iter()
        .take(2)
        .filter(|(_, count)| *count > 0)
        .map(|(unit, count)| format!("{count}{unit}"))
        .collect()
}

/// Names as people are told of them: "`a`", "`a` and `b`", "`a`, `b` and 7 more".
pub fn names(names: &[String]) -> String {
    let quoted = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match names {
        [all @ .., last] if names.len() <= 3 && !all.is_empty() => format!("{} and `{last}`", quoted(all)),
        [one] => format!("`{one}`"),
        _ => format!("{} and {} more", quoted(&names[..names.len().min(2)]), names.len().saturating_sub(2)),
    }
}

/// How much is said of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Who, and for how long: what fits on a line that also says other things.
    Short,
    /// The token as well.
    Full,
}

/// Who is in the way: `held by …`, `kept after …`, or nobody.
pub fn in_the_way(view: &LockView, detail: Detail) -> Option<String> {
    let mut holders = view.holders();
    if let Some(first) = holders.next() {
        let others = match holders.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Some(format!("held by {}{others}", holder(first, detail)));
    }
    let leaving = view.claims.iter().find(|claim| claim.state == ClaimState::Leaving)?;
    Some(format!("kept after {} for another {}", quoted(leaving), span(leaving.lease_left)))
}

/// What a lock is doing, in a word: `held`, `leaving` (nobody holds it, but it stays taken), `waiting` or `free`.
pub fn state(view: Option<&LockView>) -> &'static str {
    let any = |state| view.is_some_and(|view| view.claims.iter().any(|claim| claim.state == state));
    match () {
        () if any(ClaimState::Holding) => "held",
        () if any(ClaimState::Leaving) => "leaving",
        () if any(ClaimState::Waiting) => "waiting",
        () => "free",
    }
}

/// How many wait.
pub fn waiting(view: &LockView) -> usize {
    view.claims.iter().filter(|claim| claim.state == ClaimState::Waiting).count()
}

/// A holder with what tells it from others.
fn holder(claim: &ClaimView, detail: Detail) -> String {
    let mut more = Vec::new();
    if let Some(token) = claim.token.filter(|_| detail == Detail::Full) {
        more.push(format!("token {token}"));
    }
    if let Some(held) = claim.held_for {
        more.push(format!("for {}", span(held)));
    }
    match more.is_empty() {
        true => quoted(claim),
        false => format!("{} ({})", quoted(claim), more.join(", ")),
    }
}

fn quoted(claim: &ClaimView) -> String {
    format!("`{}`", claim.owner)
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (1, teen) if teen != 11 => "st",
        (2, teen) if teen != 12 => "nd",
        (3, teen) if teen != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// A note as text on one line, whatever bytes it is made of.
pub fn note(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let said = |millis| span(Duration::from_millis(millis));
        assert_eq!(said(0), "0ms");
        assert_eq!(said(999), "999ms");
        assert_eq!(said(1_000), "1s");
        assert_eq!(said(3_290), "3.2s");
        assert_eq!(said(30_500), "30s");
        assert_eq!(said(252_000), "4m12s");
        assert_eq!(said(3_600_000), "1h");
        assert_eq!(said(90_061_000), "1d1h");
        assert_eq!(said(86_401_000), "1d");
    }

    #[test]
    fn names_are_listed_and_not_all_of_them() {
        let said = |count: usize| names(&["a", "b", "c", "d", "e"].map(str::to_owned)[..count]);
        assert_eq!([said(1), said(2), said(3)], ["`a`", "`a` and `b`", "`a`, `b` and `c`"]);
        assert_eq!([said(4), said(5)], ["`a`, `b` and 2 more", "`a`, `b` and 3 more"]);
    }

    #[test]
    fn places_in_line_are_counted() {
        let said: Vec<_> = [1, 2, 3, 4, 11, 12, 13, 21, 112].into_iter().map(ordinal).collect();
        assert_eq!(said, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]);
    }
}
