//! The server: every viewer is a cursor in the log.
