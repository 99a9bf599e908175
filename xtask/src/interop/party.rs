//! A party: a process that takes one lock and does as it is told, ours or a peer's, by the lines that
//! `interop/README.md` lists.
//!
//! The surprise: a party takes the lock as soon as it starts; that it said `held` once is how we know that it is ready.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use lockkeeper_rig::{Process, Trouble};

use super::family::Ground;

/// An answer to anything but `take` comes at once; a busy machine gets time.
const ANSWER_TAKES: Duration = Duration::from_secs(20);

/// How a line begins by which ours says, unasked, that it lost the lock.
const LOST: &str = "lost: ";

/// What a party says to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was its own lock, and it is done.
    Yes,
    /// It was not.
    No,
    /// Its client does not tell.
    Untold,
}

/// A program that can be a party.
#[derive(Clone, Debug)]
pub struct Program {
    /// `ours`, or the client's name.
    pub name: String,
    pub program: PathBuf,
    /// Before the URL: an interpreter's script.
    pub before: Vec<OsString>,
    /// After the lease: what else it must be told.
    pub after: Vec<String>,
    pub env: Vec<(&'static str, OsString)>,
    /// What it appends to the server's URL.
    pub url_tail: &'static str,
    /// What the holder's value begins with while it holds; nothing if it writes a value once and leaves it.
    pub mark: Option<&'static [u8]>,
    /// Whether it has locks that never end by themselves, which a lease of 0 asks for.
    pub endless: bool,
    /// Whether stopping its process stops all of it.
    pub one_process: bool,
}

impl Program {
    /// The command without its arguments for one lock.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// The same, told something else in the end.
    pub fn told(&self, after: &[&str]) -> Program {
        Program { after: after.iter().map(|word| (*word).to_string()).collect(), ..self.clone() }
    }
}

/// A running party. Dropped, it is killed.
#[derive(Debug)]
pub struct Party {
    /// For people and for the log: program and number.
    pub name: String,
    /// The program's name.
    pub side: String,
    mark: Option<&'static [u8]>,
    /// To be stopped and killed.
    pub process: Process,
    orders: ChildStdin,
    says: Receiver<String>,
}

impl Party {
    /// Starts a party, which begins to take the lock `key`.
    pub fn start(program: &Program, number: u32, at: Ground, key: &str, lease: Duration) -> Result<Party, Trouble> {
        let name = format!("{}-{number}", program.name);
        let mut command = program.command();
        command.arg(at.url(program.url_tail)).arg(key);
        command.arg(lease.as_millis().to_string()).args(&program.after);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::spawn(&mut command)?;
        let (Some(orders), Some(out)) = (process.stdin(), process.stdout()) else {
            return Err(Trouble::new(format!("`{name}` has no pipes; this is a bug")));
        };
        let (tell, says) = channel();
        let lines = BufReader::new(out).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Ok(Party { name, side: program.name.clone(), mark: program.mark, process, orders, says })
    }

    /// Starts a party on a free lock and lets it go again: afterwards it is there and holds nothing.
    pub fn ready(program: &Program, number: u32, at: Ground, key: &str, lease: Duration) -> Result<Party, Trouble> {
        let mut party = Party::start(program, number, at, key, lease)?;
        party.is_in(ANSWER_TAKES)?;
        if party.release()? == Answer::No {
            return Err(Trouble::new(format!("`{}` lost a lock that nobody else wanted", party.name)));
        }
        Ok(party)
    }

    /// Whether what stood at the lock's key when it came in and when it went out can be its own.
    pub fn is_its_own(&self, came: Option<&[u8]>, went: Option<&[u8]>) -> bool {
        match (came, went, self.mark) {
            (Some(came), Some(went), Some(mark)) => came.starts_with(mark) && went.starts_with(mark),
            (Some(came), Some(went), None) => came == went,
            _ => false,
        }
    }

    /// Tells it to take the lock; [`is_in`](Party::is_in) waits until it has it.
    pub fn take(&mut self) -> Result<(), Trouble> {
        self.tell("take")
    }

    /// Waits until it has the lock.
    pub fn is_in(&mut self, at_most: Duration) -> Result<(), Trouble> {
        if self.is_in_within(at_most)? { Ok(()) } else { Err(self.silent(at_most)) }
    }

    /// Whether it has the lock before this time is over.
    pub fn is_in_within(&mut self, at_most: Duration) -> Result<bool, Trouble> {
        match self.hear(at_most)? {
            None => Ok(false),
            Some(line) if line == "held" || line.starts_with("held ") => Ok(true),
            Some(line) => Err(self.odd("held", &line)),
        }
    }

    /// Releases the lock.
    pub fn release(&mut self) -> Result<Answer, Trouble> {
        self.asked("release")
    }

    /// Extends the lock by its lease.
    pub fn extend(&mut self) -> Result<Answer, Trouble> {
        self.asked("extend")
    }

    /// Whether it believes to hold the lock.
    pub fn believes(&mut self) -> Result<bool, Trouble> {
        self.tell("check")?;
        match self.answer()?.as_str() {
            "held: yes" => Ok(true),
            "held: no" => Ok(false),
            line => Err(self.odd("held: yes|no", line)),
        }
    }

    /// Whether it says before this time is over, unasked, that it lost the lock.
    pub fn is_lost_within(&mut self, at_most: Duration) -> Result<bool, Trouble> {
        match self.next(Instant::now() + at_most)? {
            None => Ok(false),
            Some(line) if line.starts_with(LOST) => Ok(true),
            Some(line) => Err(self.odd(LOST, &line)),
        }
    }

    fn asked(&mut self, order: &str) -> Result<Answer, Trouble> {
        self.tell(order)?;
        let line = self.answer()?;
        let answer = line.strip_prefix(order).and_then(|rest| rest.strip_prefix(": "));
        match answer.map(|answer| answer.split(' ').next().unwrap_or_default()) {
            Some("ok") => Ok(Answer::Yes),
            Some("lost") => Ok(Answer::No),
            Some("sent") => Ok(Answer::Untold),
            _ => Err(self.odd(&format!("{order}: ok|lost|sent"), &line)),
        }
    }

    fn answer(&mut self) -> Result<String, Trouble> {
        self.hear(ANSWER_TAKES)?.ok_or_else(|| self.silent(ANSWER_TAKES))
    }

    fn tell(&mut self, order: &str) -> Result<(), Trouble> {
        let told = writeln!(self.orders, "{order}");
        told.map_err(|e| Trouble::new(format!("`{}` does not listen to `{order}`: {e}", self.name)))
    }

    /// Its next answer, or nothing when the time is over; that it lost a lock is none.
    fn hear(&mut self, at_most: Duration) -> Result<Option<String>, Trouble> {
        let end = Instant::now() + at_most;
        loop {
            match self.next(end)? {
                Some(line) if line.starts_with(LOST) => {}
                heard => return Ok(heard),
            }
        }
    }

    /// Its next line, or nothing when the time is over.
    fn next(&mut self, end: Instant) -> Result<Option<String>, Trouble> {
        match self.says.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.process.wait(ANSWER_TAKES)?;
                Err(Trouble::new(format!("`{}` ended ({ended}); what it said is above", self.name)))
            }
        }
    }

    fn silent(&self, waited: Duration) -> Trouble {
        Trouble::new(format!("`{}` said nothing for {} s", self.name, waited.as_secs_f32()))
    }

    fn odd(&self, wanted: &str, line: &str) -> Trouble {
        Trouble::new(format!("`{}` said `{line}` where `{wanted}` was to come", self.name))
    }
}
