//! Does what the schedule says, one act after the other, and makes it whole again.
//!
//! Surprise: the moment of a fault is noted before it is done and written down after. Writing takes longer than a holder
//! dwells, and it is the holder that is to be hit.

use std::thread::sleep;
use std::time::{Duration, Instant};

use lockkeeper::time::Clock;
use lockkeeper_rig::{Proxy, Server, Trouble, Way};

use super::schedule::{Deed, Schedule};
use super::{Workers, word};
use crate::arena::resp::Resp;
use crate::history::{Fault, Life, On};
use crate::plan::{Nemesis, Plan};

/// Whoever sleeps here wakes this often to see whether the run has ended.
const NAP: Duration = Duration::from_millis(5);
/// A holder dwells for a millisecond or so.
const GLANCE: Duration = Duration::from_micros(200);
/// For so long a holder is looked for, before the next act is due.
const HOLDER_TAKES: Duration = Duration::from_secs(5);
/// A server that does not start is given another try.
const RESTARTS: u32 = 3;

/// The nemesis at work: what it may hurt, and whom it tells.
pub(crate) struct Battle<'a> {
    server: Option<&'a mut Server>,
    proxy: Option<&'a Proxy>,
    workers: &'a dyn Workers,
    ended: &'a dyn Fn() -> bool,
    note: &'a mut dyn FnMut(Fault),
    /// Of the next fault.
    id: u64,
}

impl<'a> Battle<'a> {
    pub(crate) fn new(
        server: Option<&'a mut Server>,
        proxy: Option<&'a Proxy>,
        workers: &'a dyn Workers,
        ended: &'a dyn Fn() -> bool,
        note: &'a mut dyn FnMut(Fault),
    ) -> Self {
        Battle { server, proxy, workers, ended, note, id: 0 }
    }

    /// Hurts until the run has ended. Without anything to do it returns at once.
    pub(crate) fn fight(mut self, plan: &Plan) -> Result<(), Trouble> {
        let schedule = Schedule::new(plan.seed, &plan.nemesis, Duration::from_millis(plan.lease_ms));
        for act in schedule {
            if !self.rest(act.calm) {
                break;
            }
            self.act(&act.deed)?;
        }
        Ok(())
    }

    /// Does it and makes it whole again.
    pub(super) fn act(&mut self, deed: &Deed) -> Result<(), Trouble> {
        match deed {
            Deed::KillWorker { lot } => self.kill(deed, self.picked(*lot)),
            Deed::KillHolder => self.kill(deed, self.holder()),
            Deed::PauseWorker { lot, lasts } => self.pause(deed, self.picked(*lot), *lasts),
            Deed::PauseHolder { lasts } => self.pause(deed, self.holder(), *lasts),
            Deed::StepClient { lot, by, behind, lasts } => self.step_client(deed, *lot, *by, *behind, *lasts)?,
            Deed::KillStore { down } => self.kill_store(deed, *down)?,
            Deed::PauseStore { lasts } => self.pause_store(deed, *lasts)?,
            Deed::StepStore { steps } => self.step_store(deed, steps)?,
            Deed::WipeStore => self.wipe_store(deed)?,
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

    /// Whoever holds a lock next. Nobody, if nobody does for long.
    fn holder(&self) -> Option<Life> {
        let end = Instant::now() + HOLDER_TAKES;
        while !(self.ended)() && Instant::now() < end {
            match self.workers.holder() {
                Some(life) => return Some(life),
                None => sleep(GLANCE),
            }
        }
        None
    }

    /// Hurts by `hurt`, and writes it down. Healing it is the caller's.
    fn hurt<T>(&mut self, deed: &Deed, on: On, hurt: impl FnOnce(&mut Self) -> T) -> T {
        let at = now();
        let hurts = hurt(self);
        (self.note)(Fault::Hurt { at, id: self.id, nemesis: deed.nemesis(), on });
        hurts
    }

    fn healed(&mut self) {
        (self.note)(Fault::Healed { at: now(), id: self.id });
        self.id += 1;
    }

    fn kill(&mut self, deed: &Deed, life: Option<Life>) {
        let Some(life) = life else { return };
        self.hurt(deed, On::Worker { life }, |it| it.workers.kill(life));
        self.healed();
    }

    fn pause(&mut self, deed: &Deed, life: Option<Life>, lasts: Duration) {
        let Some(life) = life else { return };
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

    fn server(&mut self, nemesis: Nemesis) -> Result<&mut Server, Trouble> {
        let none = || Trouble::new(format!("`{}`: this run started no server", word(nemesis)));
        self.server.as_deref_mut().ok_or_else(none)
    }

    fn kill_store(&mut self, deed: &Deed, down: Duration) -> Result<(), Trouble> {
        self.hurt(deed, On::Node { node: 0 }, |it| it.server(deed.nemesis())?.kill())?;
        self.rest(down);
        let server = self.server(deed.nemesis())?;
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
        self.hurt(deed, On::Node { node: 0 }, |it| it.server(deed.nemesis())?.pause())?;
        self.rest(lasts);
        self.server(deed.nemesis())?.resume()?;
        self.healed();
        Ok(())
    }

    fn step_store(&mut self, deed: &Deed, steps: &[(&'static str, Duration)]) -> Result<(), Trouble> {
        let Some(((first, lasts), others)) = steps.split_first() else { return Ok(()) };
        self.hurt(deed, On::Node { node: 0 }, |it| it.server(deed.nemesis())?.step_clock(first))?;
        let mut goes_on = self.rest(*lasts);
        for (step, lasts) in others {
            if goes_on {
                self.server(deed.nemesis())?.step_clock(step)?;
                goes_on = self.rest(*lasts);
            }
        }
        self.server(deed.nemesis())?.step_clock("+0s")?;
        self.healed();
        Ok(())
    }

    fn wipe_store(&mut self, deed: &Deed) -> Result<(), Trouble> {
        let port = self.server(deed.nemesis())?.port();
        let failed = |e| Trouble::new(format!("the server was not wiped: {e}"));
        let wipe = || Resp::to(port).and_then(|mut server| server.ask(&["FLUSHALL"]));
        self.hurt(deed, On::Node { node: 0 }, |_| wipe()).map_err(failed)?;
        self.healed();
        Ok(())
    }

    fn hurt_connections(&mut self, deed: &Deed) -> Result<(), Trouble> {
        let none = || Trouble::new(format!("`{}`: there is no proxy before this store", word(deed.nemesis())));
        let proxy = self.proxy.ok_or_else(none)?;
        match deed {
            Deed::Cut { shut } => {
                self.hurt(deed, On::Connections, |_| {
                    proxy.refuse(!shut.is_zero());
                    proxy.cut();
                });
                self.rest(*shut);
                proxy.refuse(false);
            }
            Deed::Delay { there, back, lasts } => {
                self.hurt(deed, On::Connections, |_| {
                    proxy.delay(Way::ToServer, *there);
                    proxy.delay(Way::ToClient, *back);
                });
                self.rest(*lasts);
                proxy.delay(Way::ToServer, Duration::ZERO);
                proxy.delay(Way::ToClient, Duration::ZERO);
            }
            Deed::HalfOpen { lasts } => {
                self.hurt(deed, On::Connections, |_| proxy.freeze());
                self.rest(*lasts);
                // What is half-open never comes back.
                proxy.cut();
                proxy.thaw();
            }
            Deed::LoseReplies { lasts } => {
                self.hurt(deed, On::Connections, |_| proxy.drop_replies(true));
                self.rest(*lasts);
                // A connection that missed a reply would take the next one for it, which no network ever does. So none
                // of those from now, nor one that is made meanwhile, may see replies again.
                proxy.refuse(true);
                proxy.cut();
                proxy.drop_replies(false);
                proxy.refuse(false);
            }
            _ => {}
        }
        self.healed();
        Ok(())
    }
}

fn now() -> u64 {
    Clock::system().now().as_nanos()
}
