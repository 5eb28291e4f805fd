-- Version 2: how fast a turn was. NULL: it runs, it ended before this version, or nothing is known.

ALTER TABLE turn
    ADD COLUMN first_content_ms BIGINT,
    ADD COLUMN writing_ms BIGINT,
    ADD COLUMN output_tokens BIGINT;
