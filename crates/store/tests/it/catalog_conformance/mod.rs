//! Requirements for every catalog, in any database. The test file of a database has a function that opens a
//! fresh store, or returns `None` where there is no such database, and calls `catalog_conformance!(open);`.

pub mod calls;
pub mod conversations;
pub mod documents;
pub mod files;
pub mod filing;
pub mod hostile;
pub mod keys;
pub mod owners;
pub mod people;
pub mod raw;
pub mod removal;
pub mod samples;
pub mod search;
pub mod shares;
pub mod turns;

use std::any::Any;
use std::sync::Arc;
use throughline_store::*;
use throughline_store::{Catalog, Durability, Log, LogRecord};

/// A store with nothing in it.
pub struct Opened {
    pub catalog: Arc<dyn Catalog>,
    pub log: Arc<dyn Log>,
    /// Guards that must live as long.
    pub _kept: Box<dyn Any + Send + Sync>,
}

/// One test for each check, each with a fresh store of the default limits, or smaller ones where limits are checked.
#[macro_export]
macro_rules! catalog_conformance {
    ($open:ident) => {
        $crate::catalog_conformance!(@ $open:
            turns::turn_begins_runs_and_ends_once,
            turns::only_a_finished_turn_is_rated_by_its_user,
            turns::repeated_idempotency_key_creates_one_turn,
            turns::a_conversation_runs_one_turn_at_a_time,
            turns::edits_regenerations_and_forks_are_branches,
            turns::turn_requires_an_existing_conversation_and_parent,
            turns::turn_and_conversation_ids_are_unique,
            turns::turn_list_is_filtered_and_paged,
            turns::turn_list_includes_usage_and_calls,
            turns::open_turns_of_all_users_are_listed,
            conversations::title_is_given_or_taken_from_the_first_input,
            conversations::conversations_are_listed_newest_first_in_pages,
            conversations::leaf_can_be_set_to_another_branch,
            conversations::exported_conversation_is_imported_unchanged,
            conversations::history_without_events_can_be_imported,
            conversations::inconsistent_import_is_refused,
            filing::conversations_are_listed_by_folder_tag_and_archive,
            filing::pinned_conversations_come_first,
            filing::folder_and_tag_counts_exclude_archived_conversations,
            filing::conversation_search_filters_by_folder_tag_and_archive,
            filing::trashed_conversation_is_absent_until_restored,
            filing::temporary_conversation_is_unlisted_and_expires,
            filing::pending_approval_is_shown_in_the_list,
            filing::conversation_usage_sums_all_branches,
            shares::share_is_found_by_id_and_deleted_with_its_conversation,
            search::search_finds_titles_inputs_and_answers_in_any_script,
            search::search_ignores_letter_case_in_every_script,
            search::search_wildcards_and_operators_are_literal,
            search::search_hits_are_paged_newest_first,
            search::search_pages_hold_only_hits_of_their_user,
            search::foreign_search_cursor_reveals_no_hits_of_other_users,
            search::renamed_and_deleted_texts_are_not_found,
            removal::deleting_a_conversation_removes_its_data,
            removal::conversation_with_a_running_turn_is_not_deleted,
            removal::deleting_a_turn_removes_its_descendants,
            removal::expired_data_is_deleted,
            calls::calls_are_stored_replaced_and_found,
            calls::call_filters_and_counts_agree,
            samples::samples_are_the_newest_in_range_and_flag_more,
            documents::document_write_checks_its_precondition,
            documents::remembered_answer_replaces_one_about_the_same,
            keys::keys_are_found_touched_and_revoked,
            people::people_are_added_changed_and_listed,
            people::key_limits_are_set_and_keys_revoked_together,
            people::turn_and_token_usage_is_counted_and_limited,
            people::deleting_the_data_of_a_person_leaves_other_people,
            files::files_are_listed_with_sanitized_names,
            files::used_file_with_equal_content_is_reused,
            files::blob_is_deleted_with_its_last_file,
            raw::raw_pieces_form_one_answer,
            owners::other_user_can_neither_read_nor_change_data,
            owners::ownership_matrix_covers_every_method,
            hostile::hostile_texts_are_stored_as_data,
            hostile::invalid_ids_are_refused_or_absent,
        );
        $crate::catalog_conformance!(@ $open, $crate::catalog_conformance::small() =>
            turns::turns_per_conversation_are_limited,
            filing::folder_and_tag_names_are_limited,
            shares::share_count_is_limited,
            documents::document_count_and_size_are_limited,
            keys::key_count_is_limited,
            people::people_count_is_limited,
            files::user_file_bytes_are_limited,
            raw::raw_bytes_beyond_the_limit_are_truncated,
            search::search_text_length_is_limited,
        );
    };
    (@ $open:ident: $($subject:ident::$check:ident,)*) => {
        $crate::catalog_conformance!(@ $open, $crate::catalog_conformance::patient() => $($subject::$check,)*);
    };
    (@ $open:ident, $limits:expr => $($subject:ident::$check:ident,)*) => { $(
        #[tokio::test]
        async fn $check() {
            if let Some(store) = $open($limits).await {
                $crate::catalog_conformance::$subject::$check(&store).await;
            }
        }
    )* };
}

/// Limits that are soon reached.
pub fn small() -> CatalogLimits {
    CatalogLimits {
        title_chars_max: 20,
        folder_chars_max: 6,
        tag_chars_max: 4,
        tags_max: 2,
        shares_max: 2,
        conversation_turns_max: 2,
        document_bytes_max: 20,
        documents_max: 2,
        remembered_max: 2,
        keys_max: 2,
        people_max: 2,
        user_files_bytes_max: 100,
        raw_attempt_bytes_max: 10,
        raw_turn_bytes_max: 15,
        search_chars_max: 5,
        ..patient()
    }
}

/// The limits of every store, but a search on a busy machine may take its time.
pub fn patient() -> CatalogLimits {
    CatalogLimits { search_ms_max: 3_600_000, ..CatalogLimits::default() }
}

pub const ANN: &str = "ann";
pub const BOB: &str = "bob";

/// A turn without a conversation.
pub fn alone(id: &str, at: i64) -> NewTurnRow {
    NewTurnRow {
        id: id.into(),
        message_id: format!("{id}.m"),
        placement: TurnPlacement::Standalone,
        idempotency: None,
        stored: format!(r#"{{"v":1,"of":"{id}"}}"#),
        agent: "default".into(),
        model: Some("demo/one".into()),
        mode: Some("native".into()),
        input_text: format!("input of {id}"),
        files: Vec::new(),
        created_at: at,
        charge: TurnCharge::default(),
    }
}

/// The first turn of a new conversation.
pub fn first(id: &str, conversation: &str, at: i64) -> NewTurnRow {
    NewTurnRow {
        placement: TurnPlacement::NewConversation { id: conversation.into(), title: None },
        ..alone(id, at)
    }
}

/// A turn in a conversation.
pub fn next(id: &str, conversation: &str, parent: Option<TurnParent>, at: i64) -> NewTurnRow {
    NewTurnRow {
        placement: TurnPlacement::InConversation { conversation_id: conversation.into(), parent },
        ..alone(id, at)
    }
}

pub fn with_input(turn: NewTurnRow, input: &str) -> NewTurnRow {
    NewTurnRow { input_text: input.into(), ..turn }
}

pub fn ended(text: &str, at: i64) -> TurnEnd {
    TurnEnd {
        status: "completed".into(),
        history_json: format!(r#"[{{"role":"assistant","text":"{}"}}]"#, text.len()),
        text: text.into(),
        usage: Some(serde_json::json!({"output_tokens": 7})),
        pace: TurnTiming { first_content_ms: Some(5), writing_ms: Some(70), output_tokens: Some(7) },
        ended_at: at,
    }
}

/// A turn that is to follow this one.
pub fn following(conversation_id: &str, parent: &str) -> NextTurn {
    NextTurn {
        conversation_id: conversation_id.into(),
        parent: Some(TurnParent::after_turn(parent)),
        charge: TurnCharge::default(),
        running_usage: None,
        now: 50,
    }
}

pub fn call(turn_id: &str, ordinal: u32, at: i64) -> CallRow {
    CallRow {
        turn_id: turn_id.into(),
        tool_id: format!("{turn_id}.{ordinal}"),
        conversation_id: None,
        step: 1,
        tool_name: "files.read".into(),
        source: "builtin".into(),
        effect: "read".into(),
        status: "success".into(),
        arguments: r#"{"path":"a.txt"}"#.into(),
        output_summary: Some("12 lines".into()),
        error: None,
        started_at: at,
        duration_ms: Some(3),
    }
}

pub fn file(id: &str, hash: &str, at: i64) -> NewFile {
    NewFile {
        id: id.into(),
        name: format!("{id}.txt"),
        media_type: "text/plain".into(),
        bytes: 10,
        hash: hash.into(),
        made_in: None,
        created_at: at,
    }
}

pub fn key(user: &str, id: &str, at: i64) -> KeyRow {
    KeyRow {
        id: id.into(),
        user: user.into(),
        name: "laptop".into(),
        hash: "0f".repeat(32),
        scopes: vec!["chat".into(), "tools".into()],
        created_at: at,
        expires_at: Some(9_000_000),
        last_used_at: None,
        revoked_at: None,
        limits: KeyLimits::default(),
    }
}

impl Opened {
    /// Begins a turn that must begin.
    pub async fn begin(&self, user: &str, turn: NewTurnRow) {
        let id = turn.id.clone();
        assert_eq!(self.catalog.create_turn(user, turn).await, Ok(TurnCreation::New), "{id}");
    }

    /// Begins and ends a turn, with a log of two events.
    pub async fn complete_turn(&self, user: &str, turn: NewTurnRow, answer: &str) {
        let (id, at) = (turn.id.clone(), turn.created_at);
        self.begin(user, turn).await;
        let claim = self.log.claim(&id).await.unwrap();
        let records = vec![
            LogRecord::new(1, "stream_start", Durability::Power, r#"{"type":"stream_start"}"#),
            LogRecord::new(2, "stream_end", Durability::Power, r#"{"type":"stream_end"}"#),
        ];
        self.log.append(&id, claim.epoch, records.into()).await.unwrap();
        assert_eq!(self.catalog.end_turn(user, &id, ended(answer, at + 1)).await, Ok(true), "{id}");
    }

    pub async fn turn_row(&self, user: &str, id: &str) -> TurnRow {
        self.catalog.turn(user, id).await.unwrap().unwrap()
    }

    pub async fn summary(&self, user: &str, id: &str) -> ConversationSummary {
        self.catalog.conversation(user, id).await.unwrap().unwrap()
    }
}

/// All pages of a list, read with this many rows a page; no page may be larger.
pub async fn walk<T, F>(rows: u32, page: impl Fn(PageRequest) -> F) -> Vec<T>
where
    F: Future<Output = Result<ResultPage<T>, throughline_store::StoreError>>,
{
    let (mut all, mut request) = (Vec::new(), PageRequest::first().limit(rows));
    loop {
        let ResultPage { items, next, .. } = page(request).await.unwrap();
        assert!(items.len() <= rows as usize);
        all.extend(items);
        match next {
            Some(cursor) => request = PageRequest::after(cursor).limit(rows),
            None => return all,
        }
    }
}
