-- Version 7: conversations in folders, with tags, pinned, archived, temporary, or deleted and still to be brought back; and
-- links that show one to others. Times are ms since 1970.

ALTER TABLE conversation
    ADD COLUMN folder TEXT COLLATE "C",
    ADD COLUMN tags TEXT,                               -- JSON: a list; NULL: none
    ADD COLUMN pinned_at BIGINT,
    ADD COLUMN archived_at BIGINT,                      -- never pinned at the same time
    ADD COLUMN deleted_at BIGINT,                       -- until it is removed its user_id is 'deleted:' and the user
    ADD COLUMN temporary BIGINT NOT NULL DEFAULT 0;

-- One for each list, in its order.
CREATE INDEX conversation_active ON conversation (user_id, updated_at DESC, id DESC)
    WHERE pinned_at IS NULL AND archived_at IS NULL AND temporary = 0;
CREATE INDEX conversation_pinned ON conversation (user_id, updated_at DESC, id DESC)
    WHERE pinned_at IS NOT NULL AND temporary = 0;
CREATE INDEX conversation_archived ON conversation (user_id, updated_at DESC, id DESC)
    WHERE archived_at IS NOT NULL AND temporary = 0;
CREATE INDEX conversation_in_folder ON conversation (user_id, folder, updated_at DESC, id DESC)
    WHERE folder IS NOT NULL AND archived_at IS NULL AND temporary = 0;
CREATE INDEX conversation_archived_in_folder ON conversation (user_id, folder, updated_at DESC, id DESC)
    WHERE folder IS NOT NULL AND archived_at IS NOT NULL AND temporary = 0;
CREATE INDEX conversation_deleted ON conversation (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX conversation_temporary ON conversation (updated_at) WHERE temporary = 1;

-- The tags of conversation.tags, with what a list of one tag is ordered and filtered by.
CREATE TABLE conversation_tag (
    conversation_id TEXT   COLLATE "C" NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    tag             TEXT   COLLATE "C" NOT NULL,
    user_id         TEXT   COLLATE "C" NOT NULL,
    is_archived     BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, tag)
);
CREATE INDEX conversation_by_tag
    ON conversation_tag (user_id, tag, is_archived, updated_at DESC, conversation_id DESC);

CREATE TABLE share (
    id              TEXT   COLLATE "C" PRIMARY KEY,
    user_id         TEXT   COLLATE "C" NOT NULL,
    conversation_id TEXT   COLLATE "C" NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    leaf_id         TEXT   COLLATE "C" NOT NULL,        -- the last turn that is shown
    title           TEXT   NOT NULL,                    -- as it was
    hash            TEXT   NOT NULL,                    -- of the secret, which is nowhere
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT
);
CREATE INDEX share_of_user ON share (user_id, created_at DESC, id DESC);
CREATE INDEX share_of_conversation ON share (conversation_id);
CREATE INDEX share_by_expiry ON share (expires_at) WHERE expires_at IS NOT NULL;
