//! The table of stores that a run can start by itself, one entry each, and what may be done to a store of either sort.
//!
//! Surprise: what hurts whom is nowhere listed. It follows from three facts of a target: was its server started by this
//! run, is it reached by TCP in the clear, can its clock be stepped.

use std::fmt::Write;

use lockkeeper_rig::{FAKETIME, SERVERS, Trouble};

use crate::nemesis::{ALL, word};
use crate::plan::Nemesis;

/// A store that a run starts by itself: a store in one of its topologies.
#[derive(Debug)]
pub struct Target {
    /// What it is asked for by.
    pub name: &'static str,
    /// The scheme of its address.
    pub scheme: &'static str,
    /// The rig's server behind it, if there is one.
    pub server: Option<&'static str>,
    /// Its address: `{server}` is the server's, `{folder}` is the run's folder.
    pub url: &'static str,
    /// Is what it answered on a disk before it answered?
    pub durable: bool,
    /// Can its wall clock be stepped?
    pub steps: bool,
    /// The shortest lease that it gives.
    pub lease_min_ms: u64,
    /// What it is, in one sentence.
    pub about: &'static str,
}

/// A server that forgets everything when it dies; the other entries say in what they differ.
const REDIS: Target = Target {
    name: "redis",
    scheme: "redis",
    server: Some("redis"),
    url: "{server}",
    durable: false,
    steps: false,
    lease_min_ms: 100,
    about: "one Redis server without persistence",
};

/// One that keeps everything.
const ETCD: Target = Target {
    name: "etcd",
    scheme: "etcd",
    server: Some("etcd"),
    durable: true,
    lease_min_ms: 2_000,
    about: "one etcd member, which keeps what it answered when it is killed",
    ..REDIS
};

/// Every store that a run can start. A new one joins by one entry.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sqlite",
        scheme: "sqlite",
        server: None,
        url: "sqlite:{folder}/store/locks.db",
        durable: true,
        steps: false,
        lease_min_ms: 100,
        about: "a SQLite file in the run's folder, on disk before it answers",
    },
    Target {
        name: "sqlite-normal",
        scheme: "sqlite",
        server: None,
        url: "sqlite:{folder}/store/locks.db?sync=normal",
        durable: false,
        steps: false,
        lease_min_ms: 100,
        about: "a SQLite file in the run's folder; a power loss may take the last commits",
    },
    REDIS,
    Target {
        name: "redis-durable",
        server: Some("redis-durable"),
        durable: true,
        about: "one Redis server with every write on disk before it answers",
        ..REDIS
    },
    Target {
        name: "redis-stepped",
        server: Some("redis-stepped"),
        steps: true,
        about: "one Redis server without persistence, whose wall clock can be stepped",
        ..REDIS
    },
    ETCD,
    Target {
        name: "etcd-3",
        server: Some("etcd-3"),
        about: "an etcd cluster of three, which does with two of them",
        ..ETCD
    },
];

/// Schemes of addresses that a proxy can be put before, and the port that is meant where none is named.
const IN_THE_CLEAR: &[(&str, u16)] = &[("redis", 6_379), ("etcd", 2_379)];

/// What a run works on, and what may be done to it.
#[derive(Debug)]
pub struct Facts {
    /// As people may read it: without a password.
    pub shown: String,
    /// The scheme of its address.
    pub scheme: String,
    /// Was its server started by this run?
    pub started: bool,
    /// Is it reached by TCP, in the clear?
    pub by_tcp: bool,
    /// Can its wall clock be stepped?
    pub steps: bool,
}

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// What is known of it before it is started.
    pub fn facts(&self) -> Facts {
        // The rig's servers are reached by TCP, all of them: that is how the rig sees that they are ready.
        let started = self.server.is_some();
        let (shown, scheme) = (self.name.to_owned(), self.scheme.to_owned());
        Facts { shown, scheme, started, by_tcp: started, steps: self.steps }
    }

    /// Of how many servers it is made.
    pub fn members(&self) -> usize {
        let spec = SERVERS.iter().find(|spec| Some(spec.name) == self.server);
        spec.map_or(0, |spec| spec.members.len().max(1))
    }

    /// What can be done to it.
    pub fn nemeses(&self) -> Vec<Nemesis> {
        let facts = self.facts();
        ALL.into_iter().filter(|nemesis| facts.allow(*nemesis).is_ok()).collect()
    }
}

impl Facts {
    /// What is known of a store that somebody else started.
    ///
    /// # Errors
    /// If it is no address, or one that processes cannot share.
    pub fn of_address(url: &str) -> Result<Facts, Trouble> {
        let Some((scheme, _)) = url.split_once(':') else {
            return Err(Trouble::new(format!("there is no target `{url}`"))
                .hint(format!("it is an address like `redis://127.0.0.1:6379`, or one of:\n{}", listed())));
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "memory" {
            return Err(Trouble::new("`memory:` is a store of one process, and the workers are several")
                .hint("`sqlite` needs no server either"));
        }
        let by_tcp = IN_THE_CLEAR.iter().any(|(known, _)| *known == scheme);
        Ok(Facts { shown: redacted(url), scheme, started: false, by_tcp, steps: false })
    }

    /// Whether this may be done to it.
    ///
    /// # Errors
    /// Why not, and what to do instead.
    pub fn allow(&self, nemesis: Nemesis) -> Result<(), Trouble> {
        use Nemesis::*;
        match nemesis {
            KillWorker | KillHolder | PauseWorker | PauseHolder => Ok(()),
            StepClient if FAKETIME.path().is_some() => Ok(()),
            StepClient => Err(self
                .refuse(nemesis, &format!("`{}` is not installed", FAKETIME.file))
                .hint(format!("`cargo xtask setup` installs it (Debian package `{}`)", FAKETIME.package))),
            KillStore | PauseStore | WipeStore if self.started => Ok(()),
            StepStore if self.steps => Ok(()),
            Cut | Delay | HalfOpen | LoseReplies if self.by_tcp => Ok(()),
            KillStore | PauseStore | WipeStore => Err(self
                .refuse(nemesis, self.no_server())
                .hint("a target that the run starts by itself has a server it may hurt: `redis`, `etcd-3`")),
            StepStore => {
                Err(self.refuse(nemesis, "its clock cannot be stepped").hint("the target `redis-stepped` can"))
            }
            Cut | Delay | HalfOpen | LoseReplies => Err(self
                .refuse(nemesis, "no proxy can be put before it: it is not reached by TCP in the clear")
                .hint("name a server by a `redis://` address, or let the run start one: `redis`")),
        }
    }

    fn refuse(&self, nemesis: Nemesis, why: &str) -> Trouble {
        Trouble::new(format!("`{}` cannot be done to `{}`: {why}", word(nemesis), self.shown))
    }

    fn no_server(&self) -> &'static str {
        match self.scheme.as_str() {
            "sqlite" => "it is a file, and has no server",
            _ => "its server was not started by this run, and only what a run started is hurt",
        }
    }
}

/// The table, for people.
pub fn listed() -> String {
    TARGETS.iter().fold(String::new(), |mut text, target| {
        let _ = writeln!(text, "    {:14} {}", target.name, target.about);
        text
    })
}

/// An address without its password. What it cannot take apart for certain it takes for a password.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        None => url.to_owned(),
        Some((credentials, place)) => match credentials.split(':').next().unwrap_or_default() {
            "" => format!("{scheme}//{place}"),
            user => format!("{scheme}//{user}@{place}"),
        },
    }
}

/// The hosts and the ports that an address in the clear names: one for each member of a cluster.
pub(crate) fn hosts_and_ports(url: &str) -> Option<Vec<(String, u16)>> {
    let (scheme, authority, _) = parts(url)?;
    let usual = IN_THE_CLEAR.iter().find(|(known, _)| scheme.eq_ignore_ascii_case(known))?.1;
    let places = authority.rsplit_once('@').map_or(authority, |(_, places)| places);
    places.split(',').map(|place| host_and_port(place, usual)).collect()
}

fn host_and_port(place: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
    };
    let port = if port.is_empty() { usual } else { port.strip_prefix(':')?.parse().ok()? };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The same address with other ports of this machine in the place of its hosts.
pub(crate) fn by_way_of(url: &str, ports: &[u16]) -> Option<String> {
    let (scheme, authority, rest) = parts(url)?;
    let credentials = authority.rfind('@').map_or("", |at| &authority[..=at]);
    let places: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    Some(format!("{scheme}://{credentials}{}{rest}", places.join(",")))
}

/// Scheme, authority, and all that follows.
fn parts(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    Some((scheme, &rest[..end], &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_resolves() {
        for target in TARGETS {
            let of_this_name = TARGETS.iter().filter(|other| other.name == target.name).count();
            assert!(of_this_name == 1 && Target::named(target.name).is_some(), "{}", target.name);
            let scheme = target.facts().scheme;
            assert!(lockkeeper::STORES.iter().any(|(known, built_in)| *known == scheme && *built_in), "{scheme}");
            match target.server {
                Some(server) => {
                    let spec = lockkeeper_rig::SERVERS.iter().find(|spec| spec.name == server);
                    assert!(spec.is_some_and(|spec| spec.url.starts_with(target.scheme)), "{server}");
                    assert_eq!(target.url, "{server}");
                }
                None => assert!(target.url.starts_with(target.scheme) && target.url.contains("{folder}")),
            }
            assert!(target.nemeses().contains(&Nemesis::KillHolder), "{}", target.name);
            assert!(listed().contains(target.about));
        }
    }

    #[test]
    fn what_may_be_done_follows_from_the_facts() {
        use Nemesis::*;
        let of = |name: &str| Target::named(name).unwrap().nemeses();
        for hurts_servers in [KillStore, PauseStore, WipeStore, Cut, Delay, HalfOpen, LoseReplies] {
            assert!(of("redis").contains(&hurts_servers) && !of("sqlite").contains(&hurts_servers));
        }
        assert_eq!(of("etcd-3"), of("redis"), "what can be done to one server can be done to a cluster");
        assert!(of("redis-stepped").contains(&StepStore) && !of("redis").contains(&StepStore));
        let theirs = Facts::of_address("redis://example.test").unwrap();
        let allowed: Vec<_> = ALL.into_iter().filter(|nemesis| theirs.allow(*nemesis).is_ok()).collect();
        for may in [KillWorker, PauseHolder, Cut, Delay, HalfOpen, LoseReplies] {
            assert!(allowed.contains(&may), "{may:?}");
        }
        for must_not in [KillStore, PauseStore, StepStore, WipeStore] {
            assert!(!allowed.contains(&must_not), "{must_not:?}");
        }
    }

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        for (target, nemesis, why) in [
            ("sqlite:locks.db", Nemesis::KillStore, "it is a file"),
            ("redis://h", Nemesis::WipeStore, "was not started by this run"),
            ("redis://h", Nemesis::StepStore, "`redis-stepped`"),
            ("rediss://u:hushhush@h", Nemesis::Cut, "not reached by TCP in the clear"),
            ("redis+unix:///run/r.sock", Nemesis::Delay, "not reached by TCP in the clear"),
        ] {
            let said = Facts::of_address(target).unwrap().allow(nemesis).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("hint:") && said.contains(&word(nemesis)), "{said}");
            assert!(!said.contains("hushhush"), "{said}");
        }
        assert!(Facts::of_address("memory:").unwrap_err().to_string().contains("one process"));
        assert!(Facts::of_address("redys").unwrap_err().to_string().contains("redis-durable"));
    }

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("redis://ann:hushhush@h:7000/3", "redis://ann@h:7000/3"),
            ("redis://:hushhush@h", "redis://h"),
            ("redis://ann:hush/hushhush@h", "redis://ann@h"),
            ("redis://ann:hush?hushhush@h?prefix=a", "redis://ann@h?prefix=a"),
            ("redis://ann:hush@hushhush@h", "redis://ann@h"),
            ("redis://h/0", "redis://h/0"),
            ("etcd://ann:hushhush@h1:2379,h2,[::1]:7", "etcd://ann@h1:2379,h2,[::1]:7"),
            ("etcds://:hush,hushhush@h1,h2?lease=30s", "etcds://h1,h2?lease=30s"),
            ("etcd://h1,ann:hushhush@h2", "etcd://h1,ann@h2"),
            ("etcd://h1:2379,ann:hushhush@h2", "etcd://h1@h2"),
            ("etcd://ann:hushhush@h1,bob:hushhush@h2", "etcd://ann@h2"),
            ("etcd://h1:2379,[::1]:2379", "etcd://h1:2379,[::1]:2379"),
            ("sqlite:/a/b.db", "sqlite:/a/b.db"),
        ] {
            assert_eq!(redacted(url), shown);
        }
    }

    #[test]
    fn an_address_is_turned_to_the_proxy() {
        let at = |host: &str, port| Some(vec![(host.to_owned(), port)]);
        assert_eq!(hosts_and_ports("redis://h"), at("h", 6_379));
        assert_eq!(hosts_and_ports("REDIS://u:p%40@h:7000/3?prefix=x"), at("h", 7_000));
        assert_eq!(hosts_and_ports("redis://[::1]:7000"), at("::1", 7_000));
        for bad in [
            "redis:h",
            "redis://",
            "redis://h:x",
            "redis://[::1",
            "redis://[::1]7",
            "rediss://h",
            "sqlite:/a",
            "etcd://a,,b",
            "etcd://a:1,b:x",
        ] {
            assert_eq!(hosts_and_ports(bad), None, "{bad}");
        }
        assert_eq!(by_way_of("redis://u:p@h:7/3?prefix=x", &[9]).unwrap(), "redis://u:p@127.0.0.1:9/3?prefix=x");
        assert_eq!(by_way_of("redis://h?prefix=x", &[9]).unwrap(), "redis://127.0.0.1:9?prefix=x");
        assert_eq!(by_way_of("redis://[::1]", &[9]).unwrap(), "redis://127.0.0.1:9");
    }

    #[test]
    fn every_member_of_a_cluster_has_its_proxy() {
        let hosts = hosts_and_ports("etcd://u:p,q@a,[::1]:7,b:8?lease=5s").unwrap();
        let expected = [("a", 2_379), ("::1", 7), ("b", 8)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!(hosts, expected);
        let url = by_way_of("etcd://u:p,q@a,[::1]:7,b:8?lease=5s", &[1, 2, 3]).unwrap();
        assert_eq!(url, "etcd://u:p,q@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?lease=5s");
        let members = |name: &str| Target::named(name).unwrap().members();
        assert_eq!(["sqlite", "redis", "etcd", "etcd-3"].map(members), [0, 1, 1, 3]);
    }
}
