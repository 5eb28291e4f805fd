//! Commands as tools: a program that reads JSON and writes text or JSON.
//!
//! Never through a shell: an argument that a model wrote is one item of the argument list, or a JSON value on standard
//! input, and nothing in between looks at it.
//!
//! ```toml
//! [commands."text.count"]
//! description = "Counts lines, words and bytes of a text"
//! argv = ["python3", "count.py"]
//! effect = "pure"
//! output = "json"
//! parameters.type = "object"
//! parameters.properties.text.type = "string"
//! parameters.required = ["text"]
//! ```

#[cfg(feature = "process")]
mod argv;
mod settings;
#[cfg(feature = "process")]
mod source;

#[cfg(feature = "process")]
pub use argv::ARGUMENT_BYTES_MAX;
pub use settings::{CommandInput, CommandOutput, CommandTool};
#[cfg(feature = "process")]
pub use source::CommandSource;

/// The name of this source.
pub const COMMANDS: &str = "commands";
/// Most bytes of standard output that are read as JSON; a command that writes more is stopped. 16 MiB.
pub const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;
