//! What went wrong at a server, as an answer: what happened, may it have taken effect, what to do now.
//!
//! Surprise: etcd says most of what matters in the text of its errors, which has been the same since 3.0; the codes beside
//! it differ between versions.

use std::error::Error as _;

use lockkeeper_core::access::Secret;
use lockkeeper_core::{Effect, Error, ErrorKind};
use tonic::{Code, Status};

use crate::options::Endpoint;

/// Stands for what a terminal would obey.
const CONTROL: &str = "\u{fffd}";

/// What we wrote was for a lease that is not there (any more): it was surely not done.
pub(crate) fn is_lease_gone(status: &Status) -> bool {
    status.message().contains("requested lease not found")
}

/// A lease of this id is there already.
pub(crate) fn is_lease_there(status: &Status) -> bool {
    status.message().contains("lease already exists")
}

/// Our badge is not known (any more): a member that was restarted has forgotten it, or it has run out.
pub(crate) fn is_badge_gone(status: &Status) -> bool {
    let text = status.message();
    text.contains("invalid auth token")
        || text.contains("revision in header is old")
        || text.contains("auth store is old")
}

/// There is nobody to be: the cluster asks for no users.
pub(crate) fn needs_no_badge(status: &Status) -> bool {
    status.message().contains("authentication is not enabled")
}

/// Did it not let us in, or not allow it?
pub(crate) fn is_refusal(status: &Status) -> bool {
    let refused = Endpoint { host: String::new(), port: 0 };
    self::refused(&refused, status).kind() == ErrorKind::Denied
}

/// The server was not reached: nothing was sent.
pub(crate) fn unreachable(endpoint: &Endpoint, error: std::io::Error) -> Error {
    let why = format!("the etcd server at {endpoint} could not be reached: {error}");
    Error::new(ErrorKind::Unavailable, why).with_source(error).with_hint("is it running, and is its address right?")
}

/// The connection was made and ended before anything was answered.
pub(crate) fn hung_up(endpoint: &Endpoint, with_tls: bool) -> Error {
    let hint = match with_tls {
        true => "see whether it is up; it may ask for a client certificate that it knows: `?cert=` and `?key=`",
        false => "see whether it is up; it may want TLS: `etcds://`",
    };
    Error::unanswered(format!("the etcd server at {endpoint} hung up before its first answer")).with_hint(hint)
}

/// Nobody answered in time.
pub(crate) fn silent(endpoint: &str) -> Error {
    Error::unanswered(format!("the etcd server at {endpoint} did not answer in time"))
}

/// What a server, or the way to it, said instead of an answer.
pub(crate) fn refused(endpoint: &Endpoint, status: &Status) -> Error {
    told(endpoint, status, &shown(status))
}

/// The same for who comes in, which is when the password is sent: should the server have sent it back, its words are left
/// out. Whatever it says, nothing was done yet.
pub(crate) fn not_let_in(endpoint: &Endpoint, password: Option<&Secret>, status: &Status) -> Error {
    let said = shown(status);
    // Its beginning is enough: servers cut off what they repeat.
    let repeats = password.is_some_and(|password| {
        let begins: String = password.reveal().chars().take(4).collect();
        !begins.is_empty() && said.contains(&begins.replace(char::is_control, CONTROL))
    });
    let said = if repeats { "(not shown: it repeats the password)" } else { &said };
    told(endpoint, status, said).with_effect(Effect::None)
}

fn told(endpoint: &Endpoint, status: &Status, said: &str) -> Error {
    let text = status.message();
    if text.contains("authentication failed")
        || text.contains("user name is empty")
        || text.contains("user name not found")
    {
        return Error::new(ErrorKind::Denied, format!("the etcd server at {endpoint} did not let us in: {said}"))
            .with_hint("name the user and give the password: `etcd://user@host`, and `LOCKKEEPER_PASSWORD`");
    }
    if text.contains("permission denied") {
        return Error::new(ErrorKind::Denied, format!("the etcd server at {endpoint} does not allow it: {said}"))
            .with_hint("the user's role needs `readwrite` on the prefix of the locks and of `{cell}/` before it");
    }
    if text.contains("database space exceeded") {
        return Error::new(ErrorKind::Unavailable, format!("the etcd server at {endpoint} is full: {said}"))
            .with_hint("compact and defragment it, then `etcdctl alarm disarm`");
    }
    if is_badge_gone(status) {
        return Error::new(ErrorKind::Unavailable, format!("the etcd server at {endpoint} forgot who we are: {said}"))
            .with_hint("ask again: we then say who we are once more");
    }
    match status.code() {
        // It never went to the log.
        Code::ResourceExhausted => {
            Error::new(ErrorKind::Unavailable, format!("the etcd server at {endpoint} has too much to do: {said}"))
                .with_hint("ask again in a while; if it stays so, look at the load and the disks of the members")
        }
        Code::Unavailable if text.contains("no leader") => {
            Error::new(ErrorKind::Unavailable, format!("the etcd cluster of {endpoint} has no leader: {said}"))
                .with_hint("most of its members must be up and see each other")
        }
        // Our own side says so, too, of an answer that is too long for it: by then it is done.
        Code::OutOfRange => Error::new(ErrorKind::Unsupported, format!("no answer of {endpoint} can be had: {said}"))
            .with_effect(Effect::Unknown)
            .with_hint("an answer has at most 64 MiB: are there very many claims, or long notes?"),
        Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented => {
            Error::new(ErrorKind::Unsupported, format!("the etcd server at {endpoint} does not do that: {said}"))
                .with_hint("see whether it is an etcd of 3.4 or later, and its limits: `lockkeeper doctor`")
        }
        Code::PermissionDenied | Code::Unauthenticated => {
            Error::new(ErrorKind::Denied, format!("the etcd server at {endpoint} does not allow it: {said}"))
                .with_hint("see who is asked for: a user and a password, or a client certificate")
        }
        _ => Error::unanswered(format!("the etcd server at {endpoint} gave no answer: {said}"))
            .with_hint("see whether the cluster is well: `lockkeeper doctor`"),
    }
}

/// An answer that is none.
pub(crate) fn garbled(what: &str) -> Error {
    Error::new(ErrorKind::Foreign, format!("the server's answer is not that of an etcd: {what}"))
        .with_effect(Effect::Unknown)
}

/// What was said, and what lies behind it, without what a terminal would obey.
fn shown(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = status.source();
    while let Some(why) = cause {
        let why_text = why.to_string();
        if !text.contains(&why_text) {
            text = if text.is_empty() { why_text } else { format!("{text}: {why_text}") };
        }
        cause = why.source();
    }
    text.replace(char::is_control, CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Endpoint {
        Endpoint { host: "h".to_owned(), port: 1 }
    }

    #[test]
    fn a_server_that_repeats_the_password_is_not_quoted() {
        let password = Secret::new("hush\thush");
        for text in ["`hush\thush` is no password", "authentication failed: hush\tha", "hush\t"] {
            let error = not_let_in(&at(), Some(&password), &Status::unauthenticated(text));
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None));
        }
        let other = not_let_in(&at(), Some(&password), &Status::unauthenticated("who are you?"));
        assert!(other.to_string().contains("who are you?"));
    }

    #[test]
    fn an_answer_that_is_too_long_may_be_that_to_a_change() {
        let status =
            Status::out_of_range("Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes");
        let error = refused(&at(), &status);
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::Unknown));
    }
}
