//! What came of one row: a judgement in a few fields, and what is wrong with it.
//!
//! Surprise: a row can pass all checks of the program and fail here, when too little was acknowledged to say anything.

use serde_json::{Value, json};

use super::rows::{CONTROL_LOSES, Row, text};

/// Outside of the faults a store should be about as fast as without any.
pub const RATE_WANTED: f64 = 0.9;

/// One row with what the program said of it: `record` is what is kept.
pub struct Done {
    /// The row.
    pub row: Row,
    /// What is kept of the report.
    pub record: Value,
    /// Why it fails, if it does.
    pub problems: Vec<String>,
}

impl Done {
    /// Reads a report.
    pub fn new(row: Row, report: &Value) -> Self {
        let problems = problems(&row, report);
        let record = record(&row, report, problems.is_empty());
        Done { row, record, problems }
    }

    /// A row that gave no report.
    pub fn failed(row: Row, why: String) -> Self {
        Done { row, record: Value::Null, problems: vec![why] }
    }

    /// Acquisitions a second outside of the faults.
    pub fn rate(&self) -> Option<f64> {
        self.record["per_second_outside"].as_f64()
    }

    /// The line for the terminal.
    pub fn line(&self) -> String {
        let count = |field: &str| self.record["acquisitions"][field].as_u64().unwrap_or_default();
        let [attempted, acknowledged] = ["attempted", "acknowledged"].map(count);
        let [refused, unknown] = ["refused", "unknown"].map(count);
        let lost: Vec<String> = guards(&self.record).map(|(guard, lost)| format!("{lost} {guard}")).collect();
        let ratio = self.record["rate_ratio"].as_f64().map(|ratio| format!(", rate {ratio:.2}")).unwrap_or_default();
        let outcome = if self.problems.is_empty() { "ok    " } else { "FAILED" };
        let recovery = &self.record["recovery"];
        let recovery = match recovery["most_ms"].as_u64() {
            Some(most) => format!(", recovery {}..{most}/{} ms", recovery["least_ms"], recovery["bound_ms"]),
            None => String::new(),
        };
        format!(
            "{outcome} {:<28} {attempted} attempted, {acknowledged} acknowledged, {refused} refused, {unknown} unknown; lost {}; \
             stuck {}/{} ms{recovery}{ratio}",
            self.row.name(),
            lost.join(", "),
            self.record["longest_stuck_ms"],
            self.record["stuck_bound_ms"],
        )
    }
}

/// Guards and what their registers lost, in a fixed order.
pub fn guards(record: &Value) -> impl Iterator<Item = (&str, u64)> {
    let updates = record["updates"].as_array().map(Vec::as_slice).unwrap_or_default();
    updates.iter().filter_map(|update| Some((update["guard"].as_str()?, update["lost"].as_u64()?)))
}

fn problems(row: &Row, report: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if text(report, "schema").ok() != Some("lockkeeper.verify/1") {
        return vec!["what it printed is no report".to_string()];
    }
    if row.is_control() {
        return too_sound(report).into_iter().collect();
    }
    let failed = report["checks"].as_array().into_iter().flatten().filter(|check| check["outcome"] == "failed");
    problems.extend(failed.map(|check| {
        let word = |field: &str| check[field].as_str().unwrap_or("?").to_string();
        format!("{}: {}", word("check"), word("saw"))
    }));
    if problems.is_empty() && report["passed"] != true {
        problems.push("it did not pass".to_string());
    }
    let acknowledged = report["acquisitions"]["acknowledged"].as_u64().unwrap_or_default();
    if acknowledged < row.enough {
        problems.push(format!(
            "only {acknowledged} acquisitions were acknowledged; {} are enough to say something",
            row.enough
        ));
    }
    if row.nemesis != "none" && report["figures"]["faults"].as_u64().unwrap_or_default() == 0 {
        problems.push("nothing was hurt".to_string());
    }
    problems
}

/// Without any lock much must be lost, and the checks must say so: that is what the control is for.
fn too_sound(report: &Value) -> Option<String> {
    let bare = report["updates"].as_array().into_iter().flatten().find(|update| update["guard"] == "bare");
    let share = bare.and_then(|bare| Some(bare["lost"].as_f64()? / bare["acknowledged"].as_f64()?.max(1.0)));
    if share.is_none_or(|share| share < CONTROL_LOSES) {
        return Some(format!(
            "without any lock the share {share:?} of the updates is lost: the registers see too little"
        ));
    }
    let unseen = report["passed"] == true;
    unseen.then(|| "without any lock all checks passed: they see too little".to_string())
}

/// What is kept: figures and outcomes, no evidence.
fn record(row: &Row, report: &Value, passed: bool) -> Value {
    let figures = &report["figures"];
    let checks: Vec<Value> = report["checks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|check| json!({ "check": check["check"], "outcome": check["outcome"], "saw": check["saw"] }))
        .collect();
    json!({
        "target": row.target, "nemesis": row.nemesis, "work": row.work, "passed": passed,
        "seed": report["seed"], "commit": report["commit"], "lockkeeper": report["lockkeeper"],
        "server": report["server"], "began": report["began"], "ran_ms": figures["ran_ms"],
        "faults": figures["faults"], "promise": report["promise"], "acquisitions": report["acquisitions"],
        "updates": report["updates"], "checks": checks, "longest_stuck_ms": figures["longest_stuck_ms"],
        "stuck_bound_ms": figures["stuck_bound_ms"], "per_second_outside": figures["per_second_outside"],
        "recovery": figures["recovery"], "every_s": row.every_s, "workers": row.workers,
        "push_share": figures["push_share"], "fairness": figures["fairness"], "repeat": report["repeat"],
    })
}

/// Sets every row's rate against that of the row without faults of the same target and work.
pub fn compare(done: &mut [Done]) {
    let calm: Vec<(Row, f64)> = done
        .iter()
        .filter(|done| done.row.nemesis == "none")
        .filter_map(|done| Some((done.row.clone(), done.rate()?)))
        .collect();
    for one in done.iter_mut().filter(|done| done.row.nemesis != "none") {
        let alike =
            |row: &Row| (&row.target, &row.work, row.workers) == (&one.row.target, &one.row.work, one.row.workers);
        let same = calm.iter().find(|(row, _)| alike(row));
        if let (Some((_, calm)), Some(rate)) = (same, one.rate())
            && *calm > 0.0
        {
            one.record["rate_ratio"] = json!((rate / calm * 1_000.0).round() / 1_000.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::rows::smoke;

    fn report(acknowledged: u64, lost: u64, faults: u64) -> Value {
        json!({
            "schema": "lockkeeper.verify/1", "passed": true, "seed": "7", "promise": "holds",
            "acquisitions": { "attempted": acknowledged, "acknowledged": acknowledged, "refused": 0, "unknown": 0 },
            "updates": [{ "guard": "bare", "attempted": 100, "acknowledged": 100, "lost": lost, "lost_at_most": 0.5 }],
            "checks": [{ "check": "tokens-rise", "outcome": "passed", "saw": "many", "evidence": ["x"] }],
            "figures": { "faults": faults, "per_second_outside": 90.0, "longest_stuck_ms": 1, "stuck_bound_ms": 2 },
        })
    }

    fn row(nemesis: &str) -> Row {
        Row { nemesis: nemesis.to_string(), work: "mutex".to_string(), ..smoke().remove(0) }
    }

    #[test]
    fn too_little_is_no_proof() {
        assert!(Done::new(row("cut"), &report(5_000, 0, 3)).problems.is_empty());
        assert!(Done::new(row("cut"), &report(99, 0, 3)).problems[0].contains("only 99"));
        assert_eq!(Done::new(row("cut"), &report(5_000, 0, 0)).problems, ["nothing was hurt"]);
        assert!(Done::new(row("none"), &report(5_000, 0, 0)).problems.is_empty());
        assert_eq!(Done::new(row("none"), &json!({})).problems, ["what it printed is no report"]);
        let mut failed = report(5_000, 0, 3);
        failed["passed"] = json!(false);
        assert_eq!(Done::new(row("cut"), &failed).problems, ["it did not pass"]);
        failed["checks"][0]["outcome"] = json!("failed");
        assert_eq!(Done::new(row("cut"), &failed).problems, ["tokens-rise: many"]);
    }

    #[test]
    fn the_control_must_lose() {
        let control = smoke().remove(0);
        let mut lossy = report(0, 40, 0);
        assert!(Done::new(control.clone(), &lossy).problems[0].contains("all checks passed"));
        lossy["passed"] = json!(false);
        assert!(Done::new(control.clone(), &lossy).problems.is_empty());
        assert!(Done::new(control, &report(0, 1, 0)).problems[0].contains("registers see too little"));
    }

    #[test]
    fn rates_are_set_against_the_same_without_faults() {
        let mut calm = report(5_000, 0, 0);
        calm["figures"]["per_second_outside"] = json!(100.0);
        let mut done = [Done::new(row("cut"), &report(5_000, 0, 3)), Done::new(row("none"), &calm)];
        compare(&mut done);
        assert_eq!((&done[0].record["rate_ratio"], &done[1].record["rate_ratio"]), (&json!(0.9), &Value::Null));
        assert!(done[0].line().ends_with("lost 0 bare; stuck 1/2 ms, rate 0.90"), "{}", done[0].line());
        assert_eq!(done[0].record["checks"][0].get("evidence"), None, "what is kept is small");
    }
}
