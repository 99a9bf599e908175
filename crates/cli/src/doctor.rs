//! `doctor`: is this store set up to be trusted with locks?
//!
//! Surprise: a bad store is not a failure of the program. It ends with 0 unless something was required of the store.

use comfy_table::{Table, presets};
use lockkeeper::checkup::{Finding, Level, Report, Unmet, checkup};

use crate::args::DoctorArgs;
use crate::client;
use crate::exit::{self, Failure};
use crate::json;
use crate::look::{print, print_json};

/// Looks a store over.
pub async fn doctor(store: Option<&str>, args: &DoctorArgs) -> Result<u8, Failure> {
    if args.place.is_some() && store.is_some() {
        let message = "the store is named twice, by `--store` and after `doctor`";
        return Err(Failure::new(exit::USAGE, message).with_hint("leave one of them away"));
    }
    let (url, access) = client::reach(args.place.as_deref().or(store), client::Memory::Allowed)?;
    let report = checkup(&url, &access).await?;
    let unmet = report.unmet(&args.require);
    match args.json {
        true => print_json(&json::Doctor::new(&report, &unmet))?,
        false => print(&described(&report))?,
    };
    for one in &unmet {
        tell(one);
    }
    Ok(if unmet.is_empty() { 0 } else { exit::CONFIG })
}

fn tell(unmet: &Unmet) {
    let message = format!("error: `{}` is required and not promised: {}", unmet.requirement, unmet.why);
    exit::say(&message, unmet.change.as_deref());
}

/// The report for people: facts, then findings with the worst first, then what may be trusted.
fn described(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for fact in &report.facts {
        table.add_row([fact.topic, &fact.value]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = format!("{} at {}\n\n", report.store, report.address);
    if !report.facts.is_empty() {
        text.push_str(&format!("{}\n\n", table.trim_fmt()));
    }
    for finding in &report.findings {
        text.push_str(&told(finding));
    }
    text.push_str(&format!("\n{}\n", report.trust()));
    text
}

fn told(finding: &Finding) -> String {
    let Finding { topic, level, found, means, change } = finding;
    let mut text = format!("{}: {topic}: {found}\n", level.as_str());
    if *level != Level::Good {
        text.push_str(&format!("  {means}\n"));
        if let Some(change) = change {
            text.push_str(&format!("  hint: {change}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_from_top_to_bottom() {
        let mut report = Report::new("redis", "host:1");
        report.fact("server", "Redis 7.0.15");
        report.find(Finding::good("role", "it is a primary"));
        report.find(Finding::new("eviction", Level::Danger, "allkeys-lru", "locks vanish").with_change("noeviction"));
        let text = described(&report.sorted());
        let expected = "redis at host:1\n\nserver  Redis 7.0.15\n\ndanger: eviction: allkeys-lru\n  locks vanish\n  \
            hint: noeviction\ngood: role: it is a primary\n\n";
        assert!(text.starts_with(expected), "{text}");
    }
}
