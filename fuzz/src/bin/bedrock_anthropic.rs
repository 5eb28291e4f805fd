#![no_main]
use throughline_wire::Dialect;
libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::dialect(Dialect::BedrockAnthropic, data));
