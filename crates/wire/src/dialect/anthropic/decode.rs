//! Stream and body to [`Step`].

use crate::dialect::{Decode, Frame};
use crate::json::Json;
use crate::step::Step;

#[derive(Default)]
pub(crate) struct Decoder {}

impl Decode for Decoder {
    fn frame(&mut self, _frame: &Frame<'_>, _step: &mut Step<'_>) {}
    fn body(&mut self, _json: &Json<'_>, _step: &mut Step<'_>) {}
}
