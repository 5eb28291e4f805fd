//! Placeholder until the dialect lands.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::encode;
