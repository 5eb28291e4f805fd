//! Hearing of what other servers append: one connection that listens, and a look now and then whether it rang or not.

use super::shared::Shared;
use super::statement::heard;
use sqlx::postgres::PgListener;
use std::sync::Arc;
use std::time::Duration;

/// Where all servers ring.
const CHANNEL: &str = "tl_turn";
/// After which a lost listener is sought again.
const AGAIN: Duration = Duration::from_millis(500);

/// Listens for ever.
pub(super) async fn listen(shared: Arc<Shared>) {
    // Its own pool of one: the listener holds its connection for good.
    let one = super::settings::PostgresSettings { pool_connections_max: 1, ..shared.settings };
    let pool = super::connection::pool(&shared.options, &one);
    loop {
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(CHANNEL).await?;
            // What rang before is not heard.
            shared.look_at(None).await;
            loop {
                match listener.try_recv().await? {
                    Some(bell) => {
                        if let Some(numbers) = heard(shared.replica, bell.payload()) {
                            shared.look_at(numbers.as_deref()).await;
                        }
                    }
                    // It was deaf for a moment.
                    None => shared.look_at(None).await,
                }
            }
        };
        let lost: Result<(), sqlx::Error> = listening.await;
        drop(lost);
        tokio::time::sleep(AGAIN).await;
    }
}

/// Looks for ever.
pub(super) async fn poll(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(shared.settings.poll);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        shared.poll().await;
    }
}
