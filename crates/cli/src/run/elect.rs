//! `elect`: lead while a command runs, or watch who leads.

use lockkeeper::Name;
use lockkeeper::kinds::Observer;

use super::job::Job;
use super::scene::{self, Outcome, Scene};
use super::wanted::Wanted;
use crate::args::ElectArgs;
use crate::exit::Failure;
use crate::look::{self, Reader};
use crate::{json, words};

/// Leads for one term, or watches.
pub fn elect(store: Option<&str>, args: &ElectArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    if args.watch {
        return scene::watch(store, async |scene| watch(scene, args).await);
    }
    scene::play(store, &args.command, args.terms.label.as_deref(), async |scene| {
        let names = [args.name.clone()];
        let wanted = Wanted::to_lead(&scene.keeper, &args.name, &args.terms);
        super::under(scene, &Job::new(&names, &args.command, &args.terms), &wanted, &args.terms).await
    })
}

/// Prints who leads and whenever that changes, until a signal comes or nobody reads any more.
async fn watch(scene: &mut Scene, args: &ElectArgs) -> Result<Outcome, Failure> {
    let mut observer = scene.keeper.election(&args.name).observe()?;
    loop {
        let told = tokio::select! {
            biased;
            signal = scene.signals.fatal() => return Ok(scene::ended_by(signal)),
            told = tell(&mut observer, args) => told?,
        };
        if look::put(&told)? == Reader::Gone {
            return Ok((0, None));
        }
    }
}

async fn tell(observer: &mut Observer, args: &ElectArgs) -> Result<String, Failure> {
    let leader = observer.next().await?;
    if args.json {
        return json::line(&json::Elect::new(&args.name, leader.as_ref()));
    }
    let Some(leader) = leader else { return Ok("nobody leads\n".to_owned()) };
    let token = leader.token.map(|token| format!(" with token {token}")).unwrap_or_default();
    let note = if leader.note.is_empty() { String::new() } else { format!(": {}", words::note(&leader.note)) };
    Ok(format!("{} leads{token}{note}\n", leader.owner))
}
