//! Rules for Cargo.toml files: every crate takes the workspace's lints and licence and says what it is.
//!
//! The surprise: it reads sections and keys line by line, which is all these files use; it is no TOML parser.

use super::{File, Finding};

pub fn check(file: &File<'_>, found: &mut Vec<Finding>) {
    let keys = keys(file.text);
    let has = |section: &str, key: &str| keys.iter().any(|(s, k, _)| s == section && k == key);
    let is =
        |section: &str, key: &str, value: &str| keys.iter().any(|(s, k, v)| s == section && k == key && v == value);
    if keys.iter().any(|(section, ..)| section == "workspace")
        && !is("workspace.lints.rust", "unsafe_code", "\"forbid\"")
    {
        found.push(file.finding(1, "unsafe", "put `unsafe_code = \"forbid\"` under [workspace.lints.rust]"));
    }
    if !keys.iter().any(|(section, ..)| section == "package") {
        return;
    }
    if !is("lints", "workspace", "true") {
        found.push(file.finding(1, "lints", "add `[lints]` with `workspace = true`, so that `unsafe` stays forbidden"));
    }
    if !has("package", "description") && !has("package", "description.workspace") {
        found.push(file.finding(1, "description", "say in one line under [package] what the crate is"));
    }
    if !is("package", "license.workspace", "true") && !is("package", "license", "{ workspace = true }") {
        found.push(file.finding(1, "license", "add `license.workspace = true` under [package]"));
    }
}

/// Section, key and value of every assignment.
fn keys(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim_start_matches('[').trim().to_string();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            keys.push((section.clone(), key.trim().to_string(), value.trim().to_string()));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        check(&File { path: "Cargo.toml", text }, &mut found);
        found.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn a_crate_takes_what_the_workspace_gives() {
        let good =
            "[package]\nname = \"x\"\ndescription = \"X\"\nlicense.workspace = true\n[lints]\nworkspace = true\n";
        assert_eq!(rules(good), Vec::<&str>::new());
        assert_eq!(rules("[package]\nname = \"x\"\n"), ["lints", "description", "license"]);
        assert_eq!(rules(&good.replace("[lints]\nworkspace", "[lints]\n# workspace")), ["lints"]);
    }

    #[test]
    fn the_workspace_forbids_unsafe() {
        assert_eq!(rules("[workspace]\nresolver = \"3\"\n"), ["unsafe"]);
        assert_eq!(
            rules("[workspace]\nresolver = \"3\"\n[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"),
            Vec::<&str>::new()
        );
    }
}
