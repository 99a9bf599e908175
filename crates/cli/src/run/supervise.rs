//! The command runs under the hold: one loop over everything that can happen meanwhile.
//!
//! Surprise: `lockkeeper` never kills the command while its guard is on post; it only tells the guard. So there is
//! one place that kills, and it works the same when `lockkeeper` itself is stopped or dead.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use lockkeeper::time::Clock;
use nix::sys::signal::Signal as Caught;
use rustix::process::Signal;
use tokio::sync::mpsc::UnboundedReceiver;

use super::child::{self, Event};
use super::group;
use super::held::Held;
use super::nest::{Outer, Word};
use super::record::{Record, Watch};
use super::signals::Signals;
use super::terminal::Terminal;
use super::warden::{News, Warden};
use crate::exit::{self, Failure};
use crate::words;

/// How long a guard may take to go.
const RELIEF: Duration = Duration::from_secs(5);

/// A command that runs under a hold.
pub struct Supervised<'a> {
    /// The names, as people are told of them.
    pub title: &'a str,
    pub held: &'a Held,
    pub child: Child,
    pub watch: Watch,
    pub warden: Warden,
    pub terminal: Option<Terminal>,
    pub signals: &'a mut Signals,
    /// Where a `run` inside the command can join.
    pub outer: Option<Outer>,
    /// When SIGTSTP was last passed to the command.
    pub stop_passed: Option<Instant>,
    /// Is the guard on its post?
    pub guarded: bool,
    /// Was the command asked to end because its time was running out?
    pub asked: bool,
}

/// How it ended.
pub struct Ended {
    /// How the command itself ended.
    pub status: ExitStatus,
    /// Was it the terminal's Ctrl-C that ended it?
    pub interrupted: bool,
    /// Was the hold lost before the command had ended, or did the command fail because it was about to be?
    pub lost: bool,
}

impl Supervised<'_> {
    /// Follows the command to its end. When this returns after a loss, nobody of its group is alive.
    pub async fn follow(mut self) -> Result<Ended, Failure> {
        let group = self.watch.group;
        let mut events = child::events_of(group);
        let lost = self.until_ended(&mut events).await?;
        let handed = self.terminal.as_ref().is_some_and(Terminal::is_handed);
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        self.relieve_guard(lost).await;
        let status = self
            .child
            .wait()
            .map_err(|error| Failure::new(exit::BUG, format!("the command's end was not seen: {error}")))?;
        if status.signal().is_some()
            && let Some(terminal) = &self.terminal
        {
            terminal.restore();
        }
        let interrupted = handed && status.signal() == Some(Signal::INT.as_raw());
        Ok(Ended { status, interrupted, lost: lost || (self.asked && !status.success()) })
    }

    /// The loop. Answers whether the hold was lost.
    async fn until_ended(&mut self, events: &mut UnboundedReceiver<Event>) -> Result<bool, Failure> {
        let (mut lost, mut ended) = (false, false);
        loop {
            // Those who have joined keep the hold, also when the command itself has ended.
            if ended && (lost || self.outer.as_ref().is_none_or(Outer::is_idle)) {
                return Ok(lost);
            }
            let (held, watch) = (self.held, self.watch);
            tokio::select! {
                biased;
                event = events.recv(), if !ended => match event {
                    Some(Event::Stopped(signal)) => self.stopped(signal, lost).await,
                    Some(Event::Ended) | None => {
                        // The end may be our guard's doing, seen before anything else by a `lockkeeper` that slept.
                        if !lost && !held.is_held() {
                            self.lost(&held.lost().await).await?;
                            lost = true;
                        }
                        ended = true;
                        if let Some(outer) = &mut self.outer {
                            outer.stop();
                        }
                    }
                },
                why = held.lost(), if !lost => {
                    lost = true;
                    self.lost(&why).await?;
                }
                deadline = held.deadline_after(watch.deadline), if !lost => {
                    self.watch = Watch::new(watch.group, deadline, Clock::system().now());
                    self.tell_inners(&Word::Deadline(deadline.as_nanos()));
                    self.tell(Record::Watch(self.watch)).await?;
                }
                news = self.warden.news(), if self.guarded => match news {
                    News::Asked => self.asked_to_end(),
                    // It has done its work: the group is gone, and the loss is about to be noticed here.
                    News::Ended(true) => self.guarded = false,
                    News::Ended(false) => self.replace_guard(lost).await?,
                },
                () = joined(&mut self.outer, held, watch), if !lost => {}
                caught = self.signals.next() => self.pass(caught),
            }
        }
    }

    /// The hold is gone: whoever is left of the command is ended.
    async fn lost(&mut self, why: &str) -> Result<(), Failure> {
        // They are to know before the guard's signals reach them, or they would take these for the user's.
        self.tell_inners(&Word::Lost(why.to_owned()));
        exit::say(&format!("lockkeeper: {why}; the command is ended"), None);
        self.tell(Record::Lost).await
    }

    fn tell_inners(&mut self, word: &Word) {
        if let Some(outer) = &mut self.outer {
            outer.tell(word);
        }
    }

    /// The guard has sent TERM, since the store has not answered for long or the time given is over.
    fn asked_to_end(&mut self) {
        self.asked = true;
        let left = words::span(Clock::system().now().until(self.held.deadline()));
        exit::say(&format!("lockkeeper: {} runs out in {left}; the command was asked to end", self.title), None);
    }

    /// Passes a signal to the command, which decides what comes of it.
    fn pass(&mut self, caught: Caught) {
        if caught == Caught::SIGTSTP {
            self.stop_passed = Some(Instant::now());
        }
        if let Some(signal) = Signal::from_named_raw(caught as i32) {
            group::signal(self.watch.group, signal);
        }
    }

    /// The command has stopped: so does the job that it is part of, as far as a shell can see.
    async fn stopped(&mut self, signal: Signal, lost: bool) {
        let Some(terminal) = &mut self.terminal else { return };
        let had_terminal = terminal.is_handed();
        let wants_terminal = signal == Signal::TTIN || signal == Signal::TTOU;
        // Ctrl-Z may meet a command that the terminal has just stopped, and waking that one would forget the key.
        let asked = self.stop_passed.take().is_some_and(|when| when.elapsed() < Duration::from_secs(1));
        if !had_terminal && !asked {
            if wants_terminal && terminal.is_ours() {
                terminal.hand_to(self.watch.group);
                return group::signal(self.watch.group, Signal::CONT);
            }
            // Stopped by hand from elsewhere: that was meant for the command alone.
            if signal == Signal::STOP {
                return;
            }
        }
        terminal.take_back();
        if lost {
            return;
        }
        let left = words::span(Clock::system().now().until(self.held.deadline()));
        let hint = "continue it before that, or it is ended";
        exit::say(&format!("lockkeeper: stopped; {} stays taken for {left} and no longer", self.title), Some(hint));
        self.signals.suffer(match signal {
            Signal::TTIN if !asked => Caught::SIGTTIN,
            Signal::TTOU if !asked => Caught::SIGTTOU,
            _ => Caught::SIGTSTP,
        });
        if !self.held.is_held() {
            // The guard has ended the group, or is about to.
            return;
        }
        if terminal.is_ours() {
            // In a pipeline it may be another who needs it.
            if had_terminal || wants_terminal {
                terminal.hand_to(self.watch.group);
            }
        } else if wants_terminal {
            // Nobody could stop us, and the command would ask again at once, and again.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        group::signal(self.watch.group, Signal::CONT);
    }

    /// Tells the guard, or a new one if this one does not listen.
    async fn tell(&mut self, record: Record) -> Result<(), Failure> {
        if !self.guarded || self.warden.tell(record).is_ok() {
            return Ok(());
        }
        // It may have ended because its work was done, before we woke.
        match tokio::time::timeout(RELIEF, self.relieved()).await {
            Ok(true) => {
                self.guarded = false;
                Ok(())
            }
            _ => self.replace_guard(record == Record::Lost).await,
        }
    }

    /// Posts a new guard in place of one that died. Without a guard the command does not go on.
    async fn replace_guard(&mut self, lost: bool) -> Result<(), Failure> {
        if lost {
            // There is nothing left to watch for, and no grace to give.
            group::end(self.watch.group);
            self.guarded = false;
            return Ok(());
        }
        match Warden::post(self.watch, self.outer.as_ref().map(Outer::folder)).await {
            Ok(warden) => {
                std::mem::replace(&mut self.warden, warden).dismiss();
                Ok(())
            }
            Err(error) => {
                self.abort();
                Err(no_guard(&error))
            }
        }
    }

    /// Ends the command at once, by ourselves.
    fn abort(&mut self) {
        group::end(self.watch.group);
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
            terminal.restore();
        }
        let _ = self.child.wait();
    }

    /// Lets the guard go; after a loss, that is when nobody of the group is left.
    async fn relieve_guard(&mut self, lost: bool) {
        if !self.guarded {
            return;
        }
        if !lost {
            let _ = self.warden.tell(Record::Done);
        }
        // A guard that was itself stopped or killed must not keep us, nor the command's group alive.
        let grace = if lost { self.watch.lead + RELIEF } else { RELIEF };
        if tokio::time::timeout(grace, self.relieved()).await != Ok(true) && lost {
            group::end(self.watch.group);
        }
    }

    /// Waits for the guard's end; true if it has done its work.
    async fn relieved(&mut self) -> bool {
        loop {
            match self.warden.news().await {
                // Seen only now by a `lockkeeper` that was stopped meanwhile.
                News::Asked => self.asked_to_end(),
                News::Ended(well) => return well,
            }
        }
    }
}

/// News of those who join, where anybody can.
async fn joined(outer: &mut Option<Outer>, held: &Held, watch: Watch) {
    match outer {
        Some(outer) => outer.news(held, watch).await,
        None => std::future::pending().await,
    }
}

/// The command does not run unguarded.
pub fn no_guard(error: &std::io::Error) -> Failure {
    Failure::new(exit::BUG, format!("the guard process could not be started: {error}"))
        .with_hint("the command does not run without one; is the limit on processes reached?")
}

/// The exit code for how the command ended, as a shell gives it.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| i32::from(exit::SIGNAL) + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::BUG)
}
