//! A command under a hold: started behind its gate, guarded from its first instruction on, and followed to its end.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use lockkeeper::ErrorKind;
use lockkeeper::time::Clock;
use nix::sys::signal::Signal;

use super::gate::Gate;
use super::held::{self, Held};
use super::nest::Outer;
use super::record::Watch;
use super::scene::{self, Outcome, Scene};
use super::supervise::{self, Ended, Supervised};
use super::terminal::Terminal;
use super::warden::Warden;
use crate::args::{Patience, Terms};
use crate::config::SECRETS;
use crate::exit::{self, Failure};
use crate::words;

/// What is run, and under what.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub names: &'a [String],
    pub command: &'a [OsString],
    /// How long the hold lasts, if that was said.
    pub at_most: Option<Duration>,
    /// May a `run` inside it join its hold?
    pub nests: bool,
}

impl<'a> Job<'a> {
    /// A job with the terms that most commands take.
    pub fn new(names: &'a [String], command: &'a [OsString], terms: &Terms) -> Self {
        Self { names, command, at_most: terms.at_most, nests: false }
    }

    /// Runs the command to its end, and keeps the hold. `prepare` has the last word on how it is started.
    pub async fn run(
        &self,
        scene: &mut Scene,
        held: &Held,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Ended, Failure> {
        let tokens = held.tokens();
        // Those inside one that has joined ask the outer one themselves.
        let nests = self.nests && !matches!(held, Held::Outer(_));
        let outer = if nests { Outer::open(&scene.identity) } else { None };
        let gate = Gate::close(self.command, |command| {
            held::describe(command, &tokens);
            command.env(scene::OWNER, format!("{:032x}", scene.owner.id()));
            for secret in SECRETS {
                command.env_remove(secret);
            }
            if let Some(outer) = &outer {
                outer.describe(command);
            }
            prepare(command);
        });
        let gate = gate.map_err(|error| Failure::new(exit::BUG, format!("no process could be started: {error}")))?;
        let watch = Watch::new(gate.group(), held.deadline(), Clock::system().now());
        let warden = match Warden::post(watch, outer.as_ref().map(Outer::folder)).await {
            Ok(warden) => warden,
            Err(error) => {
                gate.abandon();
                return Err(supervise::no_guard(&error));
            }
        };
        let mut terminal = Terminal::find();
        if let Some(terminal) = terminal.as_mut().filter(|terminal| terminal.is_wanted()) {
            terminal.hand_to(watch.group);
        }
        // Starting took its time; a hold that ended meanwhile starts nothing.
        if !held.is_held() {
            if let Some(terminal) = &mut terminal {
                terminal.take_back();
            }
            gate.abandon();
            return Err(self.lost());
        }
        let child = gate.open();
        let (stop_passed, guarded, asked) = (None, true, false);
        let (title, signals) = (&*words::names(self.names), &mut scene.signals);
        let running =
            Supervised { title, held, child, watch, warden, terminal, signals, outer, stop_passed, guarded, asked };
        running.follow().await
    }

    /// Gives the hold back after the command's end, and says how the program ends.
    pub async fn finish(&self, held: Held, ended: &Ended) -> Result<Outcome, Failure> {
        if ended.lost {
            return Err(self.lost());
        }
        match held.release().await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Lost => return Err(self.lost()),
            Err(error) => exit::say(&format!("lockkeeper: {error}"), error.hint()),
        }
        Ok((supervise::code_of(ended.status), ended.interrupted.then_some(Signal::SIGINT)))
    }

    /// The hold was lost while the command was running.
    pub fn lost(&self) -> Failure {
        let message = match self.names {
            [_] => format!("{} was lost while its command was running", words::names(self.names)),
            _ => format!("one of {} was lost while the command was running", words::names(self.names)),
        };
        let failure = Failure::new(exit::LOST, message);
        match self.at_most {
            Some(time) => failure.with_hint(format!("it was given {} by `--at-most`", words::span(time))),
            None => failure.with_hint("the command was ended; another may have run since, so look at what it left"),
        }
    }
}

/// How a lock was waited for.
#[derive(Debug, Clone, Copy)]
pub struct Waited {
    /// Not at all?
    pub no_wait: bool,
    pub wait: Patience,
    /// The exit code if it was not free.
    pub busy_exit: u8,
}

impl From<&Terms> for Waited {
    fn from(terms: &Terms) -> Self {
        Self { no_wait: terms.no_wait, wait: terms.wait, busy_exit: terms.busy_exit }
    }
}

impl Waited {
    /// Says who is in the way, and gives the exit code for that.
    pub async fn in_vain(self, scene: &Scene, names: &[String]) -> u8 {
        // Being busy was said to be fine, and what is said to a cron job is mailed to somebody.
        if self.busy_exit == 0 {
            return 0;
        }
        let (name, who) = in_the_way(scene, names).await;
        let message = match (who, self.wait) {
            (Some(who), _) if self.no_wait => format!("`{name}` is {who}"),
            (None, _) if self.no_wait => format!("`{name}` was not free"),
            (Some(who), Patience::For(time)) => {
                format!("`{name}` is {who} and was not free within {}", words::span(time))
            }
            (_, Patience::For(time)) => format!("`{name}` was not free within {}", words::span(time)),
            (_, Patience::Forever) => format!("`{name}` was not free"),
        };
        let longer = if self.no_wait { "wait for it with" } else { "wait longer with" };
        let hint = format!("see the line with `lockkeeper show {name}`, or {longer} `--wait 5m`");
        Failure::new(self.busy_exit, message).with_hint(hint).report()
    }
}

/// The first of the names that somebody has, and who.
async fn in_the_way<'n>(scene: &Scene, names: &'n [String]) -> (&'n str, Option<String>) {
    for name in names {
        let view = scene.keeper.inspect(name).await.ok().flatten();
        if let Some(who) = view.as_ref().and_then(|view| words::in_the_way(view, words::Detail::Full)) {
            return (name, Some(who));
        }
    }
    (names.first().map_or("", String::as_str), None)
}
