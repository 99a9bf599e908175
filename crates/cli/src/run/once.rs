//! `once`: run a command at most once per key, under the key's lock and with the same guard as `run`.

use lockkeeper::kinds::{Begun, Once, Run};
use lockkeeper::{ErrorKind, Keeper, Name};

use super::capture::Capture;
use super::held::Held;
use super::job::{Job, Waited};
use super::scene::{self, Came, Outcome, Scene};
use crate::args::{OnceArgs, Patience};
use crate::exit::{self, Failure};
use crate::look;

/// How much of the output is recorded: a cell's 64 KiB with room to spare for what else it may hold one day.
const RECORDED_BYTES: usize = 60 * 1024;

/// Runs the command unless that was done, and gives the exit code.
pub fn once(store: Option<&str>, args: &OnceArgs) -> Result<u8, Failure> {
    Name::new(&args.key)?;
    if args.forget {
        return scene::watch(store, async |scene| forget(scene, args).await);
    }
    scene::play(store, &args.command, args.label.as_deref(), async |scene| perform(scene, args).await)
}

fn wanted(keeper: &Keeper, args: &OnceArgs) -> Once {
    let mut once = keeper.once(&args.key).lease(args.lease);
    once = match args.wait {
        Patience::For(time) => once.wait(time),
        Patience::Forever => once.wait(std::time::Duration::MAX),
    };
    if let Some(time) = args.at_most {
        once = once.at_most(time);
    }
    if let Some(time) = args.at_least {
        once = once.at_least(time);
    }
    if let Some(time) = args.keep {
        once = once.keep(time);
    }
    if args.never_again {
        once = once.never_again();
    }
    if args.skip { once.skip() } else { once }
}

async fn perform(scene: &mut Scene, args: &OnceArgs) -> Result<Outcome, Failure> {
    let names = [args.key.clone()];
    let once = wanted(&scene.keeper, args);
    let held = match scene.wait_for(&names, !args.skip, patiently(once.begin())).await? {
        Came::It(Begun::Go(hold)) => Held::Key(hold),
        Came::It(Begun::Settled(Run::Recorded(output) | Run::Ran(output))) => {
            return if args.print { look::put(&output).map(|_| (0, None)) } else { Ok((0, None)) };
        }
        Came::It(Begun::Settled(Run::Died)) => return Err(died(args)),
        Came::It(Begun::Settled(Run::Running)) | Came::Busy => {
            return Ok((waited(args).in_vain(scene, &names).await, None));
        }
        Came::Signal(signal) => return Ok(scene::ended_by(signal)),
    };
    let job = Job { names: &names, command: &args.command, at_most: args.at_most, nests: false };
    let mut capture = Capture::start(RECORDED_BYTES)
        .map_err(|error| Failure::new(exit::BUG, format!("the command's output cannot be kept: {error}")))?;
    let ended = job.run(scene, &held, |command| capture.attach(command)).await?;
    // Whoever reads our output may not be done with it.
    let stopped = tokio::select! {
        () = capture.finish() => None,
        signal = scene.signals.fatal() => Some(signal),
    };
    if !ended.status.success() || ended.lost {
        return job.finish(held, &ended).await;
    }
    match held.record(&capture.kept()).await {
        Ok(()) => Ok(stopped.map_or((0, None), scene::ended_by)),
        Err(error) if error.kind() == ErrorKind::Lost => Err(job.lost()),
        Err(error) => {
            Err(Failure::from(error).with_hint("the command was run, but that is not recorded: it may run again"))
        }
    }
}

async fn forget(scene: &mut Scene, args: &OnceArgs) -> Result<Outcome, Failure> {
    let names = [args.key.clone()];
    let once = wanted(&scene.keeper, args);
    let came = scene.wait_for(&names, true, patiently(once.forget())).await?;
    Ok(match came {
        Came::It(()) => (0, None),
        Came::Busy => (waited(args).in_vain(scene, &names).await, None),
        Came::Signal(signal) => scene::ended_by(signal),
    })
}

/// Not getting it in time is not a failure.
async fn patiently<T>(taking: impl Future<Output = lockkeeper::Result<T>>) -> lockkeeper::Result<Option<T>> {
    match taking.await {
        Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
        other => other.map(Some),
    }
}

fn waited(args: &OnceArgs) -> Waited {
    Waited { no_wait: args.skip, wait: args.wait, busy_exit: args.busy_exit }
}

fn died(args: &OnceArgs) -> Failure {
    let key = &args.key;
    Failure::new(exit::LOST, format!("`{key}` was begun before and its run died, so it is not run again"))
        .with_hint(format!("see what it left; then allow another run with `lockkeeper once {key} --forget`"))
}
