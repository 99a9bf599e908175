//! From the store that was chosen to a keeper.
//!
//! Surprise: two sorts of URLs that the library accepts are refused here. `memory:` would exclude nobody, since
//! every `lockkeeper` is a process of its own; and a password in a URL is seen by everyone who can list processes. It
//! comes by a variable or a file instead.

mod url;

use std::io::Read;
use std::path::{Path, PathBuf};

use lockkeeper::store::SharedStore;
use lockkeeper::{Access, Keeper, Owner, Secret};

pub use self::url::{has_passwords, without_password};
use crate::config::{self, Chosen, Origin, Password};
use crate::exit::{self, Failure};

/// A store that answers, and its keeper.
pub struct Opened {
    pub keeper: Keeper,
    /// The same without a keeper's layers, for those who only look.
    pub store: SharedStore,
    /// What tells it from other stores, for other commands on this machine.
    pub identity: String,
}

/// Opens the store and sees that it answers.
pub async fn connect(store: Option<&str>, owner: Option<Owner>) -> Result<Opened, Failure> {
    let (url, access) = reach(store, Memory::Refused)?;
    let mut builder = Keeper::builder();
    if let Some(owner) = owner {
        builder = builder.owner(owner);
    }
    let store = lockkeeper::open_as(&url, &access).await?;
    let keeper = Keeper::from(builder.with_store(store.clone()));
    keeper.ping().await?;
    Ok(Opened { keeper, store, identity: identity(&url) })
}

/// The URL, with a relative path of a file made absolute: the same words elsewhere may mean another file.
fn identity(url: &str) -> String {
    let relative = url.strip_prefix("sqlite:").filter(|path| !path.starts_with('/'));
    match (relative, std::env::current_dir()) {
        (Some(path), Ok(folder)) => format!("sqlite:{}/{path}", folder.display()),
        _ => url.to_owned(),
    }
}

/// May the store be one that nobody else can see?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Refused,
    /// For those who only ask what it is worth.
    Allowed,
}

/// Which store is meant, and what lets us in.
pub fn reach(store: Option<&str>, memory: Memory) -> Result<(String, Access), Failure> {
    let chosen = config::choose(store)?;
    check(&chosen, memory)?;
    let access = access(&chosen)?;
    Ok((chosen.url.value, access))
}

/// No password is longer.
const PASSWORD_BYTES: u64 = 64 * 1024;

/// The password, if one was given and the store has one.
fn access(chosen: &Chosen) -> Result<Access, Failure> {
    let password = match &chosen.password {
        Some(password) if has_passwords(&chosen.url.value) => match &password.value {
            Password::Given(secret) => Some(secret.clone()),
            Password::File(path) => Some(read_password(path, &password.origin)?),
        },
        _ => None,
    };
    Ok(Access { password })
}

/// What stands in the file, without the end of its line. Nothing of it is ever part of an error.
fn read_password(path: &Path, origin: &Origin) -> Result<Secret, Failure> {
    let fails = |why: &str| {
        let message = format!("the password file `{}` ({origin} names it) {why}", path.display());
        Failure::new(exit::USAGE, message).with_hint("it holds the password, and nothing else")
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| fails(&format!("cannot be read: {error}")))?;
    match file.take(PASSWORD_BYTES + 1).read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return Err(fails("is not UTF-8")),
        Err(error) => return Err(fails(&format!("cannot be read: {error}"))),
    }
    if text.len() as u64 > PASSWORD_BYTES {
        return Err(fails("is too long"));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    match line.strip_suffix('\r').unwrap_or(line) {
        "" => Err(fails("is empty")),
        line if line.contains('\n') => Err(fails("has more than one line")),
        line => Ok(Secret::new(line)),
    }
}

fn check(chosen: &Chosen, memory: Memory) -> Result<(), Failure> {
    let url = &chosen.url.value;
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    if scheme.eq_ignore_ascii_case("memory") && memory == Memory::Refused {
        return Err(Failure::new(exit::USAGE, "`memory:` excludes nobody: every command has a memory of its own")
            .with_hint("use `sqlite:PATH`, or leave `--store` away to use your own file"));
    }
    if url::has_password(rest) {
        return Err(Failure::new(exit::USAGE, "there is a password in the store's URL, where others can see it")
            .with_hint(
                "take it out and put it into LOCKKEEPER_PASSWORD, or a file named by LOCKKEEPER_PASSWORD_FILE",
            ));
    }
    if let Some(Origin::File(_)) = chosen.password.as_ref().map(|password| &password.origin)
        && !has_passwords(url)
    {
        let message = format!("{} names a `password_file`, but `{scheme}:` stores have no password", chosen.url.origin);
        return Err(Failure::new(exit::USAGE, message).with_hint("take it out of the config file"));
    }
    Ok(())
}

/// A file of the user's own.
pub fn default_url() -> Result<String, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let Some(state) = state else {
        return Err(Failure::new(exit::USAGE, "there is no home directory to keep the locks in")
            .with_hint("say where with `--store sqlite:/path/locks.db`"));
    };
    let path = state.join("lockkeeper/locks.db");
    let Some(path) = path.to_str() else {
        return Err(Failure::new(exit::USAGE, format!("the path `{}` is not UTF-8", path.display()))
            .with_hint("say where to keep the locks with `--store sqlite:/path/locks.db`"));
    };
    // The characters that mean something in a URL.
    Ok(format!("sqlite:{}", path.replace('%', "%25").replace('?', "%3F")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_of_ones_own_is_refused() {
        let fails = |url| config::choose(Some(url)).and_then(|chosen| check(&chosen, Memory::Refused)).is_err();
        assert!(fails("memory:") && fails("MEMORY:x") && !fails("sqlite:/tmp/x"));
    }
}
