//! Each fault, and its end.
//!
//! The surprise: "nothing came" is never shown by waiting for nothing, but by something else that has come since.

use std::net::TcpListener;

use super::*;
use crate::identity::poll;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(150);

#[test]
fn a_cut_ends_all_and_new_ones_are_welcome() {
    let (_echo, proxy) = pair();
    let (mut one, mut two) = (Talk::to(proxy.port()), Talk::to(proxy.port()));
    assert!(one.ask("one").is_ok() && two.ask("two").is_ok());
    proxy.cut();
    assert_eq!(proxy.counts().open, 0);
    assert_reset(one.end());
    assert_reset(two.end());
    assert_eq!(Talk::to(proxy.port()).ask("three").unwrap(), "three");
}

#[test]
fn what_was_handed_over_before_a_cut_stays_handed_over() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::to(server.local_addr().unwrap().port()).unwrap();
    let mut talk = Talk::to(proxy.port());
    talk.say("to be acted on").unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.to_server_bytes == 16));
    proxy.cut();
    // Only now does the server look.
    let mut text = String::new();
    server.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "to be acted on\r\n");
    assert_reset(talk.end());
}

#[test]
fn the_chosen_ones_are_cut_and_the_others_are_not() {
    let (_echo, proxy) = pair();
    let mut all = [Talk::to(proxy.port()), Talk::to(proxy.port()), Talk::to(proxy.port())];
    for talk in &mut all {
        talk.ask("hello").unwrap();
    }
    proxy.only(Which::Nth(2)).cut();
    let [one, two, three] = &mut all;
    assert_reset(two.end());
    assert!(one.ask("hello").is_ok() && three.ask("hello").is_ok());
    let there_now = proxy.only(Which::Open);
    let mut four = Talk::to(proxy.port());
    four.ask("hello").unwrap();
    there_now.cut();
    assert_reset(one.end());
    assert_reset(three.end());
    assert!(four.ask("hello").is_ok());
    assert_eq!((there_now.counts().accepted, there_now.counts().open), (2, 0));
}

#[test]
fn a_connection_is_known_by_what_was_sent_on_it() {
    let (_echo, proxy) = pair();
    let (mut before, mut after, mut never) = (Talk::to(proxy.port()), Talk::to(proxy.port()), Talk::to(proxy.port()));
    before.ask("please subscribe me").unwrap();
    let subscribers = proxy.only(Which::Sent("Subscribe"));
    assert_eq!(subscribers.counts().accepted, 1);
    // In two pieces, each seen by itself.
    after.0.get_mut().write_all(b"SUBSC").unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.to_server_bytes == 21 + 5));
    assert_eq!(subscribers.counts().accepted, 1);
    after.ask("RIBE").unwrap();
    never.ask("subscrib").unwrap();
    assert_eq!(subscribers.counts().accepted, 2);
    subscribers.cut();
    assert_reset(before.end());
    assert_reset(after.end());
    assert!(never.ask("hello").is_ok());
    assert_eq!(subscribers.counts().round_trips, 2, "of closed ones");
}

#[test]
fn new_ones_are_refused_and_old_ones_stay() {
    let (_echo, proxy) = pair();
    let mut old = Talk::to(proxy.port());
    old.ask("hello").unwrap();
    proxy.refuse(true);
    assert_reset(Talk::to(proxy.port()).end());
    assert_eq!(old.ask("hello").unwrap(), "hello");
    assert_eq!((proxy.counts().accepted, proxy.counts().refused), (2, 1));
    proxy.refuse(false);
    assert_eq!(Talk::to(proxy.port()).ask("hello").unwrap(), "hello");
}

#[test]
fn one_that_becomes_unwanted_is_refused_before_the_server_hears_of_it() {
    let (echo, proxy) = pair();
    let (mut old, mut other) = (Talk::to(proxy.port()), Talk::to(proxy.port()));
    old.ask("SUBSCRIBE a").unwrap();
    other.ask("hello").unwrap();
    let subscribers = proxy.only(Which::Sent("SUBSCRIBE"));
    subscribers.cut_for(LONG);
    assert_reset(old.end());
    let mut new = Talk::to(proxy.port());
    assert_eq!(new.ask("hello").unwrap(), "hello", "so far it is like any other");
    assert_reset(new.ask("SUBSCRIBE b"));
    assert_reset(other.ask("SUBSCRIBE c"));
    assert_eq!(echo.heard(), ["SUBSCRIBE a", "hello", "hello"]);
    subscribers.refuse(false);
    assert_eq!(Talk::to(proxy.port()).ask("SUBSCRIBE d").unwrap(), "SUBSCRIBE d");
}

#[test]
fn a_cut_for_a_time_ends_with_it() {
    let (_echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    talk.ask("hello").unwrap();
    let began = Instant::now();
    proxy.cut_for(SHORT);
    assert_reset(talk.end());
    let mut tries = 0;
    while Talk::to(proxy.port()).ask("hello").is_err() {
        assert!(began.elapsed() < SOON);
        tries += 1;
    }
    assert!(began.elapsed() >= SHORT && tries > 0, "{tries} tries in {:?}", began.elapsed());
}

#[test]
fn what_is_frozen_stays_up_and_waits() {
    let (echo, proxy) = pair();
    let mut old = Talk::to(proxy.port());
    old.ask("before").unwrap();
    proxy.freeze();
    old.say("held").unwrap();
    let mut new = Talk::to(proxy.port());
    new.say("also held").unwrap();
    new.hang_up();
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes == 6 + 11 && counts.open == 2));
    assert!(old.is_silent() && new.is_silent());
    assert_eq!(echo.heard(), ["before"]);
    proxy.thaw();
    assert_eq!(old.hear().unwrap(), "held");
    assert_eq!(new.hear().unwrap(), "also held");
    new.end().unwrap();
    assert_eq!(old.ask("after").unwrap(), "after");
}

#[test]
fn a_reply_on_its_way_is_frozen_too() {
    let (echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    proxy.delay(Way::ToClient, LONG);
    talk.say("hello").unwrap();
    echo.hears(1);
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes == 7));
    proxy.freeze();
    proxy.delay(Way::ToClient, Duration::ZERO);
    // The proxy has been at work since, and not on this.
    let other = proxy.only(Which::Nth(2));
    other.thaw();
    assert_eq!(Talk::to(proxy.port()).ask("other").unwrap(), "other");
    assert!(talk.is_silent());
    proxy.thaw();
    assert_eq!(talk.hear().unwrap(), "hello");
}

#[test]
fn who_is_frozen_does_not_even_reach_the_server() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let proxy = Proxy::to(server.local_addr().unwrap().port()).unwrap();
    proxy.freeze();
    Talk::to(proxy.port()).say("held").unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes == 6));
    assert_eq!(server.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    server.set_nonblocking(false).unwrap();
    proxy.thaw();
    let mut text = String::new();
    server.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "held\r\n");
}

#[test]
fn after_a_freeze_not_one_byte_more_comes() {
    let (_echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    let (mut reader, writer) = (talk.0.get_ref().try_clone().unwrap(), talk.0.get_ref().try_clone().unwrap());
    // Both end with the connection, which ends with the proxy.
    std::thread::spawn(move || while (&writer).write_all(b"tick\r\n").is_ok() {});
    std::thread::spawn(move || while reader.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    for round in 1..=50 {
        assert!(proxy.wait_for(SOON, |counts| counts.to_client_bytes > round * 1000));
        proxy.freeze();
        let then = proxy.counts();
        assert!(proxy.wait_for(SOON, |counts| counts.held_bytes > then.held_bytes), "the client goes on");
        let now = proxy.counts();
        assert_eq!((now.to_server_bytes, now.to_client_bytes), (then.to_server_bytes, then.to_client_bytes));
        proxy.thaw();
    }
    proxy.cut();
    // What came before the cut may still be read.
    assert!(poll(SOON, || talk.ask("hello").err()).is_some());
}

#[test]
fn a_frozen_one_can_be_cut() {
    let (_echo, proxy) = pair();
    proxy.freeze();
    let mut talk = Talk::to(proxy.port());
    talk.say("held").unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes == 6));
    proxy.cut();
    assert_reset(talk.end());
    assert_eq!(proxy.counts().held_bytes, 0);
}

#[test]
fn each_direction_has_its_delay() {
    let (_echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    let mut took = || {
        let began = Instant::now();
        talk.ask("hello").unwrap();
        began.elapsed()
    };
    proxy.delay(Way::ToServer, SHORT);
    assert!(took() >= SHORT);
    proxy.delay(Way::ToClient, SHORT);
    assert!(took() >= 2 * SHORT);
    proxy.delay(Way::ToServer, Duration::ZERO);
    proxy.only(Which::Nth(1)).delay(Way::ToClient, Duration::ZERO);
    let fast = (0..10).map(|_| took()).min().unwrap();
    assert!(fast < SHORT, "{fast:?}");
}

#[test]
fn delays_of_pieces_do_not_add_up() {
    let (_echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    proxy.delay(Way::ToServer, SHORT);
    let began = Instant::now();
    for count in 1..=10 {
        talk.say("hello").unwrap();
        assert!(proxy.wait_for(SOON, |counts| counts.held_bytes + counts.to_server_bytes == count * 7));
    }
    let sent = began.elapsed();
    for _ in 0..10 {
        talk.hear().unwrap();
    }
    let took = began.elapsed();
    assert!(took >= SHORT && took < sent + 5 * SHORT, "{took:?}");
}

#[test]
fn a_delay_lifted_lets_go_what_it_held() {
    let (echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    proxy.delay(Way::ToServer, LONG);
    talk.say("hello").unwrap();
    assert!(proxy.wait_for(SOON, |counts| counts.held_bytes == 7));
    assert!(echo.heard().is_empty());
    proxy.delay(Way::ToServer, Duration::ZERO);
    assert_eq!(talk.hear().unwrap(), "hello");
}

#[test]
fn requests_arrive_and_replies_are_dropped() {
    let (echo, proxy) = pair();
    let mut old = Talk::to(proxy.port());
    old.ask("hello").unwrap();
    let there_now = proxy.only(Which::Open);
    there_now.drop_replies(true);
    old.say("unheard").unwrap();
    assert_eq!(echo.hears(2), ["hello", "unheard"]);
    assert!(there_now.wait_for(SOON, |counts| counts.dropped_bytes == 9));
    assert_eq!(Talk::to(proxy.port()).ask("new").unwrap(), "new", "only those that were open");
    assert!(old.is_silent());
    there_now.drop_replies(false);
    assert_eq!(old.ask("heard").unwrap(), "heard");
}

#[test]
fn the_next_replies_are_dropped_and_no_more() {
    let (echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    talk.ask("zero").unwrap();
    proxy.drop_next_replies(2);
    for (count, line) in [(1, "one"), (2, "two")] {
        talk.say(line).unwrap();
        assert!(proxy.wait_for(SOON, |counts| counts.dropped_bytes == count * 5));
    }
    assert_eq!(talk.ask("three").unwrap(), "three");
    assert_eq!(echo.heard(), ["zero", "one", "two", "three"]);
}

#[test]
fn a_lost_reply_takes_the_connection_along() {
    let (echo, proxy) = pair();
    let mut talk = Talk::to(proxy.port());
    proxy.lose_reply_to("Transfer");
    assert_eq!(talk.ask("look").unwrap(), "look");
    assert_reset(talk.ask("transfer 100"));
    assert_eq!(echo.heard(), ["look", "transfer 100"]);
    let mut again = Talk::to(proxy.port());
    assert_eq!(again.ask("transfer 100").unwrap(), "transfer 100", "once");
}

#[test]
fn a_server_that_is_not_there_is_a_reset() {
    let port = super::super::super::ports::free(1).unwrap()[0];
    let proxy = Proxy::to(port).unwrap();
    assert_reset(Talk::to(proxy.port()).end());
}
