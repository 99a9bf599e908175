//! SPDX licence expressions: whether what we may use satisfies one.
//!
//! The surprise: AND binds tighter than OR, and WITH makes a licence and its exception *one* thing to allow or not.
//! `MIT/Apache-2.0`, which old crates still have, means OR.

/// Whether the expression is satisfied by licences that `allowed` accepts; an error when it cannot be read.
pub fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let tokens = tokens(expression);
    let mut reader = Reader { tokens: &tokens, at: 0, allowed };
    let answer = reader.any()?;
    match reader.peek() {
        None => Ok(answer),
        Some(token) => Err(format!("`{token}` is not expected in `{expression}`")),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_string).collect()
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn take(&mut self, word: &str) -> bool {
        // Newer SPDX allows operators in lower case, too.
        let there = self.peek().is_some_and(|token| token == word || token == word.to_lowercase());
        self.at += usize::from(there);
        there
    }

    fn any(&mut self) -> Result<bool, String> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Ok(answer)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let answer = self.any()?;
            return if self.take(")") { Ok(answer) } else { Err("a parenthesis is not closed".to_string()) };
        }
        let licence = self.name()?;
        if self.take("WITH") {
            let exception = self.name()?;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(&licence))
    }

    fn name(&mut self) -> Result<String, String> {
        let is_name = |token: &&str| {
            let operator = ["OR", "AND", "WITH"].contains(&token.to_uppercase().as_str());
            !operator && token.chars().all(|c| c.is_ascii_alphanumeric() || "-.+:".contains(c))
        };
        let token = self.peek();
        let name = token.filter(is_name).map(str::to_string);
        let name = name.ok_or_else(|| format!("a licence is expected, not `{}`", token.unwrap_or("the end")));
        self.at += 1;
        name
    }
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    fn ok(expression: &str) -> Result<bool, String> {
        satisfied(expression, &|name| ["MIT", "Apache-2.0", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&name))
    }

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        for (expression, answer) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0 OR Unlicense", false),
            ("Unlicense OR MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND Zlib", true),
            ("MIT/GPL-3.0", true),
            ("MIT / Apache-2.0", true),
            ("gpl-3.0 or MIT", true),
        ] {
            assert_eq!(ok(expression), Ok(answer), "{expression}");
        }
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(ok("MIT OR GPL-3.0 AND LGPL-3.0"), Ok(true));
        assert_eq!(ok("GPL-3.0 AND LGPL-3.0 OR MIT"), Ok(true));
        assert_eq!(ok("(MIT OR GPL-3.0) AND LGPL-3.0"), Ok(false));
        assert_eq!(ok("(MIT OR GPL-3.0) AND (Zlib OR LGPL-3.0)"), Ok(true));
        assert_eq!(ok("((MIT))"), Ok(true));
    }

    #[test]
    fn an_exception_is_allowed_with_its_licence_only() {
        assert_eq!(ok("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(ok("MIT WITH LLVM-exception"), Ok(false));
        assert_eq!(ok("Apache-2.0 WITH LLVM-exception OR GPL-3.0"), Ok(true));
        assert_eq!(ok("GPL-2.0 WITH Classpath-exception-2.0"), Ok(false));
        assert_eq!(ok("GPL-3.0+"), Ok(false));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for expression in
            ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Zlib", "MIT WITH", "MIT WITH OR Zlib", "M!T", "()"]
        {
            assert!(ok(expression).is_err(), "{expression}");
        }
    }
}
