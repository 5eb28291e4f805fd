//! The allocator of the command. Memory of large requests is returned to the system within seconds, which
//! glibc's allocator does not do (docs/performance.md, "Memory after large requests").
//!
//! The system's allocator is used where prebuilt programs of jemalloc do not run with every page size (ARM),
//! and where it returns memory itself (musl, macOS).

/// Environment variable for a process with a limited address space: jemalloc unmaps free memory. Other
/// allocators ignore it.
pub(crate) const UNMAP_FREE_MEMORY: (&str, &str) = ("MALLOC_CONF", "retain:false");

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod jemalloc {
    use tikv_jemalloc_ctl::{Access, AsName, arenas, background_thread, max_background_threads};

    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// Delay before free pages are returned. Consecutive large requests reuse them; with the default of ten
    /// seconds the peak is higher.
    const DECAY_MS: isize = 1_000;

    pub(crate) fn return_free_memory() {
        // The default for new arenas, and the arenas that threads already use; the others cannot be set.
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

/// Returns free memory to the system also while the process is idle. For a long-running process.
pub(crate) fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    jemalloc::return_free_memory();
}
