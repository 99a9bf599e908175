//! One input on one target: did it hold? If not, the input is made short and kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Target;

/// How many shorter inputs are tried of one that fails.
const SHORTER: usize = 2_000;

/// Runs it; what it said if something did not hold.
///
/// # Errors
/// The message of the panic.
pub fn holds(target: &Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
    })
}

/// The shortest input found that still fails.
pub fn shorten(target: &Target, input: &[u8]) -> Vec<u8> {
    let (mut best, mut tried) = (input.to_vec(), 0);
    let mut size = best.len() / 2;
    while size > 0 && tried < SHORTER {
        let mut at = 0;
        while at < best.len() && tried < SHORTER {
            let mut shorter = best.clone();
            shorter.drain(at..(at + size).min(best.len()));
            tried += 1;
            match holds(target, &shorter) {
                Err(_) => best = shorter,
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    best
}

/// Writes an input that fails where a person finds it; its path.
///
/// # Errors
/// When it cannot be written.
pub fn keep(target: &Target, input: &[u8]) -> io::Result<PathBuf> {
    let folder = target_folder().join("fuzz-found");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}-{:016x}", target.name, fingerprint(input)));
    fs::write(&path, input)?;
    Ok(path)
}

/// What to type to see it again.
pub fn command(target: &Target, input: &Path) -> String {
    format!("cargo run -p lockkeeper-fuzz -- {} --input {}", target.name, input.display())
}

/// What to say of an input that fails: it is kept, short and as it was.
pub fn report(target: &Target, input: &[u8], why: &str) -> String {
    // Shorter inputs fail in their hundreds, and what they say is known by now.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let short = shorten(target, input);
    std::panic::set_hook(hook);
    let kept = keep(target, &short).map_or_else(
        |error| format!("it cannot be kept: {error}"),
        |path| format!("it is kept; to see it again:\n  {}", command(target, &path)),
    );
    let shown = String::from_utf8_lossy(&short[..short.len().min(400)]).into_owned();
    format!("target `{}`: {why}\ninput ({} bytes): {shown:?}\n{kept}", target.name, short.len())
}

/// Cargo's target folder, which it marks.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().skip(1).find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), Path::to_owned)
}

fn fingerprint(input: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hash = DefaultHasher::new();
    input.hash(&mut hash);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICKY: Target = Target { name: "picky", about: "", words: &[], run: picky };

    fn picky(input: &[u8]) {
        assert!(!input.contains(&b'!'), "an exclamation mark");
    }

    #[test]
    fn what_fails_is_told_and_made_short() {
        assert_eq!(holds(&PICKY, b"fine"), Ok(()));
        assert_eq!(holds(&PICKY, b"no!"), Err("an exclamation mark".to_owned()));
        assert_eq!(shorten(&PICKY, b"a long text! with one in the middle"), b"!");
    }
}
