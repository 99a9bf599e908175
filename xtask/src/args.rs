//! Flags and lists from the command line, in a few lines instead of a dependency.
//!
//! The surprise: a task takes what it knows and then calls [`Args::finish`], which refuses what is left.

use lockkeeper_rig::Trouble;

/// The words after the task's name, less those already taken.
pub struct Args {
    task: String,
    words: Vec<String>,
}

impl Args {
    pub fn new(task: &str, words: Vec<String>) -> Self {
        Args { task: task.to_string(), words }
    }

    /// Takes a flag; says whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes `--name a,b` or `--name=a,b`.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<String>>, Trouble> {
        let with_value = format!("{name}=");
        let Some(at) = self.words.iter().position(|word| word == name || word.starts_with(&with_value)) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        let value = match word.strip_prefix(&with_value) {
            Some(value) => value.to_string(),
            None if at < self.words.len() => self.words.remove(at),
            None => String::new(),
        };
        let items: Vec<String> =
            value.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_string).collect();
        if items.is_empty() {
            return Err(Trouble::new(format!("{name} needs a value")).hint(format!("for example {name} memory,sqlite")));
        }
        Ok(Some(items))
    }

    /// All that is left, for a program behind this one.
    pub fn rest(self) -> Vec<String> {
        self.words
    }

    /// All that is left, as names; what looks like an option is refused.
    pub fn names(self) -> Result<Vec<String>, Trouble> {
        let (options, names) = self.words.into_iter().partition(|word| word.starts_with('-'));
        Args { task: self.task, words: options }.finish()?;
        Ok(names)
    }

    /// Refuses what is left.
    pub fn finish(self) -> Result<(), Trouble> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(Trouble::new(format!("`{}` does not take `{word}`", self.task))
                .hint(format!("cargo xtask {} --help", self.task))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn args(words: &[&str]) -> Args {
        Args::new("test", words.iter().map(|word| word.to_string()).collect())
    }

    #[test]
    fn lists_come_in_both_spellings() {
        for words in [&["--only", "a,b"][..], &["--only=a, b"][..]] {
            let mut args = args(words);
            assert_eq!(args.list("--only").unwrap().unwrap(), ["a", "b"]);
            assert!(args.finish().is_ok());
        }
        assert!(args(&["--only"]).list("--only").is_err());
        assert!(args(&["--only="]).list("--only").is_err());
        assert!(args(&[]).list("--only").unwrap().is_none());
    }

    #[test]
    fn names_are_what_is_no_option() {
        let mut words = args(&["a", "--keep", "b"]);
        assert!(words.flag("--keep"));
        assert_eq!(words.names().unwrap(), ["a", "b"]);
        assert!(args(&["a", "--kep"]).names().unwrap_err().to_string().contains("does not take `--kep`"));
    }

    #[test]
    fn what_is_left_is_refused() {
        let mut args = args(&["--keep", "--kep"]);
        assert!(args.flag("--keep") && !args.flag("--keep"));
        assert!(args.finish().unwrap_err().to_string().contains("does not take `--kep`"));
    }
}
