//! A call from its final arguments to exactly one outcome: its transitions, and the client that runs it elsewhere.

mod client;
mod lifecycle;
