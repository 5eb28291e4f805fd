//! Prompts that a person has saved.

use super::*;

async fn save(server: &TestServer, name: &str, body: Value) -> (u16, Value) {
    ask(server, Method::PUT, &format!("/v1/saved-prompts/{name}"), Some(body)).await
}

#[tokio::test]
async fn prompt_is_saved_changed_and_deleted_by_version() {
    let server = server().await;
    let (status, first) =
        save(&server, "weekly%20report", json!({"text": "About {{topic}}", "version": 0})).await;
    assert_eq!((status, &first["name"], &first["version"]), (200, &json!("weekly report"), &json!(1)));
    save(&server, "answer", json!({"text": "Answer"})).await;
    let names = |list: &Value| -> Vec<String> {
        list["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&get(&server, "/v1/saved-prompts").await), ["answer", "weekly report"]);

    // A concurrent change by another client is reported.
    let (status, second) = save(&server, "weekly%20report", json!({"text": "Two", "version": 1})).await;
    assert_eq!((status, &second["version"]), (200, &json!(2)));
    for (version, code) in [(1, "changed_meanwhile"), (0, "name_taken")] {
        let (status, said) = save(&server, "weekly%20report", json!({"text": "x", "version": version})).await;
        assert_eq!((status, &said["error"]["code"]), (409, &json!(code)));
    }
    assert_eq!(save(&server, "none", json!({"text": "x", "version": 3})).await.0, 404);

    let path = "/v1/saved-prompts/weekly%20report";
    assert_eq!(ask(&server, Method::DELETE, path, None).await.0, 204);
    assert_eq!(refused(&server, Method::DELETE, path, None).await.0, 404);
    assert_eq!(names(&get(&server, "/v1/saved-prompts").await), ["answer"]);
}

#[tokio::test]
async fn prompt_name_text_and_count_are_limited() {
    let server = server().await;
    let long = "n".repeat(61);
    for (name, text, code) in [
        ("%20", "x", "invalid_value"),
        (long.as_str(), "x", "invalid_value"),
        ("a%E2%80%AEb", "x", "invalid_value"),
        ("a", "  ", "empty_prompt"),
        ("a", &"x".repeat(20_001), "prompt_too_long"),
    ] {
        let (status, said) = save(&server, name, json!({"text": text})).await;
        assert_eq!((status, &said["error"]["code"]), (400, &json!(code)), "{name}");
    }
    for at in 0..200 {
        assert_eq!(save(&server, &format!("p{at}"), json!({"text": "x".repeat(20_000)})).await.0, 200);
    }
    let (status, said) = save(&server, "one-more", json!({"text": "x"})).await;
    assert_eq!((status, &said["error"]["code"]), (409, &json!("too_many_prompts")));
    assert_eq!(save(&server, "p7", json!({"text": "changed"})).await.0, 200);
}
