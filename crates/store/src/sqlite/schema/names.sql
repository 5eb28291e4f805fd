-- Version 5: tables under the names that the code uses. An index keeps its name when its table is renamed, so it is made anew.

DROP INDEX beside_of_turn;
ALTER TABLE beside RENAME TO provider_state;
CREATE INDEX provider_state_of_turn ON provider_state (n);

-- A key is 2n for the input of turn n, 2n + 1 for its answer, -n for the title of conversation n.
ALTER TABLE unindexed RENAME TO index_queue;
ALTER TABLE index_queue RENAME COLUMN row TO text_key;

DROP INDEX raw_piece_of_raw;
ALTER TABLE raw_piece RENAME TO raw_chunk;
CREATE INDEX raw_chunk_of_raw ON raw_chunk (raw_n);
