//! Trace of a turn: the client's, by W3C Trace Context, or a new one. R: O1

use http::HeaderMap;
use throughline_engine::TurnId;

/// The header that says whose span asks (<https://www.w3.org/TR/trace-context/#traceparent-header>).
const TRACEPARENT: &str = "traceparent";
/// Bytes of the header in version 00, the only one that there is.
const TRACEPARENT_BYTES: usize = 55;

/// A span of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// Id of the trace; never 0.
    pub trace_id: u128,
    /// Id of the span; never 0.
    pub span_id: u64,
    /// Bit 0: whoever asks keeps the trace.
    pub flags: u8,
}

impl TraceParent {
    /// Parses a header's value; `None` if it is invalid. Of a later version the known part counts.
    ///
    /// ```
    /// use throughline_server::telemetry::TraceParent;
    /// let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    /// assert_eq!(parent.map(|parent| (parent.span_id, parent.flags)), Some((0x00f067aa0ba902b7, 1)));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let known = text.get(..TRACEPARENT_BYTES)?;
        let rest = &text[TRACEPARENT_BYTES..];
        let mut parts = known.split('-');
        let version = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let parent = Self {
            trace_id: hex(parts.next()?, 32)?,
            span_id: u64::try_from(hex(parts.next()?, 16)?).ok()?,
            flags: u8::try_from(hex(parts.next()?, 2)?).ok()?,
        };
        let is_terminated = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        (is_terminated && parent.trace_id != 0 && parent.span_id != 0 && parts.next().is_none())
            .then_some(parent)
    }

    /// As a request's headers say it. Several are none: nobody can say which is meant.
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, further) = (values.next()?, values.next());
        Self::parse(value.to_str().ok()?.trim()).filter(|_| further.is_none())
    }
}

impl std::fmt::Display for TraceParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// Lower-case hexadecimal digits, exactly so many.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let fits = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    u128::from_str_radix(text, 16).ok().filter(|_| fits)
}

/// Where a turn stands among traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Id of the trace.
    pub trace_id: u128,
    /// Whose span the turn's own is a child of.
    pub parent: Option<TraceParent>,
}

impl TraceContext {
    /// Of a turn. Without a parent its trace is told by its id, so that a process which goes on with a turn goes on with its
    /// trace.
    pub fn of(turn: &TurnId, parent: Option<&str>) -> Self {
        let parent = parent.and_then(TraceParent::parse);
        let own = || {
            let hash = blake3::hash(turn.as_str().as_bytes());
            let (id, _) = hash.as_bytes().split_at(16);
            id.iter().fold(0, |all, byte| (all << 8) | u128::from(*byte))
        };
        Self { trace_id: parent.map_or_else(own, |parent| parent.trace_id), parent }
    }

    /// The trace as logs and collectors write it: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    // R: O1
    #[test]
    fn a_parent_is_what_the_standard_says_it_is() {
        let later = GOOD.replacen("00", "cc", 1);
        for good in [GOOD, &later, &format!("{later}-what-comes-later")] {
            let parent = TraceParent::parse(good).expect(good);
            assert_eq!(parent.to_string(), GOOD);
        }
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &format!("{GOOD}-more"),
            &format!("{later}.more"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace("b7-01", "b7-0g"),
            &GOOD.replace("-01", "-+1"),
            &GOOD.replace('-', "_"),
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01-",
            &"é".repeat(28),
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_header_counts_if_there_is_one() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParent::of_headers(&headers), None);
        headers.append(TRACEPARENT, http::HeaderValue::from_static(GOOD));
        assert_eq!(TraceParent::of_headers(&headers), TraceParent::parse(GOOD));
        headers.append(TRACEPARENT, http::HeaderValue::from_static(GOOD));
        assert_eq!(TraceParent::of_headers(&headers), None);
    }

    #[test]
    fn a_turn_without_a_parent_has_a_trace_of_its_own_and_always_the_same() {
        let (one, other) = (TurnId::new("turn-1"), TurnId::new("turn-2"));
        assert_eq!(TraceContext::of(&one, None), TraceContext::of(&one, Some("nonsense")));
        assert_ne!(TraceContext::of(&one, None).trace_id, TraceContext::of(&other, None).trace_id);
        assert_eq!(TraceContext::of(&one, None).trace_id().len(), 32);
        assert_eq!(TraceContext::of(&one, Some(GOOD)).trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    }
}
