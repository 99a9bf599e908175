//! What is said while `run` waits for its lock: one line that changes on a terminal, plain lines elsewhere.
//!
//! Nothing is said to somebody who gets the lock at once, and what is said never holds up the waiting itself.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use lockkeeper::store::{ClaimState, ClaimView, LockView};
use lockkeeper::{Keeper, Owner};

use crate::{exit, words};

/// So long nobody minds.
const QUIET: Duration = Duration::from_millis(400);
/// How often the line is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the same thing is said again where lines cannot be taken back.
const REPEAT_EVERY: Duration = Duration::from_secs(10);

/// Tells of the line until it is dropped; of several names, of the one whose line we stand in.
pub async fn narrate(keeper: &Keeper, names: &[String], own: &Owner) -> Infallible {
    tokio::time::sleep(QUIET).await;
    let mut line = Line::new();
    loop {
        let told = look(keeper, names, own).await;
        for _ in 0..5 {
            line.show(&told);
            tokio::time::sleep(LOOK_EVERY / 5).await;
        }
    }
}

async fn look(keeper: &Keeper, names: &[String], own: &Owner) -> String {
    for name in names {
        // A store that does not answer is the waiting's own business.
        let Ok(Some(view)) = keeper.inspect(name).await else { continue };
        let here = |claim: &ClaimView| claim.owner == *own && claim.state == ClaimState::Waiting;
        if names.len() == 1 || view.claims.iter().any(here) {
            return tell(name, &view, own);
        }
    }
    format!("waiting for {}", words::names(names))
}

/// One sentence: what we wait for, our place in the line, and who is in the way; what matters most comes first,
/// because a narrow terminal cuts the end off.
fn tell(name: &str, view: &LockView, own: &Owner) -> String {
    let mut told = format!("waiting for `{name}`");
    let mut waiting = view.claims.iter().filter(|claim| claim.state == ClaimState::Waiting);
    if let Some(place) = waiting.position(|claim| claim.owner == *own) {
        told.push_str(&format!(", {} in line", words::ordinal(place + 1)));
    }
    if let Some(who) = words::in_the_way(view, words::Detail::Short) {
        told.push_str(&format!(": {who}"));
    }
    told
}

/// Where it is said. Dropping it takes back what can be taken back.
struct Line {
    live: bool,
    frame: usize,
    said: Option<(String, Instant)>,
}

impl Line {
    fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { live: std::io::stderr().is_terminal() && !dumb, frame: 0, said: None }
    }

    fn show(&mut self, told: &str) {
        if self.live {
            self.frame = (self.frame + 1) % 4;
            let width = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |size| usize::from(size.ws_col));
            // A line that wraps could not be taken back. A width of zero is what some terminals say for "unknown".
            let room = if width == 0 { 80 } else { width }.saturating_sub(3);
            let told: String = told.chars().take(room).collect();
            return put(&format!("\r\x1b[2K{} {told}", ['|', '/', '-', '\\'][self.frame]));
        }
        // Times tick; only other words are news.
        let bare: String = told.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.said.as_ref().is_none_or(|(said, when)| *said != bare || when.elapsed() >= REPEAT_EVERY) {
            exit::say(&format!("lockkeeper: {told}"), None);
            self.said = Some((bare, Instant::now()));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.live {
            put("\r\x1b[2K");
        }
    }
}

fn put(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
