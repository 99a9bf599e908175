//! The tree's own rules: sizes, headers, words that must not stay, links that must lead somewhere.
//!
//! The surprise: files that git does not know yet are checked too, so a rule fails before the commit, not after it.

mod functions;
mod manifest;
mod mask;
mod rust;
mod text;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockkeeper_rig::Trouble;

/// Nothing in the tree is larger; results and pictures belong somewhere else.
const LARGEST_FILE_BYTES: u64 = 512 * 1024;

/// One broken rule: where, which, and what to do.
#[derive(Debug)]
pub struct Finding {
    /// The file, from the root of the tree.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}

/// One file under check.
struct File<'a> {
    path: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn finding(&self, line: usize, rule: &'static str, advice: impl Into<String>) -> Finding {
        Finding { path: self.path.to_string(), line, rule, advice: advice.into() }
    }
}

/// Checks the whole tree; an empty answer is a tidy tree.
pub fn check(root: &Path) -> Result<Vec<Finding>, Trouble> {
    let mut found = Vec::new();
    let paths = tracked(root)?;
    if paths.is_empty() {
        return Err(Trouble::new(format!("no files found under {}", root.display())));
    }
    for path in &paths {
        let full = root.join(path);
        let Ok(about) = full.symlink_metadata() else { continue }; // deleted, and the deletion not yet committed
        if !about.is_file() {
            continue;
        }
        if about.len() > LARGEST_FILE_BYTES {
            let advice = format!("{} KiB: keep files under {} KiB", about.len() / 1024, LARGEST_FILE_BYTES / 1024);
            found.push(Finding { path: path.clone(), line: 1, rule: "file-size", advice });
            continue;
        }
        let bytes = std::fs::read(&full).map_err(|e| Trouble::new(format!("cannot read {}: {e}", full.display())))?;
        match String::from_utf8(bytes) {
            Ok(text) => check_file(root, &File { path, text: &text }, &mut found),
            Err(_) if path.ends_with(".rs") => {
                let advice = "not UTF-8: save it as UTF-8".to_string();
                found.push(Finding { path: path.clone(), line: 1, rule: "encoding", advice });
            }
            Err(_) => {} // a picture or the like: only its size is our business
        }
    }
    Ok(found)
}

fn check_file(root: &Path, file: &File<'_>, found: &mut Vec<Finding>) {
    let name = file.path.rsplit('/').next().unwrap_or(file.path);
    if name == "Cargo.lock" {
        return;
    }
    if file.path.ends_with(".rs") {
        rust::check(file, found);
    }
    if file.path.ends_with(".md") {
        text::check_links(root, file, found);
    }
    if name == "Cargo.toml" {
        manifest::check(file, found);
    }
    text::check_places(file, found);
}

/// Tracked files and those that would be: what a clean checkout holds, plus what is about to be committed.
fn tracked(root: &Path) -> Result<Vec<String>, Trouble> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths = match listing {
        Ok(out) if out.status.success() => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            text.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect()
        }
        _ => {
            let mut paths = Vec::new(); // no git here, or an unpacked archive
            walk(root, &PathBuf::new(), &mut paths)?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path, below: &Path, paths: &mut Vec<String>) -> Result<(), Trouble> {
    let folder = root.join(below);
    let entries = folder.read_dir().map_err(|e| Trouble::new(format!("cannot list {}: {e}", folder.display())))?;
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            paths.push(path.to_string_lossy().into_owned());
        } else if kind.is_dir() && !matches!(entry.file_name().to_str(), Some("target" | ".git" | "node_modules")) {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_keeps_its_own_rules() {
        let found = check(&crate::run::root()).expect("the tree can be read");
        let lines: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }

    #[test]
    fn without_git_the_folder_is_walked() {
        let mut paths = Vec::new();
        walk(&crate::run::root(), &PathBuf::new(), &mut paths).expect("the tree can be walked");
        assert!(paths.iter().any(|path| path == "xtask/src/main.rs"));
        assert!(!paths.iter().any(|path| path.starts_with("target/")));
    }
}
