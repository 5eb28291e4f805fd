//! Conversations in the store that this process has open: the same application and routes as a server's, without a socket.

use super::api::ConversationApi;
use crate::args::ModelArgs;
use crate::exit::CliFailure;
use crate::messages;
use crate::serve::monitoring::{Monitoring, RunningMonitoring};
use crate::serve::store::ServerStorage;
use crate::setup::{self, AppContext};
use std::sync::Arc;
use std::time::Duration;
use throughline::ApprovalMode;
use throughline::config::AppSettings;
use throughline_server::{AppState, CatalogMediaStore, InProcessApi, LOCAL_USER, Redaction, TurnManager};

/// Time limit for writing the end of the last turn when the command leaves.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// An application whose turns are stored in the open store.
pub(crate) struct StoredConversations {
    storage: Arc<ServerStorage>,
    turn_manager: TurnManager,
    api: ConversationApi,
    monitoring: RunningMonitoring,
}

impl StoredConversations {
    /// Builds the application over the store.
    pub(crate) async fn open(
        model_args: &ModelArgs,
        settings: AppSettings,
        approval: ApprovalMode,
        storage: Arc<ServerStorage>,
    ) -> Result<(Self, AppContext), CliFailure> {
        let surroundings = setup::surroundings(model_args);
        let redaction = Arc::new(Redaction::new(settings.secret_values(&surroundings)));
        redaction.add(setup::given_key(model_args));
        let monitoring = Monitoring::new(redaction)?;
        let limits = settings.server.limits;
        let keep_raw = settings.store.keep_raw;
        let blobs = storage.blobs(limits.upload_bytes_max).await?;
        let inline_max = u64::from(limits.media_inline_bytes_max);
        let media = Arc::new(CatalogMediaStore::new(storage.catalog(), blobs.clone(), inline_max));
        let (log, observer) = (storage.log(), monitoring.observer());
        let context = AppContext::open_in(model_args, settings, surroundings, |builder| {
            builder.approval(approval).observer(observer).keep_raw(keep_raw).media(media).log(log)
        })
        .await?;
        let monitoring = monitoring.start(&storage);
        let state = AppState::new(context.app.clone(), storage.catalog(), blobs, limits);
        let state = monitoring.attach(&state, &storage);
        // Turns of other conversations wait for a process that continues those.
        state.turn_manager.skip_resume();
        let turn_manager = state.turn_manager.clone();
        let api = ConversationApi::InProcess(InProcessApi::new(state, LOCAL_USER));
        Ok((Self { storage, turn_manager, api, monitoring }, context))
    }

    /// The store, for another application over it.
    pub(crate) fn storage(&self) -> Arc<ServerStorage> {
        self.storage.clone()
    }

    pub(crate) fn api(&self) -> &ConversationApi {
        &self.api
    }

    /// Resumes an interrupted turn of the conversation. False if there is none.
    pub(crate) async fn resume(&self, conversation: &str) -> Result<bool, CliFailure> {
        let resumed = self.turn_manager.resume_conversation(conversation).await;
        resumed.map(|resumed| resumed.turns > 0).map_err(|error| messages::no_store(&error))
    }

    /// Writes what is left of the turns that have ended, and stops the application. The store stays open.
    pub(crate) async fn close_app(self, context: &AppContext) -> Arc<ServerStorage> {
        self.turn_manager.drain(CLOSE_MAX).await;
        context.app.stop_sources().await;
        self.monitoring.finish().await;
        self.storage
    }
}
