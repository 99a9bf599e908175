//! What an etcd sends of cells, and what is written back.
//!
//! An input is a line with an operation (`take 5 0`), a line with the key's mod-revision and the revision that a change
//! gets (`7 8`), and the value as it stands there; without that line there is no key.

use lockkeeper_core::cell::{CellAction, CellOp, CellReply, CellState, CellValue};
use lockkeeper_core::{ErrorKind, Name};
use lockkeeper_etcd::fuzzing;
use lockkeeper_etcd::proto::KeyValue;
use prost::Message;

use crate::redis_cells::operation;

/// What is written is read again as it was meant, with the version that was told; what is refused changes nothing; marks
/// of a fence never fall; and what is not ours is not touched.
pub(crate) fn cells(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (op, revisions) = (text(), text());
    let (mod_revision, revision) = revisions.split_once(' ').unwrap_or_default();
    let kv = lines.next().map(|value| KeyValue {
        value: value.to_vec(),
        mod_revision: mod_revision.parse().unwrap_or_default(),
        ..KeyValue::default()
    });
    // A key as the protocol has it.
    let sent = KeyValue::decode(input).ok();
    let Some(op) = operation(&op) else { return sent.iter().for_each(|kv| drop(read(Some(kv)))) };
    // The cluster counts on from what it has told.
    let next = revision.parse::<i64>().unwrap_or_default();
    let next = next.max(kv.as_ref().map_or(1, |kv| kv.mod_revision.saturating_add(1)).max(1));
    let Some(before) = read(kv.as_ref()) else { return };
    let (change, reply) = match fuzzing::cell_changed(before.as_ref(), &op, next.unsigned_abs()) {
        Ok(changed) => changed,
        Err(error) => {
            let refused = matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Mismatch | ErrorKind::Unsupported);
            return assert!(refused && error.hint().is_some() == (error.kind() != ErrorKind::Invalid), "{error:?}");
        }
    };
    let after = match &change {
        None => before.clone(),
        Some(None) => None,
        Some(Some(value)) => {
            let kv = KeyValue { value: value.clone(), mod_revision: next, ..KeyValue::default() };
            read(Some(&kv)).unwrap_or_else(|| panic!("{op:?} on {before:?} wrote what is not ours: {value:?}"))
        }
    };
    meant(&op, before.as_ref(), after.as_ref(), &reply, change.is_some());
}

/// What stands there; nothing if it is not ours.
fn read(kv: Option<&KeyValue>) -> Option<Option<CellState>> {
    let name = Name::new("orders/42").expect("a name");
    match fuzzing::cell(&name, kv) {
        Ok(state) => {
            let value = kv.map_or(&b""[..], |kv| &kv.value);
            assert_eq!(state.is_some(), value.starts_with(b"lk1 "), "{value:?}");
            assert!(state.as_ref().is_none_or(|state| state.version > 0), "zero is the version of nothing: {state:?}");
            Some(state)
        }
        Err(error) => {
            assert!(error.kind() == ErrorKind::Foreign && error.hint().is_some(), "{error:?}");
            None
        }
    }
}

fn meant(op: &CellOp, before: Option<&CellState>, after: Option<&CellState>, reply: &CellReply, changed: bool) {
    let (was, is) = (before.map_or(0, |state| state.version), after.map_or(0, |state| state.version));
    let told = format!("{op:?} on {before:?} answers {reply:?} and leaves {after:?}");
    match reply {
        CellReply::Done { version } => assert_eq!(*version, is, "{told}"),
        CellReply::Number { value, version } => {
            assert_eq!(*version, is, "{told}");
            assert_eq!(after.map(|state| &state.value), Some(&CellValue::Number(*value)), "{told}");
        }
        CellReply::Entered { current } => {
            let now = after.and_then(|state| state.read(state.touched));
            assert!(current.as_ref() == now.as_ref() && after.is_some(), "{told}");
            assert!(before.is_none() || was == is, "entering is no change of the value: {told}");
        }
        _ => assert!(!changed, "{told}"),
    }
    if let Some((before, after)) = before.zip(after) {
        assert!(after.read_mark >= before.read_mark && after.write_mark >= before.write_mark, "{told}");
    }
    if let CellAction::Put { value, .. } | CellAction::FencedPut { value: Some(value), .. } = &op.action
        && matches!(reply, CellReply::Done { .. })
    {
        assert_eq!(after.map(|state| &state.value), Some(&CellValue::Bytes(value.clone())), "{told}");
    }
}
