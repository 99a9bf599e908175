//! Real Redis servers for the tests of this program, and a way to change their settings.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Once;

use lockkeeper_conformance::rig::{Server, wanted};

use super::support::{Den, LIMIT};

/// A server of our own, or nothing when nobody asked for servers.
pub fn server(name: &str) -> Option<Server> {
    server_with(name, &[])
}

/// The same with files of our own.
pub fn server_with(name: &str, files: &[(&str, &str)]) -> Option<Server> {
    asked_for().then(|| Server::named_with(name, files).expect("the server starts"))
}

/// Did anybody ask for servers? If not, that is said aloud.
pub fn asked_for() -> bool {
    static ONCE: Once = Once::new();
    if !wanted() {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: tests of the command line with a real redis; `cargo xtask test` runs them\n";
        ONCE.call_once(|| drop(writeln!(std::io::stderr(), "{line}")));
    }
    wanted()
}

/// The address of a server, with a user if one is named, and never a password.
pub fn url(server: &Server, user: &str) -> String {
    let at = if user.is_empty() { "" } else { "@" };
    format!("redis://{user}{at}127.0.0.1:{}", server.port())
}

/// The program with that server as its store.
pub fn program(den: &Den, server: &Server, user: &str) -> Command {
    let mut command = den.lockkeeper();
    command.env("LOCKKEEPER_STORE", url(server, user));
    command
}

/// Says each line to the server, and gives its reply to the last; an error reply ends the test.
#[track_caller]
pub fn tell(server: &Server, lines: &[&str]) -> String {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut stream = BufReader::new(stream);
    let mut last = String::new();
    for line in lines {
        stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("the server reads");
        last = hear(&mut stream);
        assert!(!last.starts_with('-'), "{line}: {last}");
    }
    last
}

fn hear(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a reply");
    let line = line.trim_end().to_owned();
    let length = line.get(1..).and_then(|rest| rest.parse::<usize>().ok()).unwrap_or_default();
    match line.chars().next() {
        Some('$') if line != "$-1" => {
            let mut text = vec![0; length + 2];
            stream.read_exact(&mut text).expect("a reply");
            String::from_utf8_lossy(&text).trim_end().to_owned()
        }
        Some('*') => (0..length).map(|_| hear(stream)).collect::<Vec<_>>().join(" "),
        _ => line,
    }
}
