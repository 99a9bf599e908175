//! Which clock a time was read from. Times of one epoch can be compared; times of two cannot.
//!
//! On Linux an epoch is one boot of the kernel and the offset of our time namespace, so that two containers with
//! equal offsets share it. Surprise: it is kept as a 64-bit hash of those, which every process must compute alike.

/// The epoch of a clock, as it is kept in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(pub(crate) i64);

impl Epoch {
    /// The epoch of this process's clock.
    pub(crate) fn here() -> Self {
        match description() {
            Some(text) => Self::named(&text),
            // An epoch of our own: others wait a whole lease, which is slow but safe.
            None => Self(fastrand::i64(..)),
        }
    }

    /// The epoch that this text describes.
    pub(crate) fn named(text: &str) -> Self {
        Self(fnv1a(text.as_bytes()).cast_signed())
    }
}

/// FNV-1a, written out because all processes and versions must agree on it.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(target_os = "linux")]
fn description() -> Option<String> {
    use std::fs;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let offset = match fs::read_to_string("/proc/self/timens_offsets") {
        Ok(text) => {
            // The file tells the offset of our children. Between `unshare` and `exec` it is not ours.
            let (ours, theirs) =
                (fs::read_link("/proc/self/ns/time").ok()?, fs::read_link("/proc/self/ns/time_for_children").ok()?);
            if ours != theirs {
                return None;
            }
            boottime(&text)?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "0 0".to_owned(),
        Err(_) => return None,
    };
    Some(format!("{} {offset}", boot.trim()))
}

#[cfg(not(target_os = "linux"))]
fn description() -> Option<String> {
    None
}

/// The seconds and nanoseconds of the `boottime` line.
#[cfg(target_os = "linux")]
fn boottime(text: &str) -> Option<String> {
    let mut fields = text.lines().map(str::split_whitespace).find_map(|mut line| {
        let clock = line.next()?;
        matches!(clock, "boottime" | "7").then_some(line)
    })?;
    Some(format!("{} {}", fields.next()?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_offset_is_read_whatever_its_spacing() {
        assert_eq!(boottime("monotonic           0         0\nboottime       -3600       250\n").unwrap(), "-3600 250");
        assert_eq!(boottime("monotonic 0 0\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_process_has_one_epoch() {
        assert_eq!(Epoch::here(), Epoch::here());
        assert_ne!(Epoch::here(), Epoch::named("another boot"));
    }
}
