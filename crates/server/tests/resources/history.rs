use super::{ask, ask_as, conversation, get, refused, server, turn};
use reqwest::Method;
use serde_json::json;

// R: S4, U5
#[tokio::test]
async fn every_call_is_in_the_history_with_everything_that_happened_to_it() {
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

// R: S4, R4
#[tokio::test]
async fn the_history_is_written_down_for_programs_and_for_spreadsheets() {
    let server = server().await;
    let turn = conversation(&server).await.1[0].clone();
    let events = throughline_server::turn_log::events(&*server.state.log, &turn).await.unwrap();
    let mut rows = throughline_server::turn_log::call_rows(&events);
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

// R: U5
#[tokio::test]
async fn metrics_are_the_askers_own_and_of_the_time_that_is_asked_for() {
    let server = server().await;
    for text in ["What does Paris say?", "And Rome?"] {
        let turn = turn(&server, text, json!({})).await;
        // The task that does so in a real server is not part of this one.
        let events = throughline_server::turn_log::events(&*server.state.log, &turn).await.unwrap();
        let rows = throughline_server::turn_log::call_rows(&events);
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
