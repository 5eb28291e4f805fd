//! APIs of others, for clients that exist: each a way to start a turn of ours and to read it in another form. What is said
//! and how is decided in [`surface`](crate::surface); here are only HTTP, who asks, and what becomes of a turn whose client
//! is gone.

pub(crate) mod audio;
pub(crate) mod chat;
pub(crate) mod models;
pub(crate) mod passthrough;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes. One line an API, sorted.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(audio::routes())
        .merge(chat::routes())
        .merge(models::routes())
        .merge(passthrough::routes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Prefix of a base URL that says how tools are shown.
    const RENDERED: &str = "/render/{render}";

    #[test]
    fn every_route_of_openais_is_there_under_each_base_url() {
        let routes = super::routes().split_for_parts().1.paths.paths;
        let named = |prefix: &str| -> BTreeSet<String> {
            let at_base = routes.iter().filter_map(|(path, item)| Some((path.strip_prefix(prefix)?, item)));
            at_base
                .filter(|(path, _)| path.starts_with("/v1/"))
                .flat_map(|(path, item)| {
                    let methods = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
                    let there = methods.into_iter().filter(|(_, operation)| operation.is_some());
                    there.map(|(method, _)| format!("{method} {path}")).collect::<Vec<_>>()
                })
                .collect()
        };
        let mut plain = named("");
        // Not one of OpenAI's.
        assert!(plain.remove("GET /v1/voices"));
        assert!(plain.contains("POST /v1/embeddings") && plain.contains("GET /v1/models/{*id}"), "{plain:?}");
        assert_eq!(named(RENDERED), plain);
    }
}
