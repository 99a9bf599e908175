//! The laws every store keeps. The rig that starts real servers for them is passed on as [`rig`].
//!
//! A law is one small async function with a sentence for a name. It is gated by what the store promises: a promise
//! that is missing is a skip that is printed with its reason, and a suite in which no law ran has failed. A store
//! joins with three lines:
//!
//! ```
//! use lockkeeper_conformance::{World, suite};
//! # use lockkeeper_core::{store::SharedStore, stores::Memory};
//! # async fn my_store() -> SharedStore { Memory::shared() }
//!
//! suite!(my_store, World::new("my_store", || async { my_store().await }));
//! # fn main() {}
//! ```
//!
//! Surprise: laws of one store run concurrently on one store, each under names of its own.

pub mod certificates;
mod exclusive;
pub mod laws;
pub mod meddle;
mod record;
pub mod secrets;
mod world;

pub use exclusive::{Exclusive, Lock};
pub use lockkeeper_rig as rig;
pub use world::{Outcome, Skip, World, judge};

/// Runs every law on the world that the expression makes, as one test each.
#[macro_export]
macro_rules! suite {
    ($store:ident, $world:expr) => {
        mod $store {
            use super::*;

            $crate::exclusive_laws! { $world }
            $crate::tests! { $world;
                sharing: readers_share_and_a_writer_waits_its_turn, a_release_wakes_every_claim_that_came_in,
                    a_downgrade_keeps_its_token, a_claim_cannot_grow, permits_fit_the_capacity;
                cells: a_put_wants_the_version_it_read, a_version_is_never_used_again,
                    a_counter_does_not_oversell, a_number_is_raised_but_not_lowered,
                    a_window_admits_its_limit, a_smooth_limit_refills, a_fence_keeps_a_stale_holder_out,
                    a_cell_is_forgotten_when_its_time_is_over, cells_do_not_mix_their_kinds,
                    random_calls_agree_with_the_model;
                rwlock: a_writer_is_alone, a_waiting_writer_is_not_overtaken, a_downgrade_lets_no_writer_in,
                    a_reader_does_not_become_a_writer;
                semaphore: never_more_than_its_permits, permits_of_a_crashed_holder_return, permits_have_limits;
                multi: all_or_nothing, opposite_orders_do_not_deadlock, one_that_holds_waits_where_it_is_seen,
                    one_lost_is_all_lost;
                reentry: an_owner_comes_in_again_without_asking, a_scope_is_an_owner, another_owner_waits,
                    the_last_one_out_releases;
                election: one_leads_and_the_others_see_it, a_proclamation_is_seen, a_lost_leader_is_not_re_elected_silently;
                once: a_key_is_run_once, followers_wait_or_skip, a_failed_run_is_not_recorded,
                    a_dead_run_is_taken_again_or_never;
                optimistic: an_update_loses_nothing, a_fenced_update_by_a_late_holder_is_refused;
                local: a_hold_is_handed_on_without_a_call, another_process_is_not_kept_waiting,
                    a_lost_hold_lets_the_next_task_in, a_dropped_local_waiter_takes_nothing,
                    other_terms_stand_in_the_store;
                limiter: a_limit_is_shared, waiting_for_a_limit_is_bounded;
                deadlock: a_circle_is_named, a_line_is_no_circle;
                blocking: threads_never_hold_together, a_thread_waits_as_long_as_it_asked,
                    a_release_by_a_thread_says_what_happened, a_hold_dropped_anywhere_is_released,
                    a_thread_is_told_of_its_loss, a_sleeping_thread_keeps_its_hold,
                    a_blocking_call_in_async_code_is_refused, a_closed_blocking_keeper_has_released,
                    every_lock_serves_threads, a_thread_can_lead, values_serve_threads;
            }
        }
    };
}

/// Runs the laws of the mutex on a lock that has to behave like one.
#[macro_export]
macro_rules! exclusive_suite {
    ($store:ident, $world:expr) => {
        mod $store {
            use super::*;

            $crate::exclusive_laws! { $world }
        }
    };
}

/// The laws of the mutex, and of everything that is one.
#[doc(hidden)]
#[macro_export]
macro_rules! exclusive_laws {
    ($world:expr) => {
        $crate::tests! { $world;
            line: enter_is_idempotent_by_claim_id, claims_are_served_in_order,
                an_impatient_claim_leaves_nothing_behind, asking_alone_makes_no_claim, a_leave_compares_the_claim,
                leaving_twice_is_an_answer, a_kept_name_stays_taken, a_kept_name_is_not_free_early,
                a_note_is_shown_and_can_be_changed,
                names_are_compared_as_bytes, a_name_is_not_blocked_by_a_longer_one,
                inspect_pages_by_name, kind_and_capacity_must_agree;
            leases: renewal_does_not_resurrect, renewal_never_shortens, renewal_never_creates,
                an_expired_claim_frees_the_line, a_dead_waiter_does_not_stall_the_line,
                a_lock_delay_outlasts_the_lease;
            holding: two_never_hold_at_once, tokens_rise_between_conflicting_holds,
                a_held_lock_is_not_taken_twice, a_hold_outlives_its_lease, a_dropped_hold_is_released,
                a_release_says_what_happened, a_spinning_lock_gets_in, a_fair_lock_needs_order,
                bad_input_changes_nothing, closing_a_keeper_releases_its_holds,
                at_least_keeps_the_name_taken, at_least_counts_from_the_taking, work_is_cancelled_when_the_hold_is_lost;
            waiting: a_wait_is_bounded, a_release_wakes_the_next, a_cancelled_wait_leaves_the_line,
                a_dropped_lock_future_leaves_nothing, an_observer_sees_a_change, a_missed_wake_up_costs_one_interval;
            losing: lost_fires_before_anyone_else_can_hold, a_clock_jump_loses_the_hold_at_once,
                a_broken_hold_is_told, at_most_is_not_renewed, a_failed_renewal_is_tried_again,
                a_late_grant_is_not_a_hold, a_blocked_runtime_keeps_its_holds;
            replies: a_lost_reply_leaves_no_ghost, a_retried_leave_is_never_a_no,
                a_retry_delivers_one_token, a_counter_is_not_repeated_blindly;
            trips: free_enter_is_one_call, all_holds_are_renewed_in_one_call;
            processes: a_killed_holder_frees_the_lock, a_stopped_holder_finds_out, a_stopped_holder_is_fenced_off,
                processes_never_hold_together;
        }
    };
}

/// One test per law.
#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($world:expr; $($topic:ident: $($law:ident),+;)+) => {
        $(
            mod $topic {
                use super::*;
                $(
                    #[test]
                    fn $law() {
                        $crate::judge(stringify!($topic), stringify!($law), $world, |world| {
                            Box::pin($crate::laws::$topic::$law(world))
                        });
                    }
                )+
            }
        )+
    };
}
