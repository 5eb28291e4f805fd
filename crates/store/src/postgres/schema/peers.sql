-- Version 8: requests to turns that another server runs.

CREATE TABLE peer_request (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn       TEXT        COLLATE "C" NOT NULL,
    request    BYTEA       NOT NULL,
    taken_by   INTEGER,                         -- the server that answers it; NULL: nobody yet
    reply      BYTEA,                           -- NULL: there is none yet
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX peer_request_open ON peer_request (turn) WHERE reply IS NULL;
CREATE INDEX peer_request_by_age ON peer_request (created_at);
