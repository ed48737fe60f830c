//! Identification of a worker: if only one version may serve, a question about the worker's instance and
//! version precedes the first request on each new connection. A worker that was restarted at the same address
//! would otherwise reveal its version only in its first response, which is too late to choose another one.

use super::connect::connect;
use super::context::FetchContext;
use crate::origin::OriginConn;
use crate::resume::balanced;
use crate::upkeep::client::{head_of, user_agent};
use crate::{Counter, Fault};
use sandarac_balance::{Backend, BackendId, Heard, Pick, Resumes};
use sandarac_message::Method;
use sandarac_net::{Conn, Unread, within};
use sandarac_wire::h1::encode;
use sandarac_wire::resume::{self, WorkerState};

/// The result of an identification.
enum Identified {
    /// The connection leads to this instance of the worker, and can be used.
    Worker(Box<str>),
    /// The connection ended, probably because the process ends.
    Closed,
    /// No report of the version came in time, or unexpected bytes came with it.
    Mute,
}

impl<'a> FetchContext<'a> {
    /// The résumés of the workers, if connections to them begin with a question.
    pub(super) fn resumes_to_check(self) -> Option<Resumes<'a>> {
        self.live.settings().single_version.then(|| self.live.reported_resumes()).flatten()
    }

    /// The connection to the backend of a pick, with the worker identified on it. If the worker cannot be
    /// identified, another connection: then its responses report its version.
    pub(super) async fn identified(
        &self,
        pick: &Pick,
        mut connected: Result<OriginConn, Fault>,
    ) -> Result<OriginConn, Fault> {
        let (origins, address) = (&self.core.origins, pick.backend().address());
        let mut first = true;
        // Over HTTP/2 only responses report a version.
        while let Ok(OriginConn::Http1(conn, provenance)) = &mut connected
            && provenance.instance.is_none()
            && origins.is_asked(address)
        {
            match self.identify(conn, pick.id()).await {
                Identified::Worker(instance) => {
                    provenance.instance = Some(instance);
                    continue;
                }
                // The successor of a process that ends may report its version.
                Identified::Closed if first => first = false,
                Identified::Closed | Identified::Mute => origins.found_mute(address),
            }
            connected = connect(self, None, address, false).await;
        }
        connected
    }

    /// Asks `worker` for its version on an idle connection.
    async fn identify(&self, conn: &mut Conn, worker: BackendId) -> Identified {
        let (Some(resumes), Some(backend)) = (self.resumes_to_check(), self.live.backend(worker)) else {
            return Identified::Mute;
        };
        self.counters().one(Counter::WorkersMet);
        // The response does not depend on the application, so the connect timeout applies. A wait in vain
        // happens only once in a while.
        let patience = self.pool().timeouts.connect;
        let identified = within(patience, self.ask(conn, worker, &resumes, backend)).await;
        match identified {
            Some(Ok(Identified::Worker(instance))) => match self.core.origins.unread(conn) {
                Unread::Nothing => Identified::Worker(instance),
                // A body after the response to HEAD would be read as the response to the next request.
                Unread::Data => Identified::Mute,
                Unread::End => Identified::Closed,
            },
            Some(Ok(other)) => other,
            Some(Err(Fault::NoResponse)) => Identified::Closed,
            Some(Err(_)) | None => Identified::Mute,
        }
    }

    async fn ask(
        &self,
        conn: &mut Conn,
        worker: BackendId,
        resumes: &Resumes<'_>,
        backend: &Backend,
    ) -> Result<Identified, Fault> {
        let mut request = Vec::with_capacity(256);
        let target = resume::target(self.live.settings().resume.classifier);
        let mut head = encode::Head::request(&mut request, b"HEAD", target.as_bytes());
        head.field(b"Host", backend.address().authority().as_bytes());
        head.field(b"User-Agent", user_agent());
        head.finish();
        let since = self.now();
        head_of(conn, &request, Method::Head, |response| {
            let Some(Ok(state)) = WorkerState::read(response.head.fields) else { return Identified::Mute };
            if resumes.met(worker, &balanced(&state), since, self.now()) == Heard::Unknown {
                self.want(worker);
            }
            if response.keep_alive {
                Identified::Worker(state.instance.as_ref().into())
            } else {
                Identified::Closed
            }
        })
        .await
    }
}
