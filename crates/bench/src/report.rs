//! What a benchmark found: as a table for people now, and as a file that is kept.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Bar, Comparison, Pairs, Plan};
use crate::stats::{Side, median};
use crate::{Outcome, machine};

/// All that one benchmark found.
#[derive(Debug)]
pub struct Report {
    /// How it is called on the command line and in `bench/results`.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// Ours against a baseline.
    pub ratios: Vec<Ratio>,
    /// Plain numbers.
    pub figures: Vec<Figure>,
    /// What was measured beside ours and what it ran on, with versions.
    pub beside: Vec<String>,
}

/// Ours against a baseline.
#[derive(Debug)]
pub struct Ratio {
    /// What is compared.
    pub what: &'static str,
    /// What the baseline is.
    pub against: &'static str,
    /// The unit of the scores.
    pub unit: &'static str,
    /// What the ratio must reach, if anything.
    pub bar: Option<Bar>,
    /// What was measured.
    pub found: Comparison,
}

/// A plain number.
#[derive(Debug)]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it must be, if anything.
    pub need: Option<Need>,
}

/// What a plain number must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// Exactly so much.
    Exactly(f64),
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
}

impl Need {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::Exactly(need) => value == need,
            Self::AtLeast(need) => value >= need,
            Self::AtMost(need) => value <= need,
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(need) => write!(f, "= {}", short(*need)),
            Self::AtLeast(need) => write!(f, "≥ {}", short(*need)),
            Self::AtMost(need) => write!(f, "≤ {}", short(*need)),
        }
    }
}

impl Figure {
    /// A number without a bar.
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, need: None }
    }

    /// The same, that must be exactly so much.
    pub fn exactly(self, need: f64) -> Self {
        Self { need: Some(Need::Exactly(need)), ..self }
    }

    /// The same, that must be at least so much.
    pub fn at_least(self, need: f64) -> Self {
        Self { need: Some(Need::AtLeast(need)), ..self }
    }

    /// The same, that must be at most so much.
    pub fn at_most(self, need: f64) -> Self {
        Self { need: Some(Need::AtMost(need)), ..self }
    }

    fn met(&self) -> Option<bool> {
        self.need.map(|need| need.is_met(self.value))
    }
}

/// Where a record belongs and what it says about its making.
#[derive(Debug)]
pub struct Record<'a> {
    /// The root of the tree.
    pub root: &'a Path,
    /// How much was measured.
    pub plan: Plan,
    /// The machine, looked at before the first benchmark.
    pub machine: &'a Value,
    /// Words of the person who recorded it.
    pub note: Option<&'a str>,
}

impl Ratio {
    /// Why the bar is not met; `None` if it is, or if there is none.
    pub fn missed(&self) -> Option<String> {
        self.bar.and_then(|bar| bar.missed(self.found.main.ratio(), self.found.same.interval()))
    }

    fn print(&self, plan: Plan) {
        let Comparison { main, same } = &self.found;
        println!("\n{}, against {}", self.what, self.against);
        println!("  {:<10} {:>14} {:>10} {:>14}", "", self.unit, "p99", "cpu µs/pair");
        for (name, side) in [("measured", Side::A), ("baseline", Side::B)] {
            let score = median(&main.of(side, |slice| slice.work.score));
            let cpu = median(&main.of(side, |slice| slice.work.cpu_micros()));
            let p99 = median(&main.of(side, |slice| slice.work.p99.unwrap_or(f64::NAN)));
            let p99 = if p99.is_nan() { "-".to_owned() } else { short(p99) };
            println!("  {name:<10} {:>14} {p99:>10} {:>14}", short(score), short(cpu));
        }
        for (name, pairs) in [("ratio", main), ("A/A", same)] {
            let (ratio, interval) = (pairs.ratio(), pairs.interval());
            println!(
                "  {name:<10} {ratio:>12.3} ×   95 % {:.3}–{:.3}, {} pairs, steal ≤ {:.1} %, {} repeated{}",
                interval.low,
                interval.high,
                pairs.kept.len(),
                pairs.most_steal() * 100.0,
                pairs.repeated,
                if pairs.disturbed > 0 { format!(", {} kept with steal", pairs.disturbed) } else { String::new() },
            );
        }
        if let Some(bar) = self.bar {
            let verdict = self.missed().map_or_else(|| "met".to_owned(), |why| format!("not met: {why}"));
            let doubt = if plan.quick { " (--quick: not a record)" } else { "" };
            println!("  bar {bar:<6} {verdict}{doubt}");
        }
    }

    fn to_json(&self) -> Value {
        let Comparison { main, same } = &self.found;
        json!({
            "what": self.what,
            "against": self.against,
            "unit": self.unit,
            "bar": self.bar.map(|bar| bar.to_string()),
            "met": self.bar.map(|_| self.missed().is_none()),
            "reason": self.missed(),
            "ours": side_json(main, Side::A),
            "baseline": side_json(main, Side::B),
            "ratio": pairs_json(main),
            "same": pairs_json(same),
        })
    }
}

fn side_json(pairs: &Pairs, side: Side) -> Value {
    let p99 = median(&pairs.of(side, |slice| slice.work.p99.unwrap_or(f64::NAN)));
    json!({
        "median": rounded(median(&pairs.of(side, |slice| slice.work.score))),
        "p99": (!p99.is_nan()).then(|| rounded(p99)),
        "cpu_us": rounded(median(&pairs.of(side, |slice| slice.work.cpu_micros()))),
        "slices": pairs.of(side, |slice| rounded(slice.work.score)),
        "steal": pairs.of(side, |slice| rounded(slice.steal)),
    })
}

fn pairs_json(pairs: &Pairs) -> Value {
    let interval = pairs.interval();
    json!({
        "median": rounded(pairs.ratio()),
        "low": rounded(interval.low),
        "high": rounded(interval.high),
        "pairs": pairs.kept.len(),
        "repeated": pairs.repeated,
        "kept_with_steal": pairs.disturbed,
        "most_steal": rounded(pairs.most_steal()),
        "all": pairs.ratios().into_iter().map(rounded).collect::<Vec<_>>(),
    })
}

impl Report {
    /// The tables, on the standard output.
    pub fn print(&self, plan: Plan) {
        println!("\n# {}: {}", self.name, self.about);
        if plan.quick {
            println!("--quick: {} pairs of {:?} slices; not a record", plan.pairs, plan.slice);
        }
        for what in &self.beside {
            println!("  {what}");
        }
        if !self.figures.is_empty() {
            println!();
        }
        for figure in &self.figures {
            let verdict = match (figure.need, figure.met()) {
                (Some(need), Some(true)) => format!("  {need} met"),
                (Some(need), _) => format!("  {need} NOT MET"),
                (None, _) => String::new(),
            };
            println!("  {:<62} {:>12} {}{verdict}", figure.what, short(figure.value), figure.unit);
        }
        for ratio in &self.ratios {
            ratio.print(plan);
        }
    }

    /// Writes `bench/results/NAME.json`.
    pub fn write(&self, record: &Record<'_>) -> Outcome<()> {
        let folder = record.root.join("bench/results");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", self.name));
        std::fs::write(&path, format!("{:#}\n", self.to_json(record)))?;
        println!("\nrecorded in bench/results/{}.json", self.name);
        Ok(())
    }

    fn to_json(&self, record: &Record<'_>) -> Value {
        let figure = |figure: &Figure| {
            json!({
                "what": figure.what,
                "value": rounded(figure.value),
                "unit": figure.unit,
                "bar": figure.need.map(|need| need.to_string()),
                "met": figure.met(),
            })
        };
        json!({
            "schema": "lockkeeper.bench/1",
            "name": self.name,
            "about": self.about,
            "recorded": machine::today(),
            "note": record.note,
            "versions": machine::versions(record.root),
            "beside": self.beside,
            "machine": record.machine,
            "plan": { "pairs": record.plan.pairs, "slice_ms": record.plan.slice.as_millis() as u64 },
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "ratios": self.ratios.iter().map(Ratio::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Four significant digits, which is more than any of these figures deserves.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// A number for people: no more digits than it deserves.
pub fn short(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        large if large >= 100.0 => 0,
        middle if middle >= 1.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::harness::{Pair, Slice, Work};

    fn report() -> Report {
        let slice =
            |score| Slice { work: Work { score, count: 10, cpu: Duration::from_micros(120), p99: None }, steal: 0.01 };
        let pairs = |a, b| Pairs { kept: vec![Pair { a: slice(a), b: slice(b) }; 30], repeated: 2, disturbed: 0 };
        let found = Comparison { main: pairs(70.0, 100.0), same: pairs(100.0, 100.0) };
        let bar = Some(Bar::AtLeast(0.8));
        let ratio = Ratio { what: "pairs", against: "raw", unit: "pairs/s", bar, found };
        let figures = vec![Figure::new("threads", 2.0, "").exactly(1.0)];
        Report { name: "test", about: "nothing", ratios: vec![ratio], figures, beside: Vec::new() }
    }

    #[test]
    fn a_record_says_what_was_met_and_does_not_say_where() {
        let root = crate::root();
        let machine = machine::facts(&root).unwrap();
        let record = Record { root: &root, plan: Plan::RECORD, machine: &machine, note: None };
        let json = report().to_json(&record);
        assert_eq!(
            (json["ratios"][0]["met"].as_bool(), json["figures"][0]["met"].as_bool()),
            (Some(false), Some(false))
        );
        assert_eq!(json["ratios"][0]["ratio"]["median"], 0.7);
        assert_eq!(json["ratios"][0]["ours"]["cpu_us"], 12.0);
        let page = crate::render::page(std::slice::from_ref(&json)).unwrap();
        assert!(page.contains("Not met: the median 0.70 × is not ≥ 0.8 ×."), "{page}");
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let parts: Vec<_> = json.to_string().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
        assert!(!parts.contains(&host), "the host's name is no part of a record");
        assert!(!json.to_string().contains(&*root.to_string_lossy()), "nor is a path");
    }

    #[test]
    fn a_number_meets_its_bar_or_not() {
        let figure = |need: fn(Figure, f64) -> Figure| need(Figure::new("x", 50.0, "ms"), 50.0);
        assert_eq!(figure(Figure::at_least).met(), Some(true));
        assert_eq!(figure(Figure::at_most).met(), Some(true));
        assert_eq!(Figure::new("x", 49.9, "").at_least(50.0).met(), Some(false));
        assert_eq!(Figure::new("x", 50.1, "").at_most(50.0).met(), Some(false));
        assert_eq!(Figure::new("x", f64::NAN, "").at_most(50.0).met(), Some(false));
        assert_eq!(Figure::new("x", 50.1, "").met(), None);
        assert_eq!(Need::AtLeast(100_000.0).to_string(), "≥ 100,000");
    }

    #[test]
    fn numbers_for_people() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.0, "1"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234.0, "1,234"),
            (-123_456.7, "-123,457"),
            (1_234_567.0, "1,234,567"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(123_456.0), 123_500.0);
        assert_eq!(rounded(0.000_123_456), 0.000_123_5);
        assert_eq!(rounded(0.0), 0.0);
        assert!(rounded(f64::NAN).is_nan());
    }
}
