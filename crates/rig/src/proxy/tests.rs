//! Every control of the proxy, against a server of lines and a real redis.
//!
//! The surprise: hardly a test waits for time to pass. What has to happen first is awaited at the proxy, which counts,
//! or at the server of lines, which remembers what it heard.

mod echo;
mod faults;
mod redis;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use self::echo::Echo;
use super::super::tests::{SOON, Talk};
use super::*;

/// A server of lines, and a proxy before it.
fn pair() -> (Echo, Proxy) {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.port).unwrap();
    (echo, proxy)
}

fn assert_reset<T: std::fmt::Debug>(outcome: io::Result<T>) {
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn bytes_and_ends_pass_both_ways_and_are_counted() {
    let (echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    assert_eq!(talk.ask("hello").unwrap(), "hello");
    let seen =
        Counts { accepted: 1, open: 1, round_trips: 1, to_server_bytes: 7, to_client_bytes: 7, ..Counts::default() };
    assert_eq!(proxy.counts(), seen);
    talk.say("last").unwrap();
    talk.hang_up();
    assert_eq!(talk.hear().unwrap(), "last");
    talk.end().unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.open == 0));
    assert_eq!(echo.heard(), ["hello", "last"]);
}

#[test]
fn it_listens_where_it_is_told() {
    let echo = Echo::start();
    let port = super::super::ports::free(1).unwrap()[0];
    let proxy = Proxy::listening_on(port, echo.port).unwrap();
    assert_eq!(proxy.port(), port);
    assert_eq!(Talk::to(port).ask("hello").unwrap(), "hello");
    assert!(Proxy::listening_on(port, echo.port).unwrap_err().to_string().contains(&port.to_string()));
}

#[test]
fn it_finds_a_server_by_its_name_at_whichever_address_it_is() {
    let echo = Echo::start();
    let named = Proxy::before("localhost", echo.port).unwrap();
    assert_eq!(Talk::to(named.port()).ask("hello").unwrap(), "hello");
    // The first address of the two has no server.
    let port = super::super::ports::free(1).unwrap()[0];
    let addresses = [port, echo.port].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let second = Proxy::between(0, addresses.into()).unwrap();
    assert_eq!(Talk::to(second.port()).ask("hello").unwrap(), "hello");
    assert!(Proxy::before("no such host", 1).unwrap_err().to_string().contains("no such host"));
}

#[test]
fn it_is_gone_when_dropped() {
    let (_echo, proxy) = pair();
    let (port, mut talk) = (proxy.port(), Talk::to(proxy.port()));
    assert_eq!(talk.ask("hello").unwrap(), "hello");
    drop(proxy);
    assert_reset(talk.end());
    assert_eq!(TcpStream::connect(("127.0.0.1", port)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_round_trip_is_a_request_after_an_answer() {
    let (_echo, proxy) = pair();
    let (mut one, mut two) = (Talk::to(proxy.port()), Talk::to(proxy.port()));
    for trips in 1..=200 {
        one.ask("hello").unwrap();
        assert_eq!(proxy.count_round_trips(), trips);
    }
    two.ask("hello").unwrap();
    assert_eq!(proxy.count_round_trips(), 201);
    let first = proxy.only(Which::Nth(1));
    assert_eq!(first.count_round_trips(), 200);
    one.say("a\r\nb\r\nc").unwrap();
    assert_eq!([one.hear().unwrap(), one.hear().unwrap(), one.hear().unwrap()], ["a", "b", "c"]);
    assert_eq!(first.count_round_trips(), 201, "a pipeline is one");
    let long = "x".repeat(1_000_000);
    assert_eq!(one.ask(&long).unwrap(), long);
    assert_eq!(first.count_round_trips(), 202, "many pieces are one");
    assert_eq!(first.counts().to_server_bytes, 200 * 7 + 9 + 1_000_002);
}

#[test]
fn an_answer_thrown_away_is_an_answer() {
    let (_echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    proxy.drop_replies(true);
    for trips in 1..=3 {
        talk.say("hello").unwrap();
        assert!(proxy.wait_for(SOON, |counts| counts.dropped_bytes == 7 * trips));
        assert_eq!(proxy.count_round_trips(), trips);
    }
    assert!(talk.is_silent());
}

#[test]
fn one_who_does_not_read_holds_nobody_up() {
    let (_echo, proxy) = pair();
    let mut greedy = Talk::to(proxy.port());
    let flood = greedy.0.get_ref().try_clone().unwrap();
    // More than all buffers take. The writing ends when the connection does.
    let writer = std::thread::spawn(move || {
        let line = [b'x'; 65_536];
        while (&flood).write_all(&line).and_then(|()| (&flood).write_all(b"\r\n")).is_ok() {}
    });
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes > 9_000_000), "{:?}", proxy.counts());
    let mut other = Talk::to(proxy.port());
    for _ in 0..100 {
        assert_eq!(other.ask("hello").unwrap(), "hello");
    }
    assert!(proxy.counts().held_bytes < 20_000_000, "there is a limit: {:?}", proxy.counts());
    proxy.only(Which::Nth(1)).cut();
    writer.join().unwrap();
    let _ = greedy.0.get_mut().read(&mut [0]);
    assert_eq!(other.ask("hello").unwrap(), "hello");
}

#[test]
fn it_says_when_time_is_over() {
    let (_echo, proxy) = pair();
    let began = Instant::now();
    assert!(!proxy.wait_for(Duration::from_millis(30), |counts| counts.accepted > 0));
    assert!(began.elapsed() >= Duration::from_millis(30));
}
