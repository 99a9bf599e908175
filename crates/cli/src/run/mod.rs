//! `lockkeeper run`: take the lock, run the command under it, give it back.
//!
//! Four processes take part: `lockkeeper` itself; the *gate*, which becomes the command; the *guard*, which ends the
//! command's group when the hold ends; and whatever the command starts. Read `gate`, `guard` and `supervise`, in
//! that order. Surprise: two of them are this very program in hidden modes, see [`hidden_mode`].

mod capture;
mod child;
mod elect;
mod gate;
mod group;
mod guard;
mod held;
mod job;
mod nest;
mod once;
mod record;
mod scene;
mod signals;
mod supervise;
mod terminal;
mod waiting;
mod wanted;
mod warden;
mod watch;

pub use self::elect::elect;
pub use self::once::once;
pub use self::watch::watch;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use self::held::Held;
use self::job::{Job, Waited};
use self::scene::{Came, Outcome, Scene};
use self::wanted::Wanted;
use crate::args::{RunArgs, Terms};
use crate::exit::Failure;

const GATE: &str = "__gate";
const GUARD: &str = "__guard";

/// Becomes the gate or the guard if this process was started as one of them.
pub fn hidden_mode() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next()?;
    match mode.to_str() {
        Some(GATE) => Some(gate::main(args)),
        Some(GUARD) => Some(guard::main(args)),
        _ => None,
    }
}

/// This very program, even if its file was replaced meanwhile.
fn own_executable() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Runs the command and gives the exit code.
pub fn run(store: Option<&str>, args: &RunArgs) -> Result<u8, Failure> {
    let names = wanted::names(args)?;
    scene::play(store, &args.command, args.terms.label.as_deref(), async |scene| {
        let wanted = Wanted::to_run(&scene.keeper, &names, args);
        let mut job = Job::new(&names, &args.command, &args.terms);
        job.nests = matches!(wanted, Wanted::Mutex(_) | Wanted::Several(_));
        under(scene, &job, &wanted, &args.terms).await
    })
}

/// Takes what is wanted, runs the command under it, and gives it back.
async fn under(scene: &mut Scene, job: &Job<'_>, wanted: &Wanted, terms: &Terms) -> Result<Outcome, Failure> {
    let waits = !terms.no_wait;
    let identity = scene.identity.clone();
    let taking = async {
        if job.nests
            && let Some(joined) = nest::join(&identity, job.names, job.at_most).await
        {
            return Ok(Some(Held::Outer(joined)));
        }
        wanted.take(waits).await
    };
    let held = match scene.wait_for(job.names, waits, taking).await? {
        Came::It(held) => held,
        Came::Busy => return Ok((Waited::from(terms).in_vain(scene, job.names).await, None)),
        Came::Signal(signal) => return Ok(scene::ended_by(signal)),
    };
    let ended = job.run(scene, &held, |_| {}).await?;
    job.finish(held, &ended).await
}
