//! The proxy before a real redis: what the fault tests of stores rely on.
//!
//! The surprise: runs when servers are up or asked for, like all tests with a real server.

use super::super::super::tests::redis;
use super::*;

#[test]
fn round_trips_of_a_real_client_are_exact() {
    let Some(server) = redis() else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let mut talk = Talk::to(proxy.port());
    for trips in 1..=100 {
        talk.ask("INCR a").unwrap();
        assert_eq!(proxy.count_round_trips(), trips);
    }
    talk.say(&vec!["INCR a"; 500].join("\r\n")).unwrap();
    for value in 101..=600 {
        assert_eq!(talk.hear().unwrap(), format!(":{value}"));
    }
    assert_eq!(proxy.count_round_trips(), 101);
}

#[test]
fn the_server_acted_and_the_client_cannot_know() {
    let Some(server) = redis() else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let mut direct = Talk::to(server.port());
    for count in 1..=20 {
        let mut talk = Talk::to(proxy.port());
        assert_eq!(talk.ask("PING").unwrap(), "+PONG");
        proxy.lose_reply_to("incr a");
        assert_reset(talk.ask("INCR a"));
        assert_eq!(direct.ask("GET a").unwrap(), count.to_string());
    }
}

#[test]
fn the_subscription_is_cut_and_the_rest_goes_on() {
    let Some(server) = redis() else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let (mut main, mut listener) = (Talk::to(proxy.port()), Talk::to(proxy.port()));
    assert_eq!(listener.ask("SUBSCRIBE news").unwrap(), "subscribe news :1");
    assert_eq!(main.ask("PUBLISH news a").unwrap(), ":1");
    assert_eq!(listener.hear().unwrap(), "message news a");
    let subscribers = proxy.only(Which::Sent("SUBSCRIBE"));
    subscribers.cut_for(SOON * 60);
    assert_reset(listener.end());
    assert_reset(Talk::to(proxy.port()).ask("SUBSCRIBE news"));
    assert_eq!(main.ask("PUBLISH news b").unwrap(), ":0");
    subscribers.refuse(false);
    assert_eq!(Talk::to(proxy.port()).ask("SUBSCRIBE news").unwrap(), "subscribe news :1");
}

#[test]
fn a_killed_server_is_back_behind_the_same_proxy() {
    let Some(mut server) = redis() else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let mut talk = Talk::to(proxy.port());
    talk.ask("PING").unwrap();
    server.kill().unwrap();
    talk.end().expect("the kernel says goodbye for the server");
    assert_reset(Talk::to(proxy.port()).end());
    server.restart().unwrap();
    assert_eq!(Talk::to(proxy.port()).ask("PING").unwrap(), "+PONG");
}
