//! Fields of one connection, and those that gateways write about themselves (RFC 9110 §7.6).

use crate::{Field, Fields, Name};

/// Whether `field` of the message with `fields` belongs to the connection and is neither forwarded nor stored
/// (RFC 9110 §7.6.1): the standing ones, and those that Connection names. Connection cannot name what all recipients
/// are meant to see, else a peer could hide from a gateway what its next hop obeys.
pub fn is_hop_by_hop(fields: Fields<'_>, field: &Field<'_>) -> bool {
    match field.id {
        Name::Connection
        | Name::KeepAlive
        | Name::ProxyConnection
        | Name::Te
        | Name::Trailer
        | Name::TransferEncoding
        | Name::Upgrade => true,
        Name::Host
        | Name::CacheControl
        | Name::CdnCacheControl
        | Name::SandaracCacheControl
        | Name::SurrogateControl
        | Name::ContentLength
        | Name::Authorization
        | Name::SetCookie
        | Name::Vary
        | Name::Expires
        | Name::Age
        | Name::Date => false,
        _ => fields.has(Name::Connection) && fields.list(Name::Connection).any(|option| field.is(option)),
    }
}
