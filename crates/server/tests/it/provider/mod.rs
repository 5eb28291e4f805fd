//! A small OpenID Connect provider: everyone is signed in immediately, codes are valid once, and its tokens
//! can be made invalid.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode, header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use url::Url;

pub const CLIENT_ID: &str = "throughline";
pub const CLIENT_SECRET: &str = "the provider's secret & more";

/// A running provider.
pub struct FakeProvider {
    pub issuer: String,
    shared: Arc<Mutex<Shared>>,
    serving: JoinHandle<()>,
}

struct Shared {
    issuer: String,
    key: SigningKey,
    /// Claims of the token about the person.
    person: Value,
    fault: TokenFault,
    /// Error of the authorization endpoint, instead of a code.
    refusal: Option<(String, String)>,
    codes: HashMap<String, IssuedCode>,
    key_requests: usize,
    counter: usize,
}

#[derive(Clone)]
struct IssuedCode {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

/// The defect of the next tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    None,
    Nonce,
    Audience,
    SecondAudience,
    Issuer,
    Expired,
    FromTheFuture,
    Signature,
    /// Signed with a key that the provider does not publish, under a name that it does.
    ForeignKey,
    Unsigned,
    /// The ID token is missing.
    Missing,
}

/// A key with its name.
pub struct SigningKey {
    id: String,
    pair: Pair,
}

enum Pair {
    Es256(Box<EcdsaKeyPair>),
    Rs256(Box<RsaKeyPair>),
}

impl SigningKey {
    pub fn es256(id: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Pair::Es256(Box::new(pair)) }
    }

    /// A key that is good for nothing but this test: making one takes long.
    pub fn rs256(id: &str) -> Self {
        let text: String = include_str!("test-only-rsa.b64").split_whitespace().collect();
        let pair = RsaKeyPair::from_der(&STANDARD.decode(text).unwrap()).unwrap();
        Self { id: id.to_owned(), pair: Pair::Rs256(Box::new(pair)) }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::Rs256(_) => "RS256",
        }
    }

    fn published(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::Es256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
                    "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Pair::Rs256(pair) => {
                let key = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id,
                    "n": text(&key.n), "e": text(&key.e)})
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }
}

impl FakeProvider {
    pub async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into()).await
    }

    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared {
            issuer: issuer.clone(),
            key: SigningKey::es256("first"),
            person: json!({"sub": "7", "email": "ann@example.com", "email_verified": true}),
            fault: TokenFault::None,
            refusal: None,
            codes: HashMap::new(),
            key_requests: 0,
            counter: 0,
        }));
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared.clone());
        let serving = tokio::spawn(async move {
            let listener = HttpListener(listener);
            listener.serve(routes).await;
        });
        Self { issuer, shared, serving }
    }

    /// The next who signs in is this one.
    pub fn person(&self, claims: Value) {
        self.shared.lock().unwrap().person = claims;
    }

    pub fn fault(&self, fault: TokenFault) {
        self.shared.lock().unwrap().fault = fault;
    }

    /// Refuses the next sign-ins with this error and description.
    pub fn refuse(&self, error: &str, description: &str) {
        self.shared.lock().unwrap().refusal = Some((error.to_owned(), description.to_owned()));
    }

    /// Signs with this key from now on, and publishes it alone.
    pub fn rotate(&self, key: SigningKey) {
        self.shared.lock().unwrap().key = key;
    }

    /// Number of requests for its keys.
    pub fn key_requests(&self) -> usize {
        self.shared.lock().unwrap().key_requests
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves routes over HTTP/1.
struct HttpListener(tokio::net::TcpListener);

impl HttpListener {
    async fn serve(self, routes: Router) {
        while let Ok((socket, _)) = self.0.accept().await {
            let service = hyper_util::service::TowerToHyperService::new(routes.clone());
            let socket = hyper_util::rt::TokioIo::new(socket);
            tokio::spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(socket, service).await;
            });
        }
    }
}

type Provider = State<Arc<Mutex<Shared>>>;

async fn configuration(State(shared): Provider) -> Json<Value> {
    let issuer = shared.lock().unwrap().issuer.clone();
    let at = |path: &str| format!("{issuer}/{path}");
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "jwks_uri": at("keys"),
        "end_session_endpoint": at("logout"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "RS256"],
    }))
}

async fn keys(State(shared): Provider) -> Json<Value> {
    let mut shared = shared.lock().unwrap();
    shared.key_requests += 1;
    Json(json!({"keys": [shared.key.published()]}))
}

async fn authorize(State(shared): Provider, Query(query): Query<HashMap<String, String>>) -> Response {
    let mut shared = shared.lock().unwrap();
    let of = |name: &str| query.get(name).cloned().unwrap_or_default();
    let is_right = of("client_id") == CLIENT_ID
        && of("response_type") == "code"
        && of("code_challenge_method") == "S256"
        && of("scope").split(' ').any(|scope| scope == "openid");
    if !is_right || of("state").len() < 16 || of("nonce").len() < 16 {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    }
    let redirect_uri = of("redirect_uri");
    let mut url = Url::parse(&redirect_uri).unwrap();
    url.query_pairs_mut().append_pair("state", &of("state"));
    if let Some((error, description)) = &shared.refusal {
        url.query_pairs_mut().append_pair("error", error).append_pair("error_description", description);
    } else {
        shared.counter += 1;
        let code = format!("code-{}", shared.counter);
        url.query_pairs_mut().append_pair("code", &code);
        let issued = IssuedCode { nonce: of("nonce"), challenge: of("code_challenge"), redirect_uri };
        shared.codes.insert(code, issued);
    }
    (StatusCode::FOUND, [(header::LOCATION, url.to_string())]).into_response()
}

async fn token(State(shared): Provider, headers: HeaderMap, body: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let mut shared = shared.lock().unwrap();
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    // Both parts are encoded as in a form before they are joined.
    let form_encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{}:{}", form_encoded(CLIENT_ID), form_encoded(CLIENT_SECRET)));
    if headers.get(header::AUTHORIZATION).is_none_or(|shown| *shown != format!("Basic {basic}")) {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_client"}))).into_response();
    }
    let of = |name: &str| form.get(name).cloned().unwrap_or_default();
    let Some(issued) = shared.codes.remove(&of("code")) else { return refused("invalid_grant") };
    let challenge = ring::digest::digest(&ring::digest::SHA256, of("code_verifier").as_bytes());
    if URL_SAFE_NO_PAD.encode(challenge) != issued.challenge || of("redirect_uri") != issued.redirect_uri {
        return refused("invalid_grant");
    }
    let mut answer = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 60});
    if shared.fault != TokenFault::Missing {
        answer["id_token"] = Value::from(shared.id_token(&issued.nonce));
    }
    Json(answer).into_response()
}

impl Shared {
    fn id_token(&self, nonce: &str) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut claims = self.person.clone();
        let standard =
            json!({"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 60, "nonce": nonce});
        claims.as_object_mut().unwrap().extend(standard.as_object().unwrap().clone());
        let mut algorithm = self.key.algorithm();
        match self.fault {
            TokenFault::Nonce => claims["nonce"] = json!("of another sign-in"),
            TokenFault::Audience => claims["aud"] = json!("another program"),
            TokenFault::SecondAudience => claims["aud"] = json!([CLIENT_ID, "another program"]),
            TokenFault::Issuer => claims["iss"] = json!("https://evil.example"),
            TokenFault::Expired => claims["exp"] = json!(now - 120),
            TokenFault::FromTheFuture => claims["iat"] = json!(now + 3_600),
            TokenFault::Unsigned => algorithm = "none",
            TokenFault::None | TokenFault::Signature | TokenFault::ForeignKey | TokenFault::Missing => {}
        }
        let head = json!({"alg": algorithm, "typ": "JWT", "kid": self.key.id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&head), part(&claims));
        let mut signature = match self.fault {
            TokenFault::ForeignKey => SigningKey::es256(&self.key.id).sign(text.as_bytes()),
            TokenFault::Unsigned => Vec::new(),
            _ => self.key.sign(text.as_bytes()),
        };
        if self.fault == TokenFault::Signature {
            signature[10] ^= 1;
        }
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A browser that keeps cookies for each origin and follows redirects, up to the first answer or the page of the server.
pub struct Browser {
    client: reqwest::Client,
    cookies: Mutex<HashMap<String, HashMap<String, String>>>,
}

/// Answer to a browser.
#[derive(Clone, Debug)]
pub struct Shown {
    pub status: u16,
    /// Address at the end.
    pub url: Url,
    pub body: String,
    /// Every address of the redirects.
    pub way: Vec<Url>,
}

impl Browser {
    pub fn new() -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self { client, cookies: Mutex::default() }
    }

    /// Goes there, and stops before it is sent back to the server: that address.
    pub async fn stop_before_callback(&self, url: &str) -> Url {
        let mut url = Url::parse(url).unwrap();
        while !url.path().ends_with("/callback") {
            let request = self.client.get(url.clone()).header("cookie", self.cookies_of(&url));
            let response = request.send().await.unwrap();
            self.take_cookies(&url, response.headers());
            url = url.join(response.headers()[header::LOCATION].to_str().unwrap()).unwrap();
        }
        url
    }

    /// Follows redirects from this address. A page of the server itself is not fetched if its address has a
    /// fragment.
    pub async fn go(&self, url: &str) -> Shown {
        let mut url = Url::parse(url).unwrap();
        let mut way = vec![url.clone()];
        loop {
            if url.fragment().is_some() {
                return Shown { status: 200, url, body: String::new(), way };
            }
            let request = self.client.get(url.clone()).header("sec-fetch-mode", "navigate");
            let response = request.header("cookie", self.cookies_of(&url)).send().await.unwrap();
            self.take_cookies(&url, response.headers());
            let location = response.headers().get(header::LOCATION).map(|to| to.to_str().unwrap().to_owned());
            let status = response.status().as_u16();
            let Some(location) = location else {
                return Shown { status, url, body: response.text().await.unwrap(), way };
            };
            url = url.join(&location).unwrap();
            way.push(url.clone());
            assert!(way.len() < 10, "{way:?}");
        }
    }

    /// Exchanges a sign-in link as the page does: the status and the answer.
    pub async fn exchange(&self, shown: &Shown) -> (u16, Value) {
        let ticket = shown.url.fragment().and_then(|text| text.strip_prefix("sign-in=")).unwrap();
        let url = shown.url.join("/v1/sign-in").unwrap();
        let request = self.client.post(url.clone()).header("cookie", self.cookies_of(&url));
        let response = request.json(&json!({ "ticket": ticket })).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    fn cookies_of(&self, url: &Url) -> String {
        let cookies = self.cookies.lock().unwrap();
        let own = cookies.get(&url.origin().ascii_serialization()).into_iter().flatten();
        own.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn take_cookies(&self, url: &Url, headers: &HeaderMap) {
        let mut cookies = self.cookies.lock().unwrap();
        for cookie in headers.get_all(header::SET_COOKIE) {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            assert!(rest.contains("HttpOnly") && rest.contains("SameSite=Lax"), "{cookie:?}");
            let own = cookies.entry(url.origin().ascii_serialization()).or_default();
            own.insert(name.to_owned(), rest.split(';').next().unwrap().to_owned());
        }
    }
}
