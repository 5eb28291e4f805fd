//! Packages of later checks, installed while the first ones compile: what waits for a network needs no processor.

use super::packages;
use crate::{verify, web};
use std::thread::JoinHandle;

/// Checks that need packages.
const CHECKS: [&str; 4] = ["typescript", "web", "mcp", "clients"];

/// Installs that run in parallel with the checks.
#[derive(Default)]
pub(super) struct Installs {
    worker: Option<JoinHandle<()>>,
}

impl Installs {
    /// Begins what these checks need. One that fails is tried again, and reported, by the check that needs it.
    pub(super) fn begin(checks: &[&'static str]) -> Self {
        let is_wanted = |name| checks.contains(&name);
        let (page, mcp, clients) =
            (is_wanted("typescript") || is_wanted("web"), is_wanted("mcp"), is_wanted("clients"));
        if !page && !mcp && !clients {
            return Self::default();
        }
        let worker = std::thread::spawn(move || {
            if page {
                let _ = web::installed();
            }
            if mcp {
                let _ = packages::installed(&packages::MCP);
            }
            if clients {
                let _ = packages::installed(&packages::CLIENTS);
                let _ = packages::node_24();
                verify::clients::install_quick();
            }
        });
        Self { worker: Some(worker) }
    }

    /// Called before a check that needs packages: waits for all installs, so that nothing is installed twice
    /// concurrently.
    pub(super) fn wait_before(&mut self, check: &str) {
        if CHECKS.contains(&check) {
            self.wait();
        }
    }

    /// Waits until all of them are there. Left alone, the next run would meet them.
    pub(super) fn wait(&mut self) {
        if let Some(worker) = self.worker.take() {
            // What it could not do, the check reports.
            let _ = worker.join();
        }
    }
}
