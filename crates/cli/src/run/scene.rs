//! What every command that runs something under a lock sets up, and puts away again: signals, a runtime, a keeper.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use lockkeeper::store::SharedStore;
use lockkeeper::{Keeper, Owner};
use nix::sys::signal::Signal;

use super::gate;
use super::nest;
use super::signals::Signals;
use super::terminal::Terminal;
use super::waiting;
use crate::client::{self, Opened};
use crate::exit::{self, Failure};

/// How long the end of the program may wait for the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// The exit code, and the signal to end of instead where the terminal's user has sent one.
pub type Outcome = (u8, Option<Signal>);

/// Where a command is run.
pub struct Scene {
    pub keeper: Keeper,
    pub store: SharedStore,
    /// The store as others on this machine would name it.
    pub identity: String,
    pub owner: Owner,
    pub signals: Signals,
}

/// What came of waiting for something.
pub enum Came<T> {
    It(T),
    /// It was not free in time.
    Busy,
    /// A signal ended the waiting.
    Signal(Signal),
}

/// Sets the scene, plays on it, and puts everything away. The command is looked for before anything else.
pub fn play(
    store: Option<&str>,
    command: &[OsString],
    label: Option<&str>,
    work: impl AsyncFnOnce(&mut Scene) -> Result<Outcome, Failure>,
) -> Result<u8, Failure> {
    let Some(command) = command.first() else { return Err(Failure::new(exit::USAGE, "there is no command")) };
    gate::check(command)?;
    let owner = Owner::new(&label.map_or_else(|| label_of(command), str::to_owned))?;
    perform(store, of_one_line(owner), work)
}

/// The variable that tells a `run` inside another one whose line of work it is part of.
pub const OWNER: &str = "LOCKKEEPER_OWNER";

/// A `run` inside another one is one line of work with it: only so a circle is seen in which the outer one holds what
/// somebody waits for, and the inner one waits.
fn of_one_line(owner: Owner) -> Owner {
    match std::env::var(OWNER).ok().and_then(|text| nest::owner_id(&text)) {
        Some(id) => Owner::stored(id, owner.host(), owner.pid(), owner.label()),
        None => owner,
    }
}

/// The same for those who only look, until a signal ends it.
pub fn watch(
    store: Option<&str>,
    work: impl AsyncFnOnce(&mut Scene) -> Result<Outcome, Failure>,
) -> Result<u8, Failure> {
    perform(store, Owner::new("")?, work)
}

fn perform(
    store: Option<&str>,
    owner: Owner,
    work: impl AsyncFnOnce(&mut Scene) -> Result<Outcome, Failure>,
) -> Result<u8, Failure> {
    let bug = |what: &str, error: &dyn std::error::Error| Failure::new(exit::BUG, format!("{what}: {error}"));
    // Before the runtime and the store have threads, which inherit what is blocked.
    let signals = Signals::listen().map_err(|error| bug("signals cannot be waited for", &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| bug("the runtime cannot be started", &error))?;
    runtime.block_on(async {
        let Opened { keeper, store, identity } = client::connect(store, Some(owner.clone())).await?;
        let mut scene = Scene { keeper, store, identity, owner, signals };
        let outcome = work(&mut scene).await;
        // What was dropped on the way is released before we go, if the store answers.
        let _ = tokio::time::timeout(CLOSE_WITHIN, scene.keeper.close()).await;
        let (code, ended_by) = outcome?;
        if let Some(signal) = ended_by {
            // A shell stops its loop only if the signal that was typed is what ended us.
            scene.signals.suffer(signal);
        }
        Ok(code)
    })
}

impl Scene {
    /// Waits for something to be taken, tells of it if `tells`, and leaves the line on a signal.
    pub async fn wait_for<T>(
        &mut self,
        names: &[String],
        tells: bool,
        taking: impl Future<Output = lockkeeper::Result<Option<T>>>,
    ) -> Result<Came<T>, Failure> {
        let mut taking = std::pin::pin!(taking);
        tokio::select! {
            biased;
            taken = &mut taking => Ok(taken?.map_or(Came::Busy, Came::It)),
            signal = self.signals.fatal() => Ok(Came::Signal(signal)),
            never = waiting::narrate(&self.keeper, names, &self.owner), if tells => match never {},
        }
    }
}

/// How a program ends that a signal has kept from starting its command.
pub fn ended_by(signal: Signal) -> Outcome {
    let typed = signal == Signal::SIGINT && Terminal::find().is_some_and(|terminal| terminal.is_ours());
    (exit::SIGNAL + signal as u8, typed.then_some(signal))
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
