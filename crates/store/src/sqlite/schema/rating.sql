-- Version 7: what a person thinks of an answer. NULL: nothing was said of it. 1 = up, 0 = down.

ALTER TABLE turn ADD COLUMN rating INTEGER;
ALTER TABLE turn ADD COLUMN rating_reason TEXT;
ALTER TABLE turn ADD COLUMN rated_at INTEGER;
