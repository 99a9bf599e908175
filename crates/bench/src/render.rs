//! Makes `docs/bench.md` from what stands in `bench/results`. The page is never edited by hand.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Outcome;
use crate::report::short;

const HEAD: &str = "\
# Figures

Made by `cargo xtask bench --render` from `bench/results/*.json`; do not edit it here.

A ratio is the median over pairs of slices that took turns (ABBA) in one run, with a bootstrap 95 % interval. The A/A
row is the baseline against itself, cut the same way: what it strays from one is the error of the method. A bar is met
when the median meets it and the A/A interval is within ±10 %. Pairs in which the host of the machine took more than
5 % of the processors' time away were repeated; while A/A was beyond its bounds, as many pairs were measured again, up to
four times. *cpu* is the client's own processor time per operation.
";

/// Writes the page.
pub fn render(root: &Path) -> Outcome<()> {
    let folder = root.join("bench/results");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|error| format!("nothing is recorded in bench/results yet ({error}); hint: run with `--record`"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut records = Vec::new();
    for file in files {
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)
            .map_err(|error| format!("{}: {error}", file.file_name().unwrap_or_default().display()))?;
        records.push(record);
    }
    std::fs::create_dir_all(root.join("docs"))?;
    std::fs::write(root.join("docs/bench.md"), page(&records)?)?;
    println!("made docs/bench.md");
    Ok(())
}

/// The page of these records.
pub fn page(records: &[Value]) -> Outcome<String> {
    let mut page = HEAD.to_owned();
    records.iter().try_for_each(|record| section(&mut page, record))?;
    Ok(page)
}

fn section(page: &mut String, record: &Value) -> Outcome<()> {
    writeln!(page, "\n## {}\n\n{}\n", text(record, "name"), capital(text(record, "about")))?;
    origin(page, record)?;
    let beside: Vec<&str> = record["beside"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !beside.is_empty() {
        writeln!(page, "\nMeasured with {}.", beside.join("; "))?;
    }
    if let Some(note) = record["note"].as_str() {
        writeln!(page, "\n{note}")?;
    }
    let ratios = record["ratios"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !ratios.is_empty() {
        ratio_table(page, ratios)?;
    }
    let figures = record["figures"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !figures.is_empty() {
        writeln!(page, "\n| figure | value | bar |\n|---|---|---|")?;
    }
    for figure in figures {
        // Older records have the number alone.
        let must_be = figure["must_be"].as_f64().map(|must_be| format!("= {}", short(must_be)));
        let bar = figure["bar"].as_str().map(str::to_owned).or(must_be);
        let bar = bar.map_or_else(String::new, |bar| format!("{bar}: {}", verdict(figure["met"].as_bool())));
        writeln!(page, "| {} | {} {} | {bar} |", text(figure, "what"), number(&figure["value"]), text(figure, "unit"))?;
    }
    Ok(())
}

fn origin(page: &mut String, record: &Value) -> Outcome<()> {
    let (machine, versions) = (&record["machine"], &record["versions"]);
    let commit = text(versions, "commit").get(..12).unwrap_or("unknown");
    let changed = if versions["changed_since"].as_bool() == Some(true) { " with changes" } else { "" };
    writeln!(
        page,
        "Recorded {} at commit `{commit}`{changed}: {} × {}, {} GiB, {} {}, {}; {}, SQLite {}; load before {}.",
        text(record, "recorded"),
        machine["processors"],
        text(machine, "processor"),
        machine["memory_gib"],
        text(machine, "system"),
        text(machine, "kernel"),
        text(machine, "file_system"),
        text(versions, "rustc"),
        text(versions, "sqlite"),
        machine["load_before"],
    )?;
    Ok(())
}

fn ratio_table(page: &mut String, ratios: &[Value]) -> Outcome<()> {
    writeln!(page, "\n| what | measured | baseline | ratio (95 %) | A/A (95 %) | bar |\n|---|---|---|---|---|---|")?;
    for ratio in ratios {
        let bar = match ratio["bar"].as_str() {
            Some(bar) => format!("{bar}: {}", verdict(ratio["met"].as_bool())),
            None => "for information".to_owned(),
        };
        writeln!(
            page,
            "| {}, against {} | {} | {} | {} | {} | {bar} |",
            text(ratio, "what"),
            text(ratio, "against"),
            side(&ratio["ours"], text(ratio, "unit")),
            side(&ratio["baseline"], text(ratio, "unit")),
            spread(&ratio["ratio"]),
            spread(&ratio["same"]),
        )?;
    }
    for ratio in ratios {
        let (main, same) = (&ratio["ratio"], &ratio["same"]);
        let steal = main["most_steal"].as_f64().unwrap_or(0.0).max(same["most_steal"].as_f64().unwrap_or(0.0));
        writeln!(
            page,
            "\n*{}*: {} pairs, {} repeated, {} kept with steal, steal at most {:.1} % in a slice.{}",
            capital(text(ratio, "what")),
            main["pairs"],
            sum(main, same, "repeated"),
            sum(main, same, "kept_with_steal"),
            steal * 100.0,
            ratio["reason"].as_str().map_or_else(String::new, |why| format!(" Not met: {why}.")),
        )?;
    }
    Ok(())
}

fn side(side: &Value, unit: &str) -> String {
    let p99 = side["p99"].as_f64().map_or_else(String::new, |p99| format!(", p99 {}", short(p99)));
    format!("{} {unit}{p99}, cpu {} µs", number(&side["median"]), number(&side["cpu_us"]))
}

fn spread(pairs: &Value) -> String {
    let two = |field: &str| pairs[field].as_f64().map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"));
    format!("{} × ({}–{})", two("median"), two("low"), two("high"))
}

fn sum(main: &Value, same: &Value, field: &str) -> u64 {
    main[field].as_u64().unwrap_or(0) + same[field].as_u64().unwrap_or(0)
}

fn verdict(met: Option<bool>) -> &'static str {
    if met == Some(true) { "**met**" } else { "**not met**" }
}

fn number(value: &Value) -> String {
    value.as_f64().map_or_else(|| "?".to_owned(), short)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or("unknown")
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_becomes_a_section_with_its_bar_and_reason() {
        let pairs = json!({ "median": 0.71, "low": 0.7, "high": 0.72, "pairs": 30, "repeated": 1, "most_steal": 0.01 });
        let same = json!({ "median": 1.0, "low": 0.99, "high": 1.01, "repeated": 2, "most_steal": 0.02 });
        let side = json!({ "median": 31_234.0, "p99": null, "cpu_us": 12.5 });
        let record = json!({
            "name": "sqlite", "about": "the embedded store", "recorded": "2026-11-15", "note": "Why: x.",
            "versions": { "commit": "0123456789abcdef", "changed_since": false, "rustc": "rustc 1", "sqlite": "3" },
            "machine": { "processors": 2, "processor": "P", "memory_gib": 4.0, "system": "linux" },
            "ratios": [{
                "what": "pairs", "against": "raw", "unit": "pairs/s", "bar": "≥ 0.8 ×", "met": false,
                "reason": "too slow", "ours": side, "baseline": side, "ratio": pairs, "same": same,
            }],
            "beside": ["redis 7.0.15", "a peer 1.0"],
            "figures": [
                { "what": "threads", "value": 1.0, "unit": "", "must_be": 1.0, "met": true },
                { "what": "turns", "value": 9.0, "unit": "per second", "bar": "≥ 10", "met": false },
            ],
        });
        let mut page = String::new();
        section(&mut page, &record).unwrap();
        for part in [
            "## sqlite",
            "`0123456789ab`",
            "| pairs, against raw | 31,234 pairs/s, cpu 12.5 µs |",
            "0.71 × (0.70–0.72) | 1.00 × (0.99–1.01) | ≥ 0.8 ×: **not met** |",
            "30 pairs, 3 repeated, 0 kept with steal, steal at most 2.0 % in a slice. Not met: too slow.",
            "| threads | 1  | = 1: **met** |",
            "| turns | 9 per second | ≥ 10: **not met** |",
            "Measured with redis 7.0.15; a peer 1.0.",
            "Why: x.",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
