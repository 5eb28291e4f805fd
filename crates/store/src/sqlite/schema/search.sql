-- Version 4: whatever is searched has a number in which its user and its time come first, so that the hits of a user
-- are a range of an index and the newest ones its end: none is looked at that is not shown.

DROP TABLE said;
DROP TABLE titled;

-- Users as the numbers below name them.
CREATE TABLE search_user (
    n       INTEGER PRIMARY KEY,
    user_id TEXT    NOT NULL UNIQUE
) STRICT;

-- A title, an input or an answer that is searched.
CREATE TABLE search_row (
    rank   INTEGER PRIMARY KEY,         -- user, time, number: sqlite/catalog/search/rank.rs
    user_n INTEGER NOT NULL,
    part   INTEGER NOT NULL,            -- 0 title, 1 input, 2 answer
    n      INTEGER NOT NULL             -- of the conversation whose title it is, else of the turn
) STRICT;
CREATE UNIQUE INDEX search_row_of ON search_row (n, part);

-- Their trigrams, and their single characters and pairs for what is too short for those. rowid = search_row.rank; the
-- texts themselves are in the tables of turns and conversations.
CREATE VIRTUAL TABLE search_trigram USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram');
CREATE VIRTUAL TABLE search_short
    USING fts5 (grams, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- What there was waits for the new index.
INSERT OR IGNORE INTO unindexed (row)
    SELECT -n FROM conversation WHERE title <> ''
    UNION ALL
    SELECT t.n * 2 FROM turn t JOIN turn_begin b ON b.n = t.n
    WHERE t.conversation_id IS NOT NULL AND b.input_text <> ''
    UNION ALL
    SELECT t.n * 2 + 1 FROM turn t JOIN turn_end e ON e.n = t.n
    WHERE t.conversation_id IS NOT NULL AND e.text <> '';
