//! Rules for Rust files: length, functions, header, words that must not stay.
//!
//! The surprise: words are looked for in masked source, so a rule's own test snippets do not break the rule.

use super::functions::functions;
use super::mask::{is_word, mask};
use super::{File, Finding};

const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 70;

/// Macros that mean "not done yet" or "left from a search", with what to do instead.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo", "write it, or return an error that says what is missing"),
    ("unimplemented", "write it, or return an error that says what is missing"),
    ("dbg", "remove it, or use tracing"),
];

pub fn check(file: &File<'_>, found: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    if lines > LONGEST_FILE {
        found.push(file.finding(1, "file-length", format!("{lines} lines: split it, at most {LONGEST_FILE}")));
    }
    if !has_header(file.text) {
        found.push(file.finding(1, "module-header", "open with `//!`: what it is for, and the one surprise"));
    }
    let masked = mask(file.text);
    for function in functions(&masked).iter().filter(|f| f.lines > LONGEST_FUNCTION) {
        let advice = format!("`{}` has {} lines: split it, at most {LONGEST_FUNCTION}", function.name, function.lines);
        found.push(file.finding(function.line, "function-length", advice));
    }
    for (word, advice) in LEFTOVERS {
        for at in calls(&masked, word) {
            found.push(file.finding(line_of(&masked, at), "leftover", format!("`{word}!`: {advice}")));
        }
    }
    for (at, _) in masked.match_indices("#[ignore") {
        if !has_reason(&file.text[at + "#[ignore".len()..]) {
            let advice = "say why: `#[ignore = \"needs …\"]`, or let it run";
            found.push(file.finding(line_of(&masked, at), "ignored-test", advice));
        }
    }
}

/// The first thing in the file is a module comment; only a shebang, attributes of the crate and blank lines may precede it.
fn has_header(text: &str) -> bool {
    let first = text
        .lines()
        .enumerate()
        .map(|(n, line)| (n, line.trim()))
        .find(|(n, line)| !(line.is_empty() || line.starts_with("#![") || (*n == 0 && line.starts_with("#!"))));
    first.is_some_and(|(_, line)| line.starts_with("//!") && line.len() > 4)
}

/// Where a macro of this name is called.
fn calls<'a>(masked: &'a str, word: &str) -> impl Iterator<Item = usize> + 'a {
    let call = format!("{word}!");
    let found: Vec<usize> = masked.match_indices(&call).map(|(at, _)| at).collect();
    found.into_iter().filter(move |&at| {
        let alone = at == 0 || !is_word(masked.as_bytes()[at - 1]);
        alone && masked[at + call.len()..].trim_start().starts_with(['(', '[', '{'])
    })
}

/// Whether what follows `#[ignore` is ` = "…"]` with something between the quotes.
fn has_reason(rest: &str) -> bool {
    let Some(value) = rest.trim_start().strip_prefix('=') else { return false };
    value.trim_start().strip_prefix('"').is_some_and(|reason| !reason.starts_with('"'))
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        let mut found = Vec::new();
        check(&File { path: "x.rs", text }, &mut found);
        found.into_iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn a_good_file_passes() {
        assert_eq!(rules("//! What it is for.\n\nfn f() {}\n"), []);
        assert_eq!(rules("#!/usr/bin/env run\n#![allow(x)]\n\n//! What it is for.\n"), []);
    }

    #[test]
    fn the_header_comes_first() {
        assert_eq!(rules("use x;\n//! Late.\n"), [(1, "module-header")]);
        assert_eq!(rules("/// For an item.\nfn f() {}\n"), [(1, "module-header")]);
        assert_eq!(rules("//!\nfn f() {}\n"), [(1, "module-header")]);
        assert_eq!(rules(""), [(1, "module-header")]);
    }

    #[test]
    fn leftovers_are_found_in_code_only() {
        assert_eq!(rules("//! X y.\nfn f() { todo!() }\n"), [(2, "leftover")]);
        assert_eq!(rules("//! X y.\nfn f() {\n dbg! {1} }\n"), [(3, "leftover")]);
        assert_eq!(rules("//! todo!(x)\n// dbg!(x)\nconst A: &str = \"unimplemented!()\";\n"), []);
        assert_eq!(rules("//! X y.\nmy_todo!();\nmatch todo != 1 {}\n"), []);
    }

    #[test]
    fn an_ignored_test_says_why() {
        assert_eq!(rules("//! X y.\n#[ignore]\nfn f() {}\n"), [(2, "ignored-test")]);
        assert_eq!(rules("//! X y.\n#[ignore = \"\"]\nfn f() {}\n"), [(2, "ignored-test")]);
        assert_eq!(rules("//! X y.\n#[ignore = \"takes an hour\"]\nfn f() {}\n"), []);
    }

    #[test]
    fn length_is_bounded() {
        let body = "    f();\n".repeat(68);
        assert_eq!(rules(&format!("//! X y.\nfn f() {{\n{body}}}\n")), []);
        assert_eq!(rules(&format!("//! X y.\nfn f() {{\n{body}    f();\n}}\n")), [(2, "function-length")]);
        assert_eq!(rules(&format!("//! X y.\n{}", "\n".repeat(499))), []);
        assert_eq!(rules(&format!("//! X y.\n{}", "\n".repeat(500))), [(1, "file-length")]);
    }
}
