//! Everything beside the log. Not yet.
