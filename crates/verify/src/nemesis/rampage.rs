//! Does what the schedule says, one act after the other, and makes it whole again.
//!
//! Surprise: the moment of a fault is noted before it is done and written down after. Writing takes longer than a holder
//! dwells, and it is the holder that is to be hit. Even so one in three is missed; so whoever is taken for the holder is
//! stopped and looked at again, and goes on after a few milliseconds, as if the machine had been busy, if it was not.

use std::thread::sleep;
use std::time::{Duration, Instant};

use lockkeeper::time::Clock;
use lockkeeper_rig::{Cluster, Proxy, Server, Trouble, Way};

use super::schedule::{Deed, Schedule};
use super::{Workers, word};
use crate::arena::etcd;
use crate::arena::resp::Resp;
use crate::history::{Fault, Life, On};
use crate::plan::{Nemesis, Plan};

/// Whoever sleeps here wakes this often to see whether the run has ended.
const NAP: Duration = Duration::from_millis(5);
/// A holder dwells for a millisecond or so.
const GLANCE: Duration = Duration::from_micros(200);
/// What a worker has sent before it was stopped is seen by then.
const SETTLES: Duration = Duration::from_millis(3);
/// If it is not seen to hold by then, it does not.
const SEEN: Duration = Duration::from_millis(15);
/// For so long a holder is looked for, before the next act is due.
const HOLDER_TAKES: Duration = Duration::from_secs(5);
/// A server that does not start is given another try.
const RESTARTS: u32 = 3;

/// A run up to this long hurts as often as it can.
const SHORT_RUN_MS: u64 = 20_000;
/// By so much the calms of a long one are longer at the most.
const LONGER_AT_MOST: Duration = Duration::from_secs(10);

/// The nemesis at work: what it may hurt, and whom it tells.
pub(crate) struct Battle<'a> {
    servers: Option<&'a mut Cluster>,
    proxies: &'a [Proxy],
    workers: &'a dyn Workers,
    ended: &'a dyn Fn() -> bool,
    note: &'a mut dyn FnMut(Fault),
    /// Of the next fault.
    id: u64,
}

impl<'a> Battle<'a> {
    pub(crate) fn new(
        servers: Option<&'a mut Cluster>,
        proxies: &'a [Proxy],
        workers: &'a dyn Workers,
        ended: &'a dyn Fn() -> bool,
        note: &'a mut dyn FnMut(Fault),
    ) -> Self {
        Battle { servers, proxies, workers, ended, note, id: 0 }
    }

    /// Hurts until the run has ended. Without anything to do it returns at once.
    pub(crate) fn fight(mut self, plan: &Plan) -> Result<(), Trouble> {
        let every = plan.every_ms.map(Duration::from_millis);
        let schedule = Schedule::new(plan.seed, &plan.nemesis, Duration::from_millis(plan.lease_ms), every);
        // A long run has longer calms too: what is got outside of the faults is measured in them.
        let longer = Duration::from_millis(plan.for_ms.saturating_sub(SHORT_RUN_MS) / 4).min(LONGER_AT_MOST);
        let mut began = Instant::now();
        for act in schedule {
            let calm = every.map_or(act.calm + longer, |every| every.saturating_sub(began.elapsed()));
            if !self.rest(calm) {
                break;
            }
            began = Instant::now();
            self.act(&act.deed)?;
        }
        Ok(())
    }

    /// Does it and makes it whole again.
    pub(super) fn act(&mut self, deed: &Deed) -> Result<(), Trouble> {
        match deed {
            Deed::KillWorker { lot } => self.kill(deed, *lot),
            Deed::KillHolder => self.hit_holder(deed, |it, life| it.workers.kill(life)),
            Deed::PauseWorker { lot, lasts } => self.pause(deed, *lot, *lasts),
            Deed::PauseHolder { lasts } => self.hit_holder(deed, |it, life| {
                it.rest(*lasts);
                it.workers.go_on(life);
            }),
            Deed::StepClient { lot, by, behind, lasts } => self.step_client(deed, *lot, *by, *behind, *lasts)?,
            Deed::KillStore { down } => self.kill_store(deed, *down)?,
            Deed::PauseStore { lasts } => self.pause_store(deed, *lasts)?,
            Deed::StepStore { steps } => self.step_store(deed, steps)?,
            Deed::WipeStore { times, apart } => self.wipe_store(deed, *times, *apart)?,
            Deed::Cut { .. } | Deed::Delay { .. } | Deed::HalfOpen { .. } | Deed::LoseReplies { .. } => {
                self.hurt_connections(deed)?;
            }
        }
        Ok(())
    }

    /// Sleeps. Says whether the run goes on.
    fn rest(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            if (self.ended)() {
                return false;
            }
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return true,
                left => sleep(left.min(NAP)),
            }
        }
    }

    fn picked(&self, lot: u64) -> Option<Life> {
        let alive = self.workers.alive();
        let nth = lot.checked_rem(alive.len() as u64)?;
        usize::try_from(nth).ok().and_then(|nth| alive.get(nth).copied())
    }

    /// Stops whoever holds a lock next, and when that was. Nobody, if nobody does for long.
    fn seize_holder(&self) -> Option<(u64, Life)> {
        let end = Instant::now() + HOLDER_TAKES;
        while !(self.ended)() && Instant::now() < end {
            let Some(life) = self.workers.holder() else {
                sleep(GLANCE);
                continue;
            };
            let at = now();
            self.workers.stop(life);
            if self.still_holds(life) {
                return Some((at, life));
            }
            self.workers.go_on(life);
        }
        None
    }

    /// Whether a worker that was stopped holds. One that does is the one that came last as soon as others have left.
    fn still_holds(&self, life: Life) -> bool {
        sleep(SETTLES);
        let end = Instant::now() + SEEN;
        loop {
            if self.workers.holder() == Some(life) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(GLANCE);
        }
    }

    fn hit_holder(&mut self, deed: &Deed, hit: impl FnOnce(&Self, Life)) {
        let Some((at, life)) = self.seize_holder() else { return };
        (self.note)(Fault::Hurt { at, done: None, id: self.id, nemesis: deed.nemesis(), on: On::Worker { life } });
        hit(self, life);
        self.healed();
    }

    /// Hurts by `hurt`, and writes it down. Healing it is the caller's.
    fn hurt<T>(&mut self, deed: &Deed, on: On, hurt: impl FnOnce(&mut Self) -> T) -> T {
        let at = now();
        let hurts = hurt(self);
        let done = Some(now());
        (self.note)(Fault::Hurt { at, done, id: self.id, nemesis: deed.nemesis(), on });
        hurts
    }

    fn healed(&mut self) {
        (self.note)(Fault::Healed { at: now(), id: self.id });
        self.id += 1;
    }

    fn kill(&mut self, deed: &Deed, lot: u64) {
        let Some(life) = self.picked(lot) else { return };
        self.hurt(deed, On::Worker { life }, |it| it.workers.kill(life));
        self.healed();
    }

    fn pause(&mut self, deed: &Deed, lot: u64, lasts: Duration) {
        let Some(life) = self.picked(lot) else { return };
        self.hurt(deed, On::Worker { life }, |it| it.workers.stop(life));
        self.rest(lasts);
        self.workers.go_on(life);
        self.healed();
    }

    fn step_client(
        &mut self,
        deed: &Deed,
        lot: u64,
        by: Duration,
        behind: bool,
        lasts: Duration,
    ) -> Result<(), Trouble> {
        let Some(life) = self.picked(lot) else { return Ok(()) };
        let cannot = || Trouble::new(format!("the wall clock of {life} cannot be stepped"));
        self.hurt(deed, On::Worker { life }, |it| it.workers.step_clock(life, by, behind)).ok_or_else(cannot)?;
        self.rest(lasts);
        self.workers.step_clock(life, Duration::ZERO, false).ok_or_else(cannot)?;
        self.healed();
        Ok(())
    }

    fn servers(&mut self, nemesis: Nemesis) -> Result<&mut Cluster, Trouble> {
        let none = || Trouble::new(format!("`{}`: this run started no server", word(nemesis)));
        self.servers.as_deref_mut().ok_or_else(none)
    }

    fn server(&mut self, deed: &Deed, node: u32) -> Result<&mut Server, Trouble> {
        Ok(self.servers(deed.nemesis())?.member(node as usize))
    }

    /// The one that is worth hurting: of a cluster the leader, as it has most to lose.
    fn victim(&mut self, deed: &Deed) -> Result<u32, Trouble> {
        let servers = self.servers(deed.nemesis())?;
        let leader = if servers.members().len() > 1 { servers.leader()? } else { 0 };
        u32::try_from(leader).map_err(|e| Trouble::new(e.to_string()))
    }

    fn kill_store(&mut self, deed: &Deed, down: Duration) -> Result<(), Trouble> {
        let node = self.victim(deed)?;
        self.hurt(deed, On::Node { node }, |it| it.server(deed, node)?.kill())?;
        self.rest(down);
        let server = self.server(deed, node)?;
        let mut started = server.restart();
        for _ in 1..RESTARTS {
            if started.is_err() {
                let _ = server.kill(); // one that did not get ready in time
                started = server.restart();
            }
        }
        started?;
        self.healed();
        Ok(())
    }

    fn pause_store(&mut self, deed: &Deed, lasts: Duration) -> Result<(), Trouble> {
        let node = self.victim(deed)?;
        self.hurt(deed, On::Node { node }, |it| it.server(deed, node)?.pause())?;
        self.rest(lasts);
        self.server(deed, node)?.resume()?;
        self.healed();
        Ok(())
    }

    fn step_store(&mut self, deed: &Deed, steps: &[(&'static str, Duration)]) -> Result<(), Trouble> {
        let Some(((first, lasts), others)) = steps.split_first() else { return Ok(()) };
        self.hurt(deed, On::Node { node: 0 }, |it| it.server(deed, 0)?.step_clock(first))?;
        let mut goes_on = self.rest(*lasts);
        for (step, lasts) in others {
            if goes_on {
                self.server(deed, 0)?.step_clock(step)?;
                goes_on = self.rest(*lasts);
            }
        }
        self.server(deed, 0)?.step_clock("+0s")?;
        self.healed();
        Ok(())
    }

    fn wipe_store(&mut self, deed: &Deed, times: u32, apart: Duration) -> Result<(), Trouble> {
        let ports: Vec<u16> = self.servers(deed.nemesis())?.members().iter().map(Server::port).collect();
        let is_etcd = self.servers(deed.nemesis())?.url().starts_with("etcd:");
        let wipe = || {
            let wiped = if is_etcd { etcd::wipe(&ports) } else { flush(&ports) };
            wiped.map_err(|e| Trouble::new(format!("the server was not wiped: {e}")))
        };
        self.hurt(deed, On::Node { node: 0 }, |_| wipe())?;
        for _ in 1..times {
            if !self.rest(apart) {
                break;
            }
            wipe()?;
        }
        self.healed();
        Ok(())
    }

    /// All ways to the store are hurt alike: a client that finds another member by another way would show nothing.
    fn hurt_connections(&mut self, deed: &Deed) -> Result<(), Trouble> {
        let proxies = self.proxies;
        if proxies.is_empty() {
            return Err(Trouble::new(format!("`{}`: there is no proxy before this store", word(deed.nemesis()))));
        }
        let all = |what: &dyn Fn(&Proxy)| proxies.iter().for_each(what);
        match deed {
            Deed::Cut { shut } => {
                self.hurt(deed, On::Connections, |_| {
                    all(&|proxy| proxy.refuse(!shut.is_zero()));
                    all(&|proxy| proxy.cut());
                });
                self.rest(*shut);
                all(&|proxy| proxy.refuse(false));
            }
            Deed::Delay { there, back, lasts } => {
                let delay = |there: Duration, back: Duration| {
                    all(&|proxy| {
                        proxy.delay(Way::ToServer, there);
                        proxy.delay(Way::ToClient, back);
                    });
                };
                self.hurt(deed, On::Connections, |_| delay(*there, *back));
                self.rest(*lasts);
                delay(Duration::ZERO, Duration::ZERO);
            }
            Deed::HalfOpen { lasts } => {
                self.hurt(deed, On::Connections, |_| all(&|proxy| proxy.freeze()));
                self.rest(*lasts);
                // What is half-open never comes back.
                all(&|proxy| {
                    proxy.cut();
                    proxy.thaw();
                });
            }
            Deed::LoseReplies { lasts } => {
                self.hurt(deed, On::Connections, |_| all(&|proxy| proxy.drop_replies(true)));
                self.rest(*lasts);
                // A connection that missed a reply would take the next one for it, which no network ever does. So none
                // of those from now, nor one that is made meanwhile, may see replies again.
                all(&|proxy| {
                    proxy.refuse(true);
                    proxy.cut();
                    proxy.drop_replies(false);
                    proxy.refuse(false);
                });
            }
            _ => {}
        }
        self.healed();
        Ok(())
    }
}

/// Wipes Redis servers.
fn flush(ports: &[u16]) -> std::io::Result<()> {
    ports.iter().try_for_each(|port| Resp::to(*port)?.ask(&["FLUSHALL"]).map(drop))
}

fn now() -> u64 {
    Clock::system().now().as_nanos()
}
