//! `throughline.toml`, the environment and flags, from outside: text in, settings or one precise error out.

use throughline::config::{
    AgentLimitsSection, AppSettings, ConfigError, ConfigFile, ConfigFlags, EnvVars, ResultRole, SteeringMode,
    TextProtocolKind, ToolMode, resolve,
};
use throughline::engine::{ConfirmMode, LoopGuard, RuleAction, StartRule, TurnLimits};
use throughline::tools::ToolToggle;
use throughline::{AgentTools, CallStartMode, ConfirmationMode};

fn environment(pairs: &[(&str, &str)]) -> EnvVars {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn settings(text: &str, env: &[(&str, &str)], flags: &ConfigFlags) -> Result<AppSettings, ConfigError> {
    resolve(Some(ConfigFile::parse("throughline.toml", text)?), &environment(env), flags)
}

/// Environment and flags, and two things that are expected of them.
type Layered<'a> = (&'a [(&'a str, &'a str)], ConfigFlags, &'a str, &'a str);

/// The error of a file, as a person sees it.
fn check_error(text: &str, expected: &str) {
    let error = settings(text, &[], &ConfigFlags::default()).unwrap_err().to_string();
    assert_eq!(error, expected, "\n--- got\n{error}\n--- for\n{text}");
}

fn model_of(settings: &AppSettings) -> String {
    let model = &settings.agents[&settings.agent].models[0];
    format!("{}/{}", model.name, model.model)
}

#[test]
fn missing_configuration_selects_the_demo_model_with_tools() {
    let settings = resolve(None, &environment(&[]), &ConfigFlags::default()).unwrap();
    assert_eq!(model_of(&settings), "demo/demo");
    assert!(settings.wants_demo());
    assert_eq!(settings.agents["default"].tool_call.tools, ToolToggle::On);
}

#[test]
fn full_configuration_file_is_read() {
    let text = r#"
        [upstreams.deepseek]
        known = "deepseek"
        headers = { "x-team" = "blue", "x-secret" = "Bearer $TEAM_SECRET" }
        timeouts = { first_byte_ms = 90000 }
        profile = { vision = false }

        [upstreams.mine]
        dialect = "openai-responses"
        base_url = "http://10.0.0.5:9000/v1"
        key_env = "MINE_KEY"
        streaming = "off"
        proxy = "off"

        [agents.default]
        model = "deepseek/deepseek-chat"
        fallback = ["mine/gpt-5", "groq/llama-4"]
        prompt = "Be brief."
        temperature = 0.2
        extra = { top_p = 0.9 }
        tool_call = { enabled = true, tool_toggles = { files = false, "files.read" = true }, start = "after_stream", parallel_execution = true, timeout_ms = 5000 }

        [limits.turn]
        calls_per_turn_max = 10

        [tools.files]
        roots = ["/srv/notes"]

        [tools.http]
        ports = [8080]
        hosts = ["docs.rs"]
    "#;
    let env = [("DEEPSEEK_API_KEY", "sk-1"), ("TEAM_SECRET", "hush"), ("GROQ_API_KEY", "  ")];
    let settings = settings(text, &env, &ConfigFlags::default()).unwrap();
    let agent = &settings.agents["default"];
    let names: Vec<_> = agent.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["deepseek", "mine", "groq"]);
    assert_eq!(agent.tool_call.toggles.get(&"files.read".into()), ToolToggle::On);
    assert_eq!(agent.tool_call.toggles.get(&"files.list".into()), ToolToggle::Off);
    assert_eq!(agent.settings.extra["top_p"], 0.9);
    let missing: Vec<_> = settings.upstreams.values().map(|upstream| upstream.missing_key()).collect();
    assert_eq!(missing, [None, Some("GROQ_API_KEY"), Some("MINE_KEY")], "deepseek, groq, mine");
    assert!(
        !format!("{settings:?}").contains("hush") && !format!("{settings:?}").contains("sk-1"),
        "secrets"
    );
    assert_eq!(settings.limits.turn.calls_per_turn_max, 10);
    assert_eq!(settings.limits.turn.iterations_max, 5, "what is not said keeps its default");
    assert_eq!(settings.tools.http.ports, [8080]);
    assert_eq!(settings.tools.http.hosts, ["docs.rs"]);
}

#[test]
fn tool_call_settings_have_their_defaults() {
    let text = "[agents.a]\nmodel = \"ollama/qwen3\"";
    let file = ConfigFile::parse("throughline.toml", text).unwrap();
    let t = &file.agents["a"].tool_call;
    assert_eq!((t.enabled, t.max_iterations, t.timeout_ms), (false, 5, 30_000));
    assert!(t.default_tool_enabled && !t.require_confirmation && !t.parallel_execution);
    assert!(t.tool_toggles.is_empty() && t.mode.is_none());
    let settings = settings(text, &[], &ConfigFlags::default()).unwrap();
    assert_eq!(settings.agent, "a", "the only agent answers");
    let agent = &settings.agents["a"];
    assert_eq!((agent.mode, agent.steering), (ToolMode::Auto, SteeringMode::NextStep));
    let AgentTools { tools, mode, confirmation, protocol, results, .. } = &agent.tool_call;
    assert_eq!((*tools, *mode), (ToolToggle::Off, CallStartMode::Auto));
    assert_eq!((*confirmation, *protocol), (ConfirmationMode::ByPolicy, TextProtocolKind::Vcp));
    assert_eq!(*results, ResultRole::User);
}

#[test]
fn agent_sets_tool_mode_call_start_and_limits() {
    let text = r#"
        [agents.a]
        model = "ollama/qwen3"
        mode = "text"
        steering = "after_turn"
        limits = { calls_per_turn_max = 7, approval_ms_max = 1000 }
        tool_call = { enabled = true, mode = "manual", protocol = "xml", require_confirmation = true, results = "tool" }
        [limits.turn]
        pauses_max = 3
        calls_per_turn_max = 100
    "#;
    let settings = settings(text, &[], &ConfigFlags::default()).unwrap();
    let agent = &settings.agents["a"];
    assert_eq!((agent.mode, agent.steering), (ToolMode::Text, SteeringMode::AfterTurn));
    let AgentTools { tools, mode, confirmation, protocol, results, start, .. } = &agent.tool_call;
    assert_eq!(
        (*tools, *mode, *confirmation),
        (ToolToggle::On, CallStartMode::Manual, ConfirmationMode::Everything)
    );
    assert_eq!((*protocol, *results, *start), (TextProtocolKind::Xml, ResultRole::Tool, StartRule::Eager));
    let limits = agent.limits.over(settings.limits.turn);
    assert_eq!((limits.calls_per_turn_max, limits.approval_ms_max, limits.pauses_max), (7, Some(1000), 3));
}

#[test]
fn agent_sets_policy_rules_and_loop_guard() {
    let text = r#"
        [agents.a]
        model = "ollama/qwen3"
        guard = { stop_after = 3 }

        [[agents.a.policy]]
        decide = "deny"
        tool = "commands.*"
        reason = "not here"

        [[agents.a.policy]]
        decide = "allow"
        effect = ["write"]
        arguments = { path = { under = "/home/me/notes" } }
    "#;
    let settings = settings(text, &[], &ConfigFlags::default()).unwrap();
    let agent = &settings.agents["a"];
    let decisions: Vec<_> = agent.policy().rules.iter().map(|rule| rule.decide).collect();
    assert_eq!(decisions, [RuleAction::Deny, RuleAction::Allow]);
    assert_eq!(agent.policy().confirm, ConfirmMode::ByRule);
    assert_eq!(agent.guard, LoopGuard { stop_after: 3, ..LoopGuard::default() });
}

#[test]
fn every_turn_limit_can_be_set_per_agent() {
    let known = serde_json::to_value(TurnLimits::default()).unwrap();
    // Steps with calls are the agent's `max_iterations`.
    for (field, value) in known.as_object().unwrap().iter().filter(|(field, _)| *field != "iterations_max") {
        let value = value.as_u64().unwrap() + 1;
        let text = format!("[agents.a]\nmodel = \"demo\"\nlimits = {{ {field} = {value} }}");
        let limits: AgentLimitsSection = settings(&text, &[], &ConfigFlags::default())
            .unwrap_or_else(|error| panic!("{error}"))
            .agents["a"]
            .limits;
        let laid_over = serde_json::to_value(limits.over(TurnLimits::default())).unwrap();
        let changed: Vec<_> =
            known.as_object().unwrap().keys().filter(|&key| laid_over[key] != known[key]).collect();
        assert_eq!(changed, [field]);
        assert_eq!(laid_over[field], value);
    }
}

#[test]
fn errors_show_the_position_and_valid_values() {
    check_error(
        "[agents.a]\nmodel = \"openai/gpt-5\"\n  promt = \"x\"\n",
        "unknown field `promt`\n --> throughline.toml:3:3\n  |\n3 |   promt = \"x\"\n  |   ^^^^^\n  = did you mean \
         `prompt`? valid here: `model`, `fallback`, `mode`, `prompt`, `temperature`, `max_output_tokens`, `hosted`, `extra`, \
         `tool_call`, `policy`, `permissions`, `text_rules`, `guard`, `steering`, `on_interrupted`, `limits`",
    );
    check_error(
        "[agents.a]\nmodel = \"opnai/gpt-5\"\n\n[upstreams.mine]\nknown = \"ollama\"\n",
        "there is no upstream `opnai`\n --> throughline.toml:2:9\n  |\n2 | model = \"opnai/gpt-5\"\n  |         \
         ^^^^^^^^^^^^^\n  = did you mean `openai`? valid here: `mine`, `openai`, `openai-responses`, `deepseek`, \
         `siliconflow`, `dashscope`, `moonshot`, `zhipu`, `openrouter`, `groq`, `mistral`, `xai`, `anthropic`, \
         `gemini`, `ollama`, `llama.cpp`, `vllm`, `lmstudio`, `gcli2api`, `demo`",
    );
    check_error(
        "[upstreams.\"模型\"]\ndialect = \"openai\"\nbase_url = \"http://h\"",
        "unknown dialect `openai`\n --> throughline.toml:2:11\n  |\n2 | dialect = \"openai\"\n  |           \
         ^^^^^^^^\n  = did you mean `openai-chat`? valid here: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`, `cohere`, \
         `bedrock-converse`, `bedrock-anthropic`",
    );
    check_error(
        "[agents.\"中文\"]\nmodel = \"gpt-5\"",
        "`gpt-5` is not `upstream/model`\n --> throughline.toml:2:9\n  |\n2 | model = \"gpt-5\"\n  |         ^^^^^^^\n  = \
         for example \"openai/gpt-5-mini\"; `demo` is built in",
    );
    check_error(
        "[agents.a]\nmodel = \"demo\"\ntool_call = { mode = \"text\" }",
        "`tool_call.mode` must be `auto` or `manual`, not `text`: it decides whether calls need approval\n --> throughline.toml:3:22\n  |\n3 | tool_call = { mode = \"text\" }\n  |                      \
         ^^^^^^\n  = for native or text tool calls, set `mode = \"text\"` of the agent, next to its model",
    );
}

#[test]
fn each_error_is_one_message_at_its_line() {
    let cases = [
        ("[agents.a\n", 1, "unclosed table"),
        ("[agents.a]\nmodel = 5", 2, "invalid type: integer `5`, expected a string"),
        ("[agents.a]\nprompt = \"x\"", 1, "missing field `model`"),
        (
            "[agents.a]\nmodel = \"demo\"\ntool_call = { mode = \"texd\" }",
            3,
            "must be `auto` or `manual`, not `texd`",
        ),
        ("[agents.a]\nmodel = \"demo\"\nmode = \"texd\"", 3, "unknown variant `texd`"),
        ("[agents.a]\nmodel = \"demo\"\ntool_call = { protocol = \"jsn\" }", 3, "unknown variant `jsn`"),
        (
            "[agents.a]\nmodel = \"demo\"\nlimits = { iterations_max = 3 }",
            3,
            "unknown field `iterations_max`",
        ),
        ("[agents.a]\nmodel = \"demo\"\nguard = { notes = 3 }", 3, "unknown field `notes`"),
        (
            "[agents.a]\nmodel = \"demo\"\n[[agents.a.policy]]\ndecide = \"maybe\"",
            4,
            "unknown variant `maybe`",
        ),
        ("[agents.a]\nmodel = \"demo\"\npolicy = [{ tool = \"a.b\" }]", 3, "missing field `decide`"),
        ("[agents.a]\nmodel = \"demo\"\npolicy = [{ decide = \"allow\" }]", 3, "this rule has no condition"),
        ("[agents.a]\nmodel = \"demo\"\nprompt = \"{{ usr }}\"", 3, "unknown name `usr` in a template"),
        ("[user]\nname = \"Ada\"\ntime_zone = \"Europe/Pari\"", 3, "no time zone `Europe/Pari`"),
        ("[upstreams.u]\nkey_env = \"K\"", 1, "needs `known`, or both"),
        ("[upstreams.u]\nknown = \"deepsek\"", 2, "unknown upstream preset `deepsek`"),
        ("[upstreams.u]\nknown = \"ollama\"\nbase_url = \"h:1\"", 3, "is not a valid base URL"),
        ("[upstreams.u]\nknown = \"ollama\"\ntimeouts = { idle_ms = 0 }", 1, "0 ms"),
        (
            "[tools.http]\nhosts = [\"https://docs.rs\"]",
            2,
            "`https://docs.rs` is not a host pattern: use `docs.rs`",
        ),
        ("[upstreams.u]\nknown = \"ollama\"\ntimeouts = { idle = 5 }", 3, "unknown field `idle`"),
        ("[upstreams.u]\nknown = \"ollama\"\nheaders = { \"a b\" = \"c\" }", 3, "invalid header"),
        ("[upstreams.u]\nknown = \"ollama\"\nheaders = { a = \"$NOT_SET\" }", 3, "NOT_SET is not set"),
        ("[upstreams.u]\nknown = \"ollama\"\nproxy = \"sometimes\"", 3, "`sometimes` is not a valid proxy"),
        ("[upstreams.\"a/b\"]\nknown = \"ollama\"", 1, "must not be empty or contain `/`"),
        ("[limits]\nsteps = 5", 2, "unknown field `steps`"),
        ("[limits.turn]\niterations = 5", 2, "unknown field `iterations`"),
    ];
    for (text, line, message) in cases {
        let error = settings(text, &[], &ConfigFlags::default()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}\n{error}");
        assert!(error.contains(&format!("throughline.toml:{line}:")), "{text}\n{error}");
    }
}

#[test]
fn error_caret_is_aligned_after_wide_characters_and_tabs() {
    let error = ConfigFile::parse("f", "[agents.a]\nmodel = \"demo\"\nextra = { \"天气\" = \t1, = 2 }")
        .unwrap_err()
        .to_string();
    let lines: Vec<_> = error.lines().collect();
    let (code, caret) = (lines[3], lines[4]);
    let before = |line: &str, stop: char| {
        let at = line.rfind(stop).unwrap();
        line[..at].chars().map(|c| if c > '\u{2e80}' { 2 } else { 1 }).sum::<usize>()
    };
    assert_eq!(caret.find('^').map(|at| caret[..at].chars().count()), Some(before(code, '=')), "\n{error}");
}

#[test]
fn flags_override_environment_which_overrides_the_file() {
    let text = "[upstreams.ds]\nknown = \"deepseek\"\n[agents.default]\nmodel = \"ds/a\"\n[agents.b]\nmodel = \"demo\"";
    let flag = |model: &str| ConfigFlags { model: Some(model.into()), ..ConfigFlags::default() };
    let cases: [Layered<'_>; 6] = [
        (&[], ConfigFlags::default(), "default", "ds/a"),
        (&[("THROUGHLINE_MODEL", "groq/x/y")], ConfigFlags::default(), "default", "groq/x/y"),
        (&[("THROUGHLINE_MODEL", "groq/x")], flag("ds/c"), "default", "ds/c"),
        (&[("THROUGHLINE_MODEL", "")], ConfigFlags::default(), "default", "ds/a"),
        (&[("THROUGHLINE_AGENT", "b")], ConfigFlags::default(), "b", "demo/demo"),
        (
            &[("THROUGHLINE_AGENT", "b")],
            ConfigFlags { agent: Some("default".into()), ..flag("demo") },
            "default",
            "demo/demo",
        ),
    ];
    for (env, flags, agent, model) in cases {
        let settings = settings(text, env, &flags).unwrap();
        assert_eq!(
            (settings.agent.as_str(), model_of(&settings).as_str()),
            (agent, model),
            "{env:?} {flags:?}"
        );
    }
}

#[test]
fn environment_sets_streaming_and_address_per_upstream() {
    let text = "[upstreams.\"my.ds\"]\nknown = \"deepseek\"\n[upstreams.b]\nknown = \"ollama\"\n[agents.a]\nmodel = \"b/x\"";
    let shown = |env: &[(&str, &str)]| {
        let settings = settings(text, env, &ConfigFlags::default()).unwrap();
        let transfer = |name: &str| format!("{:?}", settings.upstreams[name]).contains("transfer: Stream");
        (transfer("my.ds"), transfer("b"), settings.upstreams["b"].summary())
    };
    let here = "ollama http://localhost:11434".to_owned();
    assert_eq!(shown(&[]), (true, true, here.clone()));
    assert_eq!(shown(&[("THROUGHLINE_STREAMING", "off")]), (false, false, here.clone()));
    assert_eq!(shown(&[("THROUGHLINE_STREAMING_MY_DS", "off")]), (false, true, here.clone()));
    assert_eq!(
        shown(&[("THROUGHLINE_STREAMING", "off"), ("THROUGHLINE_STREAMING_B", "on")]),
        (false, true, here)
    );
    let there = "ollama http://gpu:11434".to_owned();
    assert_eq!(shown(&[("THROUGHLINE_BASE_URL_B", "http://gpu:11434")]), (true, true, there));
}

#[test]
fn environment_and_flag_errors_name_their_origin() {
    let flags = |set: fn(&mut ConfigFlags)| {
        let mut flags = ConfigFlags::default();
        set(&mut flags);
        flags
    };
    let cases: [Layered<'_>; 8] = [
        (
            &[("THROUGHLINE_STREAMING", "no")],
            ConfigFlags::default(),
            "environment variable THROUGHLINE_STREAMING",
            "`on`, `off` or `auto`",
        ),
        (
            &[("THROUGHLINE_MODE_OLLAMA", "txt")],
            ConfigFlags::default(),
            "environment variable THROUGHLINE_MODE_OLLAMA",
            "did you mean `text`?",
        ),
        (
            &[("THROUGHLINE_MODEL", "gpt-5")],
            ConfigFlags::default(),
            "environment variable THROUGHLINE_MODEL",
            "not `upstream/model`",
        ),
        (
            &[("THROUGHLINE_AGENT", "defualt")],
            ConfigFlags::default(),
            "environment variable THROUGHLINE_AGENT",
            "did you mean `default`?",
        ),
        (
            &[("THROUGHLINE_BASE_URL_OLLAMA", "gpu")],
            ConfigFlags::default(),
            "environment variable THROUGHLINE_BASE_URL_OLLAMA",
            "not a valid base URL",
        ),
        (&[], flags(|flags| flags.mode = Some("natve".into())), "--mode", "did you mean `native`?"),
        (&[], flags(|flags| flags.model = Some("grok/x".into())), "--model", "did you mean `groq`?"),
        (&[], flags(|flags| flags.streaming = Some("yes".into())), "--streaming", "`on`, `off` or `auto`"),
    ];
    for (env, flags, place, message) in cases {
        let error = settings("[agents.default]\nmodel = \"ollama/x\"", env, &flags).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(message), "{env:?} {flags:?}\n{error}");
    }
}

#[test]
fn ambiguous_or_missing_agent_is_an_error() {
    let two =
        settings("[agents.a]\nmodel = \"demo\"\n[agents.b]\nmodel = \"demo\"", &[], &ConfigFlags::default());
    assert!(two.unwrap_err().to_string().contains("none is named `default`"));
    let none = settings("[upstreams.u]\nknown = \"ollama\"", &[], &ConfigFlags::default());
    assert!(none.unwrap_err().to_string().contains("no agent, so no model is selected"));
    let model = ConfigFlags { model: Some("u/qwen3".into()), ..ConfigFlags::default() };
    assert_eq!(model_of(&settings("[upstreams.u]\nknown = \"ollama\"", &[], &model).unwrap()), "u/qwen3");
}

#[test]
fn every_profile_field_can_be_set() {
    let known = serde_json::to_value(throughline::wire::UpstreamProfile::default()).unwrap();
    for (field, value) in known.as_object().unwrap() {
        // Where nothing is a limit, a number is one.
        let value = if value.is_null() { "1".to_owned() } else { value.to_string() };
        let text = format!(
            "[upstreams.u]\nknown = \"ollama\"\nprofile = {{ {field} = {value} }}\n[agents.a]\nmodel = \"u/x\""
        );
        settings(&text, &[], &ConfigFlags::default()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn missing_configuration_file_is_named() {
    let error = ConfigFile::load(std::path::Path::new("nowhere/throughline.toml")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the configuration: ") && error.contains("--> nowhere"), "{error}");
}

#[test]
fn mcp_servers_are_read_and_errors_show_their_position() {
    let text = "[mcp.time]\ncommand = [\"mcp-server-time\"]\n[mcp.off]\ncommand = [\"x\"]\nenabled = false\n";
    let settings_of = settings(text, &[], &ConfigFlags::default()).unwrap();
    assert_eq!(settings_of.sources.mcp.keys().collect::<Vec<_>>(), ["time"]);
    check_error(
        "[mcp.files]\nurl = \"example.com\"",
        "the MCP server `files`: `example.com` is not a supported URL\n --> throughline.toml:2:1\n  |\n2 | url \
         = \"example.com\"\n  | ^^^\n  = use an address that begins with https:// or http://",
    );
    check_error(
        "[mcp.files]\ncomand = [\"x\"]",
        "unknown field `comand`\n --> throughline.toml:2:1\n  |\n2 | comand = [\"x\"]\n  | ^^^^^^\n  = did you mean `command`? valid here: `command`, `env`, `env_allow`, `cwd`, `sandbox`, `limits`, `url`, `headers`, `trusted`, `era`, `timeout_ms`, `total_timeout_ms`, `start_timeout_ms`, `tools`, `enabled`",
    );
    let error =
        settings("[mcp.\"a b\"]\ncommand = [\"x\"]", &[], &ConfigFlags::default()).unwrap_err().to_string();
    assert!(error.contains("`a b` cannot be the name") && error.contains("throughline.toml:1:"), "{error}");
}

#[test]
fn trusted_proxy_section_is_validated() {
    let with = |more: &str| {
        let text = format!("[server.trusted_proxy]\nheader = \"X-Forwarded-User\"\n{more}");
        settings(&text, &[], &ConfigFlags::default())
    };
    let proxy = with("from = [\"127.0.0.1\", \"fd00::/64\"]").unwrap().server.trusted_proxy.unwrap();
    assert_eq!((proxy.header.as_str(), proxy.create, proxy.from.len()), ("x-forwarded-user", false, 2));
    assert!(proxy.from[0].contains("127.0.0.1".parse().unwrap()));
    for (more, expected) in [
        ("", "missing field `from`"),
        ("from = []", "the header would be trusted from any client"),
        ("from = [\"0.0.0.0/0\"]", "`0.0.0.0/0` is not an IP address or CIDR range"),
        ("from = [\"proxy.local\"]", "`proxy.local` is not an IP address or CIDR range"),
        (
            "from = [\"::1\"]\nadmin_groups = [\"ops\"]",
            "`admin_groups` and `allowed_groups` have no effect without `groups_header`",
        ),
        ("from = [\"::1\"]\ngroups_header = \"x-forwarded-user\"", "need separate headers"),
        ("from = [\"::1\"]\ngroups_header = \"Cookie\"", "`Cookie` cannot be used as the user name header"),
    ] {
        let error = with(more).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{more}\n{error}");
    }
    let text = "[server]\nauth = \"off\"\n[server.trusted_proxy]\nheader = \"X-User\"\nfrom = [\"::1\"]";
    let error = settings(text, &[], &ConfigFlags::default()).unwrap_err().to_string();
    assert!(error.contains("all requests belong to one user"), "{error}");
}

#[test]
fn oidc_section_has_defaults_and_is_validated() {
    let with = |more: &str| {
        let text = format!("[server.oidc]\nclient_id = \"id\"\n{more}");
        settings(&text, &[("OIDC_SECRET", "hush-hush")], &ConfigFlags::default())
    };
    let issuer = "issuer = \"https://accounts.example.com\"";
    let oidc = with(issuer).unwrap().server.oidc.unwrap();
    assert_eq!((oidc.name.as_str(), oidc.session_hours, oidc.create), ("accounts.example.com", 12, false));
    let secret = with(&format!("{issuer}\nclient_secret_env = \"OIDC_SECRET\"")).unwrap();
    assert!(secret.secret_values(&Default::default()).contains(&"hush-hush".to_owned()));
    assert!(!format!("{:?}", secret.server).contains("hush"));
    // Commands other than `serve` do without the secret.
    let missing = with(&format!("{issuer}\nclient_secret_env = \"NOT_THERE\"")).unwrap().server.oidc.unwrap();
    assert_eq!(missing.missing_secret.as_deref(), Some("NOT_THERE"));
    for (more, expected) in [
        ("", "missing field `issuer`"),
        ("issuer = \"accounts.example.com\"", "`accounts.example.com` is not a valid issuer URL"),
        ("issuer = \"http://accounts.example.com\"", "is not HTTPS"),
        ("issuer = \"https://a.example?x=1\"", "is not a valid issuer URL"),
        (&format!("{issuer}\nsession_hours = 0"), "from 1 to 2160"),
        (&format!("{issuer}\nclaim = \"name\""), "unknown variant `name`"),
    ] {
        let error = with(more).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{more}\n{error}");
    }
}
