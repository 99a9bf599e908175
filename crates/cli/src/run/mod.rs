//! `lockkeeper run`: take the lock, run the command under it, give it back.
//!
//! Four processes take part: `lockkeeper` itself; the *gate*, which becomes the command; the *guard*, which ends the
//! command's group when the hold ends; and whatever the command starts. Read `gate`, `guard` and `supervise`, in
//! that order. Surprise: two of them are this very program in hidden modes, see [`hidden_mode`].

mod child;
mod gate;
mod group;
mod guard;
mod record;
mod signals;
mod supervise;
mod terminal;
mod waiting;
mod warden;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use lockkeeper::{ErrorKind, Hold, Keeper, Name, Owner};
use nix::sys::signal::Signal;

use self::gate::Gate;
use self::record::Watch;
use self::signals::Signals;
use self::supervise::{Ended, Supervised};
use self::terminal::Terminal;
use self::warden::Warden;
use crate::args::{Patience, RunArgs};
use crate::exit::{self, Failure};
use crate::{client, words};

const GATE: &str = "__gate";
const GUARD: &str = "__guard";

/// Variables of ours that hold a secret and are not for the command.
const SECRETS: [&str; 2] = ["LOCKKEEPER_PASSWORD", "LOCKKEEPER_PASSWORD_FILE"];

/// How long the end of the program may wait for the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Becomes the gate or the guard if this process was started as one of them.
pub fn hidden_mode() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next()?;
    match mode.to_str() {
        Some(GATE) => Some(gate::main(args)),
        Some(GUARD) => Some(guard::main()),
        _ => None,
    }
}

/// This very program, even if its file was replaced meanwhile.
fn own_executable() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Runs the command and gives the exit code.
pub fn run(store: Option<&str>, args: &RunArgs) -> u8 {
    match attempt(store, args) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn attempt(store: Option<&str>, args: &RunArgs) -> Result<u8, Failure> {
    let Some(command) = args.command.first() else { return Err(Failure::new(exit::USAGE, "there is no command")) };
    gate::check(command)?;
    Name::new(&args.name)?;
    let owner = Owner::new(&args.label.clone().unwrap_or_else(|| label_of(command)))?;
    let bug = |what: &str, error: &dyn std::error::Error| Failure::new(exit::BUG, format!("{what}: {error}"));
    // Before the runtime and the store have threads, which inherit what is blocked.
    let mut signals = Signals::listen().map_err(|error| bug("signals cannot be waited for", &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| bug("the runtime cannot be started", &error))?;
    let (code, ended_by) = runtime.block_on(async {
        let keeper = client::connect(store, Some(owner.clone())).await?;
        let outcome = locked(&keeper, &owner, args, &mut signals).await;
        // What was dropped on the way is released before we go, if the store answers.
        let _ = tokio::time::timeout(CLOSE_WITHIN, keeper.close()).await;
        outcome
    })?;
    if let Some(signal) = ended_by {
        // A shell stops its loop only if the signal that was typed is what ended us.
        signals.suffer(signal);
    }
    Ok(code)
}

/// The exit code, and the signal to end of instead where the terminal's user has sent one.
type Outcome = (u8, Option<Signal>);

async fn locked(keeper: &Keeper, owner: &Owner, args: &RunArgs, signals: &mut Signals) -> Result<Outcome, Failure> {
    let hold = match take(keeper, owner, args, signals).await? {
        Taken::Hold(hold) => hold,
        Taken::Busy => return Ok((busy(keeper, args).await, None)),
        Taken::Signal(signal) => {
            let typed = signal == Signal::SIGINT && Terminal::find().is_some_and(|terminal| terminal.is_ours());
            return Ok((exit::SIGNAL + signal as u8, typed.then_some(signal)));
        }
    };
    let ended = under(&hold, args, signals).await?;
    if ended.lost {
        return Err(lost(args));
    }
    let outcome = (supervise::code_of(ended.status), ended.interrupted.then_some(Signal::SIGINT));
    match hold.release().await {
        Ok(()) => Ok(outcome),
        Err(error) if error.kind() == ErrorKind::Lost => Err(lost(args)),
        Err(error) => {
            exit::say(&format!("lockkeeper: {error}"), error.hint());
            Ok(outcome)
        }
    }
}

fn lost(args: &RunArgs) -> Failure {
    let failure = Failure::new(exit::LOST, format!("`{}` was lost while its command was running", args.name));
    match args.at_most {
        Some(time) => failure.with_hint(format!("it was given {} by `--at-most`", words::span(time))),
        None => failure.with_hint("the command was ended; another may have run since, so look at what it left"),
    }
}

enum Taken {
    Hold(Hold),
    Busy,
    Signal(Signal),
}

/// Waits for the lock, tells of it, and leaves the line on a signal.
async fn take(keeper: &Keeper, owner: &Owner, args: &RunArgs, signals: &mut Signals) -> Result<Taken, Failure> {
    let mut mutex = keeper.mutex(&args.name).lease(args.lease).note(args.note.clone());
    if let Some(time) = args.at_most {
        mutex = mutex.at_most(time);
    }
    if let Some(time) = args.at_least {
        mutex = mutex.at_least(time);
    }
    if let Some(time) = args.lock_delay {
        mutex = mutex.lock_delay(time);
    }
    mutex = match args.wait {
        Patience::For(time) => mutex.wait(time),
        Patience::Forever => mutex.forever(),
    };
    if args.no_wait {
        return Ok(mutex.try_lock().await?.map_or(Taken::Busy, Taken::Hold));
    }
    let mut locking = std::pin::pin!(mutex.lock());
    loop {
        let signal = tokio::select! {
            biased;
            taken = &mut locking => return match taken {
                Ok(hold) => Ok(Taken::Hold(hold)),
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(Taken::Busy),
                Err(error) => Err(error.into()),
            },
            signal = signals.next() => signal,
            never = waiting::narrate(keeper, &args.name, owner) => match never {},
        };
        match signal {
            Signal::SIGTSTP => signals.suffer(signal),
            Signal::SIGCONT | Signal::SIGWINCH => {}
            ends => return Ok(Taken::Signal(ends)),
        }
    }
}

/// Says who has the lock, and gives the exit code for that.
async fn busy(keeper: &Keeper, args: &RunArgs) -> u8 {
    let name = &args.name;
    let view = keeper.inspect(name).await.ok().flatten();
    let who = view.as_ref().and_then(words::in_the_way);
    let message = match (who, args.wait) {
        (Some(who), _) if args.no_wait => format!("`{name}` is {who}"),
        (None, _) if args.no_wait => format!("`{name}` was not free"),
        (Some(who), Patience::For(time)) => format!("`{name}` is {who} and was not free within {}", words::span(time)),
        (_, Patience::For(time)) => format!("`{name}` was not free within {}", words::span(time)),
        (_, Patience::Forever) => format!("`{name}` was not free"),
    };
    let longer = if args.no_wait { "wait for it with" } else { "wait longer with" };
    let hint = format!("see the line with `lockkeeper show {name}`, or {longer} `--wait 5m`");
    Failure::new(args.busy_exit, message).with_hint(hint).report()
}

/// Runs the command under the hold, guarded from its first instruction on.
async fn under(hold: &Hold, args: &RunArgs, signals: &mut Signals) -> Result<Ended, Failure> {
    let gate = Gate::close(&args.command, |command| environment(command, hold))
        .map_err(|error| Failure::new(exit::BUG, format!("no process could be started: {error}")))?;
    let lead = supervise::lead(args.at_most.unwrap_or(args.lease));
    let watch = Watch { group: gate.group(), deadline: hold.deadline(), lead };
    let warden = match Warden::post(watch).await {
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
    if !hold.is_held() {
        if let Some(terminal) = &mut terminal {
            terminal.take_back();
        }
        gate.abandon();
        return Err(lost(args));
    }
    let child = gate.open();
    let (stop_passed, guarded, asked) = (None, true, false);
    let name = &args.name;
    Supervised { name, hold, child, watch, warden, terminal, signals, stop_passed, guarded, asked }.follow().await
}

fn environment(command: &mut Command, hold: &Hold) {
    command.env("LOCKKEEPER_NAME", hold.name().as_str());
    match hold.token() {
        Some(token) => command.env("LOCKKEEPER_TOKEN", token.to_string()),
        // One of an outer `run` would be taken for this one's.
        None => command.env_remove("LOCKKEEPER_TOKEN"),
    };
    for secret in SECRETS {
        command.env_remove(secret);
    }
}

/// What others see the holder by: the last part of the command's path, within the limits of labels.
fn label_of(command: &OsString) -> String {
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    let mut label = String::new();
    for c in name.chars().filter(|c| !c.is_control()) {
        if label.len() + c.len_utf8() > lockkeeper::limits::LABEL_BYTES {
            break;
        }
        label.push(c);
    }
    label
}
