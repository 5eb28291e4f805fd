-- Version 2: how fast a turn was. NULL: it runs, it ended before this version, or nothing is known.

ALTER TABLE turn ADD COLUMN first_content_ms INTEGER;
ALTER TABLE turn ADD COLUMN writing_ms INTEGER;
ALTER TABLE turn ADD COLUMN output_tokens INTEGER;
