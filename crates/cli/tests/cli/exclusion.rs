//! Many at once: what the lock is for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::support::{Den, output, read, start, text, until};

/// Reads, adds one, writes: loses updates unless it runs one at a time.
const ADD: &str = "read n < count; echo $((n + 1)) > count";

#[test]
fn eight_processes_count_to_1600() {
    let den = Arc::new(Den::new());
    std::fs::write(den.path("count"), "0\n").expect("a file");
    let begun = Instant::now();
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let den = den.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    let mut command = den.run(["count", "--wait", "forever", "--", "sh", "-c", ADD]);
                    let done = output(command.env("LOCKKEEPER_STORE", format!("{}?sync=normal", den.store())));
                    assert!(done.status.success(), "{}", text(&done.stderr));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("the worker is well");
    }
    assert_eq!(read(&den.path("count")), "1600\n");
    println!("1600 runs in {:?}", begun.elapsed());
}

/// Enters, adds its id, leaves; says so if anybody alive is or was inside meanwhile. One that was killed leaves its
/// mark, which the next holder finds to be a dead process's.
const MARK: &str = r#"
if [ -e inside ]; then
    read other < inside
    case "$(ps -o stat= -p "$other")" in
        ""|Z*) ;;
        *) echo "$1 found $other inside" >> wrong ;;
    esac
fi
echo $$ > inside
echo "$1" >> ids
sleep 0.02
read other < inside
[ "$other" = $$ ] || echo "$other came in while $1 was inside" >> wrong
rm inside
"#;

#[test]
fn holders_killed_at_random_lose_and_repeat_nothing() {
    let den = Arc::new(Den::new());
    std::fs::write(den.path("ids"), "").expect("a file");
    let next = Arc::new(AtomicU32::new(0));
    let killed = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            let (den, next, killed) = (den.clone(), next.clone(), killed.clone());
            std::thread::spawn(move || worker_among_killers(&den, worker, &next, &killed))
        })
        .collect();
    let acknowledged: Vec<u32> = workers.into_iter().flat_map(|worker| worker.join().expect("it is well")).collect();
    let killed = killed.load(Ordering::Relaxed);
    assert!(!den.path("wrong").exists(), "{}", read(&den.path("wrong")));
    let mut times: HashMap<u32, u32> = HashMap::new();
    for line in read(&den.path("ids")).lines() {
        *times.entry(line.parse().expect("an id")).or_default() += 1;
    }
    for id in &acknowledged {
        assert_eq!(times.get(id), Some(&1), "{id} was acknowledged");
    }
    let done = acknowledged.len() as u32;
    let total = times.len() as u32;
    assert!(times.values().all(|count| *count == 1));
    assert!((done..=done + killed).contains(&total), "{total} of {done} acknowledged and {killed} killed");
    assert!(killed >= 5 && done >= 60, "{killed} killed, {done} acknowledged: too few to mean anything");
    println!("{done} acknowledged, {killed} killed, {total} done");
}

fn worker_among_killers(den: &Den, worker: u64, next: &AtomicU32, killed: &AtomicU32) -> Vec<u32> {
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(worker + 1);
    let mut roll = move |sides: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    };
    let mut acknowledged = Vec::new();
    for _ in 0..20 {
        let id = next.fetch_add(1, Ordering::Relaxed);
        let mut command = den.run(["count", "--wait", "forever", "--lease", "700ms", "--"]);
        command.args(["sh", "-c", MARK, "sh", &id.to_string()]);
        let mut started = start(command.env("LOCKKEEPER_STORE", format!("{}?sync=normal", den.store())));
        if roll(6) == 0 {
            // Half of them somewhere on the way, half of them inside.
            match roll(2) {
                0 => std::thread::sleep(Duration::from_millis(roll(100))),
                _ => {
                    let inside = || read(&den.path("ids")).lines().any(|line| line == id.to_string());
                    until("it is inside", || inside() || started.has_ended());
                }
            }
            started.child().kill().expect("it is ours");
            killed.fetch_add(1, Ordering::Relaxed);
            drop(started);
            continue;
        }
        let done = started.end();
        match done.status.code() {
            Some(0) => acknowledged.push(id),
            // A busy machine may be slower than so short a lease; then it says so, and the work counts as killed.
            Some(76) => drop(killed.fetch_add(1, Ordering::Relaxed)),
            other => panic!("{other:?}: {}", text(&done.stderr)),
        }
    }
    acknowledged
}

#[test]
fn one_name_does_not_hold_up_another() {
    let den = Den::new();
    let _holder = den.holder("a", &[], "read line < /dev/null; exec sleep 1000");
    let done = output(&mut den.run(["b", "--no-wait", "--", "true"]));
    assert!(done.status.success(), "{}", text(&done.stderr));
    until("both are seen", || den.show("a")["state"] == "held" && den.show("b")["state"] == "free");
}
