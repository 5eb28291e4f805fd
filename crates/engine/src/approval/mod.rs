//! Questions to people: may a call run, and requests of running tools.

pub(crate) mod answers;
mod elicitation;
