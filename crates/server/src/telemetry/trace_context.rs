//! Trace of a turn: the client's, by W3C Trace Context, or a new one.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceId};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::collections::HashMap;
use throughline_engine::TurnId;

/// The header with the caller's span (<https://www.w3.org/TR/trace-context/#traceparent-header>).
const TRACEPARENT: &str = "traceparent";
/// Form of the header in version 00; later versions only append to it. `h` is a lower-case hexadecimal digit.
const FORM: &[u8; 55] = b"hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";

/// The caller's span from a request's headers, in version 00. Several headers count as none, since they are
/// ambiguous.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let span = parse(value.to_str().ok()?.trim())?;
    Some(format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags()))
}

/// Parses a header's value. OpenTelemetry's propagator also accepts what the standard refuses: short ids, signs, and a
/// version 00 that ends with `-`.
fn parse(text: &str) -> Option<SpanContext> {
    let (known, rest) = text.as_bytes().split_first_chunk::<{ FORM.len() }>()?;
    let has_form = known.iter().zip(FORM).all(|(byte, form)| match form {
        b'h' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        _ => byte == form,
    });
    if !has_form || (known.starts_with(b"00") && !rest.is_empty()) {
        return None;
    }
    let header = HashMap::from([(TRACEPARENT.to_owned(), text.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &header);
    Some(context.span().span_context().clone()).filter(SpanContext::is_valid)
}

/// Position of a turn among traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Parent span of the turn's span.
    pub parent: Option<SpanContext>,
}

impl TraceContext {
    /// The trace context of a turn. Without a parent the trace id is derived from the turn's, so that a
    /// process that resumes the turn continues its trace.
    pub fn of(turn: &TurnId, parent: Option<&str>) -> Self {
        let parent = parent.and_then(parse);
        let own = || {
            let hash = blake3::hash(turn.as_str().as_bytes());
            TraceId::from_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
        };
        Self { trace_id: parent.as_ref().map_or_else(own, SpanContext::trace_id), parent }
    }

    /// The trace as logs and collectors write it: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        self.trace_id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn header(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(TRACEPARENT),
            http::HeaderValue::from_bytes(value.as_bytes()).expect("a header's value"),
        )])
    }

    #[test]
    fn traceparent_parsing_follows_the_standard() {
        let later = GOOD.replacen("00", "cc", 1);
        for good in [GOOD, &later, &format!("{later}-what-comes-later")] {
            assert_eq!(trace_parent(&header(good)).as_deref(), Some(GOOD), "{good}");
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
            &GOOD.replace("00-4", "+0-4"),
            &format!("{GOOD}-"),
            &GOOD.replace("00f067aa0ba902b7", "f067aa0ba902b7"),
            &format!("{}-more", later.replace("00f067aa0ba902b7", "f067aa0ba902b7")),
            &GOOD.replace('-', "_"),
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01-",
            &"é".repeat(28),
        ] {
            assert_eq!(trace_parent(&header(bad)), None, "{bad}");
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn traceparent_is_ignored_if_repeated() {
        assert_eq!(trace_parent(&HeaderMap::new()), None);
        let mut headers = header(GOOD);
        assert_eq!(trace_parent(&headers).as_deref(), Some(GOOD));
        headers.append(TRACEPARENT, http::HeaderValue::from_static(GOOD));
        assert_eq!(trace_parent(&headers), None);
    }

    #[test]
    fn trace_id_is_stable_per_turn_or_taken_from_the_parent() {
        let (one, other) = (TurnId::new("turn-1"), TurnId::new("turn-2"));
        assert_eq!(TraceContext::of(&one, None), TraceContext::of(&one, Some("nonsense")));
        assert_ne!(TraceContext::of(&one, None).trace_id, TraceContext::of(&other, None).trace_id);
        assert_eq!(TraceContext::of(&one, None).trace_id().len(), 32);
        assert_eq!(TraceContext::of(&one, Some(GOOD)).trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    }
}
