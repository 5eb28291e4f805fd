//! Promises of every store, and their test by disks, processes and connections that fail.

#![allow(clippy::unwrap_used)]

mod catalog_conformance;
mod cluster;
mod log_conformance;

mod blobs;
mod catalog_sqlite;
mod memory;
mod migration;
mod postgres_catalog;
mod postgres_faults;
mod postgres_log;
mod postgres_search;
mod read_only_open;
mod sqlite_log;
mod store_disk_full;
mod store_faults;
mod store_kill;
