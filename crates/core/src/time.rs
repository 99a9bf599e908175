//! Time that does not stop: the clock all deadlines are kept by, and the few facts asked of the system.
//!
//! Surprise: this is not [`std::time::Instant`]. `Instant` stands still while a machine is suspended, so a laptop
//! that slept through its lease would wake believing it still holds. `CLOCK_BOOTTIME` goes on. The operating
//! system is asked nowhere else in this crate.

use std::fmt;
use std::io;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::mutants::{self, Mutant};

/// A point on a [`Clock`], in nanoseconds since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The far end of time: a deadline that is never reached.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment this many nanoseconds after the start of the clock.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long until `later`; zero if it has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }

    /// How long since `earlier`; zero if it is yet to come.
    pub fn since(self, earlier: Self) -> Duration {
        earlier.until(self)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, more: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, less: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(less.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", Duration::from_nanos(self.0))
    }
}

/// The clock that deadlines are kept by: the system's, or one that a test can push forward.
#[derive(Clone, Default)]
pub struct Clock {
    shift: Option<Arc<Shift>>,
    /// A seeded bug: it follows the wall clock.
    is_wall: bool,
}

#[derive(Default)]
struct Shift {
    nanos: AtomicU64,
    jumped: Notify,
}

impl Clock {
    /// The system's `CLOCK_BOOTTIME` (elsewhere than on Linux, the clock that also counts sleep).
    pub fn system() -> Self {
        Self::default()
    }

    /// What a keeper has unless it is given another one.
    pub(crate) fn of_a_keeper() -> Self {
        Self { is_wall: mutants::on(Mutant::WallClockDeadline), ..Self::system() }
    }

    /// The system's clock plus whatever [`jump`](Self::jump) has added: what a machine's suspension looks like.
    pub fn adjustable() -> Self {
        Self { shift: Some(Arc::default()), is_wall: false }
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment(if mutants::BUILT_IN && self.is_wall { wall_nanos() } else { system_nanos() }) + self.shifted()
    }

    /// Pushes an adjustable clock forward and wakes whoever sleeps on it; the system's clock is not moved.
    pub fn jump(&self, by: Duration) {
        if let Some(shift) = &self.shift {
            let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            shift.nanos.fetch_add(nanos, Ordering::SeqCst);
            shift.jumped.notify_waiters();
        }
    }

    fn shifted(&self) -> Duration {
        self.shift.as_ref().map_or(Duration::ZERO, |shift| Duration::from_nanos(shift.nanos.load(Ordering::SeqCst)))
    }

    /// An alarm on this clock, to be awaited in the runtime it is made in.
    pub(crate) fn alarm(&self) -> io::Result<Alarm> {
        Ok(Alarm { clock: self.clone(), timer: timer::Timer::new()? })
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.shift.is_some() { "Clock(adjustable)" } else { "Clock(system)" })
    }
}

/// Something to sleep on until a moment, also across a suspension of the machine.
pub(crate) struct Alarm {
    clock: Clock,
    timer: timer::Timer,
}

impl Alarm {
    /// Returns at `moment` or soon after; never before. `NEVER` never returns.
    pub(crate) async fn until(&mut self, moment: Moment) {
        loop {
            let jumped = self.clock.shift.as_ref().map(|shift| shift.jumped.notified());
            let mut jumped = std::pin::pin!(jumped);
            if let Some(jumped) = jumped.as_mut().as_pin_mut() {
                jumped.enable();
            }
            if self.clock.now() >= moment {
                return;
            }
            if mutants::BUILT_IN && self.clock.is_wall {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            let rings = self.timer.ring_at(moment - self.clock.shifted());
            match jumped.as_mut().as_pin_mut() {
                None => rings.await,
                Some(jumped) => tokio::select! { () = rings => {}, () = jumped => {} },
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn system_nanos() -> u64 {
    nanos_of(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
}

#[cfg(not(target_os = "linux"))]
fn system_nanos() -> u64 {
    nanos_of(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// The wall clock, so many nanoseconds off that it began with the true one.
fn wall_nanos() -> u64 {
    use std::sync::LazyLock;
    use std::time::UNIX_EPOCH;
    fn wall() -> i128 {
        UNIX_EPOCH.elapsed().map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0))
    }
    static OFF: LazyLock<i128> = LazyLock::new(|| i128::from(system_nanos()) - wall());
    u64::try_from(wall() + *OFF).unwrap_or(0)
}

fn nanos_of(time: rustix::time::Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The name of this host, as `uname` gives it.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(target_os = "linux")]
mod timer {
    //! One timerfd on `CLOCK_BOOTTIME`: it rings at once when a machine wakes after its time.

    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use super::Moment;

    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        // Deprecated for types that can change their descriptor under the reactor; an `OwnedFd` cannot.
        #[expect(deprecated, reason = "its replacement is an unsafe function")]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Boottime, flags)?)?))
        }

        /// Returns when the timer rings or cannot be set; the caller looks at the clock again.
        pub(super) async fn ring_at(&mut self, moment: Moment) {
            const SECOND: u64 = 1_000_000_000;
            // A time of zero would switch the timer off.
            let at = moment.as_nanos().max(1);
            let at = Timespec { tv_sec: i64::try_from(at / SECOND).unwrap_or(i64::MAX), tv_nsec: (at % SECOND) as _ };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
            if timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once).is_err() {
                return super::nap(moment).await;
            }
            match self.0.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => super::nap(moment).await,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;

    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn ring_at(&mut self, moment: super::Moment) {
            super::nap(moment).await
        }
    }
}

/// Sleeps by the runtime's own clock, which stops with the machine: in short pieces, so that a deadline that
/// passed meanwhile is noticed soon after waking.
async fn nap(moment: Moment) {
    let left = Moment(system_nanos()).until(moment);
    tokio::time::sleep(left.min(Duration::from_millis(250))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_at_its_time() {
        let clock = Clock::system();
        let mut alarm = clock.alarm().unwrap();
        for _ in 0..3 {
            let due = clock.now() + Duration::from_millis(15);
            alarm.until(due).await;
            assert!(clock.now() >= due);
            assert!(clock.now().since(due) < Duration::from_secs(5));
        }
    }

    #[tokio::test]
    async fn a_jump_rings_an_alarm_at_once() {
        let clock = Clock::adjustable();
        let mut alarm = clock.alarm().unwrap();
        let due = clock.now() + Duration::from_secs(3_600);
        let jumper = clock.clone();
        let (_, ()) = tokio::join!(alarm.until(due), async move {
            tokio::task::yield_now().await;
            jumper.jump(Duration::from_secs(3_601));
        });
        assert!(clock.now() >= due);
    }

    #[test]
    fn moments_saturate() {
        let early = Moment::from_nanos(5);
        assert_eq!(early - Duration::from_secs(1), Moment::from_nanos(0));
        assert_eq!(Moment::NEVER + Duration::from_secs(1), Moment::NEVER);
        assert_eq!(early.until(Moment::from_nanos(2)), Duration::ZERO);
    }
}
