//! `Upstream::measure` against upstreams whose quirks are known, because they were planted.

use serde_json::json;
use std::collections::BTreeMap;
use throughline::wire::Dialect;
use throughline::{MEASURE_REQUESTS, MEASURE_REQUESTS_MAX, MeasureOptions, Upstream, UpstreamMeasurement};
use throughline_testkit::{
    FakeDialect, FakeUpstream, ModelScript, ParsedRequest, PlantedQuirk, ScenarioRules,
};

fn wire_dialect(dialect: FakeDialect) -> Dialect {
    match dialect {
        FakeDialect::OpenaiChat => Dialect::OpenaiChat,
        FakeDialect::OpenaiResponses => Dialect::OpenaiResponses,
        FakeDialect::Anthropic => Dialect::Anthropic,
        FakeDialect::Gemini => Dialect::Gemini,
        FakeDialect::Ollama => Dialect::Ollama,
        FakeDialect::Cohere => Dialect::Cohere,
        FakeDialect::BedrockConverse => Dialect::BedrockConverse,
        FakeDialect::BedrockAnthropic => Dialect::BedrockAnthropic,
    }
}

/// Measures an upstream with these quirks, in one wire format.
async fn measured(dialect: FakeDialect, quirks: &[PlantedQuirk]) -> UpstreamMeasurement {
    let mut model = ScenarioRules::capable();
    model.quirks = quirks.to_vec();
    let fake = FakeUpstream::start(model).await.expect("starts");
    let base_url = fake.base_url(dialect);
    let upstream = Upstream::new("mine", wire_dialect(dialect), &base_url).expect("an upstream");
    let mut announced = 0;
    let measured = upstream.measure("capable", MeasureOptions::default(), &mut |_| announced += 1).await;
    let measured = measured.unwrap_or_else(|error| panic!("{dialect} {quirks:?}: {error}"));
    assert_eq!(announced, measured.requests, "each request is announced");
    assert_eq!(fake.exchanges().len() as u32, measured.requests, "and nothing else is sent");
    assert!(measured.requests <= MEASURE_REQUESTS_MAX);
    for body in fake.bodies() {
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(body.contains("1024"), "every request bounds its reply: {body}");
    }
    fake.shutdown().await;
    measured
}

#[tokio::test]
async fn clean_upstream_has_no_quirks_in_any_dialect() {
    for dialect in FakeDialect::ALL {
        let found = measured(dialect, &[]).await;
        assert_eq!(found.quirks(), Vec::<&str>::new(), "{dialect}: {found:#?}");
        assert_eq!(found.settings, [], "{dialect}");
        let expected = match dialect {
            // No tool choice; no field for a schema.
            FakeDialect::Ollama => MEASURE_REQUESTS - 2,
            FakeDialect::BedrockConverse | FakeDialect::BedrockAnthropic => MEASURE_REQUESTS - 1,
            _ => MEASURE_REQUESTS,
        };
        assert_eq!(found.requests, expected, "{dialect}");
    }
}

#[tokio::test]
async fn measuring_finds_only_the_planted_quirk() {
    let mut mistakes = Vec::new();
    for quirk in PlantedQuirk::ALL {
        for dialect in quirk.dialects() {
            let found = measured(*dialect, &[quirk]).await;
            if found.quirks() != [quirk.name()] {
                mistakes.push(format!(
                    "{dialect}, {}: {:?}\n{:?}",
                    quirk.name(),
                    found.quirks(),
                    found.features
                ));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n\n"));
}

#[tokio::test]
async fn measured_quirk_suggests_its_setting() {
    use PlantedQuirk as Q;
    let expected = BTreeMap::from([
        (Q::NoStreaming, ("streaming", json!("off"))),
        (Q::WholeBodyForStream, ("streaming", json!("off"))),
        (Q::BrokenStream, ("streaming", json!("off"))),
        (Q::StreamOptionsRefused, ("profile.include_usage", json!(false))),
        (Q::DeveloperRole, ("profile.developer_role", json!(true))),
        (Q::LeakedCalls, ("profile.leaked_calls", json!("run"))),
        (Q::CumulativeArguments, ("profile.cumulative_arguments", json!(true))),
        (Q::PlaceholderArguments, ("profile.placeholder_arguments", json!(true))),
        (Q::NineLetterIds, ("profile.tool_id_format", json!("nine_alphanumeric"))),
        (Q::ReasoningEchoRequired, ("profile.reasoning_echo", json!("reasoning_content"))),
        (Q::ForcedCallRefused, ("profile.tool_choice_required", json!(false))),
        (Q::ForcedCallIgnored, ("profile.tool_choice_required", json!(false))),
        (Q::ForbiddenCallRefused, ("profile.tool_choice_none", json!(false))),
        (Q::ForbiddenCallIgnored, ("profile.tool_choice_none", json!(false))),
        (Q::ImagesRefused, ("profile.vision", json!(false))),
        (Q::ImagesIgnored, ("profile.vision", json!(false))),
        (Q::CacheControlRefused, ("profile.cache_control", json!(false))),
        (Q::EncryptedReasoningRefused, ("profile.encrypted_reasoning", json!(false))),
    ]);
    for quirk in PlantedQuirk::ALL {
        let found = measured(quirk.dialects()[0], &[quirk]).await;
        let settings: Vec<_> = found.settings.iter().map(|set| (set.key, set.value.clone())).collect();
        let wanted: Vec<_> = expected.get(&quirk).cloned().into_iter().collect();
        assert_eq!(settings, wanted, "{}", quirk.name());
    }
}

#[tokio::test]
async fn several_quirks_are_measured_together() {
    use PlantedQuirk as Q;
    let planted =
        [Q::StreamOptionsRefused, Q::DeveloperRole, Q::ZeroIndex, Q::CumulativeArguments, Q::NineLetterIds];
    let found = measured(FakeDialect::OpenaiChat, &planted).await;
    // Arguments under one index cannot be separated, so they are attributed to the calls in the order in
    // which these were opened.
    for quirk in planted {
        assert!(found.quirks().contains(&quirk.name().as_str()), "{}: {found:#?}", quirk.name());
    }
}

#[tokio::test]
async fn measuring_stops_when_the_key_is_rejected() {
    let fake = FakeUpstream::start(|_: &ParsedRequest| ModelScript::status(401)).await.expect("starts");
    let base_url = fake.base_url(FakeDialect::OpenaiChat);
    let upstream = Upstream::new("mine", Dialect::OpenaiChat, &base_url).expect("an upstream");
    let error = upstream.measure("m", MeasureOptions::default(), &mut |_| {}).await.expect_err("it fails");
    assert_eq!(error.failure, throughline::ProbeFailure::Key);
    assert_eq!(fake.exchanges().len(), 1);
}
