//! Records as bytes, for every store that keeps them: in memory for viewers, in a table for whoever comes late.

pub(crate) mod frame;
mod ring;
mod run;
mod segment;

pub(crate) use frame::Chunk;
pub(crate) use ring::{Piece, Progress, Ring, records_of};
pub(crate) use run::{Run, framed};
pub(crate) use segment::{BYTES, Behind, Gather, More, parts, sealed};
