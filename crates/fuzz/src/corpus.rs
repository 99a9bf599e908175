//! The inputs that are kept: `corpus/<target>/<what it is>`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the corpus of this source tree is.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files of one target with their names, in order; none if there is no such folder.
///
/// # Errors
/// When the folder or a file of it cannot be read.
pub fn read(corpus: &Path, target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = corpus.join(target);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        inputs.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    inputs.sort();
    Ok(inputs)
}
