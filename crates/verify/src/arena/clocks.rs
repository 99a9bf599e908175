//! The wall clocks of the workers: each looks into a file of its own for how far it is off.
//!
//! Surprise: deadlines are kept by `CLOCK_BOOTTIME`, which is asked of the kernel past the library that steps clocks. So a
//! worker whose wall clock is an hour off must not notice, and this is what stepping it shows.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkeeper_rig::{FAKETIME, Identity, Trouble};

use crate::history::Event;

/// The clocks of a run's workers.
#[derive(Clone, Debug)]
pub struct Clocks {
    library: PathBuf,
    /// The run's folder.
    run: PathBuf,
    /// Where their files are.
    folder: PathBuf,
}

impl Clocks {
    /// Makes the folder that their files are in.
    pub(super) fn new(run: &Path) -> Result<Clocks, Trouble> {
        let library = FAKETIME.path().ok_or_else(|| Trouble::new(format!("`{}` is not installed", FAKETIME.file)))?;
        let folder = run.join("clocks");
        fs::create_dir_all(&folder).map_err(|e| Trouble::new(format!("cannot make {}: {e}", folder.display())))?;
        Ok(Clocks { library, run: run.to_owned(), folder })
    }

    /// What a worker's environment needs for it.
    pub(super) fn env(&self, worker: u32) -> Vec<(String, String)> {
        let own = |(key, value): (&str, String)| (key.to_owned(), value);
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file(worker).display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(own)
        .into()
    }

    /// Sets a worker's wall clock off from the true one, at once, for its present life and the next ones.
    pub fn step(&self, worker: u32, by: Duration, behind: bool) -> Option<()> {
        let (path, fresh) = (self.file(worker), self.folder.join(format!("worker-{worker}.new")));
        let sign = if behind { '-' } else { '+' };
        // In one move: the worker reads the file whenever it looks at its clock, and must not find half of it.
        fs::write(&fresh, format!("{sign}{}s\n", by.as_secs())).and_then(|()| fs::rename(&fresh, &path)).ok()
    }

    fn file(&self, worker: u32) -> PathBuf {
        self.folder.join(format!("worker-{worker}"))
    }

    /// Removes what the library left outside of the run's folder for workers that were killed.
    pub(super) fn sweep(&self) {
        let Ok(files) = fs::read_dir(&self.run) else { return };
        for pid in files.flatten().filter_map(|file| pid_in(&file.path())) {
            // A number that somebody has now is somebody's.
            if Identity::of(pid).is_none() {
                FAKETIME.left_by(pid).iter().for_each(|path| drop(fs::remove_file(path)));
            }
        }
    }
}

/// The process that wrote a worker's file.
fn pid_in(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    if !name.starts_with("worker-") || !name.ends_with(".jsonl") {
        return None;
    }
    let mut first = String::new();
    BufReader::new(fs::File::open(path).ok()?).read_line(&mut first).ok()?;
    match serde_json::from_str(&first) {
        Ok(Event::Began { pid, .. }) => Some(pid),
        _ => None,
    }
}
