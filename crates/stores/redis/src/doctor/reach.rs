//! The way to the server: encryption, the protocol, pushed messages, and how many may come.

use std::net::IpAddr;
use std::time::Duration;

use lockkeeper_core::Result;
use lockkeeper_core::checkup::{Finding, Level, Promise, Report};

use super::seen::Seen;
use super::visit::{Answer, Visit};
use crate::options::{Address, Options};

/// How long a pushed message may take.
const HEARD_WITHIN: Duration = Duration::from_secs(2);
/// Connections that are idle longer than renewals are apart, at the usual lease, with room to spare.
const IDLE_S: u64 = 60;
/// From this share of connections on, in percent, there is little room.
const CROWDED: u64 = 90;

/// Was a message that we sent to ourselves heard? If not, why not.
pub(crate) async fn push(visit: &mut Visit, channel: &str) -> Result<std::result::Result<(), String>> {
    if !visit.resp3 {
        return Ok(Err("it does not speak RESP3, which pushed messages need".to_owned()));
    }
    if let Some(words) = visit.subscribe(channel).await? {
        return Ok(Err(format!("this user may not subscribe to {channel}: {words}")));
    }
    if let Answer::Refused(code, words) = visit.ask(redis::cmd("PUBLISH").arg(channel).arg("heard")).await? {
        return Ok(Err(format!("this user may not publish: {code} {words}")));
    }
    match visit.hears(b"heard", HEARD_WITHIN).await {
        true => Ok(Ok(())),
        false => Ok(Err("a message that was published did not come back".to_owned())),
    }
}

/// Facts, findings and promises about the way to the server.
pub(crate) fn tell(options: &Options, resp3: bool, push: &std::result::Result<(), String>, report: &mut Report) {
    transport(options, report);
    report.fact("protocol", if resp3 { "RESP3" } else { "RESP2 only" });
    let change = "use Redis 6.2 or later, and let this user subscribe: `ACL SETUSER NAME +subscribe +publish \
        &lockkeeper:wake:*`";
    match push {
        Ok(()) => {
            report.find(Finding::good("wake-ups", "published messages are pushed to us"));
            report.promise(Promise::Push, true, "published messages are pushed", None);
        }
        Err(why) => {
            let means = "those who wait are not told, and connections are refused for lack of it";
            report.find(Finding::new("wake-ups", Level::Danger, why.clone(), means).with_change(change));
            report.promise(Promise::Push, false, why.clone(), Some(change.to_owned()));
        }
    }
}

fn transport(options: &Options, report: &mut Report) {
    let (fact, finding) = match &options.address {
        Address::Unix(_) => ("a socket on this host", Finding::good("transport", "a socket on this host")),
        Address::Tcp { tls: Some(_), .. } => ("TLS", Finding::good("transport", "TLS, and the server was checked")),
        Address::Tcp { host, tls: None, .. } if is_here(host) => {
            ("plain TCP on this host", Finding::good("transport", "plain TCP that does not leave this host"))
        }
        Address::Tcp { tls: None, .. } => {
            let means = match options.password {
                Some(_) => "who listens on the way can read the password and take any lock",
                None => "who listens on the way, or reaches the port, can take any lock",
            };
            let finding = Finding::new("transport", Level::Warning, "plain TCP over a network", means);
            ("plain TCP", finding.with_change("use `rediss://`"))
        }
    };
    report.fact("transport", fact);
    report.find(finding);
    let reached = matches!(&options.address, Address::Tcp { host, .. } if !is_here(host));
    if reached && options.password.is_none() {
        let means = "everybody who reaches its port can take, break and read locks";
        let finding = Finding::new("user", Level::Warning, "it asks for no password", means);
        report.find(finding.with_change("give it users: `ACL SETUSER`, and `LOCKKEEPER_PASSWORD_FILE` here"));
    }
}

fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Facts and findings about connections.
pub(crate) fn tell_room(seen: &Seen, report: &mut Report) {
    let most = seen.setting("maxclients", "maxclients").and_then(|most| most.parse::<u64>().ok());
    if let Some(now) = seen.count("connected_clients") {
        let of = most.map(|most| format!(" of {most}")).unwrap_or_default();
        report.fact("clients", format!("{now}{of}"));
        if let Some(most) = most.filter(|most| now.saturating_mul(100) >= most.saturating_mul(CROWDED)) {
            let found = format!("{now} of {most} connections are in use");
            let means = "when none is left, a client that lost its connection loses its locks, too";
            let finding = Finding::new("clients", Level::Warning, found, means);
            report.find(finding.with_change("raise `maxclients`, or find out who holds so many"));
        }
    }
    if let Some(refused) = seen.count("rejected_connections").filter(|refused| *refused > 0) {
        let found = format!("{refused} connections were refused since the server started");
        let means = "a client that cannot come back loses its locks";
        report.find(Finding::new("clients", Level::Warning, found, means).with_change("raise `maxclients`"));
    }
    if let Some(idle) = seen.config.number("timeout").filter(|idle| (1..IDLE_S).contains(idle)) {
        let found = format!("connections that are idle for {idle} s are closed");
        let means = "the one that renews is made anew all the time; nothing is lost by that but time";
        let change = format!("set `timeout 0`, or {IDLE_S} and more");
        report.find(Finding::new("clients", Level::Note, found, means).with_change(change));
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::access::{Secret, Tls};
    use lockkeeper_core::checkup::Kept;

    use super::*;
    use crate::doctor::tests::{PLAIN, seen, with};

    fn worst(host: &str, tls: bool, password: bool) -> Level {
        let tls = tls.then(Tls::default);
        let mut options = Options::at(Address::Tcp { host: host.to_owned(), port: 1, tls });
        options.password = password.then(|| Secret::new("hidden"));
        let mut report = Report::new("redis", "");
        tell(&options, true, &Ok(()), &mut report);
        assert_eq!(report.kept(Promise::Push), Kept::Yes);
        assert!(!format!("{report:?}").contains("hidden"));
        report.worst()
    }

    #[test]
    fn what_leaves_the_host_is_encrypted_and_asks_who_comes() {
        for host in ["127.0.0.1", "localhost", "::1"] {
            assert_eq!(worst(host, false, false), Level::Good, "{host}");
        }
        assert_eq!(worst("db.example", true, true), Level::Good);
        assert_eq!(worst("db.example", true, false), Level::Warning);
        assert_eq!(worst("10.0.0.7", false, true), Level::Warning);
    }

    #[test]
    fn news_that_do_not_come_are_a_danger() {
        let mut report = Report::new("redis", "");
        let options = Options::at(Address::Unix("/run/redis.sock".into()));
        tell(&options, false, &Err("it does not speak RESP3".to_owned()), &mut report);
        assert_eq!((report.kept(Promise::Push), report.worst()), (Kept::No, Level::Danger));
    }

    #[test]
    fn room_for_clients() {
        let told = |seen: &Seen| {
            let mut report = Report::new("redis", "");
            tell_room(seen, &mut report);
            report.worst()
        };
        assert_eq!(told(&seen(PLAIN)), Level::Good);
        assert_eq!(told(&seen(&PLAIN.replace("connected_clients:1", "connected_clients:9500"))), Level::Warning);
        assert_eq!(told(&seen(&PLAIN.replace("rejected_connections:0", "rejected_connections:3"))), Level::Warning);
        assert_eq!(told(&with(&seen(PLAIN), "timeout", "5")), Level::Note);
        assert_eq!(told(&with(&seen(PLAIN), "timeout", "300")), Level::Good);
    }
}
