//! Rules for every text file: no path of somebody's machine, no registry's host name, links that lead somewhere.
//!
//! The surprise: the names looked for are put together from halves below, so that this file does not break its own rule.

use std::path::Path;

use super::{File, Finding};

/// Folders that exist on one person's machine only.
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Names that stand for "yours" in an example.
const EXAMPLES: &[&str] = &["you", "user", "alice", "bob"];

/// Where packages come from is the machine's configuration, never the tree's: mirrors and offline builds must work.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("py", "pi.org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("repo1.maven", ".org"),
];

pub fn check_places(file: &File<'_>, found: &mut Vec<Finding>) {
    for (n, line) in file.text.lines().enumerate() {
        if let Some(path) = machine_path(line) {
            let advice = format!("`{path}` exists on one machine only: make it relative, or write `{}you`", HOMES[0]);
            found.push(file.finding(n + 1, "machine-path", advice));
        }
        if let Some(host) = REGISTRIES.iter().find(|host| line.contains(*host)) {
            let advice = format!("`{host}`: name the package; where it comes from is the machine's configuration");
            found.push(file.finding(n + 1, "registry-host", advice));
        }
    }
}

/// The first absolute path on the line that leads into a folder of one machine.
fn machine_path(line: &str) -> Option<&str> {
    HOMES.iter().find_map(|home| {
        line.match_indices(home).find_map(|(at, _)| {
            // `docs/work/x` and `host/work/x` are not absolute.
            let absolute = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}~*>)".contains(c));
            let rest = &line[at + home.len()..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            (absolute && !name.is_empty() && !EXAMPLES.contains(&name)).then(|| &line[at..at + home.len() + end])
        })
    })
}

pub fn check_links(root: &Path, file: &File<'_>, found: &mut Vec<Finding>) {
    let folder = root.join(file.path);
    let folder = folder.parent().unwrap_or(root);
    let mut fence: Option<&str> = None;
    for (n, line) in file.text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
            continue;
        }
        if fence.is_some() {
            continue;
        }
        for target in links(line) {
            let path = target.split(['#', '?']).next().unwrap_or_default().replace("%20", " ");
            let outside = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            if !outside && (path.starts_with('/') || !folder.join(&path).exists()) {
                found.push(file.finding(
                    n + 1,
                    "dead-link",
                    format!("`{target}` leads nowhere: fix or remove the link"),
                ));
            }
        }
    }
}

/// Targets of `[text](target)` and `[label]: target` on one line, outside of `code`.
fn links(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`code`");
    let mut targets = Vec::new();
    for (at, _) in text.match_indices("](") {
        let rest = &text[at + 2..];
        let inside = match rest.strip_prefix('<') {
            Some(rest) => rest.split('>').next(),
            None => rest.split([')', ' ']).next(),
        };
        targets.extend(inside.map(str::to_string));
    }
    let definition = text.trim_start().strip_prefix('[').filter(|rest| !rest.starts_with('^'));
    if let Some((_, rest)) =
        definition.and_then(|rest| rest.split_once("]: ")).filter(|(label, _)| !label.contains(']'))
    {
        targets.extend(rest.split_whitespace().next().map(|target| target.trim_matches(['<', '>']).to_string()));
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, &'static str)> {
        let mut found = Vec::new();
        check_places(&File { path: "x.md", text }, &mut found);
        found.into_iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn machine_paths_are_found_and_examples_are_not() {
        for home in HOMES {
            assert_eq!(places(&format!("ok\nsee {home}jane/src")), [(2, "machine-path")], "{home}");
            assert_eq!(places(&format!("see {home}you/src and `{home}alice`, and {home}.")), [], "{home}");
            assert_eq!(places(&format!("see target{home}jane/src")), [], "{home}");
            assert_eq!(places(&format!("\"{home}x")), [(1, "machine-path")], "{home}");
        }
    }

    #[test]
    fn registry_hosts_are_found() {
        for host in REGISTRIES {
            assert_eq!(places(&format!("url = https://{host}/x")), [(1, "registry-host")], "{host}");
        }
    }

    #[test]
    fn links_lead_to_files() {
        let root = crate::run::root();
        let text = "[a](LICENSE-MIT) [b](nowhere.md#x)\n`[c](no.md)` [d](https://x.example/y) [e](#here)\n\
                    ```\n[f](no.md)\n```\n[g]: nowhere.md\n[h]: LICENSE-MIT \"title\"\n![i](<LICENSE-MIT>)\n[^1]: a note\n\
                    ```text\n~~~\n[j](no.md)\n```\n";
        let mut found = Vec::new();
        check_links(&root, &File { path: "X.md", text }, &mut found);
        let lines: Vec<usize> = found.iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 6], "{found:?}");
    }
}
