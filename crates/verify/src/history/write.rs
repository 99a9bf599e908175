//! Writing a history down.
//!
//! Surprise: there is no buffer. A line is handed to the system in one call before the next thing is done, so that a
//! worker that is killed loses at most the line it was writing, and lines of several threads never mix.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use lockkeeper::time::Clock;
use lockkeeper_rig::Trouble;
use serde::Serialize;

use super::{Clutter, Life};
use crate::plan::Plan;

/// What was to be done.
pub const PLAN: &str = "plan.json";
/// What the registers did.
pub const REGISTERS: &str = "registers.jsonl";
/// What the nemesis did.
pub const FAULTS: &str = "faults.jsonl";
/// What was left.
pub const AFTER: &str = "after.json";

/// The file of one life of a worker.
pub fn worker_file(life: Life) -> String {
    format!("worker-{}-{}.jsonl", life.worker, life.life)
}

/// Now, in nanoseconds of the host's `CLOCK_BOOTTIME`: the same clock that deadlines are kept by.
pub fn now() -> u64 {
    Clock::system().now().as_nanos()
}

/// A file of JSON objects, one in a line, that only grows. Threads may share it.
#[derive(Debug)]
pub struct Lines {
    file: File,
    path: PathBuf,
}

impl Lines {
    /// Begins a new file. One that is there already belongs to another run, and is not touched.
    pub fn begin(path: &Path) -> Result<Self, Trouble> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        let file = file.map_err(|error| unwritable(path, &error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Adds a line.
    pub fn write(&self, line: &impl Serialize) -> Result<(), Trouble> {
        let mut bytes = Vec::with_capacity(192);
        serde_json::to_writer(&mut bytes, line).map_err(|error| unwritable(&self.path, &error))?;
        bytes.push(b'\n');
        // One call: the file is open to append, so the system keeps lines of other threads apart.
        match (&self.file).write(&bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(unwritable(&self.path, &"the disk took a part of a line only")),
            Err(error) => Err(unwritable(&self.path, &error)),
        }
    }
}

/// Writes the plan into the folder of its run; says where.
pub fn write_plan(folder: &Path, plan: &Plan) -> Result<PathBuf, Trouble> {
    write_whole(&folder.join(PLAN), plan)
}

/// Writes down what was left; says where.
pub fn write_after(folder: &Path, clutter: &Clutter) -> Result<PathBuf, Trouble> {
    write_whole(&folder.join(AFTER), clutter)
}

/// All of it or nothing: a reader never sees a part.
fn write_whole(path: &Path, value: &impl Serialize) -> Result<PathBuf, Trouble> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| unwritable(path, &error))?;
    bytes.push(b'\n');
    let draft = path.with_extension("draft");
    fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path)).map_err(|error| unwritable(path, &error))?;
    Ok(path.to_owned())
}

fn unwritable(path: &Path, why: &dyn std::fmt::Display) -> Trouble {
    Trouble::new(format!("`{}` cannot be written: {why}", path.display()))
}
