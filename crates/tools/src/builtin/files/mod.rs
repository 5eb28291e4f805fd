//! `files.list`, `files.read`, `files.search`: files under the allowed folders, and nothing else.
//!
//! Never writes. Each root is an open directory handle (cap-std), and every path is resolved beneath it by the kernel
//! or component by component: `..`, absolute paths and symbolic links that lead out are refused when the file is
//! opened, not in a check before that, so there is no moment in between to swap a link in. The alternative, comparing
//! canonical paths, has that moment.

mod lines;
mod list;
mod read;
mod roots;
mod search;

pub use list::{ENTRIES_READ_MAX, ENTRIES_SHOWN_MAX};
pub use read::{LINES_DEFAULT, LINES_MAX, READ_BYTES_MAX, SCAN_BYTES_MAX};
pub use roots::{FileRoots, RootError};
pub use search::{SEARCH_DEPTH_MAX, SEARCH_FILE_BYTES_MAX, SEARCH_FILES_MAX, SEARCH_MATCHES_MAX};

use crate::context::ToolContext;
use crate::function::FunctionTool;
use crate::tool::{Tool, ToolError};
use std::sync::Arc;
use throughline_engine::Effect;
use throughline_wire::ToolOutput;

impl FileRoots {
    /// The three tools over these roots.
    ///
    /// ```no_run
    /// use throughline_tools::ToolRegistry;
    /// use throughline_tools::builtin::files::FileRoots;
    ///
    /// let roots = FileRoots::new().with("notes", "/home/me/notes")?;
    /// let registry = ToolRegistry::builder().tools(roots.tools()).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tools(self) -> [Arc<dyn Tool>; 3] {
        let roots = Arc::new(self);
        [list::tool(roots.clone()), read::tool(roots.clone()), search::tool(roots)]
    }
}

/// Common settings of the three: they read, and models may call them.
fn into_read_tool(tool: FunctionTool, title: &str) -> Arc<dyn Tool> {
    Arc::new(tool.title(title).effect(Effect::Read).agent_callable().source("builtin"))
}

/// File access blocks, so it happens elsewhere; the context's token is how a stopped call ends it.
async fn run_blocking(
    context: ToolContext,
    work: impl FnOnce(&ToolContext) -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    tokio::task::spawn_blocking(move || work(&context)).await?
}
