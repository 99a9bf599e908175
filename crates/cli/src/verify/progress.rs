//! How a run is going, on stderr: one line that is written over on a terminal, and one line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_verify::run::Progress;

/// Who reads a log wants to know that it goes on, and no more.
const EVERY: Duration = Duration::from_secs(10);
/// Nobody reads faster.
const ON_A_TERMINAL: Duration = Duration::from_millis(200);

/// The line.
pub struct Line {
    for_ms: u64,
    terminal: bool,
    shown: Mutex<Option<Instant>>,
}

impl Line {
    /// Nothing is shown yet.
    pub fn new(for_ms: u64) -> Self {
        Self { for_ms, terminal: std::io::stderr().is_terminal(), shown: Mutex::new(None) }
    }

    /// Shows how it goes, unless it was shown a moment ago.
    pub fn show(&self, progress: &Progress) {
        let every = if self.terminal { ON_A_TERMINAL } else { EVERY };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        *shown = Some(Instant::now());
        let line = described(progress, self.for_ms);
        // Wider lines than the terminal would not be written over.
        let line = match (self.terminal, width()) {
            (true, Some(width)) => format!("\r{}\x1b[K", line.chars().take(width - 1).collect::<String>()),
            (true, None) => format!("\r{line}\x1b[K"),
            (false, _) => format!("lockkeeper: {line}\n"),
        };
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Takes it away again.
    pub fn clear(&self) {
        if self.terminal {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 1)
}

fn described(progress: &Progress, for_ms: u64) -> String {
    let Progress { ran_ms, attempted, acknowledged, written, lost_bare, lost_fenced, alive, hurting } = progress;
    let hurting = hurting.as_deref().unwrap_or("-");
    format!(
        "{}/{} s  held {acknowledged} of {attempted}  written {written}, lost {lost_bare} bare, {lost_fenced} fenced  \
         workers {alive}  hurting {hurting}",
        ran_ms / 1_000,
        for_ms.div_ceil(1_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_it_goes() {
        let progress = Progress {
            ran_ms: 12_900,
            attempted: 1_000,
            acknowledged: 990,
            written: 3_900,
            lost_bare: 3,
            lost_fenced: 0,
            alive: 4,
            hurting: Some("pause-holder worker 2.0".to_owned()),
        };
        let expected = "12/60 s  held 990 of 1000  written 3900, lost 3 bare, 0 fenced  workers 4  hurting pause-holder worker 2.0";
        assert_eq!(described(&progress, 60_000), expected);
        assert!(described(&Progress::default(), 1_500).starts_with("0/2 s  held 0 of 0"));
    }
}
