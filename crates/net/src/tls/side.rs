//! The two sides of a TLS connection, which rustls has as two types.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{UnbufferedConnectionCommon, UnbufferedStatus};
use std::ops::DerefMut;

/// The side towards clients.
pub type ServerSide = UnbufferedServerConnection;

/// The side towards backends.
pub type ClientSide = UnbufferedClientConnection;

/// One side of a TLS connection.
pub trait Side: DerefMut<Target = UnbufferedConnectionCommon<Self::Data>> {
    /// What rustls keeps for this side only.
    type Data;

    /// Processes received records up to the next state that needs the caller.
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Side for ServerSide {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(records)
    }
}

impl Side for ClientSide {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(records)
    }
}
