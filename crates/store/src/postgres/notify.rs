//! Hearing of what other servers append: one connection that listens, and a look now and then whether it rang or not.

use super::peers;
use super::shared::PostgresShared;
use super::statement::parse_notification;
use sqlx::postgres::PgListener;
use std::sync::Arc;
use std::time::Duration;

/// Channel on which all servers send notifications.
const CHANNEL: &str = "tl_turn";
/// Delay before a lost listener reconnects.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Listens until the store is closed.
pub(super) async fn listen(shared: Arc<PostgresShared>) {
    // Its own pool of one: the listener holds its connection for good.
    let listener_settings = super::settings::PostgresSettings { pool_connections_max: 1, ..shared.settings };
    let pool = super::connection::pool(&shared.options, &listener_settings);
    loop {
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen_all([CHANNEL, peers::CHANNEL]).await?;
            // Notifications before this point were missed.
            shared.refresh(None).await;
            shared.ring_peers();
            loop {
                match listener.try_recv().await? {
                    Some(notification) if notification.channel() == peers::CHANNEL => shared.ring_peers(),
                    Some(notification) => {
                        if let Some(numbers) = parse_notification(shared.replica, notification.payload()) {
                            shared.refresh(numbers.as_deref()).await;
                        }
                    }
                    // It was deaf for a moment.
                    None => {
                        shared.refresh(None).await;
                        shared.ring_peers();
                    }
                }
            }
        };
        let lost: Result<(), sqlx::Error> = listening.await;
        drop(lost);
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Polls until the store is closed.
pub(super) async fn poll(shared: Arc<PostgresShared>) {
    let mut every = tokio::time::interval(shared.settings.poll);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        shared.poll().await;
    }
}
