//! What can go wrong with a server, told in the words of the core: what happened, may it have taken effect, what now.
//!
//! Surprise: only an error *reply* says that nothing was done. A connection that broke, or an answer that did not come,
//! is unknown, never "no" (C12).

use lockkeeper_core::{Effect, Error, ErrorKind};
use redis::ServerError;

use crate::greet::NotIn;
use crate::options::{Address, Options};
use crate::pipe::Broken;

/// The connection broke or was silent: what was asked may have been done.
pub(crate) fn unanswered(address: &Address, why: Broken) -> Error {
    let what = match why {
        Broken::Silent(_) => format!("the redis server at {address} did not answer in time"),
        Broken::Ended(_) => format!("the connection to the redis server at {address} broke"),
    };
    Error::unanswered(what).with_hint("see whether the server is up and reachable").with_source(why)
}

/// What a server says, for people: what a terminal would obey is replaced.
pub(crate) fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Codes that may be shown whatever follows them: no password is one of these.
const CODES: [&str; 5] = ["ERR", "NOAUTH", "WRONGPASS", "NOPERM", "LOADING"];

/// The connection could not be made: nothing was sent.
pub(crate) fn unreachable(address: &Address, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the redis server at {address} cannot be reached: {why}"))
        .with_hint("see whether the server is up, and whether the address is right")
}

/// Coming in failed, after the connection was made.
///
/// That is when the password is sent: should the server have sent it back, its words are left out.
pub(crate) fn not_let_in(options: &Options, why: NotIn) -> Error {
    let address = &options.address;
    let error = match why {
        NotIn::Refused(error) => error,
        NotIn::Broke(error) => {
            return match crate::tls::refused(address, &error) {
                Some(refused) => refused,
                // The server may have hung up on us before we could read why.
                None if address.is_encrypted() => unreachable(address, error).with_hint(
                    "see whether the server is up; it may ask for a client certificate: `?cert=` and `?key=`",
                ),
                None => unreachable(address, error),
            };
        }
    };
    // Its beginning is enough: servers cut off what they repeat.
    let repeats = options.password.as_ref().is_some_and(|password| {
        let begins: String = password.reveal().chars().take(4).collect();
        !begins.is_empty() && error.to_string().contains(&begins)
    });
    let said = error.details().unwrap_or_default();
    if said.starts_with("unknown command") && said.contains("HELLO") || error.code() == "NOPROTO" {
        return Error::new(ErrorKind::Unsupported, format!("the redis server at {address} has no RESP3"))
            .with_hint("use Redis 6.2 or later, and let it know the command HELLO");
    }
    let details = if repeats { "(not shown: it repeats the password)" } else { said };
    // What a server sends first is taken for its code, the password too.
    let known = |code: &&str| !repeats || CODES.contains(code);
    refused_by(address, Some(error.code()).filter(known).unwrap_or("ERR"), details)
}

/// The server answered with an error: it did nothing.
pub(crate) fn refused(address: &Address, error: &ServerError) -> Error {
    refused_by(address, error.code(), error.details().unwrap_or_default())
}

fn refused_by(address: &Address, code: &str, details: &str) -> Error {
    if details.contains("lockkeeper:foreign") || details.contains("WRONGTYPE") || code == "WRONGTYPE" {
        return foreign();
    }
    let (kind, effect, what, hint) = match code {
        "NOAUTH" => denied(
            "it asks for a password",
            "give a password, by `LOCKKEEPER_PASSWORD_FILE` or in the store's configuration",
        ),
        "WRONGPASS" => {
            denied("it does not accept the user or the password", "see that both are right, and the user is on")
        }
        "NOPERM" => denied(
            "its access rules do not allow what locks need",
            "`lockkeeper doctor` says which commands and keys are needed",
        ),
        "READONLY" => down("it is a replica, which takes no writes", "connect to the primary"),
        "LOADING" => down("it is still loading its data", "it is asked again until the wait is over"),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            down("it takes no writes now", "see the state of its replicas")
        }
        "BUSY" => down("a script of somebody keeps it busy", "see `SLOWLOG GET` there"),
        "OOM" => down("its memory is full", "give it more memory, or find out what fills it; never let it evict locks"),
        "MISCONF" => down("it cannot write to its disk, and takes no writes", "see its log and its disk"),
        "MOVED" | "ASK" | "CROSSSLOT" => (
            ErrorKind::Unsupported,
            Effect::None,
            "it is part of a cluster",
            "a single server is needed for this kind of URL",
        ),
        _ => (ErrorKind::Unavailable, Effect::Unknown, "", "see the server's log"),
    };
    let message = match what {
        "" => format!("the redis server at {address} answered {}: {}", shown(code), shown(details)),
        what => format!("the redis server at {address} refused: {what}"),
    };
    Error::new(kind, message).with_effect(effect).with_hint(hint)
}

type Told = (ErrorKind, Effect, &'static str, &'static str);

fn denied(what: &'static str, hint: &'static str) -> Told {
    (ErrorKind::Denied, Effect::None, what, hint)
}

fn down(what: &'static str, hint: &'static str) -> Told {
    (ErrorKind::Unavailable, Effect::None, what, hint)
}

/// There is something at the name that is not ours.
pub(crate) fn foreign() -> Error {
    Error::new(ErrorKind::Foreign, "something that is not a lock of ours stands at that key; it was not touched")
        .with_hint("use another name or prefix, or see what is there with `redis-cli TYPE`")
}

/// An answer of a shape that no script of ours gives.
pub(crate) fn unexpected(what: &str) -> Error {
    Error::bug(format!("the redis server answered `{what}` in an unexpected shape")).with_effect(Effect::Unknown)
}

/// The store has been closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store has been closed")
}
