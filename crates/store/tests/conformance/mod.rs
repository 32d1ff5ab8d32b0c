//! What every store must do, run by name against each: a backend gives only "a fresh store" and "open it".

pub mod fence;
pub mod history;
pub mod items;
pub mod journal;
pub mod ledger;
pub mod lives;
pub mod mailbox;
pub mod pruning;
pub mod samples;
pub mod settings;

use tidegate_core::ids::RunId;
use tidegate_store::Store;

/// A place for one store. Handles opened here, one after the other, see the same rows.
pub trait Backend {
    type Store: Store;
    /// Whether several servers may use it, and find each other by it.
    const SHARED: bool;
    fn fresh() -> Self;
    fn open(&self) -> Self::Store;
    /// Leaves a letter, as another program would.
    fn post(&self, id: RunId, content: &str);
}

/// Makes a test of each name for a backend.
macro_rules! conformance {
    ($backend:ident) => {
        conformance! { $backend:
            fence {
                a_term_is_higher_than_any_before,
                who_leads_may_extend,
                without_the_lead_nothing_is_taken,
                an_older_term_is_fenced_off,
                who_resigned_commits_no_more,
                an_old_resignation_is_not_the_leaders,
                entries_follow_each_other,
                the_same_entry_again_is_done,
                the_same_entry_is_done_even_for_the_deposed,
                what_is_not_taken_changes_nothing,
                the_last_entry_is_loaded,
            }
            lives {
                a_new_node_loads_as_it_was,
                a_root_that_came_due_waits_and_holds_nothing,
                a_step_past_the_limit_waits_and_holds,
                what_begins_has_started_once,
                a_wait_step_is_entered_and_not_started,
                a_grant_is_who_has_it,
                a_move_ends_the_grant_and_keeps_the_last_error,
                a_new_attempt_was_told_nothing,
                only_the_live_lease_is_renewed,
                stops_ranks_and_pauses_are_kept,
                a_write_about_nothing_changes_nothing,
            }
            items {
                items_wait_in_index_order,
                an_item_lives_like_any_task,
                an_item_with_a_flow_inside_runs_without_a_worker,
                ranges_end_alike,
                loops_are_counted,
                items_of_a_loop_that_ended_are_history,
            }
            history {
                small_payloads_come_along_and_large_ones_are_asked_for,
                payloads_are_bytes,
                an_ended_task_is_history,
                steps_of_open_runs_stay,
                a_step_may_come_with_its_end,
                ended_items_are_read_in_slices,
                everything_is_there_after_a_restart,
                what_was_submitted_is_listed_newest_first,
                a_run_is_seen_with_everything_below_it,
                the_outline_of_a_run_has_its_own_steps_only,
                items_are_counted_by_their_states,
            }
            journal {
                entries_are_read_in_order,
                old_entries_are_kept_for_a_while,
                an_entry_is_reached_once_it_is_there,
                the_last_digest_is_loaded,
                what_was_accepted_is_found_by_id_and_by_key,
                what_was_accepted_is_found_by_its_parts,
                who_leads_is_known,
            }
            mailbox {
                letters_come_in_the_order_of_their_numbers,
                large_letters_come_a_few_at_a_time,
                an_entry_takes_letters_out,
                an_entry_that_is_not_taken_leaves_the_letters,
                what_cannot_be_read_is_set_aside,
            }
            pruning {
                the_oldest_ends_go_first,
                what_succeeded_and_what_did_not_are_kept_apart,
                what_succeeded_goes_first,
                keys_stay_for_a_day,
                a_run_goes_with_everything_below_it,
                a_large_run_goes_little_by_little,
                a_run_stays_while_an_open_one_reuses_its_steps,
            }
            settings {
                limits_are_set_and_taken_back,
                limits_are_told_apart_by_more_than_their_name,
                paces_keep_what_was_taken,
                workers_join_change_and_go,
                tokens_are_made_and_revoked,
                changes_are_listed_newest_first_and_forgotten_in_the_end,
                definitions_keep_their_order,
            }
        }
    };
    ($backend:ident: $($area:ident { $($name:ident,)* })*) => {
        $(mod $area {
            $(#[test]
            fn $name() {
                crate::conformance::$area::$name::<super::$backend>();
            })*
        })*
    };
}
pub(crate) use conformance;
