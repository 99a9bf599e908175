//! Runs that others have published, done again with the lock they tried and with ours, side by side.
//!
//! `etcd-lock` is the one of the Jepsen analysis of etcd 3.4: five clients take a lock with a lease of two seconds, read a
//! set, dwell, write it back with an element of their own added, and let go, while members are stopped for five seconds
//! and go on for five. Surprise: both sides have the same worst of conditions. Each client knows one member only, as theirs
//! did, so that ours too loses its holds; what differs is who finds out.

mod pauses;
mod set;
mod theirs;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper::{Keeper, Result};
use lockkeeper_rig::{Cluster, Server, Trouble};
use serde::Serialize;

use self::pauses::Pauses;
use self::set::SharedSet;
use self::theirs::{Locker, Seen};

/// The lease of every lock: the shortest that etcd gives.
const LEASE: Duration = Duration::from_secs(2);
/// How long a client waits for the lock: longer than members are stopped for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many clients.
const CLIENTS: usize = 5;
/// The longest that a client dwells between its read and its write.
const DWELLS: Duration = Duration::from_millis(1_000);
/// Who failed does not ask again at once.
const PAUSE: Duration = Duration::from_millis(50);
/// The lock.
const NAME: &str = "repro";
/// The cluster.
const TARGET: &str = "etcd-3";

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How long each side has.
    pub time: Duration,
    /// Everything that is drawn by lot is drawn from it.
    pub seed: u64,
}

/// What came of a repro.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repro {
    schema: &'static str,
    repro: &'static str,
    seed: String,
    for_ms: u64,
    lease_ms: u64,
    clients: usize,
    server: Option<String>,
    /// How often leases of etcd's own lock were kept alive: its clients did their part.
    kept_alive: u64,
    /// How often etcd's own lock was granted to somebody whose lease had ended.
    granted_dead: u64,
    /// Each lock, and how the set that it guards fared.
    pub sides: Vec<Side>,
    /// Was nothing lost that is promised?
    pub passed: bool,
}

/// How one set fared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// `etcd-lock`, `lockkeeper` or `lockkeeper-fenced`.
    pub side: &'static str,
    /// What that is, for people.
    #[serde(skip)]
    about: &'static str,
    /// How often somebody asked for the lock.
    pub asked: u64,
    /// How often it was told that it holds.
    pub held: u64,
    /// Updates that were acknowledged.
    pub acknowledged: u64,
    /// Updates that the fence refused.
    pub refused: u64,
    /// Of those that were acknowledged, not in the set at the end.
    pub lost: u64,
}

/// What all clients of one side share.
#[derive(Default)]
struct Shared {
    bare: SharedSet,
    fenced: SharedSet,
    next: u64,
    asked: u64,
    held: u64,
    bare_acknowledged: Vec<u64>,
    fenced_acknowledged: Vec<u64>,
    refused: u64,
}

type Table = Arc<Mutex<Shared>>;

fn look(table: &Table) -> MutexGuard<'_, Shared> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs both sides, one after the other, each on a cluster of its own and under the same stops.
///
/// # Errors
/// What keeps the clusters from being started or stopped.
pub async fn etcd_lock(asked: &Asked, tell: &dyn Fn(&str)) -> std::result::Result<Repro, Trouble> {
    tell("etcd's own lock");
    let seen = Arc::new(Seen::default());
    let open = |port: u16| std::future::ready(Ok(Locker::at(port, seen.clone())));
    let (theirs, server) = side(asked, open, their_round).await?;
    tell("lockkeeper");
    let open = |port: u16| async move { Keeper::connect(&format!("etcd://127.0.0.1:{port}")).await };
    let (ours, _) = side(asked, open, our_round).await?;
    let (theirs, ours) = (look(&theirs), look(&ours));
    let of = |shared: &Shared, side, about, set: &SharedSet, acknowledged: &[u64], refused| Side {
        side,
        about,
        asked: shared.asked,
        held: shared.held,
        acknowledged: acknowledged.len() as u64,
        refused,
        lost: set.lost(acknowledged),
    };
    let sides = vec![
        of(&theirs, "etcd-lock", "etcd's own lock", &theirs.bare, &theirs.bare_acknowledged, 0),
        of(&ours, "lockkeeper", "lockkeeper, lock alone", &ours.bare, &ours.bare_acknowledged, 0),
        of(&ours, "lockkeeper-fenced", "lockkeeper, fenced", &ours.fenced, &ours.fenced_acknowledged, ours.refused),
    ];
    Ok(Repro::new(asked, server, sides, &seen))
}

/// One side: its clients at work while members are stopped.
async fn side<C, O, OF, R, RF>(
    asked: &Asked,
    open: O,
    round: R,
) -> std::result::Result<(Table, Option<String>), Trouble>
where
    C: Send + Sync + 'static,
    O: Fn(u16) -> OF,
    OF: Future<Output = Result<C>>,
    R: Fn(Arc<C>, Table, Duration) -> RF + Copy + Send + 'static,
    RF: Future<Output = Result<()>> + Send + 'static,
{
    let cluster = Cluster::named(TARGET)?;
    let server = cluster.entry()?.version;
    let ports: Vec<u16> = cluster.members().iter().map(Server::port).collect();
    let table = Table::default();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let client = open(ports[number % ports.len()]).await;
        clients.push(Arc::new(client.map_err(|error| Trouble::new(error.to_string()))?));
    }
    let end = Instant::now() + asked.time;
    let pauses = Pauses::start(cluster, asked.seed, end)?;
    let mut working = tokio::task::JoinSet::new();
    for (number, client) in (0..).zip(clients) {
        let mut lots = fastrand::Rng::with_seed(asked.seed ^ (number + 1));
        let table = table.clone();
        working.spawn(async move {
            while Instant::now() < end {
                let dwells = DWELLS.mul_f64(lots.f64());
                if round(client.clone(), table.clone(), dwells).await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }
    // Every call has a limit, and members are all going on by then.
    while working.join_next().await.is_some() {}
    pauses.end().await?;
    Ok((table, Some(server).filter(|version| !version.is_empty())))
}

async fn their_round(client: Arc<Locker>, table: Table, dwells: Duration) -> Result<()> {
    look(&table).asked += 1;
    let granted = client.lock().await?;
    let (element, mut read) = {
        let mut shared = look(&table);
        (shared.holds(), shared.bare.read())
    };
    tokio::time::sleep(dwells).await;
    read.insert(element);
    look(&table).write_bare(element, read);
    granted.unlock().await;
    Ok(())
}

async fn our_round(keeper: Arc<Keeper>, table: Table, dwells: Duration) -> Result<()> {
    look(&table).asked += 1;
    let hold = keeper.mutex(NAME).lease(LEASE).wait(PATIENCE).lock().await?;
    let token = hold.token().map_or(0, |token| token.as_u64());
    let (element, mut bare, fenced) = {
        let mut shared = look(&table);
        (shared.holds(), shared.bare.read(), shared.fenced.enter(token))
    };
    tokio::time::sleep(dwells).await;
    bare.insert(element);
    {
        let mut shared = look(&table);
        shared.write_bare(element, bare);
        shared.write_fenced(element, token, fenced);
    }
    // It says that the hold was lost, if it was; this schedule is about those who do not ask.
    let _ = hold.release().await;
    Ok(())
}

impl Shared {
    /// Somebody was told that it holds; its element.
    fn holds(&mut self) -> u64 {
        self.held += 1;
        self.next += 1;
        self.next
    }

    fn write_bare(&mut self, element: u64, elements: std::collections::BTreeSet<u64>) {
        self.bare.write(elements);
        self.bare_acknowledged.push(element);
    }

    fn write_fenced(&mut self, element: u64, token: u64, read: Option<std::collections::BTreeSet<u64>>) {
        let done = read.is_some_and(|mut elements| {
            elements.insert(element);
            self.fenced.write_fenced(token, elements)
        });
        if done { self.fenced_acknowledged.push(element) } else { self.refused += 1 }
    }
}

impl Repro {
    fn new(asked: &Asked, server: Option<String>, sides: Vec<Side>, seen: &Seen) -> Self {
        // What the fence guards is what is promised; without one a client that does not look at its hold may be late.
        let fenced = sides.iter().find(|side| side.side == "lockkeeper-fenced");
        let passed = fenced.is_some_and(|side| side.lost == 0 && side.acknowledged > 0);
        Self {
            schema: "lockkeeper.verify-repro/1",
            repro: "etcd-lock",
            seed: asked.seed.to_string(),
            for_ms: u64::try_from(asked.time.as_millis()).unwrap_or(u64::MAX),
            lease_ms: u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX),
            clients: CLIENTS,
            server,
            kept_alive: seen.kept_alive.load(Ordering::Relaxed),
            granted_dead: seen.granted_dead.load(Ordering::Relaxed),
            sides,
            passed,
        }
    }

    /// The page for the terminal.
    pub fn text(&self) -> String {
        let server = self.server.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let mut text = format!(
            "{CLIENTS} clients of etcd{server}, each at one of three members; leases of {} s; members stopped for {} s, going on \
             for {} s; {} s for each side, seed {}\n\n{:24}{:>8}{:>8}{:>14}{:>9}{:>7}{:>9}\n",
            LEASE.as_secs(),
            pauses::STOPPED.as_secs(),
            pauses::GOING_ON.as_secs(),
            self.for_ms / 1_000,
            self.seed,
            "",
            "asked",
            "held",
            "acknowledged",
            "refused",
            "lost",
            "share",
        );
        for side in &self.sides {
            let Side { about, asked, held, acknowledged, refused, lost, .. } = side;
            let share = format!("{:.1} %", side.share() * 100.0);
            text += &format!("{about:24}{asked:>8}{held:>8}{acknowledged:>14}{refused:>9}{lost:>7}{share:>9}\n");
        }
        text += "\nwhy etcd's lock loses: who waits is granted it although its lease ended meanwhile (etcd issue 11456),\n\
                 and who holds it is never told that its lease has ended; so two read, and the second write undoes the first\n";
        text += &format!(
            "seen here: {} grants to somebody whose lease had ended; clients kept their leases alive {} times\n\n",
            self.granted_dead, self.kept_alive
        );
        text += match self.passed {
            true => "passed: nothing was lost behind lockkeeper's fence\n",
            false => "FAILED: updates behind lockkeeper's fence were lost, or there were none\n",
        };
        text
    }
}

impl Side {
    /// Which part of the acknowledged updates is lost.
    pub fn share(&self) -> f64 {
        if self.acknowledged == 0 { 0.0 } else { self.lost as f64 / self.acknowledged as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked { time: Duration::from_secs(60), seed: 7 }
    }

    fn side(side: &'static str, acknowledged: u64, lost: u64) -> Side {
        Side { side, about: "a lock", asked: acknowledged + 2, held: acknowledged, acknowledged, refused: 0, lost }
    }

    #[test]
    fn only_what_is_fenced_is_promised() {
        let passes = |bare, fenced: Side| {
            Repro::new(&asked(), None, vec![side("etcd-lock", 80, 12), bare, fenced], &Seen::default()).passed
        };
        assert!(passes(side("lockkeeper", 80, 3), side("lockkeeper-fenced", 80, 0)));
        assert!(!passes(side("lockkeeper", 80, 0), side("lockkeeper-fenced", 80, 1)));
        assert!(!passes(side("lockkeeper", 80, 0), side("lockkeeper-fenced", 0, 0)), "nothing done is nothing shown");
    }

    #[test]
    fn the_page_has_the_shares_and_the_reason() {
        let sides = vec![side("etcd-lock", 80, 12), side("lockkeeper-fenced", 0, 0)];
        let page = Repro::new(&asked(), Some("3.4.23".to_owned()), sides, &Seen::default()).text();
        assert!(page.contains(" 15.0 %\n") && page.contains(" 0.0 %\n"), "{page}");
        assert!(page.contains("etcd 3.4.23") && page.contains("issue 11456") && page.contains("seed 7"), "{page}");
        assert!(page.ends_with("or there were none\n") && page.lines().all(|line| line == line.trim_end()), "{page}");
    }

    #[test]
    fn an_update_that_the_fence_refused_is_not_acknowledged() {
        let mut shared = Shared::default();
        let (old, new) = (shared.holds(), shared.holds());
        let (read_old, read_new) = (shared.fenced.enter(1), shared.fenced.enter(2));
        shared.write_fenced(new, 2, read_new);
        shared.write_fenced(old, 1, read_old);
        assert_eq!((shared.refused, shared.fenced_acknowledged.as_slice()), (1, [new].as_slice()));
        assert_eq!(shared.fenced.lost(&shared.fenced_acknowledged), 0);
        let (read_old, read_new) = (shared.bare.read(), shared.bare.read());
        shared.write_bare(new, read_new.into_iter().chain([new]).collect());
        shared.write_bare(old, read_old.into_iter().chain([old]).collect());
        assert_eq!(shared.bare.lost(&shared.bare_acknowledged), 1, "the lock alone does not see it");
    }
}
