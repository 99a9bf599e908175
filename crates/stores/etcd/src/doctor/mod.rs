//! Is this cluster set up to be trusted with locks? What `lockkeeper doctor` asks an etcd, and what the answers mean.
//!
//! Each file looks at one thing: `seen` collects what members tell of themselves, `trials` what is done for real, and the
//! others judge it without asking further. Surprise: the cluster is changed, but only under a name that nobody else has: a
//! lock is really taken there, and the server's own lock is tried for the fault it is known for.

mod leading;
mod members;
mod metrics;
mod own_lock;
mod rights;
mod seen;
mod server;
mod space;
mod speed;
mod trials;

use lockkeeper_core::checkup::{Finding, Level, Promise, Report, Trial, trial};
use lockkeeper_core::store::Store;
use lockkeeper_core::{ClaimId, Name, Result};

use self::seen::Seen;
pub(crate) use self::seen::{Told, endpoint};
use self::trials::Trials;
use crate::link::Link;
use crate::options::Options;
use crate::store::{Etcd, profile};

/// Looks a cluster over.
///
/// What may not be asked is said to be unknown. A lock is taken and released under a name of its own, and everything is
/// taken away again. Members that the options do not name are asked how they are, too, where the cluster says they listen;
/// they are not told who we are.
///
/// # Errors
/// `Unavailable` if no member answers, `Denied` if the cluster does not let us in.
///
/// # Round trips
/// Some sixty, most of them to see how long they take.
pub async fn checkup(options: Options) -> Result<Report> {
    let place = format!("{}doctor/{}", options.listed_under, ClaimId::random()?);
    let link = Link::new(std::sync::Arc::new(options.clone()));
    let mut seen = Seen::look(&link).await?;
    let trials = match seen.has_leader() {
        true => Some(Trials::make(&link, &place).await?),
        // Whoever is asked for more than what it knows itself stays silent until the time is up.
        false => None,
    };
    let tried = try_out(options.clone(), &Name::stored(&place)?).await;
    seen.look_again(&link).await;
    link.close();
    Ok(told(&options, &seen, trials.as_ref(), &tried))
}

/// All that was seen and tried, judged.
fn told(options: &Options, seen: &Seen, trials: Option<&Trials>, tried: &Result<Trial>) -> Report {
    let address: Vec<String> = options.endpoints.iter().map(ToString::to_string).collect();
    let mut report = Report::new("etcd", address.join(","));
    report.promise_of(&profile(seen.voters().unwrap_or(options.endpoints.len())));
    server::tell(seen, &mut report);
    members::tell(options, seen, &mut report);
    leading::tell(seen, &mut report);
    space::tell(seen, &mut report);
    rights::tell_transport(options, trials.and_then(|trials| trials.users), &mut report);
    if let Some(trials) = trials {
        rights::tell(options, &trials.rights, &mut report);
        speed::tell(trials.speed.as_ref(), &mut report);
        speed::tell_lease(options, trials.shortest, &mut report);
        own_lock::tell(&trials.own_lock, &mut report);
    }
    report
        .find(Finding::good("clock", "no clock is asked that anybody could set: the leader counts the time of leases"));
    tell_trial(tried, &mut report);
    report.sorted()
}

/// What is said of a cluster that told this, and where no lock was tried. For the fuzz targets.
pub(crate) fn judged(options: &Options, told: Told) -> Report {
    let untried = lockkeeper_core::Error::new(lockkeeper_core::ErrorKind::Unavailable, "no lock was tried");
    self::told(options, &Seen::told(options, told), None, &Err(untried))
}

/// Takes a lock and hands it on, as any client would.
async fn try_out(options: Options, name: &Name) -> Result<Trial> {
    let store = Etcd::open(options).await?;
    let tried = trial(&*store, name).await;
    let _ = store.close().await;
    tried
}

fn tell_trial(tried: &Result<Trial>, report: &mut Report) {
    match tried {
        Ok(trial) => {
            report.fact("hand-over", speed::ms(trial.handed_over_in));
            let found = "a lock was taken, renewed, handed over and released";
            report.find(Finding::good("trial", found));
            report.promise(Promise::Usable, true, found, None);
        }
        Err(error) => {
            let means = "locks do not work here, for this user and now";
            let finding = Finding::new("trial", Level::Danger, error.to_string(), means);
            let hint = error.hint().map(str::to_owned);
            report.find(match &hint {
                Some(hint) => finding.with_change(hint),
                None => finding,
            });
            // Where nothing can be taken, nobody is told, nothing is served in order and nothing has a token.
            for promise in [Promise::Usable, Promise::WritablePrimary, Promise::Tokens, Promise::Push, Promise::Fair] {
                report.promise(promise, false, error.to_string(), hint.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
