//! Sign-in at an OpenID Connect provider, against a small one: who is admitted, and which sign-ins are
//! refused.

#![cfg(feature = "oidc")]

use crate::multi_user_server::{MultiUserServer, answers, walk_every_route};
use crate::provider::{Browser, CLIENT_ID, CLIENT_SECRET, FakeProvider, Shown, SigningKey, TokenFault};
use crate::support::{self, PATIENCE, answered};
use serde_json::{Value, json};
use throughline::config::{ClientSecretText, OidcSettings, PersonClaim, ServerSettings};

fn oidc(issuer: &str) -> OidcSettings {
    OidcSettings {
        client_secret: Some(ClientSecretText::new(CLIENT_SECRET)),
        name: "Example <b>".to_owned(),
        create: true,
        ..OidcSettings::new(issuer, CLIENT_ID)
    }
}

fn with(oidc: OidcSettings) -> ServerSettings {
    ServerSettings { oidc: Some(oidc), ..ServerSettings::default() }
}

async fn multi_user_server(oidc: OidcSettings) -> MultiUserServer {
    MultiUserServer::start_with(answers(8), with(oidc)).await
}

/// Goes to the provider and back.
async fn came_back(browser: &Browser, multi_user_server: &MultiUserServer) -> Shown {
    browser.go(&format!("{}/sign-in/provider?return_to=/c/abc%3Fx=1", multi_user_server.url)).await
}

/// The key of a browser that has signed in.
async fn key_of(browser: &Browser, multi_user_server: &MultiUserServer) -> String {
    let shown = came_back(browser, multi_user_server).await;
    let (status, made) = browser.exchange(&shown).await;
    assert_eq!(status, 201, "{made}");
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn provider_sign_in_yields_a_browser_key() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    let (_, ways) = multi_user_server.ask("tl_none", "GET", "/v1/sign-in", Value::Null).await;
    assert_eq!(
        ways,
        json!({"proxy": false, "provider": {"name": "Example <b>", "url": "/sign-in/provider"}})
    );
    for key in [SigningKey::es256("first"), SigningKey::rs256("second")] {
        provider.rotate(key);
        let browser = Browser::new();
        let shown = came_back(&browser, &multi_user_server).await;
        assert_eq!((shown.url.path(), shown.url.query()), ("/c/abc", Some("x=1")), "{shown:?}");
        let (status, made) = browser.exchange(&shown).await;
        assert_eq!(
            (status, &made["user"], &made["scopes"]),
            (201, &json!("ann@example.com"), &json!(["chat", "tools"]))
        );
        let ms = made["expires_at"].as_i64().unwrap() - made["created_at"].as_i64().unwrap();
        assert_eq!(ms, 12 * 3_600_000);
        let key = made["key"].as_str().unwrap();
        let (_, me) = multi_user_server.ask(key, "GET", "/v1/me", Value::Null).await;
        assert_eq!((&me["user"], &me["signed_in_by"]), (&json!("ann@example.com"), &json!("provider")));
        assert_eq!(multi_user_server.turn(key, "Hello").await.0, 201);
        // The link is used up, and no logged address contains a key, state or code.
        assert_eq!(browser.exchange(&shown).await.0, 401);
        assert!(shown.way.iter().all(|url| !url.as_str().contains("tl_")), "{shown:?}");
    }
    let people = multi_user_server.done("GET", "/v1/users", Value::Null).await;
    assert_eq!(people["items"].as_array().unwrap().len(), 2, "the same person twice: {people}");
    // Limits of the person hold.
    multi_user_server
        .done("PATCH", "/v1/users/ann@example.com", json!({"limits": {"turns_per_day_max": 2}}))
        .await;
    let key = key_of(&Browser::new(), &multi_user_server).await;
    assert_eq!(multi_user_server.turn(&key, "One too many").await.0, 429);
}

#[tokio::test]
async fn sign_in_link_and_callback_are_bound_to_their_browser() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    let (attacker, victim) = (Browser::new(), Browser::new());
    // A link of the attacker would sign the victim in as the attacker, and the victim's messages would go to
    // that account.
    let link = came_back(&attacker, &multi_user_server).await;
    assert_eq!(victim.exchange(&link).await.1["error"]["code"], "sign_in");
    // The same with the address to which the provider sends the browser.
    let begun = attacker.go(&format!("{}/sign-in/provider", multi_user_server.url)).await;
    let callback = begun.way.iter().find(|url| url.path().ends_with("/callback")).unwrap();
    let shown = victim.go(callback.as_str()).await;
    assert_eq!(shown.status, 400, "{shown:?}");
    assert!(shown.body.contains("sign_in_state"), "{}", shown.body);
    // A state that was finished is not finished again, also not by the browser that began it.
    let again = attacker.go(callback.as_str()).await;
    assert!(again.status == 400 && again.body.contains("sign_in_state"), "{again:?}");
}

#[tokio::test]
async fn sign_in_state_cannot_be_reused_or_forged() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    let browser = Browser::new();
    let first = came_back(&browser, &multi_user_server).await;
    let used = first.way.iter().find(|url| url.path().ends_with("/callback")).unwrap().clone();
    let code = |url: &url::Url| url.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    // A new sign-in whose code is replaced by one that was used.
    provider.refuse("access_denied", "stop");
    let begun = browser.go(&format!("{}/sign-in/provider", multi_user_server.url)).await;
    let state = begun.url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    assert!(begun.body.contains("provider_refused") && begun.body.contains("stop"), "{}", begun.body);
    let replay =
        format!("{}/sign-in/provider/callback?state={state}&code={}", multi_user_server.url, code(&used));
    assert!(browser.go(&replay).await.body.contains("sign_in_state"), "the state was used by the refusal");
    for wrong in ["", "?code=x", "?state=&code=x", "?state=x&code=x", "?state=x&state=y&code=x"] {
        let shown = browser.go(&format!("{}/sign-in/provider/callback{wrong}", multi_user_server.url)).await;
        assert_eq!(shown.status, 400, "{wrong}: {}", shown.body);
    }
}

#[tokio::test]
async fn code_of_another_sign_in_is_rejected_by_the_provider() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    let (one, two) = (Browser::new(), Browser::new());
    let used = came_back(&one, &multi_user_server).await;
    let used = used.way.iter().find(|url| url.path().ends_with("/callback")).unwrap().clone();
    let code = used.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    // The second browser stops at the provider's door, and its callback gets the code of the first.
    let stopped = two.stop_before_callback(&format!("{}/sign-in/provider", multi_user_server.url)).await;
    let mut callback = stopped.clone();
    callback.query_pairs_mut().clear().extend_pairs(stopped.query_pairs().map(|(name, value)| {
        let value = if name == "code" { code.clone() } else { value.into_owned() };
        (name.into_owned(), value)
    }));
    let shown = two.go(callback.as_str()).await;
    assert!(shown.status == 401 && shown.body.contains("invalid_grant"), "{shown:?}");
}

#[tokio::test]
async fn invalid_id_token_is_rejected_with_a_reason() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    for (fault, code, why) in [
        (TokenFault::Nonce, "id_token", "belongs to another sign-in"),
        (TokenFault::Audience, "id_token", "for another client"),
        (TokenFault::SecondAudience, "id_token", "for another client"),
        (TokenFault::Issuer, "id_token", "another provider"),
        (TokenFault::Expired, "id_token", "it has expired"),
        (TokenFault::FromTheFuture, "id_token", "is not valid yet"),
        (TokenFault::Signature, "id_token", "its signature does not match"),
        (TokenFault::ForeignKey, "id_token", "its signature does not match"),
        (TokenFault::Unsigned, "id_token", ""),
        (TokenFault::Missing, "provider_answer", "no ID token"),
    ] {
        provider.fault(fault);
        let shown = came_back(&Browser::new(), &multi_user_server).await;
        assert!(shown.status == 401 || shown.status == 502, "{fault:?}: {shown:?}");
        assert!(shown.body.contains(&format!("<code>{code}</code>")), "{fault:?}: {}", shown.body);
        assert!(shown.body.contains(why), "{fault:?}: {}", shown.body);
        assert!(shown.body.contains("Example &lt;b&gt;") && !shown.body.contains("<b>"), "{}", shown.body);
    }
    let people = multi_user_server.done("GET", "/v1/users", Value::Null).await;
    assert_eq!(people["items"].as_array().unwrap().len(), 1, "nobody was added: {people}");
    provider.fault(TokenFault::None);
    key_of(&Browser::new(), &multi_user_server).await;
}

#[tokio::test]
async fn rotated_provider_keys_are_fetched_once() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    key_of(&Browser::new(), &multi_user_server).await;
    key_of(&Browser::new(), &multi_user_server).await;
    assert_eq!(provider.key_requests(), 1);
    provider.rotate(SigningKey::es256("next"));
    key_of(&Browser::new(), &multi_user_server).await;
    assert_eq!(provider.key_requests(), 2);
    provider.fault(TokenFault::ForeignKey);
    assert_eq!(came_back(&Browser::new(), &multi_user_server).await.status, 401);
    assert_eq!(provider.key_requests(), 3);
}

#[tokio::test]
async fn unreachable_provider_is_retried_later() {
    let reserved = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let multi_user_server = multi_user_server(oidc(&format!("http://{address}"))).await;
    let shown = came_back(&Browser::new(), &multi_user_server).await;
    assert_eq!(shown.status, 502, "{shown:?}");
    assert!(shown.body.contains("provider_unreachable") && shown.body.contains("sign in with a key"));
    multi_user_server.done("GET", "/v1/me", Value::Null).await;
    let _provider = FakeProvider::start_at(address).await;
    let there = async { while came_back(&Browser::new(), &multi_user_server).await.status == 502 {} };
    tokio::time::timeout(PATIENCE, there).await.expect("the provider is found");
}

#[tokio::test]
async fn rejected_sign_in_reports_its_reason() {
    let provider = FakeProvider::start().await;
    let settings = OidcSettings {
        create: false,
        allowed_domains: vec!["example.com".to_owned()],
        ..oidc(&provider.issuer)
    };
    let multi_user_server = multi_user_server(settings).await;
    let refused = async |code: &str| {
        let shown = came_back(&Browser::new(), &multi_user_server).await;
        assert!(shown.status == 403 && shown.body.contains(&format!("<code>{code}</code>")), "{shown:?}");
    };
    refused("unknown_person").await;
    multi_user_server.done("POST", "/v1/users", json!({"name": "Ann@example.com"})).await;
    let key = key_of(&Browser::new(), &multi_user_server).await;
    provider.person(json!({"sub": "7", "email": "ann@example.com", "email_verified": false}));
    refused("email_unverified").await;
    provider.person(json!({"sub": "8", "email": "bob@example.org", "email_verified": true}));
    refused("not_allowed").await;
    provider.person(json!({"sub": "9", "email": "local", "email_verified": true}));
    refused("not_allowed").await;
    multi_user_server.done("DELETE", "/v1/users/ann@example.com", Value::Null).await;
    assert_eq!(multi_user_server.ask(&key, "GET", "/v1/me", Value::Null).await.0, 401);
    provider.person(json!({"sub": "7", "email": "ann@example.com", "email_verified": true}));
    refused("removed_person").await;
    provider.refuse("access_denied", "<script>alert(1)</script> \u{202e}no");
    let shown = came_back(&Browser::new(), &multi_user_server).await;
    assert!(shown.body.contains("&lt;script&gt;") && !shown.body.contains("<script"), "{}", shown.body);
    assert!(!shown.body.contains('\u{202e}'), "{}", shown.body);
}

#[tokio::test]
async fn provider_groups_set_admin_and_update_earlier_keys() {
    let provider = FakeProvider::start().await;
    let settings = OidcSettings { admin_groups: vec!["ops".to_owned()], ..oidc(&provider.issuer) };
    let multi_user_server = multi_user_server(settings).await;
    let person = |groups: Value| json!({"sub": "7", "email": "ann@example.com", "email_verified": true, "groups": groups});
    provider.person(person(json!(["staff", "ops"])));
    let key = key_of(&Browser::new(), &multi_user_server).await;
    assert_eq!(multi_user_server.ask(&key, "GET", "/v1/users", Value::Null).await.0, 200);
    provider.person(person(json!(["staff"])));
    let later = key_of(&Browser::new(), &multi_user_server).await;
    assert_eq!(multi_user_server.ask(&later, "GET", "/v1/users", Value::Null).await.0, 403);
    let demoted =
        async { while multi_user_server.ask(&key, "GET", "/v1/users", Value::Null).await.0 != 403 {} };
    tokio::time::timeout(PATIENCE, demoted).await.expect("the key before has lost its scope, too");
}

#[tokio::test]
async fn sign_out_revokes_the_provider_key_only() {
    let provider = FakeProvider::start().await;
    let multi_user_server = multi_user_server(oidc(&provider.issuer)).await;
    let key = key_of(&Browser::new(), &multi_user_server).await;
    let (status, out) = multi_user_server.ask(&key, "POST", "/v1/sign-out", json!({})).await;
    assert_eq!((status, &out["revoked"]), (200, &json!(true)));
    let url = url::Url::parse(out["provider_url"].as_str().unwrap()).unwrap();
    assert!(url.as_str().starts_with(&format!("{}/logout?", provider.issuer)), "{url}");
    let back = url.query_pairs().find(|(name, _)| name == "post_logout_redirect_uri").unwrap().1.into_owned();
    assert_eq!(back, format!("{}/", multi_user_server.url));
    assert_eq!(multi_user_server.ask(&key, "GET", "/v1/me", Value::Null).await.0, 401);
    // A key that was entered by hand belongs to the user, and stays valid.
    let out = multi_user_server.done("POST", "/v1/sign-out", json!({})).await;
    assert_eq!(out, json!({"revoked": false, "provider_url": null}));
    multi_user_server.done("GET", "/v1/me", Value::Null).await;
}

#[tokio::test]
async fn provider_sign_in_is_404_without_a_provider() {
    let multi_user_server = MultiUserServer::start(answers(0)).await;
    let shown = Browser::new().go(&format!("{}/sign-in/provider", multi_user_server.url)).await;
    assert!(shown.status == 404 && shown.body.contains("no_provider"), "{shown:?}");
    let client = support::http_client().build().unwrap();
    let (_, ways) = answered(client.get(format!("{}/v1/sign-in", multi_user_server.url))).await;
    assert_eq!(ways, json!({"proxy": false, "provider": null}));
}

#[tokio::test]
async fn no_route_exposes_other_users_after_provider_sign_in() {
    let provider = FakeProvider::start().await;
    let settings = OidcSettings {
        claim: PersonClaim::PreferredUsername,
        admins: vec!["ann".to_owned()],
        ..oidc(&provider.issuer)
    };
    let multi_user_server = multi_user_server(settings).await;
    provider.person(json!({"sub": "7", "preferred_username": "Ann"}));
    let ann = key_of(&Browser::new(), &multi_user_server).await;
    provider.person(json!({"sub": "8", "preferred_username": "bob"}));
    let bob = key_of(&Browser::new(), &multi_user_server).await;
    walk_every_route(&multi_user_server, &ann, &bob).await;
}
