use super::{ask, get, refused, server};
use reqwest::Method;
use serde_json::{Value, json};
use throughline_testkit::parsed_request::ParsedMessage;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";

async fn upload(server: &super::TestServer, path: &str, media_type: &str, content: &[u8]) -> (u16, Value) {
    let request = server.client().post(server.url(path)).header("content-type", media_type);
    let response = request.body(content.to_vec()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn file_is_uploaded_listed_downloaded_and_deleted() {
    let server = server().await;
    let mut form =
        b"--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nvision\r\n--x\r\n".to_vec();
    form.extend("Content-Disposition: form-data; name=\"file\"; filename=\"../日本.png\"\r\n".bytes());
    form.extend(b"Content-Type: image/png\r\n\r\n");
    form.extend(PNG);
    form.extend(b"\r\n--x--\r\n");
    let (status, file) = upload(&server, "/v1/files", "multipart/form-data; boundary=x", &form).await;
    assert_eq!(status, 201, "{file}");
    assert_eq!(
        (&file["name"], &file["media_type"], &file["bytes"]),
        (&json!("日本.png"), &json!("image/png"), &json!(PNG.len()))
    );
    let id = file["id"].as_str().unwrap();

    let response = server.client().get(server.url(&format!("/v1/files/{id}/content"))).send().await.unwrap();
    let headers = response.headers().clone();
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-disposition", "attachment; filename=\"__.png\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'; frame-ancestors 'none'"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert_eq!(response.bytes().await.unwrap(), PNG);
    let again = server.client().get(server.url(&format!("/v1/files/{id}/content")));
    assert_eq!(again.header("if-none-match", headers["etag"].clone()).send().await.unwrap().status(), 304);

    // A raw body, with its name in the query. Equal contents are two files.
    let (status, second) = upload(&server, "/v1/files?name=b.png", "image/png", PNG).await;
    assert_eq!((status, &second["hash"]), (201, &file["hash"]));
    let listed = get(&server, "/v1/files").await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(ask(&server, Method::DELETE, &format!("/v1/files/{id}"), None).await.0, 204);
    assert_eq!(refused(&server, Method::GET, &format!("/v1/files/{id}/content"), None).await.0, 404);
    // The content stays while the other file needs it.
    let path = format!("/v1/files/{}/content", second["id"].as_str().unwrap());
    assert_eq!(server.client().get(server.url(&path)).send().await.unwrap().bytes().await.unwrap(), PNG);
}

#[tokio::test]
async fn mismatched_empty_and_malformed_uploads_are_rejected() {
    let server = server().await;
    for (media_type, content, status, code) in [
        ("image/png", &b"<script>alert(1)</script>"[..], 415, "media_type_mismatch"),
        ("text/plain", PNG, 415, "media_type_mismatch"),
        ("text/plain", b"\xff\xfe\0", 415, "media_type_mismatch"),
        ("application/octet-stream", b"", 400, "empty_file"),
        ("multipart/form-data; boundary=x", b"--x--\r\n", 400, "no_file"),
        ("multipart/form-data", b"--x--\r\n", 400, "bad_form"),
    ] {
        let (said, body) = upload(&server, "/v1/files", media_type, content).await;
        assert_eq!((said, body["error"]["code"].as_str()), (status, Some(code)), "{media_type}: {body}");
    }
    // Markup is stored with its type, and never served as a page.
    let (status, page) = upload(&server, "/v1/files", "text/html", b"<script>alert(1)</script>").await;
    assert_eq!((status, &page["media_type"]), (201, &json!("text/html")));
    let path = format!("/v1/files/{}/content", page["id"].as_str().unwrap());
    let response = server.client().get(server.url(&path)).send().await.unwrap();
    assert!(response.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"));
    let (status, _) = ask(&server, Method::GET, "/v1/files", None).await;
    assert_eq!(
        (status, get(&server, "/v1/files").await["items"].as_array().unwrap().len()),
        (200, 1),
        "nothing else was kept"
    );
}

#[tokio::test]
async fn oversized_file_is_rejected_and_not_stored() {
    let server = server().await;
    let max = usize::try_from(server.state.blobs.limits().file_bytes_max).unwrap();
    let (status, body) = upload(&server, "/v1/files", "application/octet-stream", &vec![7; max + 1]).await;
    assert_eq!(
        (status, &body["error"]["code"], &body["error"]["limit"]),
        (413, &json!("file_too_large"), &json!(max)),
        "{body}"
    );
    assert_eq!(get(&server, "/v1/files").await["items"], json!([]));
}

#[tokio::test]
async fn image_file_id_in_a_turn_reaches_the_model() {
    let server = server().await;
    let (_, file) = upload(&server, "/v1/files?name=cat.png", "image/png", PNG).await;
    let (_, notes) = upload(&server, "/v1/files?name=notes.txt", "text/plain", b"a cat").await;
    let (picture, text) = (&file["id"], &notes["id"]);
    let input = |kind: &str, id: &Value| json!({"input": [{"type": "text", "text": "What is it?"}, {"type": kind, "file_id": id}]});
    let (status, code, _) = refused(&server, Method::POST, "/v1/turns", Some(input("image", text))).await;
    assert_eq!((status, code.as_str()), (422, "not_an_image"));
    let missing = json!("file_none");
    assert_eq!(refused(&server, Method::POST, "/v1/turns", Some(input("image", &missing))).await.0, 404);

    let (_, started) = server.post("/v1/turns", input("image", picture)).await;
    let turn = started["turn_id"].as_str().unwrap();
    let events = server.follow(turn, 0).await.rest().await;
    assert_eq!(events.last().unwrap().data["status"], "completed", "{events:#?}");
    let seen = server.upstream.requests().remove(0);
    let Some(ParsedMessage::User { images, text, .. }) = seen.messages.first() else { panic!("{seen:#?}") };
    assert_eq!((text.as_str(), images[0].bytes.as_slice()), ("What is it?", PNG));
    // It stays as long as the conversation does, also after a restart.
    let server = server.restart().await;
    let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(snapshot["message"]["input"][1]["type"], "image", "{snapshot}");
}

#[tokio::test]
async fn text_of_a_non_pdf_or_without_a_reader_is_rejected() {
    let server = server().await;
    let (_, notes) = upload(&server, "/v1/files?name=notes.txt", "text/plain", b"a cat").await;
    let (_, pdf) = upload(&server, "/v1/files?name=a.pdf", "application/pdf", b"%PDF-1.4\n").await;
    for (file, query, status, code) in [
        (&notes, "", 422, "not_a_pdf"),
        (&pdf, "", 501, "no_pdf_reader"),
        (&pdf, "?from_page=0", 400, "invalid_value"),
        (&pdf, "?page=1", 400, "unknown_field"),
        (&pdf, "?from_page=-1", 400, "invalid_value"),
    ] {
        let path = format!("/v1/files/{}/text{query}", file["id"].as_str().unwrap());
        let (found, found_code, _) = refused(&server, Method::GET, &path, None).await;
        assert_eq!((found, found_code.as_str()), (status, code), "{path}");
    }
}
