//! Which store is meant: flag, then environment, then your config file, then the host's, then the default.
//!
//! Surprise: a URL on the command line or in the environment asks no file at all, so a broken file does not stop it.

mod file;

use std::fmt;
use std::path::{Path, PathBuf};

use lockkeeper::Secret;

use self::file::File;
use crate::args::ConfigArgs;
use crate::client;
use crate::exit::{self, Failure};
use crate::json;
use crate::look::{print, print_json};

/// The host's file.
const HOST_FILE: &str = "/etc/lockkeeper/config.toml";

const STORE: &str = "LOCKKEEPER_STORE";
const PASSWORD: &str = "LOCKKEEPER_PASSWORD";
const PASSWORD_FILE: &str = "LOCKKEEPER_PASSWORD_FILE";
/// Variables of ours that hold a secret and are not for the commands that are run.
pub const SECRETS: [&str; 2] = [PASSWORD, PASSWORD_FILE];

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag,
    /// An environment variable.
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("the flag --store"),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Default => f.write_str("the default"),
        }
    }
}

/// A setting and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// The store that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The name it was chosen by, if not by a URL; and who chose it.
    pub name: Setting<Option<String>>,
    pub url: Setting<String>,
    /// Where its password is, if somebody said so.
    pub password: Option<Setting<Password>>,
}

/// Where a password is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Password {
    /// Here. It is never shown.
    Given(Secret),
    /// In a file.
    File(PathBuf),
}

/// The files there are, the one that counts first.
type Files = Vec<(PathBuf, File)>;

/// Finds out which store is meant.
pub fn choose(flag: Option<&str>) -> Result<Chosen, Failure> {
    let variable = text_of(STORE)?;
    let asked = match (flag, variable) {
        (Some(flag), _) => Some((flag.to_owned(), Origin::Flag)),
        (None, Some(variable)) => Some((variable, Origin::Variable(STORE))),
        (None, None) => None,
    };
    let mut chosen = match asked {
        Some((url, origin)) if url.contains(':') => by_url(url, origin),
        asked => choose_from(asked, &read(&places())?)?,
    };
    // They may be set for another store.
    if client::has_passwords(&chosen.url.value)
        && let Some(password) = password_of_the_environment()?
    {
        chosen.password = Some(password);
    }
    Ok(chosen)
}

fn password_of_the_environment() -> Result<Option<Setting<Password>>, Failure> {
    let set = |name: &'static str| std::env::var_os(name).filter(|value| !value.is_empty());
    Ok(match (text_of(PASSWORD)?, set(PASSWORD_FILE)) {
        (Some(_), Some(_)) => {
            let message = format!("{PASSWORD} and {PASSWORD_FILE} are both set");
            return Err(Failure::new(exit::USAGE, message).with_hint("take one of them away"));
        }
        (Some(text), None) => {
            Some(Setting { value: Password::Given(Secret::new(text)), origin: Origin::Variable(PASSWORD) })
        }
        (None, Some(path)) => {
            Some(Setting { value: Password::File(path.into()), origin: Origin::Variable(PASSWORD_FILE) })
        }
        (None, None) => None,
    })
}

/// A variable, if it is set to anything. What it is set to is not shown.
fn text_of(name: &'static str) -> Result<Option<String>, Failure> {
    let value = std::env::var_os(name).filter(|text| !text.is_empty()).map(|text| text.into_string());
    value.transpose().map_err(|_| Failure::new(exit::USAGE, format!("{name} is not UTF-8")))
}

fn by_url(url: String, origin: Origin) -> Chosen {
    let name = Setting { value: None, origin: origin.clone() };
    Chosen { name, url: Setting { value: url, origin }, password: None }
}

fn choose_from(asked: Option<(String, Origin)>, files: &Files) -> Result<Chosen, Failure> {
    let default = || {
        let mut defaults = files.iter().filter_map(|(path, file)| Some((path, file.default.clone()?)));
        defaults.next().map(|(path, name)| (name, Origin::File(path.clone())))
    };
    let Some((name, origin)) = asked.or_else(default) else {
        return Ok(by_url(client::default_url()?, Origin::Default));
    };
    if name.contains(':') {
        return Ok(by_url(name, origin));
    }
    let Some((path, store)) = files.iter().find_map(|(path, file)| Some((path, file.store.get(&name)?))) else {
        return Err(unknown(&name, &origin, files));
    };
    let from = Origin::File(path.clone());
    let file = store.password_file.clone().map(Password::File);
    let password = file.map(|value| Setting { value, origin: from.clone() });
    let url = Setting { value: store.url.get_ref().clone(), origin: from };
    Ok(Chosen { name: Setting { value: Some(name), origin }, url, password })
}

fn unknown(name: &str, origin: &Origin, files: &Files) -> Failure {
    let known: Vec<&str> = files.iter().flat_map(|(_, file)| file.store.keys().map(String::as_str)).collect();
    let hint = match known.as_slice() {
        [] => format!("write a URL such as `sqlite:/path/locks.db`, or add `[store.{name}]` to a config file"),
        known => format!("the config files have: {}; or write a URL such as `sqlite:/path/locks.db`", known.join(", ")),
    };
    Failure::new(exit::USAGE, format!("there is no store `{name}` in the config files ({origin} asks for it)"))
        .with_hint(hint)
}

/// Where config files may be.
fn places() -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    own.map(|own| own.join("lockkeeper/config.toml")).into_iter().chain([HOST_FILE.into()]).collect()
}

fn read(places: &[PathBuf]) -> Result<Files, Failure> {
    let mut files = Files::new();
    for path in places {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(Failure::new(exit::USAGE, format!("`{}` cannot be read: {error}", path.display()))
                    .with_hint("a store given as a URL by `--store` needs no config file"));
            }
        };
        files.push((path.clone(), parse(path, &text)?));
    }
    Ok(files)
}

fn parse(path: &Path, text: &str) -> Result<File, Failure> {
    file::parse(text).map_err(|wrong| {
        let path = path.display();
        let place = wrong.line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}"));
        Failure::new(exit::USAGE, format!("{place}: {}", wrong.what))
            .with_hint("it may hold `default = \"NAME\"` and tables `[store.NAME]` with `url` and `password_file`")
    })
}

/// `config`: what is in effect, and why.
pub fn show(flag: Option<&str>, args: &ConfigArgs) -> Result<u8, Failure> {
    let chosen = choose(flag)?;
    let files: Vec<(PathBuf, bool)> = places().into_iter().map(|path| (path.clone(), path.exists())).collect();
    let none = || "-".to_owned();
    let (file, given) = match &chosen.password {
        Some(Setting { value: Password::File(path), origin }) => (Some((path.display().to_string(), origin)), None),
        Some(Setting { value: Password::Given(_), origin }) => (None, Some(origin)),
        None => (None, None),
    };
    let mut rows = vec![
        ("store", chosen.name.value.clone(), &chosen.name.origin),
        ("url", Some(client::without_password(&chosen.url.value)), &chosen.url.origin),
        (
            "password_file",
            file.as_ref().map(|(path, _)| path.clone()),
            file.as_ref().map_or(&Origin::Default, |(_, origin)| origin),
        ),
    ];
    rows.extend(given.map(|origin| ("password", Some("(not shown)".to_owned()), origin)));
    if args.json {
        return print_json(&json::Config::new(&rows, &files));
    }
    let mut text = String::new();
    for (setting, value, origin) in rows {
        text.push_str(&format!("{setting} = {}  ({origin})\n", value.unwrap_or_else(none)));
    }
    for (path, found) in files {
        text.push_str(&format!("file {}: {}\n", path.display(), if found { "read" } else { "not there" }));
    }
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "default = 'prod'\n[store.prod]\nurl = 'sqlite:/user.db'\n";
    const HOST: &str = "default = 'other'\n[store.prod]\nurl = 'sqlite:/host.db'\n[store.other]\nurl = 'x:y'\n";

    fn files(texts: &[(&str, &str)]) -> Files {
        texts.iter().map(|(path, text)| (path.into(), parse(Path::new(path), text).expect("a file"))).collect()
    }

    #[test]
    fn the_users_file_comes_first_and_both_count() {
        let both = files(&[("user", USER), ("host", HOST)]);
        let chosen = choose_from(None, &both).expect("a store");
        assert_eq!((chosen.url.value.as_str(), chosen.url.origin), ("sqlite:/user.db", Origin::File("user".into())));
        let other = choose_from(Some(("other".into(), Origin::Flag)), &both).expect("a store");
        assert_eq!((other.url.value.as_str(), other.url.origin), ("x:y", Origin::File("host".into())));
        assert_eq!(other.name, Setting { value: Some("other".into()), origin: Origin::Flag });
        let host = choose_from(None, &files(&[("host", HOST)])).expect("a store");
        assert_eq!(host.name.value.as_deref(), Some("other"));
        assert!(choose_from(Some(("nobody".into(), Origin::Flag)), &both).is_err());
    }
}
