//! Process groups from outside: signalling one, asking whether anybody in it is still alive, and ending it.
//!
//! Surprise: `kill(-group, 0)` succeeds for the dead too. A zombie that its parent has not collected yet still
//! counts, and the parent may be a stopped `lockkeeper`; so where the system has `/proc`, the states are read there.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Sends a signal to everybody in a group; a group that is gone is fine.
pub fn signal(group: Pid, signal: Signal) {
    // A group we may not signal (`sudo` in it) is found alive later, and the caller goes on trying.
    let _ = kill_process_group(group, signal);
}

/// Asks a group to end: TERM, and CONT so that a stopped process hears it.
pub fn ask_to_end(group: Pid) {
    signal(group, Signal::TERM);
    signal(group, Signal::CONT);
}

/// Kills a group, and again whoever was born meanwhile, until nobody is left.
pub fn end(group: Pid) {
    let mut pause = Duration::from_millis(1);
    loop {
        signal(group, Signal::KILL);
        if !is_alive(group) {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Is anybody of the group still running or stopped (and not merely waiting to be collected)?
pub fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    living_member(group).unwrap_or(true)
}

/// Looks through `/proc`; `None` where there is none.
#[cfg(target_os = "linux")]
fn living_member(group: Pid) -> Option<bool> {
    let mut any = false;
    for entry in std::fs::read_dir("/proc").ok()? {
        let name = entry.ok()?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) else { continue };
        // A process that ends while we look is no longer alive.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        any |= state_and_group(&stat).is_some_and(|(state, its)| its == group.as_raw_pid() && !"ZX".contains(state));
    }
    Some(any)
}

#[cfg(not(target_os = "linux"))]
fn living_member(_group: Pid) -> Option<bool> {
    None
}

/// `pid (name) state ppid pgrp …`; the name may hold blanks and parentheses, so it is cut at the last one.
#[cfg(target_os = "linux")]
fn state_and_group(stat: &str) -> Option<(char, i32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn odd_names_do_not_confuse_the_reader() {
        assert_eq!(state_and_group("12 (a) b (c)) S 1 77 77 0"), Some(('S', 77)));
        assert_eq!(state_and_group("nonsense"), None);
    }

    #[test]
    fn the_dead_are_not_alive_before_they_are_collected() {
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().expect("sleep starts");
        let group = Pid::from_child(&child);
        assert!(is_alive(group));
        end(group);
        // Still a zombie: this process has not waited for it.
        assert!(test_kill_process_group(group).is_ok());
        assert!(!is_alive(group));
        child.wait().expect("it is ours");
        assert!(test_kill_process_group(group).is_err());
    }
}
