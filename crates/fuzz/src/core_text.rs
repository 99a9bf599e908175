//! Names, ids, tokens and kinds: the texts of the core.

use lockkeeper_core::checkup::Requirement;
use lockkeeper_core::layers::Prefix;
use lockkeeper_core::{ClaimId, ErrorKind, LockKind, Name, Token, limits};

/// What is accepted keeps every rule, and comes back as it was; what is refused is `Invalid`, and says why.
pub(crate) fn name(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let expected = is_name(&text);
    match Name::new(&text) {
        Ok(name) => {
            assert!(expected && text.len() <= limits::NAME_BYTES, "{text:?} is no name");
            assert_eq!(name.to_string(), text);
            assert_eq!(name.as_str().parse::<Name>().expect("a name twice"), name);
            assert_eq!(Name::stored(&text).expect("a name can be stored"), name);
        }
        Err(error) => {
            assert!(!expected || text.len() > limits::NAME_BYTES, "{text:?} is a name: {error}");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().starts_with("invalid name: ") && error.to_string().len() > 20, "{error}");
            assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
        }
    }
    assert_eq!(Name::stored(&text).is_ok(), expected, "{text:?} from a store");
    let prefix = Prefix::new(&text);
    assert_eq!(prefix.is_ok(), text.is_empty() || (expected && text.len() <= limits::NAME_BYTES), "prefix {text:?}");
    assert_eq!(prefix.is_ok_and(|prefix| prefix.is_none()), text.is_empty());
}

/// The rules once more, in other words.
fn is_name(text: &str) -> bool {
    let bad = |c: char| {
        let point = u32::from(c);
        let special = (0xe000..=0xf8ff).contains(&point) || (0xfff0..=0xffff).contains(&point);
        c.is_whitespace() || point < 0x20 || (0x7f..=0x9f).contains(&point) || special || c == '{' || c == '}'
    };
    !text.contains(bad) && text.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

/// What is accepted comes back as the same by its text; nothing but digits is a number.
pub(crate) fn ids(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for line in text.split('\n') {
        match line.parse::<ClaimId>() {
            Ok(id) => {
                assert_eq!(id.to_string(), line.to_ascii_lowercase());
                assert_eq!(ClaimId::from_bytes(id.to_bytes()), id);
            }
            Err(error) => {
                assert!(line.len() != 32 || !line.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
                assert_eq!(error.kind(), ErrorKind::Invalid);
            }
        }
        match line.parse::<Token>() {
            Ok(token) => {
                assert!(line.bytes().all(|byte| byte.is_ascii_digit()), "{line:?} is taken for a token");
                assert_eq!(token.to_string().parse::<Token>().expect("a token twice"), token);
                assert_eq!(Token::from_u64(token.as_u64()), token);
                assert!(token.handed_on().is_none_or(|next| next > token));
                let number = token.as_u64();
                assert_eq!(Token::of_number(number).is_some(), number <= Token::NUMBER_MAX);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid),
        }
        match line.parse::<LockKind>() {
            Ok(kind) => assert_eq!(kind.as_str(), line),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Foreign);
                assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
            }
        }
        if let Ok(requirement) = line.parse::<Requirement>() {
            assert_eq!(requirement.to_string(), line);
        }
    }
}
