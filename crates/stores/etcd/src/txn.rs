//! Transactions, put together from their parts, and what they answer taken apart.

use lockkeeper_core::{Name, Result};

use crate::keys;
use crate::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, Do, Done, KeyValue, Operand, PutRequest, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse,
};
use crate::trouble;

/// The key was made at this revision; zero if it is not there.
pub(crate) fn created(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Create, Operand::Create(revision))
}

/// The key was last changed at this revision; zero if it is not there.
pub(crate) fn changed(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, Operand::Mod(revision))
}

/// No key begins with this.
pub(crate) fn nothing_under(prefix: &[u8]) -> Compare {
    Compare { range_end: keys::end_of(prefix), ..created(prefix, 0) }
}

fn compare(key: &[u8], target: CompareTarget, operand: Operand) -> Compare {
    let (result, target) = (CompareResult::Equal as i32, target as i32);
    Compare { result, target, key: key.to_vec(), operand: Some(operand), range_end: Vec::new() }
}

/// All keys of a lock.
pub(crate) fn line(lock: &Name) -> RangeRequest {
    let key = keys::line(lock);
    RangeRequest { range_end: keys::end_of(&key), key, ..RangeRequest::default() }
}

/// One key.
pub(crate) fn get(key: &[u8]) -> RangeRequest {
    RangeRequest { key: key.to_vec(), ..RangeRequest::default() }
}

pub(crate) fn put(key: &[u8], value: Vec<u8>, lease: i64) -> Do {
    Do::Put(PutRequest { key: key.to_vec(), value, lease, ..PutRequest::default() })
}

/// Sets the value and leaves the lease as it is.
pub(crate) fn put_value(key: &[u8], value: Vec<u8>) -> Do {
    Do::Put(PutRequest { key: key.to_vec(), value, ignore_lease: true, ..PutRequest::default() })
}

pub(crate) fn delete(key: &[u8]) -> Do {
    Do::Delete(DeleteRangeRequest { key: key.to_vec(), range_end: Vec::new() })
}

/// If all of `compare` is so does `then`, else `otherwise`.
pub(crate) fn txn(compare: Vec<Compare>, then: Vec<Do>, otherwise: Vec<Do>) -> TxnRequest {
    let steps = |all: Vec<Do>| all.into_iter().map(Into::into).collect();
    TxnRequest { compare, success: steps(then), failure: steps(otherwise) }
}

/// What a transaction's reading steps read, in their order.
pub(crate) fn ranges(response: TxnResponse) -> impl Iterator<Item = RangeResponse> {
    response.responses.into_iter().filter_map(|step| match step.response {
        Some(Done::Range(range)) => Some(range),
        _ => None,
    })
}

/// The keys that the last reading step read.
pub(crate) fn last_range(response: TxnResponse) -> Result<Vec<KeyValue>> {
    match ranges(response).last() {
        Some(range) => Ok(range.kvs),
        None => Err(trouble::garbled("a transaction that read nothing")),
    }
}
