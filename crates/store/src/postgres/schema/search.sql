-- Version 3: titles are searched in the order in which their conversations began.

CREATE INDEX conversation_of_user_begun ON conversation (user_id, created_at DESC, id DESC);
