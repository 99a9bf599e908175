//! `limit`, `counter` and `cell`: small values that many change at once.
//!
//! Surprise: not being allowed, having too few and losing a race are the same exit code, 75: nothing is wrong, and
//! asking again later may succeed.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use lockkeeper::cell::Versioned;
use lockkeeper::kinds::{Decision, Swap};
use lockkeeper::limits::VALUE_BYTES;
use lockkeeper::{Keeper, Name};

use crate::args::{CellAction, CellArgs, CounterAction, CounterArgs, LimitArgs, Patience};
use crate::exit::{self, Failure};
use crate::look::{print, print_json, put};
use crate::{json, words};

/// Takes from a limit, now or within the time that was given.
pub async fn limit(keeper: &Keeper, args: &LimitArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    let limiter = keeper.limiter(&args.name, args.rate.limit, args.rate.per);
    let limiter = if args.fixed { limiter.fixed_window() } else { limiter };
    let begun = Instant::now();
    let decision = loop {
        let decision = limiter.try_take(args.take).await?;
        let Decision::Limited { retry_after: Some(pause), .. } = decision else { break decision };
        let patient = match args.wait {
            None => false,
            Some(Patience::Forever) => true,
            Some(Patience::For(time)) => begun.elapsed() + pause <= time,
        };
        if !patient {
            break decision;
        }
        // A little more, so that it is not asked a moment too soon.
        tokio::time::sleep(pause + Duration::from_millis(1)).await;
    };
    if args.json {
        print_json(&json::Limit::new(&args.name, &decision))?;
    }
    match decision {
        Decision::Admitted { .. } => Ok(0),
        Decision::Limited { retry_after: Some(pause), .. } => {
            let wait = format!("wait for it with `--wait {}s`", pause.as_secs() + 1);
            Err(Failure::new(
                exit::BUSY,
                format!("the limit of `{}` is reached; retry in {}", args.name, words::span(pause)),
            )
            .with_hint(wait))
        }
        Decision::Limited { retry_after: None, .. } => {
            let message = format!("`--take {}` is more than `--rate` ever allows at once", args.take);
            Err(Failure::new(exit::USAGE, message).with_hint("take fewer, or raise the rate for all who use the name"))
        }
    }
}

/// Reads or changes a number.
pub async fn counter(keeper: &Keeper, args: &CounterArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    let counter = keeper.counter(&args.name);
    let (done, value) = match args.action {
        CounterAction::Get => (true, counter.get().await?),
        CounterAction::Add { by } => (true, counter.add(by).await?),
        CounterAction::Take { by, floor } => match counter.clone().floor(floor).take(by).await? {
            Some(left) => (true, left),
            // Asked for again, so another may have changed it since; it is for people.
            None => (false, counter.get().await?),
        },
    };
    if args.json {
        print_json(&json::Counter::new(&args.name, done, value))?;
    } else if done {
        print(&format!("{value}\n"))?;
    }
    match args.action {
        CounterAction::Take { by, floor } if !done => {
            let message = format!("`{}` is {value}, and {by} less would be below the floor of {floor}", args.name);
            Err(Failure::new(exit::BUSY, message).with_hint("nothing was taken"))
        }
        _ => Ok(0),
    }
}

/// Reads or changes a value with a version.
pub async fn cell(keeper: &Keeper, args: &CellArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    let cell = keeper.cell(&args.name);
    match &args.action {
        CellAction::Get => match cell.get().await? {
            Some(found) if args.json => print_json(&json::Cell::found(&args.name, true, Some(&found))),
            Some(found) => put(&found.value).map(|_| 0),
            None => {
                if args.json {
                    print_json(&json::Cell::found(&args.name, false, None))?;
                }
                Err(Failure::new(exit::BUSY, format!("there is no cell `{}`", args.name)))
            }
        },
        CellAction::Put { value } => {
            let version = cell.put(&bytes(value)?).await?;
            tell_version(args, version)
        }
        CellAction::Cas { version, value } => match cell.compare_and_set(*version, &bytes(value)?).await? {
            Swap::Done(version) => tell_version(args, version),
            Swap::Conflict(current) => conflict(args, *version, current.as_ref()),
        },
        CellAction::Rm => {
            cell.remove().await?;
            if args.json { print_json(&json::Cell::found(&args.name, true, None)) } else { Ok(0) }
        }
    }
}

fn tell_version(args: &CellArgs, version: u64) -> Result<u8, Failure> {
    if args.json { print_json(&json::Cell::set(&args.name, version)) } else { print(&format!("{version}\n")) }
}

fn conflict(args: &CellArgs, wanted: u64, current: Option<&Versioned>) -> Result<u8, Failure> {
    if args.json {
        print_json(&json::Cell::found(&args.name, false, current))?;
    }
    let message = match current {
        Some(current) => format!("`{}` has version {}, not {wanted}", args.name, current.version),
        None => format!("`{}` is not there, and was expected with version {wanted}", args.name),
    };
    Err(Failure::new(exit::BUSY, message)
        .with_hint(format!("read it again with `lockkeeper cell {} get --json`; nothing was changed", args.name)))
}

/// The value itself, or what stdin has. One byte more than is allowed is enough to be refused.
fn bytes(value: &OsStr) -> Result<Vec<u8>, Failure> {
    if value != "-" {
        return Ok(value.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    match std::io::stdin().lock().take(VALUE_BYTES as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::new(exit::USAGE, format!("stdin cannot be read: {error}"))),
    }
}
