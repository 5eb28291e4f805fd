use super::{ask, ask_as, conversation, get, refused, server, turn};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn call_history_has_details_timeline_and_filters() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let turn = turns[0].clone();
    let calls = get(&server, &format!("/v1/history/calls?turn_id={turn}")).await["items"].clone();
    let call = &calls[0];
    assert_eq!(
        (&call["tool_name"], &call["conversation_id"], &call["output_summary"]),
        (&json!("test.echo"), &json!(id), &json!("Paris"))
    );
    let tool_id = call["tool_id"].as_str().unwrap();

    let detail = get(&server, &format!("/v1/history/calls/{tool_id}")).await;
    let moments: Vec<&str> =
        detail["timeline"].as_array().unwrap().iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(moments.first(), Some(&"tool_use"));
    assert_eq!(moments.last(), Some(&"tool_result"));
    assert!(moments.contains(&"tool_start") && moments.contains(&"tool_input"), "{moments:?}");
    assert_eq!(
        (&detail["call"]["arguments"], &detail["call"]["output"]),
        (&json!({"text": "Paris"}), &json!("Paris"))
    );
    assert!(detail["seen_by_model"].as_str().unwrap().contains("Paris"), "{detail}");

    let waterfall = get(&server, &format!("/v1/turns/{turn}/waterfall")).await;
    let sum: u64 =
        waterfall["segments"].as_array().unwrap().iter().map(|one| one["ms"].as_u64().unwrap()).sum();
    assert_eq!(json!(sum), waterfall["wall_ms"], "{waterfall}");

    for (filter, count) in [
        ("tool=test.echo", 1),
        ("tool=test.note", 0),
        ("status=success", 1),
        ("status=error", 0),
        ("status=timeout,success", 1),
        ("status=error,timeout", 0),
        ("source=imported", 1),
        ("q=pARIS", 1),
        ("q=%25", 0),
        ("until=1", 0),
        ("from=1", 1),
        ("longer_than_ms=3600000", 0),
    ] {
        let found = get(&server, &format!("/v1/history/calls?{filter}")).await;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{filter}");
        assert_eq!(get(&server, &format!("/v1/history/counts?{filter}")).await["total"], count, "{filter}");
    }
    assert_eq!(
        get(&server, "/v1/history/counts").await["by_tool"],
        json!([{"name": "test.echo", "count": 1}])
    );
    for missing in
        ["/v1/history/calls/none", &format!("/v1/history/calls/{turn}.99"), "/v1/turns/none/waterfall"]
    {
        assert_eq!(refused(&server, Method::GET, missing, None).await.0, 404, "{missing}");
    }
    assert_eq!(refused(&server, Method::GET, "/v1/history/calls?cursor=x", None).await.0, 400);
}

#[tokio::test]
async fn turn_history_pages_filters_and_counts() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let found = get(&server, "/v1/history/turns?limit=2").await;
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    let next = found["next"].as_str().unwrap();
    let rest = get(&server, &format!("/v1/history/turns?limit=2&cursor={next}")).await;
    assert!(rest.get("next").is_none(), "{rest}");
    let mut ids: Vec<&str> = [&found, &rest]
        .into_iter()
        .flat_map(|page| page["items"].as_array().unwrap())
        .map(|row| row["turn_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut all: Vec<&str> = turns.iter().map(String::as_str).collect();
    all.sort_unstable();
    assert_eq!(ids, all, "each once");
    let with_call = get(&server, "/v1/history/turns?q=what+does+paris").await["items"][0].clone();
    assert_eq!(
        (&with_call["turn_id"], &with_call["input"], &with_call["conversation_id"], &with_call["calls"]),
        (&json!(turns[0]), &json!("What does Paris say?"), &json!(id), &json!(1))
    );
    assert!(with_call["started_at"].is_i64() && with_call["duration_ms"].is_i64(), "{with_call}");
    for (filter, count) in [
        ("status=completed", 3),
        ("status=error", 0),
        ("status=error,completed", 3),
        ("agent=imported", 3),
        ("agent=nobody", 0),
        ("model=none", 0),
        ("q=%25", 0),
        ("q=SECOND", 1),
        ("until=1", 0),
        ("from=1", 3),
        ("conversation_id=none", 0),
    ] {
        let found = get(&server, &format!("/v1/history/turns?{filter}")).await;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{filter}");
        // Counting would look through every text.
        if !filter.starts_with("q=") {
            let counts = get(&server, &format!("/v1/history/turn-counts?{filter}")).await;
            assert_eq!(counts["total"], count, "{filter}");
        }
    }
    for wrong in ["turns?cursor=x", "turns?limit=0", "turns?limit=201", "turns?tool=x", "turn-counts?q=x"] {
        assert_eq!(
            refused(&server, Method::GET, &format!("/v1/history/{wrong}"), None).await.0,
            400,
            "{wrong}"
        );
    }
    // Invisible characters of the input are spelled out.
    let hidden = turn(&server, "Hi \u{202e}dlrow", json!({})).await;
    let rows = get(&server, "/v1/history/turns?limit=1").await;
    assert_eq!(
        (&rows["items"][0]["turn_id"], &rows["items"][0]["input"]),
        (&json!(hidden), &json!("Hi \\u202edlrow"))
    );
}

#[tokio::test]
async fn concurrent_history_reads_agree_despite_disconnects() {
    let server = server().await;
    conversation(&server).await;
    let expected = get(&server, "/v1/history/turns").await;
    let counts = get(&server, "/v1/history/turn-counts").await;
    let client = server.client();
    let paths = ["turns", "turn-counts", "turns?q=paris"];
    let read = async |number: usize| {
        let path = paths[number % paths.len()];
        let request = client.get(server.url(&format!("/v1/history/{path}"))).send();
        // Every tenth client disconnects before its answer arrives.
        if number % 10 == 9 {
            let _ = tokio::time::timeout(std::time::Duration::ZERO, request).await;
            return None;
        }
        let response = request.await.unwrap();
        Some((path, response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap()))
    };
    let answers = futures_util::future::join_all((0..1_000).map(read)).await;
    for (path, status, answer) in answers.into_iter().flatten() {
        match path {
            "turns" => assert_eq!((status, &answer), (200, &expected)),
            "turn-counts" => assert_eq!((status, &answer), (200, &counts)),
            // The number of waiting searches is limited, and the others get 503 with a retry hint.
            _ if status == 503 => assert_eq!(answer["error"]["code"], "busy", "{answer}"),
            _ => {
                let found = answer["items"].as_array().map(Vec::len);
                assert_eq!((status, found), (200, Some(1)), "{answer}");
            }
        }
    }
    assert_eq!(get(&server, "/v1/history/turn-counts").await, counts);
}

#[tokio::test]
async fn history_exports_as_jsonl_and_safe_csv() {
    let server = server().await;
    let turn = conversation(&server).await.1[0].clone();
    let events = throughline_server::turn_events(&*server.state.log, &turn).await.unwrap();
    let mut rows = throughline_server::call_rows(&events);
    rows[0].output_summary = Some("=HYPERLINK(\"http://evil\",\"x\")".to_owned());
    server.state.catalog.put_calls("ada", rows).await.unwrap();
    let (status, line) = ask(&server, Method::GET, "/v1/history/export", None).await;
    assert_eq!((status, &line["tool_name"]), (200, &json!("test.echo")), "one line is one object: {line}");
    let response = server.client().get(server.url("/v1/history/export?format=csv")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8");
    let text = response.text().await.unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(lines[0].starts_with("tool_id,turn_id,conversation_id,step,"), "{text}");
    assert!(lines[1].contains("\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\""), "{text}");
    assert_eq!(lines.len(), 3, "a line for each call, each with its end: {text}");
}

#[tokio::test]
async fn metrics_are_per_user_and_limited_to_the_range() {
    let server = server().await;
    for text in ["What does Paris say?", "And Rome?"] {
        let turn = turn(&server, text, json!({})).await;
        // The task that does so in a real server is not part of this one.
        let events = throughline_server::turn_events(&*server.state.log, &turn).await.unwrap();
        let rows = throughline_server::call_rows(&events);
        server.state.catalog.put_calls("ada", rows).await.unwrap();
    }
    let found = get(&server, "/v1/history/metrics?buckets=7").await;
    assert_eq!((&found["turns"]["total"], &found["calls"]["total"]), (&json!(2), &json!(1)), "{found}");
    assert_eq!(found["turns"]["first_token_ms"]["count"], 2, "{found}");
    assert_eq!(found["calls"]["error_rate"], 0.0, "{found}");
    assert_eq!(found["tools"][0]["tool_name"], "test.echo", "{found}");
    assert_eq!(found["turns_by_status"], json!([{"name": "completed", "count": 2}]));
    let buckets = found["buckets"].as_array().unwrap();
    assert_eq!((buckets.len(), &found["turns_cut"]), (7, &json!(false)));
    assert_eq!(buckets.last().unwrap()["turns"]["total"], 2, "they were made just now: {found}");
    let long_ago = get(&server, "/v1/history/metrics?from=1&until=1000").await;
    assert_eq!((&long_ago["turns"]["total"], &long_ago["bucket_ms"]), (&json!(0), &json!(21)));
    let (_, anothers) = ask_as("bob", &server, Method::GET, "/v1/history/metrics", None).await;
    assert_eq!((&anothers["turns"]["total"], &anothers["tools"]), (&json!(0), &json!([])));
    for (query, param) in [("from=5&until=5", "from"), ("buckets=0", "buckets"), ("buckets=201", "buckets")] {
        let said = refused(&server, Method::GET, &format!("/v1/history/metrics?{query}"), None).await;
        assert_eq!(said, (400, "invalid_value".to_owned(), param.to_owned()), "{query}");
    }
    assert_eq!(
        get(&server, "/v1/history/metrics?buckets=200").await["buckets"].as_array().unwrap().len(),
        200
    );
}
