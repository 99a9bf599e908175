//! Who we are, what we may, and who can listen on the way.

use std::net::IpAddr;

use lockkeeper_core::checkup::{Finding, Level, Report};

use crate::options::Options;

/// May we?
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Right {
    Yes,
    No,
    /// It was not found out, and why not.
    Unknown(String),
}

/// What locks need, found out by trying it.
#[derive(Debug)]
pub(super) struct Rights {
    /// To write where lines are.
    pub(super) lines: Right,
    /// To write where cells are.
    pub(super) cells: Right,
    /// To read all that `ls` reads.
    pub(super) listing: Right,
}

/// Findings about rights.
pub(super) fn tell(options: &Options, rights: &Rights, report: &mut Report) {
    let under = &options.listed_under;
    let grant = |prefix: &str| format!("`etcdctl role grant-permission ROLE --prefix=true readwrite '{prefix}'`");
    let mut lacks = Vec::new();
    let mut changes = Vec::new();
    for (right, prefix) in [(&rights.lines, under.clone()), (&rights.cells, format!("{{cell}}/{under}"))] {
        match right {
            Right::Yes => {}
            Right::No => {
                lacks.push(format!("`{prefix}`"));
                changes.push(grant(&prefix));
            }
            Right::Unknown(why) => {
                let found = format!("whether this user may write under `{prefix}` could not be seen: {why}");
                report.find(Finding::new("rights", Level::Note, found, "the trial of a lock says more"));
            }
        }
    }
    if !lacks.is_empty() {
        let found = format!("this user may not write under {}", lacks.join(" and "));
        let means =
            "locks stand under the first, cells and what keeps strayed claims out under `{cell}/`: both are needed";
        report.find(Finding::new("rights", Level::Danger, found, means).with_change(changes.join(" and ")));
    } else if rights.lines == Right::Yes && rights.cells == Right::Yes {
        report.find(Finding::good("rights", "this user may do all that locks need"));
    }
    if rights.listing == Right::No {
        let place = if under.is_empty() { "everything".to_owned() } else { format!("all of `{under}`") };
        let found = format!("this user may not read {place}");
        let means = "locks work, but `ls` does not";
        let change = if under.is_empty() { "use a prefix, or grant it all".to_owned() } else { grant(under) };
        report.find(Finding::new("rights", Level::Note, found, means).with_change(change));
    }
}

/// Facts and findings about who we are and the way there.
pub(super) fn tell_transport(options: &Options, users: Option<bool>, report: &mut Report) {
    let here = options.endpoints.iter().all(|endpoint| is_here(&endpoint.host));
    let certificate = options.tls.as_ref().is_some_and(|tls| tls.cert.is_some());
    let who = match (&options.user, certificate) {
        (Some(user), _) => user.as_str(),
        (None, true) => "named by a certificate",
        (None, false) => "nobody",
    };
    let asks = match users {
        Some(true) => "the cluster asks who one is",
        Some(false) => "the cluster does not ask who one is",
        None => "whether the cluster asks could not be seen",
    };
    report.fact("user", format!("{who}; {asks}"));
    report.fact("transport", if options.tls.is_some() { "TLS" } else { "plain TCP" });
    let change = "use `etcds://`";
    report.find(match (&options.tls, here) {
        (Some(_), _) => Finding::good("transport", "TLS, and the servers were checked"),
        (None, true) => Finding::good("transport", "plain TCP that does not leave this host"),
        (None, false) if options.password.is_some() => {
            let means = "who listens on the way can read the password and take any lock";
            Finding::new("transport", Level::Danger, "a password goes over a network in the clear", means)
                .with_change(change)
        }
        (None, false) => {
            let means = "who listens on the way, or reaches the port, can take any lock";
            Finding::new("transport", Level::Warning, "plain TCP over a network", means).with_change(change)
        }
    });
    if users == Some(false) && !here && !certificate {
        let means = "everybody who reaches a member's port can take, break and read locks";
        let finding = Finding::new("user", Level::Warning, "the cluster asks nobody who they are", means);
        report.find(finding.with_change("ask for client certificates, or give it users: `etcdctl auth enable`"));
    }
    if users == Some(false) && options.user.is_some() {
        let means = "the name and the password are not looked at";
        report.find(Finding::new("user", Level::Note, "a user is named, but the cluster does not ask for one", means));
    }
}

fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::access::{Secret, Tls};

    use super::*;
    use crate::doctor::tests::levels;
    use crate::options::Endpoint;

    fn options(host: &str, tls: bool, user: bool) -> Options {
        let mut options = Options::at(vec![Endpoint { host: host.to_owned(), port: 1 }]);
        options.tls = tls.then(Tls::default);
        options.user = user.then(|| "me".to_owned());
        options.password = user.then(|| Secret::new("hidden"));
        options
    }

    fn worst(host: &str, tls: bool, user: bool, users: Option<bool>) -> Level {
        let mut report = Report::new("etcd", "");
        tell_transport(&options(host, tls, user), users, &mut report);
        assert!(!format!("{report:?}").contains("hidden"));
        report.worst()
    }

    #[test]
    fn what_leaves_the_host_is_encrypted_and_asks_who_comes() {
        for host in ["127.0.0.1", "localhost", "::1"] {
            assert_eq!(worst(host, false, false, Some(false)), Level::Good, "{host}");
            assert_eq!(worst(host, false, true, Some(true)), Level::Good, "{host}");
        }
        assert_eq!(worst("db.example", true, true, Some(true)), Level::Good);
        assert_eq!(worst("db.example", true, false, Some(false)), Level::Warning);
        assert_eq!(worst("10.0.0.7", false, false, Some(true)), Level::Warning);
        assert_eq!(worst("10.0.0.7", false, true, Some(true)), Level::Danger, "a password in the clear");
        assert_eq!(worst("localhost", false, true, Some(false)), Level::Note, "nobody looks at it");
    }

    #[test]
    fn what_is_missing_is_named_with_the_command() {
        let all = |lines, cells, listing| {
            let mut options = options("localhost", false, true);
            options.listed_under = "lockkeeper/".to_owned();
            let mut report = Report::new("etcd", "");
            tell(&options, &Rights { lines, cells, listing }, &mut report);
            report.findings
        };
        assert_eq!(all(Right::Yes, Right::Yes, Right::Yes)[0].level, Level::Good);
        let found = all(Right::Yes, Right::No, Right::Yes);
        assert_eq!((found.len(), found[0].level), (1, Level::Danger));
        let change = found[0].change.as_deref().unwrap();
        assert_eq!(change, "`etcdctl role grant-permission ROLE --prefix=true readwrite '{cell}/lockkeeper/'`");
        assert_eq!(all(Right::No, Right::No, Right::No).len(), 2);
        assert_eq!(all(Right::Yes, Right::Yes, Right::No)[1].level, Level::Note);
        let unknown = levels(|report| {
            let unknown = || Right::Unknown("silent".to_owned());
            tell(
                &options("h", true, true),
                &Rights { lines: unknown(), cells: Right::Yes, listing: unknown() },
                report,
            );
        });
        assert_eq!(unknown, [Level::Note]);
    }
}
