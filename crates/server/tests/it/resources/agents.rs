use super::{ask, get, post, refused, server, turn};
use reqwest::Method;
use serde_json::{Value, json};

fn settings(more: Value) -> Value {
    let mut settings =
        json!({"model": "test/m", "prompt": "You are {{ agent }}.", "tool_call": {"enabled": true}});
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    settings
}

#[tokio::test]
async fn agent_lifecycle_needs_no_restart() {
    let server = server().await;
    let made =
        post(&server, "/v1/agents", json!({"name": "researcher", "settings": settings(json!({}))})).await;
    assert_eq!(
        (&made["origin"], &made["read_only"], &made["version"]),
        (&json!("stored"), &json!(false), &json!(1))
    );
    assert_eq!(made["settings"]["tool_call"]["max_iterations"], 5, "defaults are said");
    let turn_id = turn(&server, "Hello", json!({"agent": "researcher"})).await;
    assert_eq!(get(&server, &format!("/v1/turns/{turn_id}")).await["message"]["agent"], "researcher");
    let told = |server: &super::TestServer| {
        server.upstream.requests().last().and_then(|request| request.instructions.clone()).unwrap_or_default()
    };
    assert_eq!(told(&server), "You are researcher.");

    let change = json!({"settings": settings(json!({"prompt": "You are changed."})), "version": 1});
    let (status, changed) = ask(&server, Method::PUT, "/v1/agents/researcher", Some(change.clone())).await;
    assert_eq!((status, &changed["version"]), (200, &json!(2)), "{changed}");
    let late = refused(&server, Method::PUT, "/v1/agents/researcher", Some(change)).await;
    assert_eq!((late.0, late.1.as_str()), (409, "changed_meanwhile"));
    turn(&server, "Hello", json!({"agent": "researcher"})).await;
    assert_eq!(told(&server), "You are changed.");

    let again = json!({"name": "researcher", "settings": settings(json!({}))});
    assert_eq!(refused(&server, Method::POST, "/v1/agents", Some(again)).await.1, "name_taken");
    assert_eq!(ask(&server, Method::DELETE, "/v1/agents/researcher", None).await.0, 204);
    let start = json!({"input": [{"type": "text", "text": "Hi"}], "agent": "researcher"});
    assert_eq!(refused(&server, Method::POST, "/v1/turns", Some(start)).await.1, "unknown_agent");
    assert_eq!(refused(&server, Method::GET, "/v1/agents/researcher", None).await.0, 404);
}

#[tokio::test]
async fn configured_agent_is_read_only_and_can_be_duplicated() {
    let server = server().await;
    let own = get(&server, "/v1/agents").await["items"][0].clone();
    assert_eq!(
        (&own["name"], &own["origin"], &own["read_only"], &own["is_default"]),
        (&json!("default"), &json!("file"), &json!(true), &json!(true))
    );
    let body = || Some(json!({"settings": settings(json!({}))}));
    for (method, path, body) in [
        (Method::PUT, "/v1/agents/default", body()),
        (Method::DELETE, "/v1/agents/default", None),
        (Method::PATCH, "/v1/agents/default/toggles", Some(json!({}))),
    ] {
        let (status, code, _) = refused(&server, method, path, body).await;
        assert_eq!((status, code.as_str()), (409, "agent_is_read_only"), "{path}");
    }
    let copy = post(&server, "/v1/agents/default/duplicate", json!({"name": "mine"})).await;
    let original = get(&server, "/v1/agents/default").await;
    assert_eq!(copy["settings"], original["settings"]);
    assert_eq!(copy["read_only"], false);
    let taken = refused(
        &server,
        Method::POST,
        "/v1/agents",
        Some(json!({"name": "default", "settings": settings(json!({}))})),
    )
    .await;
    assert_eq!((taken.0, taken.1.as_str(), taken.2.as_str()), (409, "name_taken", "name"));
}

#[tokio::test]
async fn policy_rule_matching_no_tool_is_a_warning() {
    let server = server().await;
    let rules = json!({"policy": [{"decide": "deny", "tool": "calendar.ad"}, {"decide": "allow", "tool": "calendar"}]});
    let agent = post(&server, "/v1/agents", json!({"name": "mine", "settings": settings(rules)})).await;
    let warnings = agent["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{agent}");
    assert!(warnings[0].as_str().unwrap().contains("did you mean `calendar.add`?"), "{agent}");
    let listed = get(&server, "/v1/agents").await;
    let mine = listed["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "mine").unwrap();
    assert_eq!(&mine["warnings"], &agent["warnings"]);
    assert!(listed["items"][0].get("warnings").is_none(), "nothing is said of one that is well");
}

#[tokio::test]
async fn invalid_and_config_only_settings_are_rejected_by_field() {
    let server = server().await;
    for (more, param, says) in [
        (json!({"model": "tset/m"}), "settings.model", "did you mean `test`?"),
        (json!({"model": "openai/gpt-5"}), "settings.model", "there is no upstream `openai`"),
        (json!({"prompt": "{{ usr }}"}), "settings.prompt", "line 1"),
        (json!({"tool_call": {"max_iteration": 3}}), "settings.tool_call.max_iteration", "max_iterations"),
        (json!({"policy": [{"decide": "maybe"}]}), "settings.policy[0].decide", "maybe"),
        (
            json!({"policy": [{"decide": "ask", "tool": "*"}, {"decide": "allow"}]}),
            "settings.policy[1]",
            "has no condition",
        ),
        // What is the configuration's alone.
        (
            json!({"upstreams": {"x": {"dialect": "openai-chat", "base_url": "http://evil.example"}}}),
            "settings.upstreams",
            "unknown field",
        ),
        (json!({"base_url": "http://evil.example"}), "settings.base_url", "unknown field"),
        (json!({"key_env": "OPENAI_API_KEY"}), "settings.key_env", "unknown field"),
        (json!({"headers": {"x": "$HOME"}}), "settings.headers", "unknown field"),
        (json!({"mcp": {"x": {"command": "sh"}}}), "settings.mcp", "unknown field"),
        (json!({"commands": {"x": {"program": "sh"}}}), "settings.commands", "unknown field"),
        (
            json!({"http_tools": {"x": {"url": "http://evil.example"}}}),
            "settings.http_tools",
            "unknown field",
        ),
        (json!({"vcp_plugins": {"folders": ["/"]}}), "settings.vcp_plugins", "unknown field"),
        (json!({"tools": {"files": {"roots": ["/"]}}}), "settings.tools", "unknown field"),
    ] {
        let body = json!({"name": "bad", "settings": settings(more.clone())});
        let (status, said) = ask(&server, Method::POST, "/v1/agents", Some(body)).await;
        let error = &said["error"];
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!("invalid_agent"), &json!(param)),
            "{said}"
        );
        assert!(said.to_string().contains(says), "{says}: {said}");
    }
    for name in ["", "a/b", ".hidden", "a b"] {
        let body = json!({"name": name, "settings": settings(json!({}))});
        assert_eq!(refused(&server, Method::POST, "/v1/agents", Some(body)).await.2, "name");
    }
    // No other route takes any of it: none of them exists.
    for path in
        ["/v1/upstreams", "/v1/upstreams/test", "/v1/mcp", "/v1/commands", "/v1/http_tools", "/v1/config"]
    {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let (status, _) = ask(&server, method.clone(), path, Some(json!({}))).await;
            assert!(status == 404 || status == 405, "{method} {path}: {status}");
        }
    }
    assert_eq!(get(&server, "/v1/agents").await["items"].as_array().unwrap().len(), 1, "nothing was kept");
}

#[tokio::test]
async fn tools_are_toggled_by_name_and_source() {
    let server = server().await;
    post(&server, "/v1/agents", json!({"name": "a", "settings": settings(json!({}))})).await;
    let offered = async |server: &_| -> usize {
        let tools = get(server, "/v1/agents/a/tools").await;
        tools["items"].as_array().unwrap().iter().filter(|tool| tool["offered"] == true).count()
    };
    let all = offered(&server).await;
    assert!(all > 3, "{all}");
    let switch =
        async |server: &_, body: Value| ask(server, Method::PATCH, "/v1/agents/a/toggles", Some(body)).await;
    let (status, detail) =
        switch(&server, json!({"sources": {"test": false}, "tools": {"test.echo": true}})).await;
    assert_eq!(status, 200, "{detail}");
    assert_eq!(offered(&server).await, all - 6, "seven of that source, and one of them is on by name");
    let why = get(&server, "/v1/agents/a/tools").await["items"].clone();
    let note = why.as_array().unwrap().iter().find(|tool| tool["name"] == "test.note").unwrap().clone();
    assert!(note["why_not"].as_str().unwrap().contains("disabled"), "{note}");
    switch(&server, json!({"sources": {"test": null}})).await;
    assert_eq!(offered(&server).await, all, "switches can be taken away");
    for (body, param) in [
        (json!({"tools": {"tset": true}}), "tools.tset"),
        (json!({"sources": {"mcp:x": true}}), "sources.mcp:x"),
    ] {
        let said = refused(&server, Method::PATCH, "/v1/agents/a/toggles", Some(body)).await;
        assert_eq!((said.0, said.2.as_str()), (400, param));
    }
}

#[tokio::test]
async fn agent_prompt_is_shown_with_its_token_count() {
    let server = server().await;
    post(
        &server,
        "/v1/agents",
        json!({"name": "a", "settings": settings(json!({"prompt": "Use:\n{{ tools }}"}))}),
    )
    .await;
    let native = get(&server, "/v1/agents/a/prompt").await;
    assert_eq!((&native["mode"], &native["tools_text"]), (&json!("auto"), &json!("")));
    let text = get(&server, "/v1/agents/a/prompt?protocol=vcp").await;
    assert_eq!((&text["mode"], &text["protocol"]), (&json!("text"), &json!("vcp")));
    assert!(text["prompt"].as_str().unwrap().contains(text["tools_text"].as_str().unwrap()));
    assert!(text["tokens"]["total"].as_u64().unwrap() > 50, "{text}");
    let ways = get(&server, "/v1/prompts?agent=a").await;
    let names: Vec<String> = ways["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| format!("{} {}", way["mode"], way["protocol"]))
        .collect();
    assert_eq!(names, ["\"native\" null", "\"text\" \"vcp\"", "\"text\" \"xml\""]);
    assert_eq!(refused(&server, Method::GET, "/v1/agents/a/prompt?protocol=morse", None).await.2, "protocol");
    assert_eq!(refused(&server, Method::GET, "/v1/agents/nobody/prompt", None).await.0, 404);
}

#[tokio::test]
async fn user_agent_survives_a_restart_and_is_private() {
    let server = server().await;
    post(&server, "/v1/agents", json!({"name": "researcher", "settings": settings(json!({}))})).await;
    let server = server.restart().await;
    // Named by a turn before anything has listed it.
    let turn_id = turn(&server, "Hello", json!({"agent": "researcher"})).await;
    assert_eq!(get(&server, &format!("/v1/turns/{turn_id}")).await["message"]["agent"], "researcher");

    let server = server.restart().await;
    let chat = json!({"model": "researcher", "messages": [{"role": "user", "content": "Hi"}]});
    let answer = post(&server, "/v1/chat/completions", chat.clone()).await;
    assert_eq!(answer["model"], "researcher", "{answer}");
    assert_eq!(
        server.upstream.requests().last().unwrap().instructions.as_deref(),
        Some("You are researcher.")
    );
    let names = |models: &Value| {
        let models = models["data"].as_array().unwrap().iter();
        models.map(|model| model["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let server = server.restart().await;
    assert_eq!(names(&get(&server, "/v1/models").await), ["default", "researcher", "test/m"]);
    assert_eq!(get(&server, "/v1/models/researcher").await["owned_by"], "throughline");
    let (_, others) = super::ask_as("eve", &server, Method::GET, "/v1/models", None).await;
    assert_eq!(names(&others), ["default", "test/m"]);
    // To another user it is the name of a model.
    super::ask_as("eve", &server, Method::POST, "/v1/chat/completions", Some(chat)).await;
    assert_ne!(
        server.upstream.requests().last().unwrap().instructions.as_deref(),
        Some("You are researcher.")
    );
}

#[tokio::test]
async fn preview_resolves_unsaved_settings_without_saving() {
    let server = server().await;
    post(&server, "/v1/agents", json!({"name": "a", "settings": settings(json!({}))})).await;
    let unsaved = settings(json!({
        "prompt": "I am {{ agent }}.\n{{ tools }}",
        "tool_call": {"enabled": true, "tool_toggles": {"test.note": false, "gone": true}},
    }));
    let seen = post(&server, "/v1/agents/a/preview", json!({"settings": unsaved})).await;
    assert_eq!(seen["settings"]["prompt"], "I am {{ agent }}.\n{{ tools }}");
    assert_eq!(seen["settings"]["tool_call"]["max_iterations"], 5, "defaults are said");
    let ways = seen["prompts"].as_array().unwrap();
    let names: Vec<String> = ways.iter().map(|way| format!("{} {}", way["mode"], way["protocol"])).collect();
    assert_eq!(names, ["\"native\" null", "\"text\" \"vcp\"", "\"text\" \"xml\""]);
    for way in ways {
        assert!(way["prompt"].as_str().unwrap().starts_with("I am a."), "{way}");
        assert!(!way["tools_text"].as_str().unwrap().contains("test_note"), "{way}");
    }
    assert!(ways[1]["prompt"].as_str().unwrap().contains("test_echo"), "{}", ways[1]);
    let tools = seen["tools"]["tools"].as_array().unwrap();
    let note = tools.iter().find(|tool| tool["name"] == "test.note").unwrap();
    assert!(note["why_not"].as_str().unwrap().contains("disabled"), "{note}");
    assert_eq!(seen["tools"]["unknown_toggles"], json!(["gone"]));
    assert_eq!(seen["call"], Value::Null, "nobody has asked about one");
    // Nothing of it was saved.
    assert_eq!(get(&server, "/v1/agents/a").await["settings"]["prompt"], "You are {{ agent }}.");

    // An agent of the configuration can be previewed, too; an error is the same as on saving.
    let copy = get(&server, "/v1/agents/default").await["settings"].clone();
    assert_eq!(
        post(&server, "/v1/agents/default/preview", json!({"settings": copy})).await["call"],
        Value::Null
    );
    let endless = "{% for i in range(9999) %}{% for j in range(9999) %}.{% endfor %}{% endfor %}";
    for (more, param) in [
        (json!({"model": "tset/m"}), "settings.model"),
        (json!({"policy": [{"decide": "maybe"}]}), "settings.policy[0].decide"),
        (json!({"prompt": endless}), "settings.prompt"),
    ] {
        let body = json!({"settings": settings(more)});
        let said = refused(&server, Method::POST, "/v1/agents/a/preview", Some(body)).await;
        assert_eq!((said.0, said.2.as_str()), (400, param));
    }
    let body = json!({"settings": settings(json!({}))});
    assert_eq!(refused(&server, Method::POST, "/v1/agents/nobody/preview", Some(body)).await.0, 404);
}

#[tokio::test]
async fn preview_names_the_deciding_policy_rule() {
    let server = server().await;
    post(&server, "/v1/agents", json!({"name": "a", "settings": settings(json!({}))})).await;
    let policy = json!([
        {"decide": "deny", "tool": "test.echo", "arguments": {"text": {"starts_with": "no"}}, "reason": "Not that."},
        {"decide": "ask", "tool": "test"},
    ]);
    let fate = async |more: Value, call: Value| -> [Value; 3] {
        let body = json!({"settings": settings(more), "call": call});
        let call = post(&server, "/v1/agents/a/preview", body).await["call"].clone();
        ["outlook", "rule", "why"].map(|part| call[part].clone())
    };
    let rules = || json!({"policy": policy});
    let echo = |text: &str| json!({"tool": "test.echo", "arguments": {"text": text}});
    let said = [json!("denied"), json!("rule:1 deny test.echo text starts with no"), json!("Not that.")];
    assert_eq!(fate(rules(), echo("nothing")).await, said);
    assert_eq!(fate(rules(), echo("yes")).await, [json!("asks"), json!("rule:2 ask test"), Value::Null]);
    let [outlook, rule, _] = fate(json!({}), echo("nothing")).await;
    assert_eq!((outlook, rule), (json!("runs"), json!("effect:pure")), "without rules its effect decides");
    let [outlook, _, why] = fate(rules(), json!({"tool": "test.echo"})).await;
    assert_eq!(outlook, "not_started");
    assert!(why.as_str().unwrap().contains("are invalid"), "{why}");
    let off = json!({"policy": policy, "tool_call": {"enabled": false}});
    let [outlook, _, why] = fate(off, echo("yes")).await;
    assert_eq!(outlook, "not_started");
    assert!(why.as_str().unwrap().contains("not offered"), "{why}");
    let [outlook, _, why] = fate(rules(), json!({"tool": "test.eco"})).await;
    assert_eq!(outlook, "not_started");
    assert!(why.as_str().unwrap().contains("test_echo"), "{why}");
}

/// Path of each value of the settings.
fn leaves(settings: &Value, at: &str, paths: &mut Vec<String>) {
    match settings.as_object() {
        Some(members) if !members.is_empty() => {
            for (name, value) in members {
                leaves(value, &if at.is_empty() { name.clone() } else { format!("{at}.{name}") }, paths);
            }
        }
        _ => paths.push(at.to_owned()),
    }
}

#[tokio::test]
async fn agent_fields_describe_every_setting_and_choice() {
    let server = server().await;
    let mut described: Vec<String> =
        ["permissions", "policy", "text_rules", "tool_call.tool_toggles"].map(str::to_owned).to_vec();
    let fields = async |query: &str| -> Vec<Value> {
        let said = get(&server, &format!("/v1/agent-fields{query}")).await;
        let parts = said["parts"].as_array().unwrap().clone();
        parts.iter().flat_map(|part| part["fields"].as_array().unwrap().clone()).collect()
    };
    let (english, chinese) = (fields("").await, fields("?language=zh-CN").await);
    described.extend(english.iter().map(|field| field["path"].as_str().unwrap().to_owned()));
    described.sort();
    let mut all = Vec::new();
    leaves(&server.state.app.agent_defaults(), "", &mut all);
    all.sort();
    assert_eq!(described, all, "a field without a row in api/agent_fields.rs, or a row without a field");
    for (english, chinese) in english.iter().zip(&chinese) {
        assert_eq!(english["path"], chinese["path"]);
        assert_ne!(english["help"], chinese["help"], "{english}");
    }
    let field = |path: &str| english.iter().find(|field| field["path"] == path).unwrap().clone();
    let calls = field("limits.calls_per_turn_max");
    assert_eq!((&calls["kind"], &calls["default"]), (&json!("number"), &json!(256)), "as the server has it");
    assert_eq!(field("tool_call.timeout_ms")["unit"], "ms");
    assert_eq!(field("model")["default"], Value::Null);

    // Every listed choice is accepted, and no other.
    post(&server, "/v1/agents", json!({"name": "a", "settings": settings(json!({}))})).await;
    let says = async |path: &str, value: Value| -> u16 {
        let mut said = settings(json!({}));
        match path.split_once('.') {
            Some((part, name)) => said[part][name] = value,
            None => said[path] = value,
        }
        ask(&server, Method::POST, "/v1/agents/a/preview", Some(json!({"settings": said}))).await.0
    };
    for field in english.iter().filter(|field| field["kind"] == "choice") {
        let path = field["path"].as_str().unwrap();
        for choice in field["choices"].as_array().unwrap() {
            assert_eq!(says(path, choice.clone()).await, 200, "{path} = {choice}");
        }
        assert!(field["choices"].as_array().unwrap().contains(&field["default"]), "{path}");
        assert_eq!(says(path, json!("otherwise")).await, 400, "{path}");
    }
}

#[tokio::test]
async fn preview_applies_text_rules_and_rejects_invalid_ones() {
    let server = server().await;
    post(&server, "/v1/agents", json!({"name": "a", "settings": settings(json!({}))})).await;
    let rules = json!([
        {"pattern": "\\[mood\\] ?", "hide": true, "in": "shown"},
        {"name": "rooms", "pattern": "(\\d)\\d", "replace": "${1}x", "in": "model"},
    ]);
    let example = |text: &str, rules: &Value| json!({"settings": settings(json!({"text_rules": rules})), "text": {"role": "assistant", "text": text}});
    let said = post(&server, "/v1/agents/a/preview", example("[mood] Room 12", &rules)).await;
    assert_eq!(
        (&said["text"]["shown"], &said["text"]["model"]),
        (&json!("Room 12"), &json!("[mood] Room 1x"))
    );
    assert_eq!(said["text"]["rules"][1], json!({"index": 1, "label": "rooms", "in": "model", "matches": 1}));
    assert_eq!(said["settings"]["text_rules"][1]["target_roles"], json!(["assistant"]));

    let refused = async |body: Value| ask(&server, Method::POST, "/v1/agents/a/preview", Some(body)).await;
    let wrong = json!([{"pattern": "(", "hide": true, "in": "shown"}]);
    let (status, said) = refused(example("x", &wrong)).await;
    assert_eq!((status, &said["error"]["param"]), (400, &json!("settings.text_rules[0]")), "{said}");
    let (status, _) = refused(example(&"x".repeat((64 << 10) + 1), &rules)).await;
    assert_eq!(status, 400);
    let many: Vec<Value> = (0..33).map(|_| rules[0].clone()).collect();
    let (status, said) = refused(example("x", &json!(many))).await;
    assert_eq!((status, &said["error"]["param"]), (400, &json!("settings.text_rules[32]")), "{said}");
}
