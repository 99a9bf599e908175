//! `break`: taking a lock away from its holder.
//!
//! Surprise: by default nothing is freed. The holder's claim can no longer be renewed, and the name stays taken for
//! what is left of its lease, so that the holder has noticed before anyone else is in. Only `--now` frees at once.

use std::time::Duration;

use lockkeeper::store::{ClaimState, ClaimView, Keep, Left};
use lockkeeper::{Keeper, Name};

use crate::args::BreakArgs;
use crate::exit::{self, Failure};
use crate::look::print_json;
use crate::{json, words};

/// Breaks every hold on the name that there is now. Those who wait are left alone.
pub async fn break_lock(keeper: &Keeper, args: &BreakArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    let view = keeper.inspect(&args.name).await?;
    let claims = || view.iter().flat_map(|view| &view.claims);
    // With `--now` also what nobody holds any more, but stays taken: by `--at-least`, or by an earlier break.
    let breakable = |claim: &&ClaimView| match claim.state {
        ClaimState::Holding => true,
        ClaimState::Leaving => args.now,
        ClaimState::Waiting => false,
    };
    let holders: Vec<&ClaimView> = claims().filter(breakable).collect();
    if let (Some(reason), false) = (&args.reason, holders.is_empty()) {
        exit::say(&format!("lockkeeper: breaking `{}`: {}", args.name, words::note(reason.as_bytes())), None);
    }
    let mut broken = Vec::new();
    for claim in &holders {
        let keep = if args.now { Keep::Nothing } else { Keep::Lease };
        let left = keeper.break_claim(&args.name, claim.id, keep).await?;
        let (outcome, stays_taken) = match left {
            Left::NotHeld if claim.state == ClaimState::Leaving => ("broken", Duration::ZERO),
            Left::NotHeld => ("gone", Duration::ZERO),
            Left::Released => ("broken", stays_taken(keeper, args, claim).await?),
            Left::Unknown => ("unknown", stays_taken(keeper, args, claim).await?),
        };
        tell(args, claim, left, stays_taken);
        broken.push(json::Broken::new(claim, outcome, stays_taken));
    }
    if let (true, Some(leaving)) = (holders.is_empty(), claims().find(|claim| claim.state == ClaimState::Leaving)) {
        let left = words::span(leaving.lease_left);
        let hint = "`break --now --reason TEXT` frees it at once";
        exit::say(&format!("nobody holds `{}` any more; it stays taken for {left}", args.name), Some(hint));
    } else if holders.is_empty() {
        exit::say(&format!("nobody holds `{}`, so there is nothing to break", args.name), None);
    }
    if args.json {
        return print_json(&json::Break::new(&args.name, args.now, args.reason.as_deref(), broken));
    }
    Ok(0)
}

/// For how long the name is still taken by the broken hold. Asked afterwards: its holder may have renewed it until
/// the last moment.
async fn stays_taken(keeper: &Keeper, args: &BreakArgs, broken: &ClaimView) -> Result<Duration, Failure> {
    let view = keeper.inspect(&args.name).await?;
    let claim = view.iter().flat_map(|view| &view.claims).find(|claim| claim.id == broken.id);
    Ok(claim.map_or(Duration::ZERO, |claim| claim.lease_left))
}

fn tell(args: &BreakArgs, claim: &ClaimView, left: Left, stays_taken: Duration) {
    let (name, owner) = (&args.name, &claim.owner);
    match left {
        Left::NotHeld if claim.state == ClaimState::Leaving => {
            exit::say(&format!("`{name}` was kept after `{owner}` and is free now"), None);
        }
        Left::NotHeld => exit::say(&format!("`{owner}` had let go of `{name}` already"), None),
        Left::Released | Left::Unknown if args.now => exit::say(
            &format!("`{name}` was taken from `{owner}` and is free now"),
            Some("its holder may go on working until its next renewal: for that long there may be two"),
        ),
        Left::Released | Left::Unknown => exit::say(
            &format!("`{name}` was taken from `{owner}` and stays taken for {}", words::span(stays_taken)),
            Some("by then its holder has noticed; `--now --reason …` does not wait, and may give two holders"),
        ),
    }
}
