//! What the members of an etcd tell of themselves, and what `lockkeeper doctor` makes of it; and errors.
//!
//! An input of the doctor is lines: `place VERSION` or `refuses CODE TEXT` for the next server that is named, then `is WORD
//! NUMBER`, `before COUNT` and `after COUNT` for it; `member ID voter|learner URL`, `alarms 1,2`, `term N` for all of them.

use lockkeeper_core::access::Secret;
use lockkeeper_core::checkup::{Kept, Level, Promise, Report};
use lockkeeper_core::{Effect, ErrorKind};
use lockkeeper_etcd::fuzzing::{self, Told};
use lockkeeper_etcd::proto::ResponseHeader;
use lockkeeper_etcd::proto::cluster::{Alarm, Member, MemberListResponse, StatusResponse};
use lockkeeper_etcd::{Endpoint, Options};
use prost::Message;

use crate::redis_doctor::shown_well;
use crate::urls::PASSWORD;

/// So many servers are named.
const NAMED: u16 = 5;

/// Whatever it is told, the report is whole, nothing in it is for a terminal to obey or the password of a URL, and what was
/// not seen is not promised.
pub(crate) fn doctor(input: &[u8]) {
    if let Ok(answer) = MemberListResponse::decode(input) {
        let members = Some(answer.members);
        let status = StatusResponse::decode(input).unwrap_or_default();
        judge(Told { statuses: vec![Ok(status)], members, ..Told::default() });
    }
    judge(told(&String::from_utf8_lossy(input)));
}

fn judge(told: Told) {
    let endpoint = |at| Endpoint { host: "127.0.0.1".to_owned(), port: at };
    let mut options = Options::at((1..=NAMED).map(endpoint).collect());
    options.password = Some(Secret::new(PASSWORD));
    let members = told.members.iter().flatten();
    members.clone().flat_map(|member| &member.client_urls).for_each(|url| address(url));
    let voters = members.filter(|member| !member.is_learner).count();
    let synced = told.counts.iter().filter(|[before, after]| before != after).count();
    let versions: Vec<String> = told.statuses.iter().flatten().map(|status| status.version.clone()).collect();
    let leads = told.statuses.iter().flatten().any(|status| status.leader != 0);
    let alarmed = told.alarms.iter().flatten().any(|alarm| *alarm != Alarm::None);
    // A server may say the word itself, where it is no password.
    let said = format!("{:?} {versions:?}", told.statuses);
    let report = fuzzing::judged(&options, told);
    shown_well(&report);
    assert!(said.contains(PASSWORD) || !format!("{report:?}").contains(PASSWORD), "{report:?}");
    // A lock was not tried, so nothing is usable.
    assert_eq!((report.kept(Promise::Usable), report.kept(Promise::WritablePrimary)), (Kept::No, Kept::No));
    assert!(voters >= 3 || report.kept(Promise::Failover) != Kept::Yes, "{voters} voters: {report:?}");
    assert!(synced > 0 || report.kept(Promise::PowerLoss) != Kept::Yes, "nobody was seen to sync: {report:?}");
    let digit = |version: &String| version.starts_with(|c: char| c.is_ascii_digit());
    assert!(versions.iter().any(digit) || level(&report, "version") != Some(Level::Good), "{versions:?}: {report:?}");
    assert!(leads || level(&report, "leader") != Some(Level::Good), "{report:?}");
    assert!(!alarmed || level(&report, "alarms") == Some(Level::Danger), "{report:?}");
    assert!(!report.trust().is_empty());
    let two = report.findings.iter().any(|finding| finding.found.contains("two members"));
    assert!(!two || voters == 2, "there are {voters}: {report:?}");
}

/// The worst that was found of it.
fn level(report: &Report, topic: &str) -> Option<Level> {
    report.findings.iter().filter(|finding| finding.topic == topic).map(|finding| finding.level).max()
}

/// An address that a member tells can be asked, and shown, and means the same when it is written again.
fn address(url: &str) {
    let Some(at) = fuzzing::address(url) else { return };
    assert!(!at.host.is_empty() && !at.to_string().contains(char::is_control), "{url:?} is {at:?}");
    assert!(!at.host.contains(['@', '/', '[', ']']), "{url:?} is {at:?}");
    assert_eq!(fuzzing::address(&format!("http://{at}")), Some(at), "{url:?}");
}

fn told(text: &str) -> Told {
    let mut told = Told::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse::<i64>().unwrap_or_default();
        match word {
            "place" => {
                let header = Some(ResponseHeader::default());
                told.statuses.push(Ok(StatusResponse { header, version: rest.to_owned(), ..Default::default() }));
                told.counts.push(Default::default());
            }
            "refuses" => {
                let (code, text) = rest.split_once(' ').unwrap_or((rest, ""));
                told.statuses.push(Err((code.parse().unwrap_or_default(), text.to_owned())));
                told.counts.push(Default::default());
            }
            "before" | "after" => {
                if let Some(counts) = told.counts.last_mut() {
                    let text = &mut counts[usize::from(word == "after")];
                    text.push_str(rest);
                    text.push('\n');
                }
            }
            "is" => {
                if let Some(Ok(status)) = told.statuses.last_mut() {
                    let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
                    is(status, word, number(value));
                }
            }
            "member" => {
                let mut words = rest.splitn(3, ' ');
                let id = words.next().map(number).unwrap_or_default().unsigned_abs();
                let is_learner = words.next() == Some("learner");
                let client_urls = words.next().into_iter().map(str::to_owned).collect();
                let member = Member { id, is_learner, client_urls, ..Member::default() };
                told.members.get_or_insert_default().push(member);
            }
            "nobody" => told.members = Some(Vec::new()),
            "alarms" => {
                let alarm = |word: &str| Alarm::try_from(i32::try_from(number(word)).unwrap_or_default()).ok();
                told.alarms = Some(rest.split(',').filter_map(alarm).collect());
            }
            "term" => told.term_after = number(rest).unsigned_abs(),
            _ => {}
        }
    }
    told
}

fn is(status: &mut StatusResponse, word: &str, number: i64) {
    let header = status.header.get_or_insert_default();
    let count = number.cast_unsigned();
    match word {
        "cluster" => header.cluster_id = count,
        "member" => header.member_id = count,
        "leader" => status.leader = count,
        "index" => status.raft_index = count,
        "applied" => status.raft_applied_index = count,
        "term" => status.raft_term = count,
        "size" => status.db_size = number,
        "used" => status.db_size_in_use = number,
        _ => {}
    }
}

/// A server may say anything, our password too: that is not passed on, nor is what a terminal obeys. Whoever reads it is
/// told what to do; and nothing is said to be surely undone that was only not heard of.
///
/// An input is a line with a code of gRPC, a text, and perhaps a last line `cause TEXT`.
pub(crate) fn errors(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (code, text) = text.split_once('\n').unwrap_or((&text, ""));
    let (text, cause) = text.rsplit_once("\ncause ").map_or((text, None), |(text, cause)| (text, Some(cause)));
    let code = code.parse().unwrap_or(2);
    let endpoint = Endpoint { host: "h".to_owned(), port: 1 };
    let [not_let_in, refused] = fuzzing::refused(&endpoint, &Secret::new(PASSWORD), code, text, cause);
    // The password is sent when coming in, and never again; nothing else is sent before that.
    assert!(!format!("{not_let_in} {not_let_in:?}").contains(&PASSWORD[..4]), "{not_let_in:?}");
    assert_eq!(not_let_in.effect(), Effect::None, "{not_let_in:?}");
    assert_eq!(not_let_in.kind(), refused.kind());
    for error in [&not_let_in, &refused] {
        let shown = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(error.hint().is_some(), "{error:?}");
        assert!(!shown.contains(char::is_control), "{error:?}");
        let known = [ErrorKind::Denied, ErrorKind::Unavailable, ErrorKind::Unsupported];
        assert!(known.contains(&error.kind()), "{error:?}");
    }
    // Cancelled, unknown, too late, out of range, aborted, internal, lost: somebody did not hear the answer.
    let spoken = ["auth", "permission denied", "space exceeded", "revision in header", "user name"];
    if [1, 2, 4, 10, 11, 13, 15].contains(&code) && !spoken.iter().any(|word| text.contains(word)) {
        assert_eq!(refused.effect(), Effect::Unknown, "{refused:?}");
    }
}
