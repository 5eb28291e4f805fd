-- Version 3: texts that wait for the index. Rows of `said`; below 0 a row of `titled`, negated.

CREATE TABLE unindexed (row INTEGER PRIMARY KEY) STRICT;
