-- Version 6: people, limits of people and keys, and what each has used. Times are ms since 1970, days are days since 1970.

CREATE TABLE person (
    name       TEXT    PRIMARY KEY NOT NULL,  -- the user_id of everything that is theirs
    is_admin   INTEGER NOT NULL,
    limits     TEXT    NOT NULL,              -- JSON
    created_at INTEGER NOT NULL,
    removed_at INTEGER                        -- NULL: they may come in
) STRICT;
CREATE INDEX person_by_age ON person (created_at DESC, name DESC);

ALTER TABLE api_key ADD COLUMN limits TEXT;   -- JSON; NULL: none
CREATE INDEX api_key_by_age ON api_key (created_at DESC, id DESC);

-- The key that began it, whose use its tokens are.
ALTER TABLE turn ADD COLUMN key_id TEXT;

-- Never lowered: what is deleted was used all the same.
CREATE TABLE usage_day (
    owner  TEXT    NOT NULL,                  -- 'u:' and a user, or 'k:' and a key
    day    INTEGER NOT NULL,
    turns  INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;
