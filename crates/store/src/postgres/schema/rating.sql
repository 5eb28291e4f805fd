-- Version 6: what a person thinks of an answer. NULL: nothing was said of it. 1 = up, 0 = down.

ALTER TABLE turn
    ADD COLUMN rating BIGINT,
    ADD COLUMN rating_reason TEXT,
    ADD COLUMN rated_at BIGINT;
