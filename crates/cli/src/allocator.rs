//! The allocator of the command. What large requests have taken is the system's again a moment later: glibc keeps it
//! (docs/performance.md, "Memory after large requests").
//!
//! Where prebuilt programs of jemalloc do not run with every page size (ARM), or where the system's own allocator gives memory back
//! (musl, macOS), it is the system's own.

/// Environment variable for a process whose address space is limited: jemalloc unmaps what is free. Others do not know it.
pub(crate) const UNMAP_FREE_MEMORY: (&str, &str) = ("MALLOC_CONF", "retain:false");

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod jemalloc {
    use tikv_jemalloc_ctl::{Access, AsName, arenas, background_thread, max_background_threads};

    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// Of free pages, before they go back. Large requests that follow each other use them again; with the default of ten seconds
    /// the peak is higher.
    const DECAY_MS: isize = 1_000;

    pub(crate) fn return_free_memory() {
        // The default of arenas to come, and those that threads allocate from already; of the others there is nothing to set.
        let existing =
            (0..arenas::narenas::read().unwrap_or(0)).map(|arena| format!("arena.{arena}.dirty_decay_ms\0"));
        for name in existing.chain(["arenas.dirty_decay_ms\0".to_owned()]) {
            let _ = name.as_str().name().write(DECAY_MS);
        }
        // One thread does. Where the system gives no more, jemalloc would try to start others without a pause.
        let started = max_background_threads::write(1).and_then(|()| background_thread::write(true));
        if started.is_err() {
            // Free pages would wait for it; without it, threads that allocate give them back.
            let _ = background_thread::write(false);
        }
    }
}

/// Gives free memory back to the system also while nobody allocates. For a process that goes on for long.
pub(crate) fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    jemalloc::return_free_memory();
}
