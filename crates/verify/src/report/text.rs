//! The page for the terminal. Readable without colour, from top to bottom: what ran, what came of it, how it can be
//! repeated.

use std::fmt::Write;
use std::path::Path;

use super::words::{count, list, outcome, percent, promise, span_ms, span_us, time, word};
use crate::judgement::{Figures, Finding, Judgement, Outcome, Tally};
use crate::plan::Plan;

/// More evidence than this is in the JSON.
const EVIDENCE: usize = 5;

/// The page; `folder` is where the history is.
pub fn text(judgement: &Judgement, folder: &Path) -> String {
    let mut page = heading(judgement);
    page += "\n";
    page += &answers(judgement);
    page += "\n";
    for finding in &judgement.checks {
        page += &told(finding);
    }
    let _ = writeln!(page, "\n{}", figures(&judgement.figures));
    let _ = writeln!(page, "{}\n", verdict(judgement));
    let _ = writeln!(page, "repeat:       {}", repeat(&judgement.plan));
    let _ = writeln!(page, "judge again:  lockkeeper verify check {}", quoted(&folder.display().to_string()));
    let _ = writeln!(page, "timeline:     {}", folder.join("timeline.html").display());
    page
}

fn heading(judgement: &Judgement) -> String {
    let plan = &judgement.plan;
    let made = &plan.made_of;
    let server = made.server.as_ref().map(|version| format!(", {} {version}", plan.store.scheme)).unwrap_or_default();
    let commit = made.commit.as_ref().map(|commit| format!(" at {commit}")).unwrap_or_default();
    let mutant = plan.mutant.as_ref().map(|name| format!("  seeded bug: {name}\n")).unwrap_or_default();
    let delay = if plan.delay_ms > 0 { format!(", lock-delay {}", time(plan.delay_ms)) } else { String::new() };
    let every = plan.every_ms.map(|every| format!(" every {}", time(every))).unwrap_or_default();
    format!(
        "{} under {}{every} for {}, seed {}\n  lockkeeper {}{commit}{server}; began {}\n  {}: {} workers of {} tasks, {} locks, \
         lease {}{delay}, dwelling {}\n  promised: {}\n{mutant}",
        plan.target,
        list(&plan.nemesis),
        time(plan.for_ms),
        plan.seed,
        made.lockkeeper,
        made.began,
        word(&plan.work),
        plan.workers,
        plan.tasks,
        plan.locks,
        time(plan.lease_ms),
        span_us(plan.think_us),
        promise(judgement.promise),
    )
}

/// The tables of answers: locks, then registers by their guard.
fn answers(judgement: &Judgement) -> String {
    let head = ["", "attempted", "acknowledged", "refused", "unknown", "lost", "at most"].map(str::to_owned);
    let row = |name: String, tally: &Tally, lost: [String; 2]| {
        let [lost, at_most] = lost;
        let Tally { attempted, acknowledged, refused, unknown } = *tally;
        [name, count(attempted), count(acknowledged), count(refused), count(unknown), lost, at_most]
    };
    let mut rows = vec![head, row("locks".to_owned(), &judgement.acquisitions, [String::new(), String::new()])];
    for (guard, updates) in &judgement.updates {
        let lost = [count(updates.lost), percent(updates.lost_at_most)];
        rows.push(row(format!("updates {}", word(guard)), &updates.tally, lost));
    }
    table(&rows)
}

/// Columns side by side; the first to the left, numbers to the right.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn told(finding: &Finding) -> String {
    let mut text = format!("{:<8}  {}: {}\n", outcome(finding.outcome), finding.check, finding.saw);
    for line in finding.evidence.iter().take(EVIDENCE) {
        let _ = writeln!(text, "            {line}");
    }
    let more = finding.evidence.len().saturating_sub(EVIDENCE);
    if more > 0 {
        let _ = writeln!(text, "            and {} more", count(more as u64));
    }
    text
}

fn figures(figures: &Figures) -> String {
    let push = figures.push_share.map(|share| format!(", {} told by a wake-up", percent(share))).unwrap_or_default();
    let recovery = figures.recovery.map(|it| {
        let [least, median, most, bound] = [it.least_ms, it.median_ms, it.most_ms, it.bound_ms].map(span_ms);
        format!(
            "\nfrom a server's end to the next lock: {least} to {most}, half up to {median}, {} times (bound {bound})",
            it.times
        )
    });
    format!(
        "{} faults, {} of {} hurt or healing; {:.0} locks a second outside of that\nlongest time that a lock was wanted and \
         nobody got it: {} (bound {})\nwaits: half up to {}, 99 of 100 up to {}{push}; fairness {:.3}{}",
        count(figures.faults),
        span_ms(figures.hurt_ms),
        span_ms(figures.ran_ms),
        figures.per_second_outside,
        span_ms(figures.longest_stuck_ms),
        span_ms(figures.stuck_bound_ms),
        span_us(figures.wait_p50_us),
        span_us(figures.wait_p99_us),
        figures.fairness,
        recovery.unwrap_or_default(),
    )
}

fn verdict(judgement: &Judgement) -> String {
    let of = |wanted: Outcome| judgement.checks.iter().filter(|finding| finding.outcome == wanted).count();
    let all = [Outcome::Passed, Outcome::Failed, Outcome::Reported, Outcome::NotRun];
    let parts: Vec<String> =
        all.iter().filter(|one| of(**one) > 0).map(|one| format!("{} {}", of(*one), outcome(*one))).collect();
    let word = if judgement.passed() { "passed" } else { "FAILED" };
    format!("{word}: of {} checks {}", judgement.checks.len(), parts.join(", "))
}

/// The command that does the same again. It says everything, so that it means the same where defaults are others.
pub fn repeat(plan: &Plan) -> String {
    let delay = if plan.delay_ms > 0 { format!(" --lock-delay {}", time(plan.delay_ms)) } else { String::new() };
    let every = plan.every_ms.map(|every| format!(" --every {}", time(every))).unwrap_or_default();
    let mutant = plan.mutant.as_ref().map(|name| format!(" --mutant {name}")).unwrap_or_default();
    format!(
        "lockkeeper verify {} --nemesis {} --for {} --seed {} --work {} --workers {} --tasks {} --locks {} --lease {}{delay} \
         --think {}us{every}{mutant}",
        quoted(&plan.target),
        list(&plan.nemesis),
        time(plan.for_ms),
        plan.seed,
        word(&plan.work),
        plan.workers,
        plan.tasks,
        plan.locks,
        time(plan.lease_ms),
        plan.think_us,
    )
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+,=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_page_says_everything_together() {
        let page = text(&sample::judgement(), Path::new("out dir"));
        let expected = include_str!("sample.txt");
        assert_eq!(page, expected, "\n{page}");
        assert!(!page.contains('\x1b') && page.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn a_failure_is_not_overlooked() {
        let page = text(&sample::failed(), Path::new("out"));
        assert!(
            page.contains("\nFAILED    fenced-registers-lose-nothing: 2 lost of 9,000\n            lock 1: "),
            "{page}"
        );
        assert!(page.contains("            and 2 more\n"), "{page}");
        assert!(page.contains("\nFAILED: of 4 checks 1 passed, 1 FAILED, 1 reported, 1 not run\n"), "{page}");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let said = ["redis://h:1/0", "a b", "it's", ""].map(quoted);
        assert_eq!(said, ["redis://h:1/0", "'a b'", r"'it'\''s'", "''"]);
    }
}
