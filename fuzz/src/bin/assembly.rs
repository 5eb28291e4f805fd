//! Call assembly, without waiting for the fuzzer to write JSON: each byte picks a field of a Chat Completions entry.
#![no_main]

use throughline_wire::Dialect;

const INDEXES: [&str; 6] = ["", "\"index\":0,", "\"index\":1,", "\"index\":\"1\",", "\"index\":-1,", "\"index\":7,"];
const IDS: [&str; 5] = ["", "\"id\":\"a\",", "\"id\":\"b\",", "\"id\":\"\",", "\"id\":null,"];
const NAMES: [&str; 6] = ["", "\"name\":\"f\",", "\"name\":\"get_\",", "\"name\":\"weather\",", "\"name\":\"\",", "\"name\":null,"];
const ARGUMENTS: [&str; 12] = [
    "", "\"\"", "\"{}\"", "\"{\\\"a\\\":\"", "\"1}\"", "\"{\\\"a\\\":1}\"", "null", "{\"a\":1}", "\"null\"", "\"\\ud83d\"", "\" \"",
    "\"\\\"{\\\\\\\"a\\\\\\\":1}\\\"\"",
];
const FINISHES: [&str; 4] = ["null", "\"tool_calls\"", "\"length\"", "\"stop\""];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((seed, picks)) = data.split_first() else { return };
    let mut body = vec![*seed];
    for pick in picks.chunks(3).take(40) {
        let at = |n: usize| usize::from(pick.get(n).copied().unwrap_or(0));
        let (index, id) = (INDEXES[at(0) % 6], IDS[at(0) / 6 % 5]);
        let (name, arguments) = (NAMES[at(1) % 6], ARGUMENTS[at(1) / 6 % 12]);
        let arguments = if arguments.is_empty() { String::new() } else { format!("\"arguments\":{arguments}") };
        let function = format!("{name}{arguments}");
        let function = function.trim_end_matches(',');
        let finish = if at(2) < 240 { "null" } else { FINISHES[at(2) % 4] };
        body.extend_from_slice(
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}{id}\"function\":{{{function}}}}}]}},\"finish_reason\":{finish}}}]}}\n\n"
            )
            .as_bytes(),
        );
    }
    body.extend_from_slice(b"data: [DONE]\n\n");
    throughline_fuzz::dialect(Dialect::OpenaiChat, &body);
});
