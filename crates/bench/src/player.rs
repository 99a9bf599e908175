//! A child process that takes part in slices: told a line, it plays, and answers with a line.
//!
//! Surprise: a child that is late is an error and not a long slice; and none outlives its owner, since the end of its
//! input ends it, and dropping it kills it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::Outcome;

/// How long a child may be late before it counts as stuck.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A child that plays.
pub struct Player {
    child: Child,
    orders: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Player {
    /// This program itself, in a hidden mode.
    pub fn own(args: &[&str]) -> Outcome<Self> {
        Self::start(Command::new(std::env::current_exe()?).arg("child").args(args))
    }

    /// Any program.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start `{name}`: {error}"))?;
        let (orders, said) = (child.stdin.take(), child.stdout.take());
        let (tell, lines) = mpsc::channel();
        let said = BufReader::new(said.ok_or("a child has no output")?);
        std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Ok(Self { child, orders: orders.ok_or("a child has no input")?, lines })
    }

    /// Tells it a line.
    pub fn order(&mut self, line: &str) -> Outcome<()> {
        writeln!(self.orders, "{line}")?;
        Ok(self.orders.flush()?)
    }

    /// Its next line, which is due when this time is over.
    pub fn answer(&self, due: Duration) -> Outcome<String> {
        Ok(self.lines.recv_timeout(due + PATIENCE).map_err(|_| "a child is stuck or gone")?)
    }

    /// Waits until it says `ready`.
    pub fn when_ready(self) -> Outcome<Self> {
        match self.answer(Duration::ZERO)?.as_str() {
            "ready" => Ok(self),
            other => Err(format!("a child said `{other}` and not that it is ready").into()),
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a child says after a slice: its processor time, and the rest of the line.
pub fn read_answer(line: &str) -> Outcome<(Duration, &str)> {
    let (cpu, rest) = line.split_once(' ').unwrap_or((line, ""));
    let nanos = cpu.parse().map_err(|_| format!("a child said: {line}"))?;
    Ok((Duration::from_nanos(nanos), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_and_answers() {
        let script = "echo ready; while read -r line; do echo \"7 $line\"; done";
        let mut player = Player::start(Command::new("sh").args(["-c", script])).unwrap().when_ready().unwrap();
        player.order("500").unwrap();
        let line = player.answer(Duration::ZERO).unwrap();
        assert_eq!(read_answer(&line).unwrap(), (Duration::from_nanos(7), "500"));
    }

    #[test]
    fn a_child_that_says_something_else_is_an_error() {
        let said = Player::start(Command::new("sh").args(["-c", "echo no; read -r line"])).unwrap().when_ready();
        assert!(said.err().unwrap().to_string().contains("`no`"));
        assert!(read_answer("error: x").is_err());
        assert_eq!(read_answer("5").unwrap(), (Duration::from_nanos(5), ""));
    }
}
