//! Compatible APIs for existing clients: each starts a turn and shows it in another format. The format is in
//! [`surface`](crate::projections); this module has only HTTP, authentication, and the end of a turn whose client
//! has disconnected.

pub(crate) mod audio;
pub(crate) mod chat;
pub(crate) mod models;
pub(crate) mod passthrough;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes, one line per API, sorted.
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

    /// Prefix of a base URL that selects the rendering of tools.
    const RENDERED: &str = "/render/{render}";

    #[test]
    fn every_openai_route_exists_under_each_base_url() {
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
