//! A step of the model: the request with its history, the stream, and what a failure leads to.

pub(crate) mod request;
pub(crate) mod retry;
mod shorten;
mod stream;
