//! Bytes to payloads, for any cut of the bytes.
