//! Frames of `application/vnd.amazon.eventstream`: two lengths with their checksum, headers, the payload, a checksum of all.

use serde_json::Value;

/// Number of the type "string" of a header's value.
const STRING: u8 = 7;

/// Writes an event with a JSON payload.
pub(crate) fn write_event(name: &str, payload: &Value, out: &mut Vec<u8>) {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    write_frame(&headers, payload, out);
}

/// Writes an exception, after which nothing follows.
pub(crate) fn write_exception(kind: &str, payload: &Value, out: &mut Vec<u8>) {
    let headers =
        [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    write_frame(&headers, payload, out);
}

fn write_frame(headers: &[(&str, &str)], payload: &Value, out: &mut Vec<u8>) {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(STRING);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let begin = out.len();
    // Lengths and checksums are 4 bytes each: two lengths and theirs before, that of all after.
    let total = 16 + head.len() + payload.len();
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(head.len() as u32).to_be_bytes());
    let lengths = checksum(&out[begin..]);
    out.extend_from_slice(&lengths.to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload.as_bytes());
    let all = checksum(&out[begin..]);
    out.extend_from_slice(&all.to_be_bytes());
}

/// CRC-32 as in zip files, bit by bit: frames here are short.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
