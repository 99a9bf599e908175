//! Other processes, really killed and really stopped.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lockkeeper_core::Name;
use lockkeeper_core::store::Tokens;

use super::{SOON, standing, until_standing};
use crate::{Outcome, Skip, World};

/// A process that takes one lock and does as it is told; killed when it goes out of scope.
struct Taker {
    child: Child,
    says: Receiver<String>,
    orders: ChildStdin,
}

impl Taker {
    fn start(world: &World, name: &Name, lease: Duration) -> Result<Self, Skip> {
        let (url, taker) = world.processes()?;
        let mut child = Command::new(&taker)
            .args([&url, name.as_str(), &lease.as_millis().to_string(), world.kind().word()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} could not be started: {error}", taker.display()));
        let (tell, says) = channel();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line).map_err(|_| ())));
        let orders = child.stdin.take().expect("a pipe");
        Ok(Self { child, says, orders })
    }

    /// The next line it says.
    fn hear(&self) -> String {
        self.says.recv_timeout(SOON * 3).expect("the taker says something")
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the taker listens");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(sent.success(), "kill {signal} {pid}");
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kill -9 of a holder: the next one is in when the lease has ended, not before, and at most a second later.
pub async fn a_killed_holder_frees_the_lock(world: World) -> Outcome {
    let (name, lease, profile) = (world.name(), world.short_lease().await, world.profile().await);
    let keeper = world.keeper().await;
    let taker = Taker::start(&world, &name, lease)?;
    assert!(taker.hear().starts_with("held "));
    let waiting = world.lock(&keeper, &name).wait(SOON * 3);
    let waiting = tokio::spawn(async move { waiting.lock().await.map(|hold| (hold, Instant::now())) });
    until_standing(&world.store().await, &name, 2, SOON).await;
    let killed = Instant::now();
    taker.signal("-9");
    let (hold, in_at) = waiting.await.expect("a task").expect("a lock");
    let waited = in_at.duration_since(killed);
    assert!(waited <= lease + profile.late + Duration::from_secs(1), "in only {waited:?} after the kill");
    // It was renewed at the latest a third of its lease before the kill.
    assert!(waited + profile.early >= lease / 2, "in {waited:?} after the kill, with a lease of {lease:?}");
    drop(hold);
    Ok(())
}

/// SIGSTOP of a holder beyond its lease: the next one is in; woken, the old one knows before anything else.
pub async fn a_stopped_holder_finds_out(world: World) -> Outcome {
    let (name, lease, keeper) = (world.name(), world.short_lease().await, world.keeper().await);
    let mut taker = Taker::start(&world, &name, lease)?;
    assert!(taker.hear().starts_with("held "));
    taker.signal("-STOP");
    let hold = world.lock(&keeper, &name).wait(SOON * 3).lock().await.expect("the lease ends");
    taker.tell("check");
    taker.signal("-CONT");
    let mut heard = vec![taker.hear()];
    if heard[0].starts_with("lost") {
        heard.push(taker.hear());
    }
    assert!(heard.iter().any(|line| line == "held: no"), "{heard:?}");
    assert!(!heard.iter().any(|line| line == "held: yes"), "{heard:?}");
    taker.tell("release");
    let released = loop {
        let line = taker.hear();
        if !line.starts_with("lost") {
            break line;
        }
    };
    assert!(released.starts_with("release: lost"), "{released}");
    assert!(hold.is_held(), "the stopped one did not free the new one's lock");
    assert_eq!(standing(&world.store().await, &name).await, 1);
    drop(hold);
    Ok(())
}

/// A holder that was stopped after it entered the fence and read, and is woken when the lock has passed on, cannot
/// write what it made of that, although the next one has not written yet.
pub async fn a_stopped_holder_is_fenced_off(world: World) -> Outcome {
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])?;
    let (name, lease, keeper) = (world.name(), world.short_lease().await, world.keeper().await);
    let mut taker = Taker::start(&world, &name, lease)?;
    assert!(taker.hear().starts_with("held "));
    taker.tell("fence");
    assert_eq!(taker.hear(), "fence: ok");
    taker.signal("-STOP");
    let hold = world.lock(&keeper, &name).wait(SOON * 3).lock().await.expect("the lease ends");
    let cell = keeper.cell(name.as_str()).fenced(&hold).expect("it has a token");
    assert_eq!(cell.read().await.expect("it is the newest"), None);
    taker.tell("write stale");
    taker.signal("-CONT");
    let written = loop {
        let line = taker.hear();
        if !line.starts_with("lost:") {
            break line;
        }
    };
    assert_eq!(written, "write: lost");
    cell.write(Some(b"fresh")).await.expect("it is the newest");
    let found = keeper.cell(name.as_str()).get().await.expect("an answer").expect("a value");
    assert_eq!(found.value, b"fresh");
    drop(hold);
    Ok(())
}

/// Six processes take turns on a lock and an unprotected file: nothing is lost.
pub async fn processes_never_hold_together(world: World) -> Outcome {
    const PROCESSES: usize = 6;
    const ROUNDS: u64 = 15;
    world.processes()?;
    let name = world.name();
    let file = std::env::temp_dir().join(format!("lockkeeper-law-{}-{:x}", std::process::id(), fastrand::u64(..)));
    std::fs::write(&file, "0").expect("a file");
    let mut takers = Vec::new();
    for _ in 0..PROCESSES {
        let mut taker = Taker::start(&world, &name, Duration::from_secs(10))?;
        taker.tell(&format!("count {ROUNDS} {}", file.display()));
        takers.push(taker);
    }
    // Each has taken the lock once to say `held`; it goes on when it has counted to the end.
    for taker in &takers {
        assert!(taker.hear().starts_with("held "));
        assert_eq!(taker.hear(), "counted");
    }
    let total = std::fs::read_to_string(&file).expect("a file");
    std::fs::remove_file(&file).expect("a file");
    assert_eq!(total, (PROCESSES as u64 * ROUNDS).to_string());
    Ok(())
}
