//! Errors of building an application and of starting a turn: each says how to fix the cause.

use throughline::config::{ConfigFile, ConfigFlags, resolve};
use throughline::tools::{Effect, NoArguments, tool};
use throughline::wire::Dialect;
use throughline::{Error, Throughline, ThroughlineBuilder, TurnRequest, Upstream};

fn local(name: &str) -> Upstream {
    Upstream::new(name, Dialect::OpenaiChat, "http://127.0.0.1:9").unwrap()
}

fn check_error(builder: ThroughlineBuilder, expected: &str) {
    match builder.build() {
        Ok(_) => panic!("it was built, without: {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn builder_errors_name_a_remedy() {
    let one = || Throughline::builder().upstream(local("a"));
    check_error(one(), "no model is selected; call `.model(\"…\")`");
    check_error(
        Throughline::builder().model("x/y"),
        "model `x/y` needs upstream `x`, which does not exist; add it with `.upstream(…)`",
    );
    check_error(
        one().upstream(local("b")).model("m"),
        "`m` does not start with the name of an upstream, and there are several: `a`, `b`",
    );
    check_error(
        Throughline::builder()
            .upstream(Upstream::known("groq").unwrap().key_from_variable("THROUGHLINE_TEST_NEVER_SET"))
            .model("m"),
        "upstream `groq` needs a key: set the environment variable THROUGHLINE_TEST_NEVER_SET, \
             or connect it once: throughline connect groq",
    );
    let same = || tool("a.b", "", |_: NoArguments, _| async { "x" }).effect(Effect::Pure);
    check_error(
        one().model("m").tool(same()).tool(same()),
        "there are two tools named `a.b`, from rust and from rust",
    );
    let proxied = local("a").proxy(throughline::UpstreamProxy::Url("::".into()));
    let error = Throughline::builder().upstream(proxied).model("m").build().err().unwrap();
    assert!(matches!(error, Error::BadProxy { .. }), "{error}");
}

#[test]
fn model_is_resolved_with_and_without_its_upstream() {
    let model = |builder: ThroughlineBuilder| {
        let app = builder.build().unwrap();
        let model = app.agents()[0].models[0].clone();
        format!("{} at {}", model.model, model.name)
    };
    let one = || Throughline::builder().upstream(local("a"));
    assert_eq!(model(one().model("m")), "m at a");
    assert_eq!(model(one().model("a/m")), "m at a");
    assert_eq!(model(one().model("deepseek-ai/DeepSeek-V3")), "deepseek-ai/DeepSeek-V3 at a");
    assert_eq!(model(one().upstream(local("b")).model("b/x/y")), "x/y at b");
}

#[tokio::test]
async fn unknown_agent_error_lists_the_known_agents() {
    let app = Throughline::builder().upstream(local("a")).model("m").build().unwrap();
    let request = TurnRequest { agent: Some("nobody".into()), ..TurnRequest::default() };
    let error = app.start_turn(request).await.err().unwrap();
    assert_eq!(error.to_string(), "there is no agent `nobody`; there are `default`");
}

#[test]
fn settings_build_an_app_and_unknown_toggles_are_reported() {
    let text = "[upstreams.a]\nknown = \"ollama\"\n[agents.default]\nmodel = \"a/m\"\n\
                tool_call = { enabled = true, tool_toggles = { \"a.b\" = true, fils = false } }";
    let file = ConfigFile::parse("throughline.toml", text).unwrap();
    let settings = resolve(Some(file), &Default::default(), &ConfigFlags::default()).unwrap();
    let known = tool("a.b", "", |_: NoArguments, _| async { "x" });
    let app = Throughline::builder().settings(settings).prompt("Be brief.").tool(known).build().unwrap();
    assert_eq!(app.unknown_toggles(), [("default".to_owned(), "fils".to_owned())]);
    assert_eq!(app.agents()[0].prompt.as_ref().unwrap().source(), "Be brief.");
    assert_eq!(app.upstreams().iter().map(|upstream| upstream.name()).collect::<Vec<_>>(), ["a"]);
}
