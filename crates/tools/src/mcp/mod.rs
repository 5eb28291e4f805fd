//! Tools of servers that speak the [Model Context Protocol](https://modelcontextprotocol.io), 2026-07-28 and 2025-11-25,
//! started as programs or reached over HTTP.
//!
//! A server is a [`ToolSource`](crate::ToolSource): it starts in the background, and its tools are tools like
//! any other. Its texts are data: names are changed until they are legal, descriptions reach models in
//! definitions and people on the screen and are not interpreted in between, hints about effects count only
//! where the settings allow it, and a changed definition is switched off until a person has approved it
//! ([`PinStore`]). Sampling and roots are off; a question to a person goes to the viewer of the call.
//!
//! The official SDK speaks the protocol; none of its types leaves this module.

mod pins;
mod settings;

pub use pins::{DefinitionChange, PIN_FILE_BYTES_MAX, PinComparison, PinStore, PinnedDefinition, PinsError};
pub use settings::{McpServer, McpSettingError, ProtocolEra, SERVER_NAME_BYTES_MAX};

#[cfg(feature = "mcp")]
mod call;
#[cfg(feature = "mcp")]
mod connect;
#[cfg(feature = "mcp")]
mod content;
#[cfg(feature = "mcp")]
mod definition;
#[cfg(feature = "mcp")]
mod depth;
#[cfg(feature = "mcp")]
mod elicit;
#[cfg(feature = "mcp")]
mod http;
#[cfg(feature = "mcp")]
mod lenient;
#[cfg(feature = "mcp")]
mod listing;
#[cfg(feature = "mcp")]
mod post;
#[cfg(feature = "mcp")]
mod session;
#[cfg(feature = "mcp")]
mod source;
#[cfg(feature = "mcp")]
mod stdio;

#[cfg(feature = "mcp")]
pub use call::RESTART_WAIT;
#[cfg(feature = "mcp")]
pub use connect::{CLOSE_WAIT, STDERR_TAIL_BYTES};
#[cfg(feature = "mcp")]
pub use definition::{DEFINITION_BYTES_MAX, DEFINITION_DEPTH_MAX};
#[cfg(feature = "mcp")]
pub use depth::MESSAGE_DEPTH_MAX;
#[cfg(feature = "mcp")]
pub use listing::{FAULTS_MAX, PAGES_MAX, TOOLS_MAX};
#[cfg(feature = "mcp")]
pub use session::{CANCEL_WAIT, INPUT_ROUNDS_MAX};
#[cfg(feature = "mcp")]
pub use source::{McpLimits, McpSource};
#[cfg(feature = "mcp")]
pub use stdio::MESSAGE_BYTES_MAX;
