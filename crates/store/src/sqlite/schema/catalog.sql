-- Version 1, everything beside the log. Times are ms since 1970.

CREATE TABLE conversation (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    user_id    TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    title_by   INTEGER NOT NULL,        -- 0 first words of the first input, 1 given
    leaf_id    TEXT,                    -- the turn that a new one continues
    turns      INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX conversation_of_user ON conversation (user_id, updated_at DESC, id DESC);
CREATE INDEX conversation_by_age ON conversation (updated_at);

-- Small rows: a turn's end writes here. What is large is in turn_begin and turn_end.
CREATE TABLE turn (
    n               INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    user_id         TEXT    NOT NULL,
    conversation_id TEXT    REFERENCES conversation (id) ON DELETE CASCADE,  -- NULL: it stands alone
    parent_id       TEXT,               -- of the same conversation; NULL: the beginning
    parent_seq      INTEGER,            -- the parent is cut after this event; NULL: not cut
    message_id      TEXT    NOT NULL,
    agent           TEXT    NOT NULL,
    model           TEXT,
    mode            TEXT,
    status          TEXT    NOT NULL,   -- 'running', or that of its end
    created_at      INTEGER NOT NULL,
    ended_at        INTEGER             -- NULL: it runs
) STRICT;
CREATE INDEX turn_of_user ON turn (user_id, created_at DESC, id DESC);
CREATE INDEX turn_of_conversation ON turn (conversation_id, created_at, n);
CREATE UNIQUE INDEX turn_running_in_conversation ON turn (conversation_id) WHERE ended_at IS NULL;
CREATE INDEX turn_running ON turn (n) WHERE ended_at IS NULL;
CREATE INDEX turn_alone ON turn (ended_at) WHERE conversation_id IS NULL;

CREATE TABLE turn_begin (
    n          INTEGER PRIMARY KEY REFERENCES turn (n) ON DELETE CASCADE,
    input_text TEXT    NOT NULL,
    stored     TEXT    NOT NULL         -- JSON: what resuming needs
) STRICT;

CREATE TABLE turn_end (
    n     INTEGER PRIMARY KEY REFERENCES turn (n) ON DELETE CASCADE,
    adds  TEXT    NOT NULL,             -- JSON: what the turn adds to the history
    text  TEXT    NOT NULL,
    usage TEXT                          -- JSON
) STRICT;

-- Trigrams of what was said (rowid = 2 * turn.n) and answered (2 * turn.n + 1), and of titles (conversation.n).
-- The texts themselves are in the tables above.
CREATE VIRTUAL TABLE said USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram');
CREATE VIRTUAL TABLE titled USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram');

-- Requests that may come twice, for 24 hours.
CREATE TABLE idempotency (
    user_id    TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body_hash  TEXT    NOT NULL,
    turn_id    TEXT    NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
CREATE INDEX idempotency_of_turn ON idempotency (turn_id);

CREATE TABLE call (
    n               INTEGER PRIMARY KEY,
    turn_id         TEXT    NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    tool_id         TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    conversation_id TEXT,
    step            INTEGER NOT NULL,
    tool_name       TEXT    NOT NULL,
    source          TEXT    NOT NULL,
    effect          TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    arguments       TEXT    NOT NULL,
    output_summary  TEXT,
    error           TEXT,
    started_at      INTEGER NOT NULL,
    duration_ms     INTEGER,
    UNIQUE (turn_id, tool_id)
) STRICT;
CREATE INDEX call_of_user ON call (user_id, started_at DESC, tool_id DESC);

CREATE TABLE document (
    user_id    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,        -- agent, tool_toggles, setting
    name       TEXT    NOT NULL,
    body       TEXT    NOT NULL,        -- JSON
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, kind, name)
) STRICT;

-- Answers that hold beyond their turn. AUTOINCREMENT: a number that was taken back never means another answer.
CREATE TABLE remembered (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id         TEXT    NOT NULL,
    conversation_id TEXT    REFERENCES conversation (id) ON DELETE CASCADE,  -- NULL: always
    about           TEXT    NOT NULL,
    answer          TEXT    NOT NULL,   -- JSON
    at              INTEGER NOT NULL
) STRICT;
CREATE INDEX remembered_of_user ON remembered (user_id, number);
CREATE INDEX remembered_of_conversation ON remembered (conversation_id) WHERE conversation_id IS NOT NULL;

CREATE TABLE api_key (
    id           TEXT    PRIMARY KEY NOT NULL,
    user_id      TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    hash         TEXT    NOT NULL,      -- of the secret, which is nowhere
    scopes       TEXT    NOT NULL,      -- JSON: a list
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;
CREATE INDEX api_key_of_user ON api_key (user_id, created_at DESC, id DESC);

CREATE TABLE file (
    id         TEXT    PRIMARY KEY NOT NULL,
    user_id    TEXT    NOT NULL,
    name       TEXT    NOT NULL,        -- shown, never a path
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    hash       TEXT    NOT NULL,        -- of the content: the name of its blob
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX file_of_user ON file (user_id, created_at DESC, id DESC);
CREATE INDEX file_by_hash ON file (hash);
CREATE INDEX file_by_age ON file (created_at);

-- Which turn was given or has made which file.
CREATE TABLE file_use (
    turn_id TEXT NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    file_id TEXT NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    PRIMARY KEY (turn_id, file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_use_of_file ON file_use (file_id);

-- What upstreams really sent, on request; the bytes in pieces.
CREATE TABLE raw (
    n          INTEGER PRIMARY KEY,
    turn_id    TEXT    NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    step       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    extent     INTEGER NOT NULL,        -- 0 all of it, 1 the beginning
    created_at INTEGER NOT NULL,
    UNIQUE (turn_id, step, attempt)
) STRICT;
CREATE INDEX raw_by_age ON raw (created_at);

CREATE TABLE raw_piece (
    id    INTEGER PRIMARY KEY,
    raw_n INTEGER NOT NULL REFERENCES raw (n) ON DELETE CASCADE,
    data  BLOB    NOT NULL
) STRICT;
CREATE INDEX raw_piece_of_raw ON raw_piece (raw_n);
