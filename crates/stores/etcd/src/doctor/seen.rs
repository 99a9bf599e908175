//! What the members tell of themselves, as data: who there is, how each is, and what they complain of.
//!
//! Surprise: a member that the options do not name is asked where the cluster says it listens, without our name: an
//! address that a server tells is not one that a password was given for.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use http::Uri;
use lockkeeper_core::{Error, ErrorKind, Result};

use super::metrics::{self, Metrics};
use crate::link::Link;
use crate::options::{Endpoint, Options};
use crate::proto::cluster::{
    Alarm, AlarmRequest, AlarmResponse, Member, MemberListRequest, MemberListResponse, StatusRequest, StatusResponse,
};
use crate::proto::{RangeRequest, RangeResponse, path};

/// How long a member that was not named may take.
const STRANGERS_TAKE: Duration = Duration::from_secs(2);

/// All that was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Everybody who was asked, those that the options name first.
    pub(super) places: Vec<Place>,
    /// Who belongs to the cluster; `None` if that could not be asked.
    pub(super) members: Option<Vec<Member>>,
    /// What is complained of; `None` if that could not be asked.
    pub(super) alarms: Option<Vec<Alarm>>,
    /// Has it ever been compacted? `None` if that could not be asked.
    pub(super) compacted: Option<bool>,
    /// The latest term before everything else was tried, and after.
    pub(super) terms: (u64, u64),
}

/// Somewhere a member listens, or should.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) endpoint: Endpoint,
    /// Do the options name it?
    pub(super) named: bool,
    pub(super) said: Said,
    pub(super) metrics: Option<Metrics>,
    /// Does it sync its disk? `None` if that was not seen.
    pub(super) syncs: Option<bool>,
}

/// What somebody said who was asked how it is.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Status(StatusResponse),
    /// It is there, but does not tell us.
    Refused(String),
    Silent(String),
}

impl Said {
    fn of(answer: Result<StatusResponse>) -> Self {
        match answer {
            Ok(status) => Self::Status(status),
            Err(error) if error.kind() == ErrorKind::Denied => Self::Refused(error.to_string()),
            Err(error) => Self::Silent(error.to_string()),
        }
    }
}

impl Place {
    pub(super) fn status(&self) -> Option<&StatusResponse> {
        match &self.said {
            Said::Status(status) => Some(status),
            Said::Refused(_) | Said::Silent(_) => None,
        }
    }

    pub(super) fn member(&self) -> Option<u64> {
        Some(self.status()?.header?.member_id)
    }

    /// Is this where the member listens?
    pub(super) fn is_of(&self, member: &Member) -> bool {
        match self.member() {
            Some(id) => id == member.id,
            None => member.client_urls.iter().filter_map(|url| endpoint(url)).any(|at| at == self.endpoint),
        }
    }
}

impl Seen {
    /// Asks everybody.
    pub(super) async fn look(link: &Link) -> Result<Self> {
        let mut places = ask_all(link).await?;
        let members: Option<MemberListResponse> =
            link.ask(path::MEMBER_LIST, &MemberListRequest {}).await.ok().map(|told| told.answer);
        let members = members.map(|answer| answer.members);
        places.extend(strangers(link.options(), &places, members.as_deref().unwrap_or_default()).await);
        let mut seen = Self { places, members, ..Self::default() };
        seen.terms.0 = seen.term();
        if seen.has_leader() {
            let answer: Result<AlarmResponse> =
                link.ask(path::ALARM, &AlarmRequest { action: 0 }).await.map(|told| told.answer);
            let known = |answer: AlarmResponse| answer.alarms.iter().map(|it| it.alarm()).collect();
            seen.alarms = answer.ok().map(known);
            seen.compacted = was_compacted(link).await;
        }
        Ok(seen)
    }

    /// Asks those that were named once more, when all else is done: who leads now, and was the disk synced meanwhile?
    pub(super) async fn look_again(&mut self, link: &Link) {
        let again = ask_all(link).await.unwrap_or_default();
        self.terms.1 = again.iter().filter_map(|place| Some(place.status()?.raft_term)).max().unwrap_or(self.terms.0);
        // In the same order as before.
        for (place, later) in self.places.iter_mut().zip(&again) {
            let (Some(before), Some(later)) = (&place.metrics, &later.metrics) else { continue };
            place.syncs = before.syncs_until(later);
        }
    }

    /// What all who answered said.
    pub(super) fn statuses(&self) -> impl Iterator<Item = (&Place, &StatusResponse)> {
        self.places.iter().filter_map(|place| Some((place, place.status()?)))
    }

    pub(super) fn has_leader(&self) -> bool {
        self.statuses().any(|(_, status)| status.leader != 0)
    }

    fn term(&self) -> u64 {
        self.statuses().map(|(_, status)| status.raft_term).max().unwrap_or(0)
    }

    /// How many have a vote, if that is known.
    pub(super) fn voters(&self) -> Option<usize> {
        Some(self.members.as_ref()?.iter().filter(|member| !member.is_learner).count())
    }

    /// Does anybody answer for this member?
    pub(super) fn reaches(&self, member: &Member) -> bool {
        self.places.iter().any(|place| place.is_of(member) && !matches!(place.said, Said::Silent(_)))
    }
}

/// What members tell, as it comes: how each that is named is, with its counts before and after; who belongs to the cluster;
/// what it complains of.
pub(crate) struct Told {
    pub(crate) statuses: Vec<Result<StatusResponse>>,
    pub(crate) counts: Vec<[String; 2]>,
    pub(crate) members: Option<Vec<Member>>,
    pub(crate) alarms: Option<Vec<Alarm>>,
    pub(crate) term_after: u64,
}

impl Seen {
    /// What is seen without asking anybody. For the fuzz targets.
    pub(super) fn told(options: &Options, told: Told) -> Self {
        let counts = told.counts.into_iter().map(|counts| counts.map(|text| Metrics::of(&text)));
        let counts = counts.chain(std::iter::repeat([None, None]));
        let asked = options.endpoints.iter().zip(told.statuses).zip(counts);
        let places = asked.map(|((endpoint, said), [metrics, later])| Place {
            endpoint: endpoint.clone(),
            named: true,
            said: Said::of(said),
            metrics,
            syncs: metrics.zip(later).and_then(|(before, later)| before.syncs_until(&later)),
        });
        let mut seen = Self { places: places.collect(), members: told.members, alarms: told.alarms, ..Self::default() };
        seen.terms = (seen.term(), told.term_after);
        seen
    }
}

/// Whether the first revision is no longer kept.
async fn was_compacted(link: &Link) -> Option<bool> {
    let key = link.options().listed_under.clone().into_bytes();
    let key = if key.is_empty() { vec![0] } else { key };
    let question = RangeRequest { key, revision: 1, count_only: true, ..RangeRequest::default() };
    match link.ask::<_, RangeResponse>(path::RANGE, &question).await {
        Ok(_) => Some(false),
        Err(error) => error.to_string().contains("has been compacted").then_some(true),
    }
}

/// Asks all that the options name; fails only if nobody is there.
async fn ask_all(link: &Link) -> Result<Vec<Place>> {
    let answers = join_all((0..link.len()).map(|at| async move {
        let asking = link.ask_member::<_, StatusResponse>(at, path::STATUS, &StatusRequest {});
        let measuring = metrics::look(link.options(), link.endpoint(at));
        join(asking, measuring).await
    }))
    .await;
    if answers.iter().all(|(answer, _)| answer.is_err()) {
        let errors: Vec<Error> = answers.into_iter().filter_map(|(answer, _)| answer.err()).collect();
        let denied = errors.iter().position(|error| error.kind() == ErrorKind::Denied).unwrap_or(0);
        return Err(errors.into_iter().nth(denied).unwrap_or_else(|| Error::invalid("store", "it names no server")));
    }
    let places = answers.into_iter().enumerate().map(|(at, (answer, metrics))| Place {
        endpoint: link.endpoint(at).clone(),
        named: true,
        said: Said::of(answer),
        metrics,
        syncs: None,
    });
    Ok(places.collect())
}

/// Asks members for whom nobody that we named answers.
async fn strangers(options: &Options, places: &[Place], members: &[Member]) -> Vec<Place> {
    let unknown = members.iter().filter(|member| !places.iter().any(|place| place.is_of(member)));
    let wanted: Vec<Endpoint> = unknown.filter_map(|member| endpoint(member.client_urls.first()?)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let timeout = options.timeout.min(STRANGERS_TAKE);
    let link =
        Link::new(Arc::new(Options { endpoints: wanted, user: None, password: None, timeout, ..options.clone() }));
    let answers = join_all((0..link.len()).map(|at| {
        let link = &link;
        async move { link.ask_member::<_, StatusResponse>(at, path::STATUS, &StatusRequest {}).await }
    }))
    .await;
    let places = answers.into_iter().enumerate().map(|(at, answer)| Place {
        endpoint: link.endpoint(at).clone(),
        named: false,
        said: Said::of(answer),
        metrics: None,
        syncs: None,
    });
    let places = places.collect();
    link.close();
    places
}

/// The address in a URL that a member tells; `None` for what is not TCP.
pub(crate) fn endpoint(url: &str) -> Option<Endpoint> {
    let url: Uri = url.parse().ok()?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return None;
    }
    let host = match url.host()?.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        // With a zone it is an address of that member's host alone.
        Some(address) => address.parse::<Ipv6Addr>().ok()?.to_string(),
        None => url.host().filter(|host| !host.is_empty() && !host.contains(['[', ']', '%']))?.to_owned(),
    };
    Some(Endpoint { host, port: url.port_u16()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_members() {
        let at = |host: &str, port| Some(Endpoint { host: host.to_owned(), port });
        assert_eq!(endpoint("http://10.0.0.1:2379"), at("10.0.0.1", 2379));
        assert_eq!(endpoint("https://[::1]:2379"), at("::1", 2379));
        for odd in ["unix://a:1", "http://a", "http://:1", "http://[fe80::1%25eth0]:1", "http://[%]:1", "", "a b"] {
            assert_eq!(endpoint(odd), None, "{odd}");
        }
    }
}
