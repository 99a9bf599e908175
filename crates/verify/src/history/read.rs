//! Reads the folder of a run into a [`History`], or says which line of which file cannot be read.
//!
//! Surprise: it is strict. A folder is evidence, and evidence that was damaged is none; only the last line of a worker may
//! be cut short, because a worker that is killed cannot finish it. Sizes are bounded, for a folder may come from anybody.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use lockkeeper_rig::Trouble;
use serde::de::DeserializeOwned;

use super::{Clutter, Event, Fault, Life, Register};
use crate::plan::Plan;

/// The longest line there may be. The writers' lines are a few hundred bytes.
const LINE_BYTES: usize = 64 * 1024;
/// The longest `plan.json` or `after.json`.
const DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// All lines of a run together: ten hours of a busy one.
const LINES: u64 = 20_000_000;
/// All lives of a run: one that is killed every second for a day.
const LIVES: usize = 100_000;

/// Everything that was written down in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// What was to be done.
    pub plan: Plan,
    /// What the workers wrote, by worker and life.
    pub lives: Vec<Lived>,
    /// What the registers did, in their order.
    pub registers: Vec<Register>,
    /// What was hurt.
    pub faults: Vec<Fault>,
    /// What was left; nothing if nobody looked.
    pub after: Option<Clutter>,
}

/// What one worker wrote in one life.
#[derive(Clone, Debug, PartialEq)]
pub struct Lived {
    /// Who.
    pub life: Life,
    /// Its lines.
    pub events: Vec<Event>,
    /// Was the last line cut short, and left out?
    pub cut_short: bool,
}

impl History {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// What is missing, damaged, or far larger than any run makes it, by file and line.
    pub fn read(folder: &Path) -> Result<Self, Trouble> {
        let plan: Plan = required(&folder.join("plan.json"))?;
        let mut budget = LINES;
        let mut lives = Vec::new();
        for (life, path) in worker_files(folder)? {
            let name = file_name(&path);
            let (events, cut_short) = worker_lines(&name, open(&path)?, &mut budget)?;
            belongs(&name, life, &events)?;
            lives.push(Lived { life, events, cut_short });
        }
        if lives.is_empty() {
            return Err(Trouble::new(format!("no worker wrote anything in `{}`", folder.display()))
                .hint("the folder of a run has `plan.json` and one `worker-<n>-<life>.jsonl` for each worker"));
        }
        Ok(History {
            plan,
            lives,
            registers: lines_of(&folder.join("registers.jsonl"), &mut budget)?,
            faults: lines_of(&folder.join("faults.jsonl"), &mut budget)?,
            after: document(&folder.join("after.json"))?,
        })
    }
}

/// Reads the lines of a worker; true if the last one was cut short and is left out.
///
/// # Errors
/// The first line that cannot be read, by its number.
pub fn worker_events(name: &str, lines: impl Read) -> Result<(Vec<Event>, bool), Trouble> {
    worker_lines(name, lines, &mut { LINES })
}

/// Reads the lines of the registers.
///
/// # Errors
/// The first line that cannot be read, by its number; also a last one that was cut short.
pub fn register_steps(name: &str, lines: impl Read) -> Result<Vec<Register>, Trouble> {
    whole_lines(name, lines, &mut { LINES })
}

/// Reads the lines of the nemesis.
///
/// # Errors
/// The first line that cannot be read, by its number; also a last one that was cut short.
pub fn faults(name: &str, lines: impl Read) -> Result<Vec<Fault>, Trouble> {
    whole_lines(name, lines, &mut { LINES })
}

/// The workers' files in the order of their workers and lives, whatever order the file system has them in.
fn worker_files(folder: &Path) -> Result<Vec<(Life, PathBuf)>, Trouble> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let name = file_name(&path);
        let Some(numbers) = name.strip_prefix("worker-").and_then(|rest| rest.strip_suffix(".jsonl")) else { continue };
        let life = numbers
            .split_once('-')
            .and_then(|(worker, life)| Some(Life { worker: worker.parse().ok()?, life: life.parse().ok()? }));
        let Some(life) = life else {
            return Err(Trouble::new(format!("`{name}` is not the name of a worker's file"))
                .hint("they are named `worker-<n>-<life>.jsonl`; move it elsewhere if it is not one"));
        };
        found.push((life, path));
        if found.len() > LIVES {
            return Err(too_much(&format!("more than {LIVES} lives of workers")));
        }
    }
    found.sort();
    if let Some(twice) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(Trouble::new(format!("{} has two files", twice[0].0)));
    }
    Ok(found)
}

/// A file belongs to the life it is named for.
fn belongs(name: &str, life: Life, events: &[Event]) -> Result<(), Trouble> {
    let stranger = events.iter().find_map(|event| match event {
        Event::Began { life: began, .. } if *began != life => Some(*began),
        _ => None,
    });
    match stranger {
        Some(stranger) => Err(Trouble::new(format!("`{name}` was written by {stranger}"))),
        None => Ok(()),
    }
}

fn worker_lines(name: &str, lines: impl Read, budget: &mut u64) -> Result<(Vec<Event>, bool), Trouble> {
    let mut events = Vec::new();
    let cut = each_line(name, lines, budget, &mut |event: Event| {
        check_token(match &event {
            Event::Held { token, .. } => token.as_deref(),
            _ => None,
        })?;
        events.push(event);
        Ok(())
    })?;
    Ok((events, cut.is_some()))
}

fn whole_lines<T: Line>(name: &str, lines: impl Read, budget: &mut u64) -> Result<Vec<T>, Trouble> {
    let mut found = Vec::new();
    let cut = each_line(name, lines, budget, &mut |line: T| {
        check_token(line.token())?;
        found.push(line);
        Ok(())
    })?;
    match cut {
        Some(number) => Err(damaged(name, number, "it is cut short")),
        None => Ok(found),
    }
}

fn lines_of<T: Line>(path: &Path, budget: &mut u64) -> Result<Vec<T>, Trouble> {
    whole_lines(&file_name(path), open(path)?, budget)
}

/// A line that may carry a token.
trait Line: DeserializeOwned {
    fn token(&self) -> Option<&str>;
}

impl Line for Register {
    fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

impl Line for Fault {
    fn token(&self) -> Option<&str> {
        None
    }
}

fn check_token(token: Option<&str>) -> Result<(), String> {
    match token.map(str::parse::<u64>) {
        Some(Err(_)) => Err("its token is not a number".to_owned()),
        _ => Ok(()),
    }
}

/// Gives every whole line to `take`; answers the number of a last line that has no end and cannot be read.
fn each_line<T: DeserializeOwned>(
    name: &str,
    lines: impl Read,
    budget: &mut u64,
    take: &mut dyn FnMut(T) -> Result<(), String>,
) -> Result<Option<u64>, Trouble> {
    let mut lines = BufReader::with_capacity(1 << 16, lines);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = LINE_BYTES as u64 + 2;
        (&mut lines)
            .take(limit)
            .read_until(b'\n', &mut line)
            .map_err(|error| Trouble::new(format!("`{name}` could not be read: {error}")))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > LINE_BYTES {
            return Err(damaged(name, number, &format!("it is longer than {LINE_BYTES} bytes")));
        }
        *budget = budget.checked_sub(1).ok_or_else(|| too_much(&format!("more than {LINES} lines")))?;
        let ended = line.last() == Some(&b'\n');
        match serde_json::from_slice(&line) {
            Ok(event) => take(event).map_err(|why| damaged(name, number, &why))?,
            Err(_) if !ended => return Ok(Some(number)),
            Err(error) => return Err(damaged(name, number, &error.to_string())),
        }
    }
    Ok(None)
}

fn required<T: DeserializeOwned>(path: &Path) -> Result<T, Trouble> {
    document(path)?.ok_or_else(|| {
        Trouble::new(format!("there is no `{}`", path.display())).hint("name the folder that a run has written")
    })
}

/// One JSON document; nothing if there is no such file.
fn document<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Trouble> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(DOCUMENT_BYTES + 1).read_to_end(&mut text).map_err(|error| unreadable(path, &error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    if text.len() as u64 > DOCUMENT_BYTES {
        return Err(too_much(&format!("`{}` with more than {DOCUMENT_BYTES} bytes", file_name(path))));
    }
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|error| Trouble::new(format!("`{}` cannot be read: {error}", file_name(path))))
}

fn open(path: &Path) -> Result<File, Trouble> {
    File::open(path).map_err(|error| unreadable(path, &error))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::new(format!("`{}` could not be read: {error}", path.display()))
        .hint("name the folder that a run has written, and see that it is whole")
}

fn damaged(name: &str, line: u64, why: &str) -> Trouble {
    Trouble::new(format!("line {line} of `{name}` cannot be read: {why}"))
        .hint("a history that was changed or cut proves nothing: run it again")
}

fn too_much(what: &str) -> Trouble {
    Trouble::new(format!("the history has {what}, and no run writes that much"))
        .hint("make a shorter run, with `--for`")
}
