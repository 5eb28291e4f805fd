//! Only the decoder: bytes of a recorded stream on stdin. `cargo run --example only_decoder -- openai-chat < body.sse`

use std::io::Read;
use throughline::wire::{DecodeOptions, Dialect, ModelReply, StepDecoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dialect: Dialect = std::env::args().nth(1).unwrap_or("openai-chat".to_owned()).parse()?;
    let mut decoder = StepDecoder::new(dialect, DecodeOptions::default());
    let mut reply = ModelReply::default();
    let mut piece = [0; 4096];
    loop {
        match std::io::stdin().read(&mut piece)? {
            0 => break,
            n => decoder.push(&piece[..n], &mut |event| reply.apply(event)),
        }
    }
    decoder.finish(&mut |event| reply.apply(event));
    println!("{}", serde_json::to_string_pretty(&reply)?);
    Ok(())
}
