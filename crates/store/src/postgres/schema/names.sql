-- Version 4: tables under the names that the code uses. Servers of an earlier version fail from here on.

ALTER TABLE beside RENAME TO provider_state;
ALTER INDEX beside_of_turn RENAME TO provider_state_of_turn;

ALTER TABLE said RENAME TO search_text;
ALTER TABLE conversation RENAME COLUMN folded TO title_lower;
-- There only if the database has trigrams.
ALTER INDEX IF EXISTS said_trigrams RENAME TO search_text_trigram;
ALTER INDEX IF EXISTS titled_trigrams RENAME TO conversation_title_trigram;

ALTER TABLE raw_piece RENAME TO raw_chunk;
ALTER INDEX raw_piece_of_raw RENAME TO raw_chunk_of_raw;
