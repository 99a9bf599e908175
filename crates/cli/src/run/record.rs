//! What `lockkeeper` and its guard tell each other: records of one size, so that a reader never has to guess where one ends.
//!
//! Single bytes come back. Writes this small are atomic on a pipe. Both ends are the same executable, so the layout needs no version.

use std::time::Duration;

use lockkeeper::time::Moment;
use rustix::process::Pid;

/// What the guard says when it is on its post.
pub const POSTED: u8 = b'+';
/// What the guard says when it has asked the group to end because the deadline is near.
pub const ASKED: u8 = b'!';

/// One thing the guard is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Whom to watch and until when; sent at the start and after every renewal.
    Watch(Watch),
    /// The hold is gone: end the group now.
    Lost,
    /// The command has ended: there is nothing left to guard.
    Done,
}

/// Whom the guard watches, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// The command's process group.
    pub group: Pid,
    /// When the hold runs out if it is not renewed: nobody of the group may be alive after this.
    pub deadline: Moment,
    /// How long before the deadline the group is asked to end.
    pub lead: Duration,
}

impl Watch {
    /// The command has this part of its time between being asked and being killed …
    const LEAD_PART: u32 = 6;
    /// … but not more than this, or `--at-most 1h` would give it 50 minutes.
    const LEAD_MAX: Duration = Duration::from_secs(10);

    /// Watches a group until `deadline`.
    ///
    /// The lead is a part of what is left, not of the lease that was asked for: a hold that came out of the line may
    /// begin with less, until its first renewal.
    pub fn new(group: Pid, deadline: Moment, now: Moment) -> Self {
        let lead = (now.until(deadline) / Self::LEAD_PART).min(Self::LEAD_MAX);
        Self { group, deadline, lead }
    }
}

impl Record {
    /// The size of every record.
    pub const BYTES: usize = 24;

    /// The record as it goes into the pipe.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (tag, group, deadline, lead) = match self {
            Self::Watch(watch) => {
                let lead = u64::try_from(watch.lead.as_nanos()).unwrap_or(u64::MAX);
                (1u32, watch.group.as_raw_pid(), watch.deadline.as_nanos(), lead)
            }
            Self::Lost => (2, 0, 0, 0),
            Self::Done => (3, 0, 0, 0),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&tag.to_le_bytes());
        bytes[4..8].copy_from_slice(&group.to_le_bytes());
        bytes[8..16].copy_from_slice(&deadline.to_le_bytes());
        bytes[16..].copy_from_slice(&lead.to_le_bytes());
        bytes
    }

    /// The record read back; `None` if it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let tag = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        let group = i32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
        let deadline = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        let lead = u64::from_le_bytes(bytes.get(16..Self::BYTES)?.try_into().ok()?);
        match tag {
            1 => {
                let (deadline, lead) = (Moment::from_nanos(deadline), Duration::from_nanos(lead));
                // Group 1 or below would be "everybody"; a negative one is not even a number for a process.
                let group = if group > 1 { Pid::from_raw(group)? } else { return None };
                Some(Self::Watch(Watch { group, deadline, lead }))
            }
            2 => Some(Self::Lost),
            3 => Some(Self::Done),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_pipe() {
        let watch = Watch {
            group: Pid::from_raw(4_711).expect("positive"),
            deadline: Moment::from_nanos(1 << 60),
            lead: Duration::from_millis(333),
        };
        for record in [Record::Watch(watch), Record::Lost, Record::Done] {
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
    }

    #[test]
    fn a_record_never_names_everybody() {
        let mut bytes = Record::Lost.to_bytes();
        bytes[0] = 1;
        for group in [-1i32, 0, 1] {
            bytes[4..8].copy_from_slice(&group.to_le_bytes());
            assert_eq!(Record::from_bytes(&bytes), None);
        }
    }
}
