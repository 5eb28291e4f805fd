//! Duties of every catalog, whichever database it is in. The test file of a database has a function that opens a
//! fresh store, or says `None` where there is no such database, and says `catalog_conformance!(open);`.

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
            turns::begins_runs_and_ends_once,
            turns::an_answer_is_rated_by_its_user_when_it_is_there,
            turns::the_same_request_twice_is_one_turn,
            turns::a_conversation_runs_one_turn_at_a_time,
            turns::edits_regenerations_and_forks_are_branches,
            turns::what_it_continues_must_be_there,
            turns::ids_are_taken_once,
            turns::lists_are_filtered_and_paged,
            turns::the_history_has_usage_and_calls,
            turns::open_ones_are_found_at_the_start,
            conversations::titles_are_given_or_the_first_words,
            conversations::lists_show_the_latest_first_page_by_page,
            conversations::another_branch_can_be_chosen,
            conversations::exported_and_imported_again_it_is_equal,
            conversations::a_history_without_events_can_be_imported,
            conversations::what_does_not_fit_together_is_not_imported,
            filing::lists_are_by_folder_tag_and_archive,
            filing::pinned_ones_come_first_on_every_page,
            filing::what_is_filed_is_counted_by_its_labels,
            filing::a_search_is_narrowed_by_folder_tag_and_archive,
            filing::what_is_deleted_is_absent_until_it_is_brought_back,
            filing::a_temporary_one_is_neither_listed_nor_found_and_goes,
            filing::a_question_that_waits_is_seen_in_the_list,
            filing::the_usage_of_all_branches_is_summed_up,
            shares::a_link_is_found_by_its_id_and_goes_with_its_conversation,
            search::finds_titles_inputs_and_answers_of_every_script,
            search::finds_every_form_of_a_letter_in_every_script,
            search::wildcards_and_operators_mean_themselves,
            search::hits_come_page_by_page,
            search::a_common_word_is_paged_through_for_each_user_alone,
            search::a_cursor_of_another_list_finds_nothing_that_is_not_ones_own,
            search::what_is_gone_is_not_found,
            removal::a_conversation_goes_with_everything,
            removal::a_running_turn_keeps_its_conversation,
            removal::a_turn_goes_with_what_is_behind_it,
            removal::old_things_are_forgotten,
            calls::are_kept_replaced_and_found,
            calls::filters_and_counts_agree,
            samples::are_the_newest_of_a_time_and_say_when_there_are_more,
            documents::are_written_only_over_what_was_expected,
            documents::answers_replace_those_about_the_same,
            keys::are_found_touched_and_revoked,
            people::are_added_changed_and_listed,
            people::keys_have_limits_and_are_revoked_together,
            people::turns_and_tokens_are_counted_and_limited,
            people::everything_of_a_person_is_deleted_and_nothing_else,
            files::are_counted_and_shown_by_a_harmless_name,
            files::of_one_content_are_one_where_turns_speak_of_them,
            files::a_blob_goes_with_its_last_file,
            raw::pieces_become_one_answer,
            owners::another_user_sees_nothing_and_changes_nothing,
            owners::every_method_is_in_the_matrix,
            hostile::texts_are_data,
            hostile::ids_that_cannot_be_are_refused_or_absent,
        );
        $crate::catalog_conformance!(@ $open, $crate::catalog_conformance::small() =>
            turns::a_conversation_has_so_many_turns,
            filing::names_of_folders_and_tags_have_a_length,
            shares::so_many_links,
            documents::so_many_and_so_large,
            keys::so_many,
            people::so_many_people,
            files::so_many_bytes_of_one_user,
            raw::the_beginning_of_what_is_too_long,
            search::so_long,
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

/// A turn that stands alone.
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
        adds: format!(r#"[{{"role":"assistant","text":"{}"}}]"#, text.len()),
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

/// All pages of a list, walked with so many rows a page; no page may be larger.
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
