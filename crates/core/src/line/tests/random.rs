//! Long random worlds: against an oracle that remembers everything, and under a clock that goes back.
//!
//! What the exhaustive test cannot see is history: that no number is told twice, and that of two holds that
//! could not share the later has the greater token.

use proptest::prelude::*;

use crate::claim::{LockKind, Patience, Token};
use crate::line::Line;
use crate::store::{ClaimState, Standing};

use super::oracle::{Answer, Oracle};
use super::world::{World, inside};
use super::{Ask, Op, at, id, ticks};

fn kinds() -> impl Strategy<Value = LockKind> {
    prop_oneof![8 => Just(LockKind::Semaphore), 1 => Just(LockKind::ReadWrite)]
}

/// Questions that mostly agree on a capacity of three.
fn asks() -> impl Strategy<Value = Ask> {
    let capacity = prop_oneof![12 => Just(3_u32), 1 => 1..=4_u32];
    let patience = prop_oneof![3 => Just(Patience::Queue), 1 => Just(Patience::Now)];
    (1..=5_u8, kinds(), 1..=3_u32, capacity, (1..=5_u64, 0..=2_u64), patience, 0..=1_u8).prop_map(
        |(who, kind, weight, capacity, (lease, delay), patience, note)| {
            let weight = weight.min(capacity);
            Ask { who, kind, weight, capacity, lease, delay, patience, note }
        },
    )
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => asks().prop_map(Op::Enter),
        2 => (1..=5_u8, 0..=6_u64).prop_map(|(who, lease)| Op::Renew { who, lease }),
        2 => (1..=5_u8, prop_oneof![2 => Just(0), 1 => 1..=4_u64]).prop_map(|(who, keep)| Op::Leave { who, keep }),
        2 => (1..=3_u64).prop_map(|ticks| Op::Pass { ticks }),
    ]
}

/// Who was told to hold: the token, the weight and capacity it was told with, and by which claim.
#[derive(Debug, Default)]
struct History {
    told: Vec<(Token, u32, u32, u8)>,
}

impl History {
    fn note(&mut self, ask: Ask, token: Token) {
        if let Some(first) = self.told.iter().find(|told| told.0 == token) {
            return assert_eq!(first.3, ask.who, "a token belongs to one claim: {token}");
        }
        for (earlier, weight, capacity, who) in &self.told {
            let shares = *capacity == ask.capacity && weight + ask.weight <= ask.capacity;
            assert!(shares || token > *earlier, "{who} held {earlier}, then {} held {token}: {self:?}", ask.who);
        }
        self.told.push((token, ask.weight, ask.capacity, ask.who));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_worlds_go_as_the_oracle_says(calls in prop::collection::vec(ops(), 1..120)) {
        let (mut world, mut oracle, mut history) = (World::default(), Oracle::default(), History::default());
        for op in calls {
            let answer = world.call(op, &mut oracle);
            if let (Op::Enter(ask), Answer::Standing(Standing::Held { token, .. })) = (op, answer) {
                history.note(ask, token.unwrap());
            }
        }
    }

    #[test]
    fn a_clock_that_goes_back_lets_nobody_in_twice(
        calls in prop::collection::vec((ops(), 0..12_u64), 1..80),
    ) {
        let mut line = Line::default();
        let mut history = History::default();
        for (number, (op, now)) in calls.into_iter().enumerate() {
            let before: Vec<_> = inside(&line.entries).into_iter().cloned().collect();
            match op {
                Op::Enter(ask) => {
                    let answer = line.enter(&ask.claim(), at(now), number as u64 + 1).map(|step| step.answer);
                    if let Ok(Standing::Held { token, .. }) = answer {
                        history.note(ask, token.unwrap());
                    }
                }
                Op::Renew { who, lease } => { line.renew(id(who), ticks(lease), at(now)); }
                Op::Leave { who, keep } => { line.leave(id(who), ticks(keep).into(), at(now)); }
                Op::Pass { .. } => {}
            }
            let held = inside(&line.entries);
            prop_assert!(held.iter().map(|entry| entry.weight).sum::<u32>() <= 4);
            for old in before {
                let is_there = line.get(old.id).is_some_and(|new| new.order == old.order);
                prop_assert!(!is_there || held.iter().any(|entry| entry.order == old.order), "in stays in");
            }
        }
    }

    #[test]
    fn people_see_the_line_as_it_stands(calls in prop::collection::vec(ops(), 1..60)) {
        let name = crate::name::Name::new("a").unwrap();
        let mut world = World::default();
        let mut oracle = Oracle::default();
        for op in calls {
            world.call(op, &mut oracle);
            let seen = world.line.view(&name, at(world.now));
            let standing = oracle.standing(world.now);
            prop_assert_eq!(seen.is_none(), standing.is_empty());
            let claims = seen.map(|view| view.claims).unwrap_or_default();
            prop_assert_eq!(claims.len(), standing.len());
            for (claim, stood) in claims.iter().zip(&standing) {
                let is_in = world.line.is_in(claim.id, at(world.now));
                let state = match (stood.has_left, is_in) {
                    (true, _) => ClaimState::Leaving,
                    (false, true) => ClaimState::Holding,
                    (false, false) => ClaimState::Waiting,
                };
                prop_assert_eq!((claim.id, claim.state, claim.weight), (id(stood.who), state, stood.weight));
                prop_assert_eq!(claim.token, Token::of_number(stood.order).filter(|_| is_in));
                prop_assert_eq!(claim.lease_left, ticks(stood.until - world.now));
                prop_assert_eq!(&claim.note, &vec![stood.note]);
            }
        }
    }
}
