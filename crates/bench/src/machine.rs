//! What the system tells of itself and of us: processor time, steal, memory, threads, and facts for the record.
//!
//! Surprise: no host name, user or path is ever read here, so that none can reach a file of results.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::Outcome;

/// Nanoseconds of `CLOCK_BOOTTIME`: comparable between the processes of one host.
pub fn boottime_nanos() -> u64 {
    nanos(ClockId::Boottime)
}

/// Processor time of this process so far, all threads.
pub fn process_cpu() -> Duration {
    Duration::from_nanos(nanos(ClockId::ProcessCPUTime))
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The processors' time so far, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// As `/proc/stat` tells now; nothing where there is none.
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").ok().and_then(|text| Self::parse(&text)).unwrap_or(Self { all: 0, stolen: 0 })
    }

    fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let fields: Vec<u64> = fields.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { all: fields.iter().sum(), stolen: *fields.get(7)? })
    }

    /// The share of time since `earlier` that the host of this machine gave to others.
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        if all == 0 { 0.0 } else { self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64 }
    }
}

/// The memory of this process that is in use, in bytes.
pub fn resident_bytes() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split_whitespace().nth(1).ok_or("/proc/self/statm has no second field")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// The threads of this process whose name begins so. The kernel keeps 15 bytes of a name.
pub fn threads_named(name: &str) -> Outcome<Vec<u32>> {
    let kept = &name[..name.len().min(15)];
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        // A thread may end while we look.
        let Ok(comm) = fs::read_to_string(task.path().join("comm")) else { continue };
        if comm.trim_end() == kept {
            found.push(task.file_name().to_string_lossy().parse()?);
        }
    }
    Ok(found)
}

/// Processor time of one thread of this process so far.
pub fn thread_cpu(thread: u32) -> Outcome<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    let nanos = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}

/// Processor time of another process so far, all its threads.
pub fn cpu_of(pid: u32) -> Outcome<Duration> {
    let mut nanos = 0_u64;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while we look.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanos += text.split_whitespace().next().ok_or("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The load of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// The sort of file system that a folder is on.
pub fn file_system(folder: &Path) -> Outcome<String> {
    // The field is signed on some machines; all magic numbers fit 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let magic = rustix::fs::statfs(folder)?.f_type as u32;
    Ok(match magic {
        0xef53 => "ext4".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x2fc1_2fc1 => "zfs".to_owned(),
        0x794c_7630 => "overlay".to_owned(),
        other => format!("magic {other:#x}"),
    })
}

/// What a record says of the machine.
pub fn facts(folder: &Path) -> Outcome<Value> {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kib: u64 = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next().and_then(|kib| kib.parse().ok()))
        .unwrap_or(0);
    Ok(json!({
        "processor": processor,
        "processors": std::thread::available_parallelism()?.get(),
        "memory_gib": (kib as f64 / f64::from(1 << 20) * 10.0).round() / 10.0,
        "system": std::env::consts::OS,
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "file_system": file_system(folder)?,
        "load_before": load(),
    }))
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// What a record says of the code: its commit, whether it was changed since, and versions.
pub fn versions(root: &Path) -> Value {
    let git = |args: &[&str]| said(Command::new("git").arg("-C").arg(root).args(args));
    // What this program writes itself does not make the code another.
    let changed = git(&["status", "--porcelain", "--", ".", ":!bench/results", ":!docs/bench.md"]);
    json!({
        "commit": git(&["rev-parse", "HEAD"]),
        "changed_since": changed.is_none_or(|changes| !changes.is_empty()),
        "lockkeeper": env!("CARGO_PKG_VERSION"),
        "rustc": said(Command::new("rustc").arg("--version")),
        "sqlite": rusqlite::version(),
    })
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Today, UTC, as year-month-day.
pub fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date of a day counted from 1970. Years begin in March here, so that the odd day of a leap year is the last.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Ticks::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        let after = Ticks::parse("cpu  30 0 20 130 0 0 0 20 9 0\n").unwrap();
        assert_eq!(before, Ticks { all: 100, stolen: 10 });
        assert_eq!(after.stolen_since(before), 0.1);
        assert_eq!(before.stolen_since(before), 0.0);
        assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn days_have_dates() {
        for (days, text) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_773, "2026-11-16")] {
            assert_eq!(date(days), text);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_are_found_by_the_first_15_bytes_of_their_name() {
        let (ready, wait) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("bench-a-very-long-name".into());
        let thread = named.spawn(move || wait.recv().ok()).unwrap();
        while threads_named("bench-a-very-long-name").unwrap().is_empty() {
            std::thread::yield_now();
        }
        let found = threads_named("bench-a-very-long-name").unwrap();
        assert_eq!(found.len(), 1);
        assert!(thread_cpu(found[0]).unwrap() < Duration::from_secs(60));
        drop(ready);
        thread.join().unwrap();
        assert!(resident_bytes().unwrap() > 4_096);
    }
}
