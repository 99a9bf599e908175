//! Fences: two marks, entered before the read, and what is lost without the entering.

use proptest::prelude::*;

use super::*;

/// A step of a holder behind a fence.
#[derive(Debug, Clone, Copy)]
enum Move {
    Read,
    Write,
    Put,
}

/// The two marks, as the design tells of them.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    read: u64,
    write: u64,
}

impl Marks {
    /// The mark that is in the way, if one is.
    fn pass(&mut self, token: u64, step: Move) -> Option<u64> {
        let mark = if let Move::Read = step { self.write } else { self.read.max(self.write) };
        if token < mark {
            return Some(mark);
        }
        match step {
            Move::Read => self.read = self.read.max(token),
            Move::Write | Move::Put => self.write = self.write.max(token),
        }
        None
    }
}

fn action(token: u64, step: Move) -> CellAction {
    match step {
        Move::Read => enter(token, true),
        Move::Write => enter(token, false),
        Move::Put => fenced(token, Some(&token.to_string())),
    }
}

#[test]
fn every_short_history_goes_by_the_two_marks() {
    let steps: Vec<(u64, Move)> =
        (1..=3).flat_map(|token| [Move::Read, Move::Write, Move::Put].map(|step| (token, step))).collect();
    let mut worlds = vec![(Bench::default(), Marks::default(), None::<String>)];
    for _ in 0..4 {
        let mut next = vec![];
        for (bench, marks, value) in &worlds {
            for (token, step) in &steps {
                let (mut bench, mut marks, mut value) = (bench.clone(), *marks, value.clone());
                let reply = bench.get(action(*token, *step));
                match (marks.pass(*token, *step), step) {
                    (Some(seen), _) => assert_eq!(reply, CellReply::Stale { seen: Token::from_u64(seen) }),
                    (None, Move::Put) => value = Some(token.to_string()),
                    (None, _) => assert_eq!(reply, CellReply::Entered { current: bench.read() }),
                }
                assert_eq!(bench.text(), value);
                let state = bench.state.as_ref().unwrap();
                assert_eq!((state.read_mark, state.write_mark), (marks.read, marks.write));
                next.push((bench, marks, value));
            }
        }
        worlds = next;
    }
    assert_eq!(worlds.len(), 9_usize.pow(4));
}

#[test]
fn entering_shows_what_is_there_and_does_not_change_its_version() {
    let mut bench = Bench::default();
    bench.get(put("a", None));
    let seen = bench.read();
    assert_eq!(bench.get(enter(5, true)), CellReply::Entered { current: seen.clone() });
    assert_eq!(bench.get(enter(5, false)), CellReply::Entered { current: seen.clone() }, "equal passes");
    assert_eq!(bench.get(enter(5, false)), CellReply::Entered { current: seen.clone() }, "and again");
    let reply = bench.kept(enter(6, false), Duration::ZERO).unwrap();
    assert_eq!(reply, CellReply::Entered { current: seen }, "however short it is kept");
}

#[test]
fn readers_share_and_a_writer_behind_them_is_stale() {
    let mut bench = Bench::default();
    bench.get(fenced(2, Some("a")));
    assert!(matches!(bench.get(enter(5, true)), CellReply::Entered { .. }));
    assert!(matches!(bench.get(enter(3, true)), CellReply::Entered { .. }), "a reader is not in a reader's way");
    assert_eq!(bench.get(enter(4, false)), CellReply::Stale { seen: Token::from_u64(5) });
    assert_eq!(bench.get(fenced(4, None)), CellReply::Stale { seen: Token::from_u64(5) });
    assert!(matches!(bench.get(enter(6, false)), CellReply::Entered { .. }));
    assert_eq!(bench.get(enter(5, true)), CellReply::Stale { seen: Token::from_u64(6) });
    assert_eq!(bench.text().as_deref(), Some("a"));
}

#[test]
fn a_cleared_cell_keeps_its_marks() {
    let mut bench = Bench::default();
    bench.get(fenced(5, Some("a")));
    bench.get(fenced(5, None));
    assert_eq!(bench.read(), None);
    assert_eq!(bench.get(fenced(4, Some("b"))), CellReply::Stale { seen: Token::from_u64(5) });
    assert_eq!(bench.get(enter(5, false)), CellReply::Entered { current: None });
}

#[test]
fn a_fenced_cell_refuses_writes_without_a_token() {
    let per = Duration::from_secs(1);
    let unfenced = [
        put("y", None),
        put("y", Some(0)),
        put("y", Some(1)),
        CellAction::Remove { if_version: None },
        CellAction::Remove { if_version: Some(1) },
        CellAction::Add { by: 1 },
        CellAction::Take { by: 1, floor: -9 },
        CellAction::Max { at_least: 1 },
        CellAction::Window { take: 1, limit: 1, per },
        CellAction::Gcra { take: 1, limit: 1, per },
    ];
    for maker in [enter(1, true), enter(1, false), fenced(1, Some("x")), fenced(1, None)] {
        let mut bench = Bench::default();
        bench.get(maker);
        let before = bench.state.clone();
        for action in &unfenced {
            assert_eq!(bench.refusal(action.clone()), ErrorKind::Mismatch, "{action:?}");
            assert_eq!(bench.state, before);
        }
    }
}

#[test]
fn no_token_is_zero_since_a_mark_of_zero_is_no_mark() {
    for action in [enter(0, true), enter(0, false), fenced(0, Some("x")), fenced(0, None)] {
        let mut bench = Bench::default();
        bench.get(put("a", None));
        assert_eq!(bench.refusal(action), ErrorKind::Invalid);
        assert_eq!(bench.text().as_deref(), Some("a"));
    }
}

/// A holder that reads a number, thinks, and writes one more.
struct Holder {
    token: u64,
    read: Option<u64>,
}

impl Holder {
    fn read(&mut self, bench: &mut Bench, enters: bool) {
        let current = match enters {
            false => bench.read(),
            true => match bench.get(enter(self.token, false)) {
                CellReply::Entered { current } => current,
                _ => return self.read = None,
            },
        };
        let count = |read: Versioned| String::from_utf8(read.value).unwrap().parse::<u64>().unwrap();
        self.read = Some(current.map_or(0, count));
    }

    /// Was the write acknowledged?
    fn write(&mut self, bench: &mut Bench) -> bool {
        let Some(read) = self.read.take() else { return false };
        matches!(bench.get(fenced(self.token, Some(&(read + 1).to_string()))), CellReply::Done { .. })
    }
}

/// The first holder reads and is paused past its lease; the second reads; the first wakes and writes, then the second.
fn paused_holder(enters: bool) -> (u64, u64) {
    let mut bench = Bench::default();
    let (mut paused, mut next) = (Holder { token: 1, read: None }, Holder { token: 2, read: None });
    paused.read(&mut bench, enters);
    next.read(&mut bench, enters);
    let acknowledged = u64::from(paused.write(&mut bench)) + u64::from(next.write(&mut bench));
    (acknowledged, bench.text().unwrap().parse().unwrap())
}

#[test]
fn a_paused_holders_write_is_refused_once_the_next_has_entered() {
    assert_eq!(paused_holder(true), (1, 1));
}

#[test]
fn fencing_writes_alone_would_have_lost_an_update() {
    let (acknowledged, counted) = paused_holder(false);
    assert_eq!((acknowledged, counted), (2, 1), "both writes pass, and one of them is gone");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Holders read and write in any order, as if all were paused at will: nothing acknowledged is lost.
    #[test]
    fn who_enters_before_reading_loses_nothing(turns in prop::collection::vec((0..4_usize, any::<bool>()), 1..80)) {
        let mut bench = Bench::default();
        let mut holders: Vec<Holder> = (1..=4).map(|token| Holder { token, read: None }).collect();
        let mut acknowledged = 0;
        for (who, reads) in turns {
            if reads {
                holders[who].read(&mut bench, true);
            } else {
                acknowledged += u64::from(holders[who].write(&mut bench));
            }
        }
        prop_assert_eq!(bench.text().map_or(0, |text| text.parse().unwrap()), acknowledged);
    }
}
