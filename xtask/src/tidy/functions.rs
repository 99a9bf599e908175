//! Where functions begin and end, by matching braces in masked source.
//!
//! The surprise: it is a scanner, not a parser. It also sees functions inside macros and inside other functions, and
//! counts each by itself.

use super::mask::is_word;

/// One function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, or `$name` inside a macro.
    pub name: String,
    /// The line of the `fn`, from 1.
    pub line: usize,
    /// Lines from the `fn` to the closing brace, both counted.
    pub lines: usize,
}

/// Every function with a body in source that went through [`mask`](super::mask::mask).
pub fn functions(masked: &str) -> Vec<Function> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    for (at, _) in masked.match_indices("fn") {
        let stands_alone =
            (at == 0 || !is_word(bytes[at - 1])) && bytes.get(at + 2).is_some_and(u8::is_ascii_whitespace);
        if !stands_alone || masked[..at].ends_with("r#") {
            continue;
        }
        let after = masked[at + 2..].trim_start();
        let name: String =
            after.bytes().take_while(|&b| is_word(b) || b == b'$' || b == b'#').map(char::from).collect();
        if name.is_empty() {
            continue; // `fn (…)` is a type
        }
        let Some(open) = body(bytes, masked.len() - after.len()) else { continue };
        let close = matching_brace(bytes, open);
        let line = 1 + newlines(&bytes[..at]);
        found.push(Function { name, line, lines: 1 + newlines(&bytes[at..close]) });
    }
    found
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&b| b == b'\n').count()
}

/// The opening brace of the body of a function whose name starts at `from`; nothing for a declaration.
fn body(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => return None, // a pattern of a macro
            b')' | b']' => depth -= 1,
            b';' | b'}' if depth == 0 => return None,
            b'{' if depth == 0 => {
                // `Foo<{ N }>` in a signature is a constant, not the body.
                let before = bytes[from..at].iter().rev().find(|b| !b.is_ascii_whitespace());
                if before != Some(&b'<') {
                    return Some(at);
                }
                at = matching_brace(bytes, at);
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn matching_brace(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::super::mask::mask;
    use super::*;

    fn seen(source: &str) -> Vec<(String, usize, usize)> {
        functions(&mask(source)).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    fn one(name: &str, line: usize, lines: usize) -> (String, usize, usize) {
        (name.to_string(), line, lines)
    }

    #[test]
    fn a_plain_function_is_counted_from_fn_to_brace() {
        assert_eq!(seen("\nfn f() {\n    1\n}\n"), [one("f", 2, 3)]);
        assert_eq!(seen("fn f() {}"), [one("f", 1, 1)]);
    }

    #[test]
    fn braces_in_strings_chars_and_comments_do_not_count() {
        let source = "fn f() {\n let a = \"}\"; // }\n let b = '}'; /* } */\n let c = r#\"}\"#;\n}\nfn g() {}";
        assert_eq!(seen(source), [one("f", 1, 5), one("g", 6, 1)]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(
            seen("fn f<'a, 'b: 'a>(x: &'a str) -> &'a str {\n x\n}\nfn g() {}"),
            [one("f", 1, 3), one("g", 4, 1)]
        );
    }

    #[test]
    fn nested_functions_and_closures() {
        let source = "fn outer() {\n let c = |x| { x };\n fn inner() {\n }\n}\n";
        assert_eq!(seen(source), [one("outer", 1, 5), one("inner", 3, 2)]);
    }

    #[test]
    fn declarations_types_and_words_are_not_functions() {
        assert_eq!(seen("trait T { fn f(&self); }"), []);
        assert_eq!(seen("type F = fn (u8) -> u8; struct S { fn_name: u8, r#fn: u8 }"), []);
        assert_eq!(seen("extern \"C\" { fn f(x: [u8; 4]); }"), []);
    }

    #[test]
    fn signatures_over_several_lines_and_with_constants() {
        let source = "fn f(\n a: [u8; { 1 + 1 }],\n) -> Foo<{ 2 }>\nwhere\n T: Fn() -> u8,\n{\n}\n";
        assert_eq!(seen(source), [one("f", 1, 7)]);
    }

    #[test]
    fn functions_in_macros() {
        let source = "macro_rules! m {\n ($name:ident) => {\n  fn $name() {\n  }\n };\n ($v:vis fn $n:ident) => {};\n}\nfn g() {}";
        assert_eq!(seen(source), [one("$name", 3, 2), one("g", 8, 1)]);
    }

    #[test]
    fn a_body_that_never_closes_ends_with_the_file() {
        assert_eq!(seen("fn f() {\n {\n"), [one("f", 1, 3)]);
    }
}
