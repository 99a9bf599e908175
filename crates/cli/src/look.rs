//! `ls` and `show`: the lines, for people and for programs. Nothing here changes anything.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use lockkeeper::deadlock::Circle;
use lockkeeper::limits::PAGE_ROWS;
use lockkeeper::store::{ClaimState, ClaimView, LockView};
use lockkeeper::{Keeper, Name};
use serde::Serialize;

use crate::args::{LsArgs, ShowArgs};
use crate::exit::{self, Failure};
use crate::{json, words};

/// Lists the locks that are held or waited for.
pub async fn ls(keeper: &Keeper, args: &LsArgs) -> Result<u8, Failure> {
    let views = all(keeper).await?;
    let circles = keeper.deadlocks().await?;
    if args.json {
        return print_json(&json::Ls::new(&views, &circles));
    }
    if views.is_empty() {
        exit::say("nobody holds or waits for a lock here", None);
        return Ok(0);
    }
    print(&format!("{}\n{}", table(&views).trim_fmt(), tell_circles(&circles)))
}

/// All lines that there are.
pub async fn all(keeper: &Keeper) -> lockkeeper::Result<Vec<LockView>> {
    let mut views: Vec<LockView> = Vec::new();
    loop {
        let page = keeper.list(views.last().map(|view| &view.name), PAGE_ROWS).await?;
        let full = page.len() == PAGE_ROWS;
        views.extend(page);
        if !full {
            return Ok(views);
        }
    }
}

/// The lines as a table for people.
pub fn table(views: &[LockView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NAME", "KIND", "HOLDER", "TOKEN", "HELD", "LEFT", "WAITING"]);
    for view in views {
        let mut inside = view.claims.iter().filter(|claim| claim.state != ClaimState::Waiting);
        let first = inside.next();
        let more = match inside.count() {
            0 => String::new(),
            more => format!(" +{more}"),
        };
        table.add_row([
            view.name.to_string(),
            view.kind.to_string(),
            first.map_or_else(dash, |claim| format!("{}{more}", holder(claim))),
            first.and_then(|claim| claim.token).map_or_else(dash, |token| token.to_string()),
            first.and_then(|claim| claim.held_for).map_or_else(dash, words::span),
            first.map_or_else(dash, |claim| words::span(claim.lease_left)),
            words::waiting(view).to_string(),
        ]);
    }
    for column in 3..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

fn holder(claim: &ClaimView) -> String {
    match claim.state {
        ClaimState::Leaving => format!("kept after {}", claim.owner),
        _ => claim.owner.to_string(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// Shows one lock and its line.
pub async fn show(keeper: &Keeper, args: &ShowArgs) -> Result<u8, Failure> {
    Name::new(&args.name)?;
    let view = keeper.inspect(&args.name).await?;
    let circles = circles_of(keeper, view.as_ref()).await?;
    if args.json {
        return print_json(&json::Show::new(&args.name, view.as_ref(), &circles));
    }
    match view {
        None => print(&format!("`{}` is free\n", args.name)),
        Some(view) => print(&format!("{}{}", describe(&view), tell_circles(&circles))),
    }
}

/// The circles that this lock is part of. Where nobody waits there is none.
async fn circles_of(keeper: &Keeper, view: Option<&LockView>) -> lockkeeper::Result<Vec<Circle>> {
    let Some(view) = view.filter(|view| words::waiting(view) > 0) else { return Ok(Vec::new()) };
    let mut circles = keeper.deadlocks().await?;
    circles.retain(|circle| circle.claims.iter().any(|stuck| stuck.name == view.name));
    Ok(circles)
}

/// Circles for people, one on a line, with a way out.
fn tell_circles(circles: &[Circle]) -> String {
    let mut text = String::new();
    for circle in circles {
        let waits = circle.claims.iter().map(|stuck| format!("`{}` waits for `{}`", stuck.owner, stuck.name));
        text.push_str(&format!("circle: {}\n", waits.collect::<Vec<_>>().join(", ")));
        if let Some(first) = circle.claims.first() {
            text.push_str(&format!(
                "  hint: nobody in it gets on; end one of them, or `lockkeeper break {}`\n",
                first.name
            ));
        }
    }
    text
}

fn describe(view: &LockView) -> String {
    let mut text = format!("{}  {}, {}\n", view.name, kind(view), words::state(Some(view)));
    let mut place = 0;
    for claim in &view.claims {
        let head = match claim.state {
            ClaimState::Holding => "held by".to_owned(),
            ClaimState::Leaving => "kept after".to_owned(),
            ClaimState::Waiting => {
                place += 1;
                format!("{} in line", words::ordinal(place))
            }
        };
        text.push_str(&format!("  {head}: {}\n", claim.owner));
        text.push_str(&format!("    {}\n", particulars(claim).join(", ")));
        if !claim.note.is_empty() {
            text.push_str(&format!("    note: {}\n", words::note(&claim.note)));
        }
    }
    text
}

fn kind(view: &LockView) -> String {
    // Only permits have a number that anybody chose.
    match view.kind {
        lockkeeper::LockKind::Semaphore => format!("{} of {}", view.kind, view.capacity),
        kind => kind.to_string(),
    }
}

fn particulars(claim: &ClaimView) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(token) = claim.token {
        parts.push(format!("token {token}"));
    }
    if claim.weight > 1 && claim.state == ClaimState::Holding {
        parts.push(format!("weight {}", claim.weight));
    }
    if let Some(held) = claim.held_for {
        parts.push(format!("held for {}", words::span(held)));
    } else if let Some(age) = claim.age {
        parts.push(format!("here for {}", words::span(age)));
    }
    let ends = if claim.state == ClaimState::Leaving { "stays taken for" } else { "lease left" };
    parts.push(format!("{ends} {}", words::span(claim.lease_left)));
    parts.push(format!("claim {}", claim.id));
    parts
}

/// One JSON object on stdout.
pub fn print_json(value: &impl Serialize) -> Result<u8, Failure> {
    print(&json::line(value)?)
}

/// Data on stdout. A reader that has gone away is no fault.
pub fn print(text: &str) -> Result<u8, Failure> {
    put(text).map(|_| 0)
}

/// Is there still somebody who reads?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    There,
    Gone,
}

/// Data on stdout, from somebody who stops when nobody reads.
pub fn put(data: impl AsRef<[u8]>) -> Result<Reader, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(data.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::new(exit::BUG, format!("the answer could not be written: {error}"))),
    }
}
