//! Identification of a worker: where only one version may serve, each new connection begins with a question about the
//! worker's start and version. A worker that was restarted at the same address would otherwise reveal its version only in
//! its first response, when it is too late to ask another one.

use super::connect::connect;
use super::context::FetchContext;
use crate::origin::Provenance;
use crate::resume::balanced;
use crate::upkeep::client::{head_of, user_agent};
use crate::{Counter, Fault};
use sandarac_balance::{Backend, BackendId, Heard, Pick, Resumes};
use sandarac_message::Method;
use sandarac_net::{Conn, Unread, within};
use sandarac_wire::h1::encode;
use sandarac_wire::resume::{self, WorkerState};

/// What came of it.
enum Identified {
    /// It is this start of the worker, and the connection can be used.
    Worker(Box<str>),
    /// The connection ended: with a process that ends, probably.
    Closed,
    /// It does not say what it runs, or not in time, or says more than it was asked for.
    Mute,
}

impl<'a> FetchContext<'a> {
    /// The résumés of the workers, where connections to them are to begin with a question.
    pub(super) fn resumes_to_check(self) -> Option<Resumes<'a>> {
        self.live.settings().single_version.then(|| self.live.reported_resumes()).flatten()
    }

    /// The connection to the backend of a pick, its worker met on it; or another one where the worker cannot be met: then its
    /// responses tell what it runs.
    pub(super) async fn identified(
        &self,
        pick: &Pick,
        mut connected: Result<(Box<Conn>, Provenance), Fault>,
    ) -> Result<(Box<Conn>, Provenance), Fault> {
        let (origins, address) = (&self.core.origins, pick.backend().address());
        let mut first = true;
        while let Ok((conn, provenance)) = &mut connected
            && provenance.instance.is_none()
            && origins.is_asked(address)
        {
            match self.identify(conn, pick.id()).await {
                Identified::Worker(instance) => {
                    provenance.instance = Some(instance);
                    continue;
                }
                // Whoever took the place of one that ends may say what it runs.
                Identified::Closed if first => first = false,
                Identified::Closed | Identified::Mute => origins.found_mute(address),
            }
            connected = connect(self, None, address).await;
        }
        connected
    }

    /// Asks at a connection to `worker`, on which nothing was sent that is not answered.
    async fn identify(&self, conn: &mut Conn, worker: BackendId) -> Identified {
        let (Some(resumes), Some(backend)) = (self.resumes_to_check(), self.live.backend(worker)) else {
            return Identified::Mute;
        };
        self.counters().one(Counter::WorkersMet);
        // It is to answer without waiting for the application, so this belongs to connecting; and it is waited for in vain once
        // in a while at most.
        let patience = self.pool().timeouts.connect;
        let identified = within(patience, self.ask(conn, worker, &resumes, backend)).await;
        match identified {
            Some(Ok(Identified::Worker(instance))) => match self.core.origins.unread(conn) {
                Unread::Nothing => Identified::Worker(instance),
                // A body behind the response to HEAD would be the response to the request that follows.
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
