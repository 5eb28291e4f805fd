-- Version 1, everything beside the log. Times are ms since 1970; JSON is text, since it is never looked into and jsonb
-- takes no \u0000.

CREATE TABLE conversation (
    n          BIGINT   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT     COLLATE "C" NOT NULL UNIQUE,
    user_id    TEXT     COLLATE "C" NOT NULL,
    title      TEXT     NOT NULL,
    folded     TEXT     COLLATE "C" NOT NULL,   -- the title in small letters: what is searched
    title_by   SMALLINT NOT NULL,               -- 0 first words of the first input, 1 given
    leaf_id    TEXT     COLLATE "C",            -- the turn that a new one continues
    turns      BIGINT   NOT NULL DEFAULT 0,
    created_at BIGINT   NOT NULL,
    updated_at BIGINT   NOT NULL
);
CREATE INDEX conversation_of_user ON conversation (user_id, updated_at DESC, id DESC);
CREATE INDEX conversation_by_age ON conversation (updated_at);

-- Small rows: a turn's end writes here. What is large is in turn_begin and turn_end.
CREATE TABLE turn (
    n               BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              TEXT    COLLATE "C" NOT NULL UNIQUE,
    user_id         TEXT    COLLATE "C" NOT NULL,
    conversation_id TEXT    COLLATE "C" REFERENCES conversation (id) ON DELETE CASCADE,  -- NULL: it stands alone
    parent_id       TEXT    COLLATE "C",        -- of the same conversation; NULL: the beginning
    parent_seq      BIGINT,                     -- the parent is cut after this event; NULL: not cut
    message_id      TEXT    NOT NULL,
    agent           TEXT    COLLATE "C" NOT NULL,
    model           TEXT,
    mode            TEXT,
    status          TEXT    COLLATE "C" NOT NULL,  -- 'running', or that of its end
    replica         INTEGER NOT NULL,           -- the server that began it
    created_at      BIGINT  NOT NULL,
    ended_at        BIGINT                      -- NULL: it runs
);
CREATE INDEX turn_of_user ON turn (user_id, created_at DESC, id DESC);
CREATE INDEX turn_of_conversation ON turn (conversation_id, created_at, n);
CREATE UNIQUE INDEX turn_running_in_conversation ON turn (conversation_id) WHERE ended_at IS NULL;
CREATE INDEX turn_running ON turn (n) WHERE ended_at IS NULL;
CREATE INDEX turn_alone ON turn (ended_at) WHERE conversation_id IS NULL;

CREATE TABLE turn_begin (
    n          BIGINT PRIMARY KEY REFERENCES turn (n) ON DELETE CASCADE,
    input_text TEXT   NOT NULL,
    stored     TEXT   NOT NULL                  -- JSON: what resuming needs
);

CREATE TABLE turn_end (
    n     BIGINT PRIMARY KEY REFERENCES turn (n) ON DELETE CASCADE,
    adds  TEXT   NOT NULL,                      -- JSON: what the turn adds to the history
    text  TEXT   NOT NULL,
    usage TEXT                                  -- JSON
);

-- What was said (part 1) and answered (part 2), in small letters: what is searched.
CREATE TABLE said (
    n    BIGINT   NOT NULL REFERENCES turn (n) ON DELETE CASCADE,
    part SMALLINT NOT NULL,
    text TEXT     COLLATE "C" NOT NULL,
    PRIMARY KEY (n, part)
);

-- Requests that may come twice, for 24 hours.
CREATE TABLE idempotency (
    user_id    TEXT   COLLATE "C" NOT NULL,
    key        TEXT   COLLATE "C" NOT NULL,
    body_hash  TEXT   NOT NULL,
    turn_id    TEXT   COLLATE "C" NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
CREATE INDEX idempotency_of_turn ON idempotency (turn_id);

CREATE TABLE call (
    turn_id         TEXT    COLLATE "C" NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    tool_id         TEXT    COLLATE "C" NOT NULL,
    user_id         TEXT    COLLATE "C" NOT NULL,
    conversation_id TEXT    COLLATE "C",
    step            BIGINT  NOT NULL,
    tool_name       TEXT    COLLATE "C" NOT NULL,
    source          TEXT    COLLATE "C" NOT NULL,
    effect          TEXT    NOT NULL,
    status          TEXT    COLLATE "C" NOT NULL,
    arguments       TEXT    NOT NULL,
    output_summary  TEXT,
    error           TEXT,
    started_at      BIGINT  NOT NULL,
    duration_ms     BIGINT,
    PRIMARY KEY (turn_id, tool_id)
);
CREATE INDEX call_of_user ON call (user_id, started_at DESC, tool_id DESC);

CREATE TABLE document (
    user_id    TEXT   COLLATE "C" NOT NULL,
    kind       TEXT   COLLATE "C" NOT NULL,     -- agent, tool_toggles, setting
    name       TEXT   COLLATE "C" NOT NULL,
    body       TEXT   NOT NULL,                 -- JSON
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, kind, name)
);

-- Answers that hold beyond their turn. A number that was taken back never means another answer.
CREATE TABLE remembered (
    number          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id         TEXT   COLLATE "C" NOT NULL,
    conversation_id TEXT   COLLATE "C" REFERENCES conversation (id) ON DELETE CASCADE,  -- NULL: always
    about           TEXT   COLLATE "C" NOT NULL,
    answer          TEXT   NOT NULL,            -- JSON
    at              BIGINT NOT NULL
);
CREATE INDEX remembered_of_user ON remembered (user_id, number);
CREATE INDEX remembered_of_conversation ON remembered (conversation_id) WHERE conversation_id IS NOT NULL;

CREATE TABLE api_key (
    id           TEXT   COLLATE "C" PRIMARY KEY,
    user_id      TEXT   COLLATE "C" NOT NULL,
    name         TEXT   NOT NULL,
    hash         TEXT   NOT NULL,               -- of the secret, which is nowhere
    scopes       TEXT   NOT NULL,               -- JSON: a list
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX api_key_of_user ON api_key (user_id, created_at DESC, id DESC);

CREATE TABLE file (
    id         TEXT   COLLATE "C" PRIMARY KEY,
    user_id    TEXT   COLLATE "C" NOT NULL,
    name       TEXT   NOT NULL,                 -- shown, never a path
    media_type TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    hash       TEXT   COLLATE "C" NOT NULL,     -- of the content: the name of its blob
    created_at BIGINT NOT NULL
);
CREATE INDEX file_of_user ON file (user_id, created_at DESC, id DESC);
CREATE INDEX file_by_hash ON file (hash);
CREATE INDEX file_by_age ON file (created_at);

-- Which turn was given or has made which file.
CREATE TABLE file_use (
    turn_id TEXT COLLATE "C" NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    file_id TEXT COLLATE "C" NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    PRIMARY KEY (turn_id, file_id)
);
CREATE INDEX file_use_of_file ON file_use (file_id);

-- What upstreams really sent, on request; the bytes in pieces.
CREATE TABLE raw (
    n          BIGINT   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn_id    TEXT     COLLATE "C" NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    step       BIGINT   NOT NULL,
    attempt    BIGINT   NOT NULL,
    bytes      BIGINT   NOT NULL,
    extent     SMALLINT NOT NULL,               -- 0 all of it, 1 the beginning
    created_at BIGINT   NOT NULL,
    UNIQUE (turn_id, step, attempt)
);
CREATE INDEX raw_by_age ON raw (created_at);

CREATE TABLE raw_piece (
    id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    raw_n BIGINT NOT NULL REFERENCES raw (n) ON DELETE CASCADE,
    data  BYTEA  NOT NULL
);
CREATE INDEX raw_piece_of_raw ON raw_piece (raw_n);
