//! `watch`: the lines as they change. A table on a terminal, lines elsewhere.
//!
//! Surprise: on a terminal it is also drawn anew every second, because the times tick; elsewhere only changes are told.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use lockkeeper::store::{LockView, Waiter};
use lockkeeper::{Error, Name};

use super::scene::{self, Outcome, Scene};
use crate::args::WatchArgs;
use crate::exit::{self, Failure};
use crate::look::{self, Reader};
use crate::{json, words};

/// How often it is looked where nobody tells us, and how often the times of a table tick.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Watches one lock or all of them, until a signal comes or nobody reads any more.
pub fn watch(store: Option<&str>, args: &WatchArgs) -> Result<u8, Failure> {
    let name = args.name.as_deref().map(Name::new).transpose()?;
    scene::watch(store, async |scene| follow(scene, name.as_ref(), args).await)
}

async fn follow(scene: &mut Scene, name: Option<&Name>, args: &WatchArgs) -> Result<Outcome, Failure> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let live = std::io::stdout().is_terminal() && !dumb && !args.json;
    let mut seen = Seen { first: name.cloned(), locks: BTreeMap::new() };
    let mut drawn = 0;
    loop {
        let views = tokio::select! {
            biased;
            signal = scene.signals.fatal() => return Ok(scene::ended_by(signal)),
            views = look(&scene.keeper, name) => views?,
        };
        let mark = views.first().map_or(0, LockView::fingerprint);
        let text = if live { draw(&views, &mut drawn) } else { seen.changes(views, args.json)? };
        if !text.is_empty() && look::put(&text)? == Reader::Gone {
            return Ok((0, None));
        }
        tokio::select! {
            biased;
            signal = scene.signals.fatal() => return Ok(scene::ended_by(signal)),
            () = news(scene.store.as_ref(), name, mark) => {}
        }
    }
}

/// The lines as they are now. A store that does not answer is asked again.
async fn look(keeper: &lockkeeper::Keeper, name: Option<&Name>) -> Result<Vec<LockView>, Failure> {
    let mut said = false;
    loop {
        let views = match name {
            Some(name) => keeper.inspect(name.as_str()).await.map(Vec::from_iter),
            None => look::all(keeper).await,
        };
        match views {
            Err(error) if error.is_transient() => {
                if !std::mem::replace(&mut said, true) {
                    exit::say(&format!("lockkeeper: {error}; going on"), Error::hint(&error));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            other => return Ok(other?),
        }
    }
}

/// Waits until looking again is worth it.
async fn news(store: &dyn lockkeeper::store::Store, name: Option<&Name>, seen: u64) {
    let Some(name) = name else { return tokio::time::sleep(LOOK_EVERY).await };
    if store.wait(name, Waiter::Observer { seen }, LOOK_EVERY).await.is_err() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What was told last.
struct Seen {
    /// Told of even if it is free, since it was asked for by name.
    first: Option<Name>,
    locks: BTreeMap<Name, u64>,
}

impl Seen {
    /// One line for every lock that has changed.
    fn changes(&mut self, views: Vec<LockView>, as_json: bool) -> Result<String, Failure> {
        let first = self.first.take().filter(|name| views.iter().all(|view| view.name != *name));
        let mut text = first.map(|name| line(&name, None, as_json)).transpose()?.unwrap_or_default();
        let mut before = std::mem::take(&mut self.locks);
        for view in &views {
            let mark = view.fingerprint();
            if before.remove(&view.name) != Some(mark) {
                text.push_str(&line(&view.name, Some(view), as_json)?);
            }
            self.locks.insert(view.name.clone(), mark);
        }
        for name in before.keys() {
            text.push_str(&line(name, None, as_json)?);
        }
        Ok(text)
    }
}

fn line(name: &Name, view: Option<&LockView>, as_json: bool) -> Result<String, Failure> {
    let at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    if as_json {
        return json::line(&json::Watch::new(at, name.as_str(), view));
    }
    let who = view
        .and_then(|view| words::in_the_way(view, words::Detail::Full))
        .unwrap_or_else(|| words::state(view).to_owned());
    let waiting = match view.map_or(0, words::waiting) {
        0 => String::new(),
        many => format!("; {many} in line"),
    };
    Ok(format!("{at} `{name}` is {who}{waiting}\n"))
}

/// The table, in place of the one drawn before. What does not fit is cut: a line that wraps could not be taken back.
fn draw(views: &[LockView], drawn: &mut usize) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| (size.ws_col, size.ws_row));
    let (width, height) = match size {
        Ok((width, height)) if width > 0 && height > 0 => (usize::from(width), usize::from(height)),
        _ => (80, 24),
    };
    let table = look::table(views).trim_fmt();
    let mut lines: Vec<String> = table.lines().map(|line| line.chars().take(width).collect()).collect();
    if views.is_empty() {
        lines = vec!["nobody holds or waits for a lock here".chars().take(width).collect()];
    }
    let room = height.saturating_sub(1).max(2);
    if lines.len() > room {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("… and {more} more").chars().take(width).collect());
    }
    let up = if *drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    *drawn = lines.len();
    format!("{up}\r\x1b[J{}\n", lines.join("\n"))
}
