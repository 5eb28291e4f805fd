-- Version 1, the log of turns. The catalog's tables are in catalog.sql. No keys across tables of the log: each append
-- holds a lock on its turn's row, and whoever deletes that row deletes the rest.

-- Servers that use this database. A lease that has run out, or a lock that is free, means that its turns can be taken.
CREATE TABLE replica (
    id          INTEGER     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        TEXT        NOT NULL,
    opened_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    lease_until TIMESTAMPTZ NOT NULL        -- by the clock of the database
);

-- A connection that appends. Marking the row fences it off, and says what it has committed last.
CREATE TABLE writer (
    id      BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    batch   BIGINT  NOT NULL DEFAULT 0,
    fenced  BOOLEAN NOT NULL DEFAULT FALSE
) WITH (fillfactor = 10);

CREATE TABLE turn_log (
    n        BIGINT   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn     TEXT     COLLATE "C" NOT NULL UNIQUE,
    epoch    BIGINT   NOT NULL,             -- appends of another one are refused
    owner    INTEGER  NOT NULL,             -- replica of the last claim
    state    SMALLINT NOT NULL DEFAULT 0,   -- 0 open, 1 ended, 2 ended and merged
    last_seq BIGINT   NOT NULL DEFAULT 0    -- of an ended turn
);
CREATE INDEX turn_log_open ON turn_log (n) WHERE state = 0;

-- What one commit appended to one turn; after its end a few large rows instead.
CREATE TABLE segment (
    n         BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,              -- number of the first record, or of the first one merged into it
    last_seq  BIGINT NOT NULL,
    data      BYTEA  NOT NULL,              -- checksum, then records: records/frame.rs
    PRIMARY KEY (n, last_seq)
);

-- What is written beside a turn and never served.
CREATE TABLE beside (
    id   BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n    BIGINT  NOT NULL,
    step INTEGER NOT NULL,
    data BYTEA   NOT NULL
);
CREATE INDEX beside_of_turn ON beside (n);
