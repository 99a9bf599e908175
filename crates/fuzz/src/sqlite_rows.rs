//! Rows of a SQLite file that others may have written.
//!
//! An input is one value to a line: `i 5`, `r 1.5`, `t text`, `x 00ff`, or anything else for nothing. A line `-` ends a row.

use std::cell::OnceCell;
use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::line::Line;
use lockkeeper_core::store::{Keep, Renewal, Standing};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Claim, ClaimId, ErrorKind, Name, Patience, Token};
use lockkeeper_sqlite::fuzzing::Mirror;
use rusqlite::types::Value;

thread_local! {
    static MIRROR: OnceCell<Mirror> = const { OnceCell::new() };
}

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

fn rows(input: &[u8]) -> Vec<Vec<Value>> {
    let text = String::from_utf8_lossy(input);
    let mut rows = vec![Vec::new()];
    for line in text.lines().take(200) {
        let (sort, rest) = line.split_at_checked(2).unwrap_or((line, ""));
        let value = match sort {
            "-" => {
                rows.push(Vec::new());
                continue;
            }
            "i " => rest.parse().map_or(Value::Null, Value::Integer),
            "r " => rest.parse().map_or(Value::Null, Value::Real),
            "t " => Value::Text(rest.to_owned()),
            "x " => Value::Blob(bytes(rest)),
            _ => Value::Null,
        };
        rows.last_mut().expect("there is one").push(value);
    }
    rows
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).filter_map(|d| u8::try_from(d).ok()).collect();
    digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

fn with_mirror<T>(work: impl FnOnce(&Mirror) -> T) -> T {
    MIRROR.with(|mirror| work(mirror.get_or_init(|| Mirror::new().expect("a database in memory"))))
}

/// A claim that is read keeps the rules of claims, and a line of such claims can be entered, renewed, left and shown.
pub(crate) fn claims(input: &[u8]) {
    let mut entries = Vec::new();
    for row in rows(input) {
        match with_mirror(|mirror| mirror.claim(&row)) {
            Ok((entry, _)) => {
                assert!(entry.weight > 0 && entry.weight <= entry.capacity, "{entry:?}");
                assert!(Token::of_number(entry.order).is_some(), "{entry:?}");
                assert!(!entry.owner.to_string().contains(char::is_control), "{entry:?}");
                entries.push(entry);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Foreign, "{error:?}");
                assert!(!error.to_string().contains(char::is_control), "{error:?}");
            }
        }
    }
    let Some(first) = entries.first().cloned() else { return };
    let order = entries.iter().map(|entry| entry.order).max().unwrap_or_default() + 1;
    let mut line = Line::of(entries);
    let name = Name::new("orders/42").expect("a name");
    if let Some(view) = line.view(&name, NOW) {
        assert!(!view.claims.is_empty());
    }
    let claim = Claim {
        id: ClaimId::from_bytes([0x99; 16]),
        owner: first.owner.clone(),
        kind: first.kind,
        weight: first.weight,
        capacity: first.capacity,
        lease: Duration::from_secs(30),
        delay: Duration::ZERO,
        fair: true,
        patience: Patience::Queue,
        note: Vec::new(),
    };
    if let Ok(step) = line.enter(&claim, NOW, order)
        && let Standing::Held { .. } = step.answer
    {
        assert!(line.is_in(claim.id, NOW));
    }
    let renewed = line.renew(first.id, Duration::from_secs(30), NOW);
    if let Renewal::Renewed { lease } = renewed.answer {
        assert!(lease >= Duration::from_secs(30), "{lease:?}");
    }
    line.leave(first.id, Keep::Lease, NOW);
    line.leave(claim.id, Keep::Nothing, NOW);
    assert!(line.get(claim.id).is_none());
}

/// A cell that is read can be changed by every operation without losing its place in time.
pub(crate) fn cells(input: &[u8]) {
    let token = Token::from_u64(8_841);
    let per = Duration::from_secs(60);
    let actions = [
        CellAction::Put { value: b"v".to_vec(), if_version: None },
        CellAction::Remove { if_version: Some(5) },
        CellAction::Add { by: i64::MAX },
        CellAction::Add { by: -1 },
        CellAction::Take { by: u64::MAX, floor: i64::MIN },
        CellAction::Max { at_least: 7 },
        CellAction::Window { take: 1, limit: 10, per },
        CellAction::Gcra { take: 1, limit: 10, per },
        CellAction::FenceEnter { token, shared: true },
        CellAction::FencedPut { token, value: None },
    ];
    for row in rows(input) {
        let state = match with_mirror(|mirror| mirror.cell(&row)) {
            Ok(state) => state,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Foreign, "{error:?}");
                continue;
            }
        };
        let _ = state.read(NOW);
        for action in &actions {
            let op = CellOp { action: action.clone(), keep: Some(per) };
            match op.apply(Some(&state), NOW, state.version.saturating_add(1)) {
                Ok((Some(after), _)) => assert!(after.version >= state.version, "{op:?} on {state:?}"),
                Ok((None, _)) => {}
                Err(error) => {
                    let refused = matches!(error.kind(), ErrorKind::Mismatch | ErrorKind::Invalid);
                    assert!(refused, "{op:?} on {state:?}: {error:?}");
                }
            }
        }
    }
}
