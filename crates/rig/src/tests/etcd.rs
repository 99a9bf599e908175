//! etcd: one member that keeps its data, and what it needs to be installed.
//!
//! The surprise: it is asked over its JSON gateway, where keys and values are base64 and numbers are strings.

use super::*;

/// A value put under key `a`.
pub(super) fn put(port: u16, value: &str) -> Option<()> {
    let body = format!(r#"{{"key":"YQ==","value":"{value}"}}"#);
    servers::ask_etcd(port, "/v3/kv/put", &body)?["header"]["revision"].as_str().map(|_| ())
}

/// The value under key `a`, as far as this member knows without asking the others, or with them.
pub(super) fn get(port: u16, with_the_others: bool) -> Option<String> {
    let body = format!(r#"{{"key":"YQ==","serializable":{}}}"#, !with_the_others);
    servers::ask_etcd(port, "/v3/kv/range", &body)?["kvs"][0]["value"].as_str().map(str::to_string)
}

#[test]
fn etcd_starts_answers_and_stops() {
    let Some(server) = variant("etcd") else { return };
    let (identity, folder, port) = (server.identity().unwrap(), server.folder().to_path_buf(), server.port());
    assert_eq!(server.url(), format!("etcd://127.0.0.1:{port}"));
    assert!(server.entry().unwrap().version.starts_with("3."));
    poll(SOON, || put(port, "AQ==")).expect("a value is put");
    assert_eq!(poll(SOON, || get(port, true)).as_deref(), Some("AQ=="));
    server.stop().unwrap();
    assert_gone(identity, &folder);
    assert_eq!(get(port, false), None);
}

#[test]
fn etcd_has_what_it_answered_after_a_kill_without_fsync() {
    let Some(mut server) = variant("etcd") else { return };
    let port = server.port();
    for round in ["AQ==", "Ag==", "Aw=="] {
        // Killed right after its answer, before anything could be written later.
        poll(SOON, || put(port, round)).expect("a value is put");
        server.kill().unwrap();
        assert_eq!(get(port, false), None);
        server.restart().unwrap();
        assert_eq!(server.port(), port);
        assert_eq!(poll(SOON, || get(port, true)).as_deref(), Some(round));
    }
}

#[test]
fn etcd_brings_its_command_line() {
    let spec = SERVERS.iter().find(|spec| spec.name == "etcd").unwrap();
    assert_eq!(spec.beside, [("etcdctl", "etcd-client")]);
    let spec = Spec { beside: &[("lockkeeper-no-such-program", "none")], ..script(&[], SOON) };
    assert_eq!(spec.missing(), [("lockkeeper-no-such-program", "none")]);
}
