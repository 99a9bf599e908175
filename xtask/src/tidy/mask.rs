//! Rust source with everything that is not code blanked out, so that rules can look for words without a parser.
//!
//! The surprise: offsets and line breaks stay where they were, so a hit in the masked text is a hit in the file.

/// The same text, byte for byte, with comments, strings and character literals turned into spaces.
pub fn mask(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_end(bytes, at),
            b'"' => string_end(bytes, at + 1),
            b'\'' => match char_end(source, at) {
                Some(end) => end,
                None => {
                    at += 1; // a lifetime or a label
                    continue;
                }
            },
            byte if is_word(byte) => {
                let word_end = (at..bytes.len()).find(|&i| !is_word(bytes[i])).unwrap_or(bytes.len());
                match raw_end(bytes, at, word_end) {
                    Some(end) => end,
                    None => {
                        at = word_end;
                        continue;
                    }
                }
            }
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether a byte can be part of a word. Every byte of a non-ASCII character counts, as in identifiers.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| from + n)
}

/// Block comments nest in Rust.
fn comment_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// `from` is just after the opening quote.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a character literal at `from`, or nothing when the quote opens a lifetime.
fn char_end(source: &str, from: usize) -> Option<usize> {
    let mut rest = source[from + 1..].char_indices();
    let (_, first) = rest.next()?;
    if first == '\\' {
        rest.next()?; // what is escaped, which may be a quote
        return rest.find(|(_, c)| *c == '\'').map(|(n, _)| from + 1 + n + 1);
    }
    match rest.next() {
        Some((n, '\'')) => Some(from + 1 + n + 1),
        _ => None,
    }
}

/// The end of a raw string whose prefix (`r`, `br`, `cr`) is the word `at..word_end`. `r#name` is not a string.
fn raw_end(bytes: &[u8], at: usize, word_end: usize) -> Option<usize> {
    if !matches!(&bytes[at..word_end], b"r" | b"br" | b"cr") {
        return None;
    }
    let hashes = bytes[word_end..].iter().take_while(|&&b| b == b'#').count();
    let open = word_end + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let found = bytes[open + 1..].windows(close.len()).position(|w| w == close);
    Some(found.map_or(bytes.len(), |n| open + 1 + n + close.len()))
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn what_is_not_code_is_blanked_in_place() {
        for (source, left) in [
            ("a // {\nb", "a \nb"),
            ("a /* { /* } */ { */ b", "a b"),
            (r#"f("}\"{") + 1"#, "f( ) + 1"),
            ("r##\"{\"# }\"## x", " x"),
            ("br#\"{\"# x", " x"),
            ("r#type { }", "r#type { }"),
            ("'{' 'a' '\\'' '\\u{7d}' b'}' x", " b x"),
            ("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str"),
            ("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }"),
            ("\"two\nlines {\" x", " \n x"),
        ] {
            let masked = mask(source);
            assert_eq!(masked.len(), source.len(), "{source}");
            assert_eq!(squeezed(&masked), left, "{source}");
        }
    }

    /// Runs of spaces as one, so that the expectations above can be read.
    fn squeezed(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if c != ' ' || !out.ends_with(' ') {
                out.push(c);
            }
        }
        out
    }

    #[test]
    fn wide_characters_keep_the_offsets() {
        let masked = mask("let é = 'é'; // ö {");
        assert_eq!(masked.len(), "let é = 'é'; // ö {".len());
        assert!(masked.starts_with("let é =") && !masked.contains('{'));
    }

    #[test]
    fn what_never_ends_ends_with_the_file() {
        for source in ["\"open", "/* open", "r#\"open", "'\\", "'", "\"\\"] {
            assert_eq!(mask(source).len(), source.len(), "{source}");
        }
    }
}
