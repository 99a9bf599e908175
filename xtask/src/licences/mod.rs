//! What we depend on: licences, crates we do not want, and where everything comes from.
//!
//! The surprise: this stands in for cargo-deny, which takes minutes to compile on a fresh machine and whose prebuilt
//! packages are too old to read our lock file. The tables below are its configuration.

mod spdx;

use std::collections::BTreeMap;

use lockkeeper_rig::Trouble;
use serde_json::Value;

use crate::run;

/// Licences that ask for no more than to be named.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that must not be in the tree, and why.
const BANNED: &[(&str, &str)] = &[
    ("async-std", "given up by its makers; tokio is the one runtime here"),
    ("aws-lc-rs", "minutes of C compilation; rustls runs on ring here"),
    ("aws-lc-sys", "minutes of C compilation; rustls runs on ring here"),
    ("chrono", "jiff is the one calendar here"),
    ("native-tls", "another TLS on every platform; rustls with ring here"),
    ("openssl", "needs a system library; rustls with ring here"),
    ("openssl-sys", "needs a system library; rustls with ring here"),
];

/// One package of the lock file.
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Nothing for crates of this workspace.
    source: Option<String>,
}

/// `cargo xtask licences`.
pub fn licences() -> Result<(), Trouble> {
    let mut command = run::cargo();
    command.args(["metadata", "--format-version", "1", "--all-features", "--locked"]);
    let packages = packages(&run::output(&mut command)?)?;
    for note in duplicates(&packages) {
        println!("note: {note}");
    }
    let problems: Vec<String> = packages.iter().flat_map(problems).collect();
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("licences: {} packages, nothing to object to", packages.len());
        return Ok(());
    }
    Err(Trouble::new(format!("{} objections to what we depend on", problems.len()))
        .hint("`cargo tree -i NAME` says who brings it; the tables are in xtask/src/licences/mod.rs"))
}

fn packages(metadata: &str) -> Result<Vec<Package>, Trouble> {
    let metadata: Value = serde_json::from_str(metadata)
        .map_err(|e| Trouble::new(format!("cannot read what cargo metadata said: {e}")))?;
    let rows = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_string);
    let read = |row: &Value| {
        let (name, version) = (text(&row["name"])?, text(&row["version"])?);
        Some(Package { name, version, licence: text(&row["license"]), source: text(&row["source"]) })
    };
    let packages: Option<Vec<Package>> = rows.iter().map(read).collect();
    packages.filter(|p| !p.is_empty()).ok_or_else(|| Trouble::new("cargo metadata named no packages"))
}

fn problems(package: &Package) -> Vec<String> {
    let of = format!("{} {}", package.name, package.version);
    let mut problems = Vec::new();
    if let Some((_, why)) = BANNED.iter().find(|(name, _)| *name == package.name) {
        problems.push(format!("{of}: banned: {why}"));
    }
    if package.source.as_ref().is_some_and(|source| !source.starts_with("registry+") && !source.starts_with("sparse+"))
    {
        problems.push(format!(
            "{of}: source: take it from the registry, not from {}",
            package.source.as_deref().unwrap_or("")
        ));
    }
    match package.licence.as_deref().map(|licence| (licence, spdx::satisfied(licence, &|name| ALLOWED.contains(&name))))
    {
        Some((_, Ok(true))) => {}
        Some((licence, Ok(false))) => problems.push(format!("{of}: licence: `{licence}` is not on the list")),
        Some((licence, Err(why))) => problems.push(format!("{of}: licence: cannot read `{licence}`: {why}")),
        None => problems.push(format!("{of}: licence: none named")),
    }
    problems
}

/// Crates that are in the tree in versions that cannot stand for each other.
fn duplicates(packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several.map(|(name, versions)| format!("{name} comes in {}: {}", versions.len(), versions.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, licence: &str, source: &str) -> Package {
        let (licence, source) = (Some(licence.to_string()), Some(source.to_string()));
        Package { name: name.to_string(), version: "1.0.0".to_string(), licence, source }
    }

    #[test]
    fn each_rule_objects() {
        assert_eq!(problems(&package("a", "MIT", "registry+x")), Vec::<String>::new());
        assert!(problems(&package("a", "GPL-3.0", "registry+x"))[0].contains("not on the list"));
        assert!(problems(&package("a", "MIT OR", "registry+x"))[0].contains("cannot read"));
        assert!(problems(&package("a", "MIT", "git+https://x.example"))[0].contains("source"));
        assert!(problems(&package("openssl-sys", "MIT", "registry+x"))[0].contains("banned"));
        assert!(problems(&Package { licence: None, ..package("a", "", "registry+x") })[0].contains("none named"));
    }

    #[test]
    fn two_versions_are_a_note() {
        let two =
            [package("a", "MIT", "registry+x"), package("a", "MIT", "registry+x"), package("b", "MIT", "registry+x")];
        assert_eq!(duplicates(&two), ["a comes in 2: 1.0.0, 1.0.0"]);
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(ALLOWED.is_sorted() && BANNED.is_sorted());
    }
}
