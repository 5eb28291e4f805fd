//! Every dialect, and every upstream that is known by name, each with its strict fake: what is sent to it, and whether it takes
//! that.

use serde_json::Value;
use throughline::providers::{self, KnownProvider};
use throughline_testkit::{FakeDialect, ReceivedRequest, SeenRequest, UpstreamHabits};
use throughline_wire::{Dialect, EncodedRequest, ModelRequest, TransferMode, UpstreamProfile, encode};

/// An upstream with its rules.
pub struct KnownUpstream {
    pub name: String,
    pub dialect: Dialect,
    profile: UpstreamProfile,
    habits: UpstreamHabits,
    pub model: String,
}

pub fn all() -> Vec<KnownUpstream> {
    let model = |dialect, name: &str| match dialect {
        // Those that check signatures.
        Dialect::Gemini => "gemini-3-pro".to_owned(),
        _ => format!("{name}-model"),
    };
    let plain = Dialect::ALL.into_iter().map(|dialect| KnownUpstream {
        name: dialect.name().to_owned(),
        dialect,
        profile: UpstreamProfile::default(),
        habits: UpstreamHabits::default(),
        model: model(dialect, dialect.name()),
    });
    let known =
        providers::all().into_iter().map(|KnownProvider { name, dialect, profile, .. }| KnownUpstream {
            name: name.to_owned(),
            dialect,
            profile,
            habits: UpstreamHabits::of(name),
            model: model(dialect, name),
        });
    plain.chain(known).collect()
}

impl KnownUpstream {
    pub fn encode(&self, request: &ModelRequest, transfer: TransferMode) -> EncodedRequest {
        let request = ModelRequest { model: self.model.clone(), ..request.clone() };
        encode(self.dialect, &request, &self.profile, transfer).expect("encodes")
    }

    /// Reads a request as this upstream does.
    ///
    /// # Errors
    /// Its refusal.
    pub fn read(&self, encoded: &EncodedRequest) -> Result<SeenRequest, String> {
        let fake: FakeDialect = FakeDialect::ALL
            .into_iter()
            .find(|fake| fake.name() == self.dialect.name())
            .expect("the same names");
        let is_whole = encoded.path.starts_with(fake.base_path());
        let path =
            if is_whole { encoded.path.clone() } else { format!("{}{}", fake.base_path(), encoded.path) };
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let headers =
            encoded.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let received = ReceivedRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: encoded.body.to_string().into_bytes(),
        };
        fake.read(&received, &self.habits).map_err(|refusal| refusal.to_string())
    }

    /// Two requests of the same key are read alike: they differ in the name of the model, and the upstreams not in their rules.
    pub fn reading_key(&self, encoded: &EncodedRequest) -> String {
        let mut body = encoded.body.clone();
        if let Some(model) = body.get_mut("model") {
            *model = Value::Null;
        }
        format!("{} {:?} {body}", self.dialect, self.habits)
    }

    /// The same, of a request in no dialect's form.
    pub fn encode_and_read(
        &self,
        request: &ModelRequest,
        transfer: TransferMode,
    ) -> Result<SeenRequest, String> {
        let encoded = self.encode(request, transfer);
        self.read(&encoded).map_err(|refusal| format!("{} refuses: {refusal}\n{}", self.name, encoded.body))
    }
}
