-- Version 5: people, limits of people and keys, and what each has used. Times are ms since 1970, days are days since 1970.

CREATE TABLE person (
    name       TEXT   COLLATE "C" PRIMARY KEY,  -- the user_id of everything that is theirs
    is_admin   BIGINT NOT NULL,
    limits     TEXT   NOT NULL,                 -- JSON
    created_at BIGINT NOT NULL,
    removed_at BIGINT                           -- NULL: they may come in
);
CREATE INDEX person_by_age ON person (created_at DESC, name DESC);

ALTER TABLE api_key ADD COLUMN limits TEXT;     -- JSON; NULL: none
CREATE INDEX api_key_by_age ON api_key (created_at DESC, id DESC);

-- The key that began it, whose use its tokens are.
ALTER TABLE turn ADD COLUMN key_id TEXT COLLATE "C";

-- Never lowered: what is deleted was used all the same.
CREATE TABLE usage_day (
    owner  TEXT   COLLATE "C" NOT NULL,         -- 'u:' and a user, or 'k:' and a key
    day    BIGINT NOT NULL,
    turns  BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (owner, day)
);
