//! The page `docs/verified.md`: what was recorded, by store, topology and nemesis.
//!
//! The surprise: rows that failed are on it too, and say so.

use std::fmt::Write;

use serde_json::Value;

use super::result::RATE_WANTED;

const HEAD: &str = "\
# What was verified

Made by `cargo xtask verify --render` from `docs/verified.json`; do not edit it here. `cargo xtask verify --all --record` runs
all of it again.

Every row is one run of `lockkeeper verify`: worker processes take locks and change registers while one thing is hurt
again and again. [The guide](guide/verify.md) says how to read it, and how to run the same on a store of your own.

*Promised* is what the lock alone keeps under this fault ([promises](promises.md)): **holds**: holders exclude each
other; **passes on**: the lock may pass on while its old holder acts, and a fenced resource is safe; **breaks**: even
that may go wrong. *Asked* is how the questions for locks were answered: acknowledged / refused / unknown of those
attempted. *Lost* is how many acknowledged updates of a register were overwritten, by the guard of the register, and for the
fenced one the share that with 95 % confidence is not exceeded. *Stuck* is the longest time that a lock was wanted and
nobody got it, and its bound. *Recovery* is the time from the moment that a server was killed or stopped, of a cluster the
leader, to the next lock: the shortest, the median, the longest, and the bound. *Rate* is the locks a second outside of the faults, as a share of those without any.
";

/// Makes the page.
pub fn page(results: &Value) -> String {
    let mut page = HEAD.to_string();
    let rows = list(results, "rows");
    let mut targets: Vec<&str> = rows.iter().map(|row| word(row, "target")).collect();
    targets.dedup();
    page += &summary(rows);
    for target in &targets {
        let of_target: Vec<&Value> = rows.iter().filter(|row| word(row, "target") == *target).collect();
        page += &table(target, &of_target);
    }
    page += &not_tested(list(results, "untested"));
    page += &seeded(&results["mutants"]);
    page += "\n## Repeating a row\n\nThe seed decides everything that is drawn by lot: whom a fault hits and when. How processes \
             interleave is the machine's business. So a row that is repeated meets the same faults, not the same accidents.\n\n\
             ```console\n";
    for target in targets {
        let row = rows.iter().find(|row| word(row, "target") == target && word(row, "nemesis") == "pause-holder");
        if let Some(row) = row.filter(|row| row["repeat"].is_string()) {
            let _ = writeln!(page, "$ {}", word(row, "repeat"));
        }
    }
    page += "```\n";
    page
}

/// The seeded bugs, and what caught each.
fn seeded(table: &Value) -> String {
    let (bugs, controls) = (list(table, "bugs"), list(table, "controls"));
    if bugs.is_empty() {
        return String::new();
    }
    let caught = |rows: &[Value]| rows.iter().filter(|row| row["caught"] == true).count();
    let mut text = format!(
        "\n## Seeded bugs\n\nChecks that have never failed show nothing. In a build with the feature `mutants` a bug of ours is put \
         in by its name, and a run must catch it by the check that is named beforehand (`cargo xtask verify --mutants --record`, \
         commit `{}`). {} of {} were caught; of the {} runs without a bug, and the one without a lock, {} were as they must be.\n\n\
         | bug | what it does | caught by | what it saw | s |\n|---|---|---|---|---|\n",
        word(table, "commit"),
        caught(bugs),
        bugs.len(),
        controls.len().saturating_sub(1),
        caught(controls),
    );
    for row in bugs.iter().chain(controls.iter().filter(|row| row["caught"] != true)) {
        let saw = word(row, "saw").split_once(": ").map_or("", |(_, saw)| saw).replace('|', "/");
        let check = if row["caught"] == true { word(row, "check").to_string() } else { "**not caught**".to_string() };
        let seconds = row["after_ms"].as_u64().unwrap_or_default().div_ceil(1_000);
        let _ = writeln!(text, "| {} | {} | {check} | {saw} | {seconds} |", word(row, "name"), word(row, "what"));
    }
    text
}

fn summary(rows: &[Value]) -> String {
    if rows.is_empty() {
        return "\n**Nothing has been recorded yet.**\n".to_string();
    }
    let real: Vec<&Value> = rows.iter().filter(|row| word(row, "work") != "nothing").collect();
    let sum = |of: fn(&Value) -> u64| real.iter().map(|row| of(row)).sum::<u64>();
    let failed: Vec<String> = rows.iter().filter(|row| row["passed"] != true).map(named).collect();
    let fenced = sum(|row| lost(row, "fenced").0.unwrap_or_default());
    let mut text = format!(
        "\n{} rows, {} locks acknowledged of {} attempted, {} faults. Updates lost behind a fence for reads and writes: {}.",
        count(rows.len() as u64),
        count(sum(|row| row["acquisitions"]["acknowledged"].as_u64().unwrap_or_default())),
        count(sum(|row| row["acquisitions"]["attempted"].as_u64().unwrap_or_default())),
        count(sum(|row| row["faults"].as_u64().unwrap_or_default())),
        count(fenced),
    );
    match failed.as_slice() {
        [] => text += " No row failed.\n",
        failed => {
            let _ = writeln!(text, " **Failed: {}.**", failed.join(", "));
        }
    }
    text
}

fn named(row: &Value) -> String {
    format!("{} {} {}", word(row, "target"), word(row, "nemesis"), word(row, "work"))
}

fn table(target: &str, rows: &[&Value]) -> String {
    let mut text = format!("\n## {target}\n\n");
    if let Some(first) = rows.first() {
        let server = first["server"].as_str().map(|server| format!(", its server {server}")).unwrap_or_default();
        let commit = first["commit"].as_str().map(|commit| format!(" at commit `{commit}`")).unwrap_or_default();
        let date = word(first, "began").split('T').next().unwrap_or_default();
        let _ = writeln!(text, "Recorded {date} with lockkeeper {}{commit}{server}.\n", word(first, "lockkeeper"));
    }
    text += "| nemesis | work | promised | asked | lost: bare | deadline | fenced writes | fenced | stuck | recovery | left over | rate | seed |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    text + &findings(rows)
}

fn cells(row: &Value) -> Vec<String> {
    let asked = |field: &str| count(row["acquisitions"][field].as_u64().unwrap_or_default());
    let [attempted, acknowledged, refused, unknown] = ["attempted", "acknowledged", "refused", "unknown"].map(asked);
    let (fenced, at_most) = lost(row, "fenced");
    let only = |guard: &str| lost(row, guard).0.map_or_else(|| "-".to_string(), count);
    let fenced = match (fenced, at_most) {
        (Some(lost), Some(at_most)) => format!("{} (≤ {:.3} %)", count(lost), at_most * 100.0),
        _ => "-".to_string(),
    };
    let rate = row["rate_ratio"].as_f64().map(|ratio| match ratio < RATE_WANTED {
        true => format!("{ratio:.2} (under {RATE_WANTED})"),
        false => format!("{ratio:.2}"),
    });
    let every = row["every_s"].as_u64().map(|every| format!(" every {every} s, {} workers", row["workers"]));
    let nemesis = word(row, "nemesis").to_string() + &every.unwrap_or_default();
    let locks = if word(row, "work") == "nothing" {
        "-".to_string()
    } else {
        format!("{acknowledged} / {refused} / {unknown} of {attempted}")
    };
    vec![
        if row["passed"] == true { nemesis } else { format!("**FAILED** {nemesis}") },
        if word(row, "work") == "nothing" { "no lock (control)".to_string() } else { word(row, "work").to_string() },
        word(row, "promise").replace('-', " "),
        locks,
        only("bare"),
        only("deadline"),
        only("fenced-writes"),
        fenced,
        format!("{} / {} ms", count_of(&row["longest_stuck_ms"]), count_of(&row["stuck_bound_ms"])),
        recovery(&row["recovery"]),
        left_over(row),
        rate.unwrap_or_else(|| format!("{:.0} /s", row["per_second_outside"].as_f64().unwrap_or_default())),
        word(row, "seed").to_string(),
    ]
}

/// Lost updates of a register by its guard, and the share that is not exceeded.
fn lost(row: &Value, guard: &str) -> (Option<u64>, Option<f64>) {
    let update = list(row, "updates").iter().find(|update| word(update, "guard") == guard);
    (update.and_then(|update| update["lost"].as_u64()), update.and_then(|update| update["lost_at_most"].as_f64()))
}

/// From a server's end to the next lock.
fn recovery(figures: &Value) -> String {
    match ["least_ms", "median_ms", "most_ms", "bound_ms"].map(|field| figures[field].as_u64().map(count)) {
        [Some(least), Some(median), Some(most), Some(bound)] => format!("{least} – {median} – {most} / {bound} ms"),
        _ => "-".to_string(),
    }
}

/// The check that looks at what is left at the store.
const LEFT_OVER: &str = "nothing-is-left";

fn left_over(row: &Value) -> String {
    let check = list(row, "checks").iter().find(|check| word(check, "check") == LEFT_OVER);
    match check.map(|check| word(check, "outcome")) {
        Some("passed") => "0".to_string(),
        Some("not-run") | None => "-".to_string(),
        Some(_) => check.map(|check| word(check, "saw").replace('|', "/")).unwrap_or_default(),
    }
}

/// What was reported or failed in the rows of a target, below its table.
fn findings(rows: &[&Value]) -> String {
    let mut text = String::new();
    for row in rows {
        for check in list(row, "checks")
            .iter()
            .filter(|check| word(check, "outcome") == "reported" || word(check, "outcome") == "failed")
        {
            let (outcome, name, saw) = (word(check, "outcome"), word(check, "check"), word(check, "saw"));
            let _ = writeln!(text, "* {}, {}: {outcome}: {name}: {saw}", word(row, "nemesis"), word(row, "work"));
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\nWhat the faults did, where that is not promised otherwise:\n\n{text}")
    }
}

fn not_tested(untested: &[Value]) -> String {
    let mut text = "\n## Not tested\n\n* Power loss: servers and workers are killed, the machine is not. What is on its way to the \
                    disk is then not lost.\n* Several machines: all processes are on one, with one kernel's clock; a network is a \
                    proxy on the loopback.\n* Paused virtual machines; a process that is stopped stands for them.\n"
        .to_string();
    for one in untested {
        let _ = writeln!(text, "* {}", word(one, "why").replace('|', "/"));
    }
    text
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn count_of(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_string(), count)
}

/// `12,345`.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_told_with_all_their_answers() {
        let updates = json!([
            { "guard": "bare", "lost": 12, "lost_at_most": 0.02 },
            { "guard": "fenced", "lost": 0, "lost_at_most": 0.00033 },
        ]);
        let checks = json!([
            { "check": LEFT_OVER, "outcome": "passed", "saw": "nothing" },
            { "check": "holds-exclude", "outcome": "reported", "saw": "3 of 9" },
        ]);
        let row = json!({
            "target": "redis", "nemesis": "pause-holder", "work": "mutex", "passed": true, "promise": "passes-on",
            "seed": "7", "lockkeeper": "0.1.0", "commit": "abc", "server": "7.0.15", "began": "2026-11-15T10:00:00Z",
            "acquisitions": { "attempted": 9100, "acknowledged": 9000, "refused": 90, "unknown": 10 },
            "updates": updates, "checks": checks, "longest_stuck_ms": 1500, "stuck_bound_ms": 3000, "faults": 4,
            "recovery": { "times": 4, "least_ms": 900, "median_ms": 1100, "most_ms": 2000, "bound_ms": 8000 },
            "every_s": 3, "workers": 8, "rate_ratio": 0.85, "repeat": "lockkeeper verify redis --seed 7",
        });
        let mut failed = row.clone();
        failed["passed"] = json!(false);
        failed["nemesis"] = json!("cut");
        let why = "`cut` cannot be done to `sqlite`: it is a file";
        let page =
            page(&json!({ "rows": [row, failed], "untested": [{ "target": "sqlite", "nemesis": "cut", "why": why }] }));
        let line = "| pause-holder every 3 s, 8 workers | mutex | passes on | 9,000 / 90 / 10 of 9,100 | 12 | - | - | 0 (≤ 0.033 %) | 1,500 / 3,000 ms \
                    | 900 – 1,100 – 2,000 / 8,000 ms | 0 | 0.85 (under 0.9) | 7 |\n";
        assert!(page.contains(line), "{page}");
        assert!(
            page.contains("Recorded 2026-11-15 with lockkeeper 0.1.0 at commit `abc`, its server 7.0.15."),
            "{page}"
        );
        assert!(
            page.contains("| **FAILED** cut every 3 s, 8 workers |") && page.contains("**Failed: redis cut mutex.**"),
            "{page}"
        );
        assert!(page.contains("* pause-holder, mutex: reported: holds-exclude: 3 of 9\n"), "{page}");
        assert!(
            page.contains(&format!("* {why}\n")) && page.contains("$ lockkeeper verify redis --seed 7\n"),
            "{page}"
        );
        assert!(page.contains("2 rows, 18,000 locks acknowledged of 18,200 attempted, 8 faults."), "{page}");
    }
}
