//! What every store promises, and what becomes of it when a disk, a process or a connection fails.

#![allow(clippy::unwrap_used)]

mod catalog_conformance;
mod cluster;
mod log_conformance;

mod blobs;
mod catalog_sqlite;
mod memory;
mod migration;
mod onlooker;
mod postgres_catalog;
mod postgres_faults;
mod postgres_log;
mod sqlite_log;
mod store_disk_full;
mod store_faults;
mod store_kill;
