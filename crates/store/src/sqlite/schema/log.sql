-- Version 1, the log of turns. The catalog's tables are in catalog.sql.

-- Who writes this file: one row for each opening. Nobody else does while its process holds the lock beside the file.
CREATE TABLE owner (
    generation  INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,
    boot        TEXT    NOT NULL,       -- of the machine: a later one means that power may have been lost
    opened_at   INTEGER NOT NULL,       -- ms since 1970
    lease_until INTEGER,                -- ms since 1970; NULL: as long as the file is locked
    closed_at   INTEGER                 -- NULL: running, or stopped uncleanly
) STRICT;

-- What the log knows of a turn. Small rows: a turn's end writes here.
CREATE TABLE turn_log (
    -- What the other tables of the log call the turn. AUTOINCREMENT: what is in memory of a turn that was deleted just
    -- now must not be taken for that of a new one.
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    turn       TEXT    NOT NULL UNIQUE,
    epoch      INTEGER NOT NULL,        -- appends of another one are refused
    owner      INTEGER NOT NULL,        -- generation of the last claim
    state      INTEGER NOT NULL DEFAULT 0,  -- 0 open, 1 ended, 2 ended and merged
    folded_seq INTEGER NOT NULL DEFAULT 0,  -- records up to here are in segments
    last_seq   INTEGER NOT NULL DEFAULT 0   -- of an ended turn
) STRICT;
CREATE INDEX turn_log_open ON turn_log (n) WHERE state = 0;

-- Appended to and deleted from the front, never looked into while the server runs: recovery reads it.
CREATE TABLE journal (
    id   INTEGER PRIMARY KEY,
    data BLOB NOT NULL                  -- checksum, then chunks of many turns: sqlite/frame.rs
) STRICT;

-- Records of one turn that have left the journal.
CREATE TABLE segment (
    id        INTEGER PRIMARY KEY,
    n         INTEGER NOT NULL REFERENCES turn_log ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,         -- number of the first record, or of the first one merged into it
    last_seq  INTEGER NOT NULL,
    data      BLOB    NOT NULL          -- checksum, then records: sqlite/frame.rs
) STRICT;
CREATE UNIQUE INDEX segment_of_turn ON segment (n, last_seq);

-- What is written beside a turn and never served.
CREATE TABLE beside (
    id   INTEGER PRIMARY KEY,
    n    INTEGER NOT NULL REFERENCES turn_log ON DELETE CASCADE,
    step INTEGER NOT NULL,
    data BLOB    NOT NULL
) STRICT;
CREATE INDEX beside_of_turn ON beside (n);
