//! Pass: a request bypasses the store.

use super::deliver::deliver;
use super::relay::relay_edited;
use super::store::Landed;
use super::unsafe_method::passed;
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::forward::Purpose;
use crate::request::received::Received;
use sandarac_policy::PoolId;

/// Sends a request past the store.
pub(crate) async fn pass(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
) -> Result<Sent, Fault> {
    let target = received.target.path_and_query;
    let begun = exchange.core.shared.store.begun();
    let arrived = exchange.fetch(down, received, pool, target, Purpose::Pass).await?;
    let arrived = match passed(exchange, received, pool, arrived, begun).await? {
        Landed::Object(object, reader, own) => {
            return Box::pin(deliver(exchange, down, object, reader, own.as_ref())).await;
        }
        Landed::Relay(arrived) => arrived,
    };
    relay_edited(exchange, down, received, arrived, pool).await
}
