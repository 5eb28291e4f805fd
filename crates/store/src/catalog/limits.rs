//! Limits of a catalog.

use serde::{Deserialize, Serialize};

/// Limits of a catalog. A value over a limit is [`StoreError::OverLimit`](crate::StoreError::OverLimit) with
/// the name of the field, except for a title, which is cut, and raw bytes, of which only the beginning is
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogLimits {
    /// Length of a title, in characters. Default 200: a line or two in any list.
    pub title_chars_max: usize,
    /// Length of a folder's name, in characters. Default 80: one line of a list.
    pub folder_chars_max: usize,
    /// Length of a tag, in characters. Default 40.
    pub tag_chars_max: usize,
    /// Tags of one conversation. Default 20.
    pub tags_max: usize,
    /// Distinct folders, and distinct tags, of one user. Default 1,000: they are listed as a whole.
    pub labels_max: u32,
    /// Links of one user that show a conversation. Default 1,000.
    pub shares_max: u64,
    /// Turns of one conversation, all branches counted. Default 10,000: a tree is read as a whole.
    pub conversation_turns_max: u64,
    /// One document, as JSON, in bytes. Default 1 MiB.
    pub document_bytes_max: u64,
    /// Documents of one kind of one user. Default 1,000: they are listed as a whole.
    pub documents_max: u64,
    /// Remembered decisions of one user; one more replaces the oldest. Default 1,000.
    pub remembered_max: u64,
    /// Keys of one user, not counting revoked ones. Default 100.
    pub keys_max: u64,
    /// People, including removed ones. Default 1,000.
    pub people_max: u64,
    /// All files of one user, in bytes, equal contents counted once for each file. Default 2 GiB.
    pub user_files_bytes_max: u64,
    /// Raw upstream bytes of one attempt. Default 16 MiB.
    pub raw_attempt_bytes_max: u64,
    /// Raw upstream bytes of one turn. Default 64 MiB.
    pub raw_turn_bytes_max: u64,
    /// Length of a search text, in characters. Default 1,000.
    pub search_chars_max: usize,
    /// Time after which a search returns the hits that it has and is marked partial, in milliseconds. Default
    /// 150: users see something while they type, and the next page continues from there.
    pub search_ms_max: u64,
    /// Longest time that a request waits for a search in all, in milliseconds. Default 5,000: longer than all searches before it.
    pub search_wait_ms_max: u64,
    /// Searches that wait for the one that is under way. Default 16: each takes at most `search_ms_max`.
    pub searches_waiting_max: usize,
}

impl Default for CatalogLimits {
    fn default() -> Self {
        Self {
            title_chars_max: 200,
            folder_chars_max: 80,
            tag_chars_max: 40,
            tags_max: 20,
            labels_max: 1_000,
            shares_max: 1_000,
            conversation_turns_max: 10_000,
            document_bytes_max: 1 << 20,
            documents_max: 1_000,
            remembered_max: 1_000,
            keys_max: 100,
            people_max: 1_000,
            user_files_bytes_max: 2 << 30,
            raw_attempt_bytes_max: 16 << 20,
            raw_turn_bytes_max: 64 << 20,
            search_chars_max: 1_000,
            search_ms_max: 150,
            search_wait_ms_max: 5_000,
            searches_waiting_max: 16,
        }
    }
}
