//! Meeting a worker: at the beginning of a connection it is asked which start of it this is, and which version it runs, where
//! only one version is to serve. A worker that was restarted at the same address would otherwise tell with its first response,
//! which a client has got by then.

use super::fetch::{Surroundings, connect};
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
enum Met {
    /// It is this start of the worker, and the connection can be used.
    Worker(Box<str>),
    /// The connection ended: with a process that ends, probably.
    Closed,
    /// It does not say what it runs, or not in time, or says more than it was asked for.
    Mute,
}

impl<'a> Surroundings<'a> {
    /// The résumés of the workers, where connections to them are to begin with a question.
    pub(super) fn to_meet(self) -> Option<Resumes<'a>> {
        self.live.settings().single_version.then(|| self.live.reported_resumes()).flatten()
    }

    /// The connection to the backend of a pick, its worker met on it; or another one where the worker cannot be met: then its
    /// responses tell what it runs.
    pub(super) async fn introduced(
        &self,
        pick: &Pick,
        mut connected: Result<(Box<Conn>, Provenance), Fault>,
    ) -> Result<(Box<Conn>, Provenance), Fault> {
        let (origins, address) = (&self.worker.origins, pick.backend().address());
        let mut first = true;
        while let Ok((conn, provenance)) = &mut connected
            && provenance.instance.is_none()
            && origins.is_asked(address)
        {
            match self.meet(conn, pick.id()).await {
                Met::Worker(instance) => {
                    provenance.instance = Some(instance);
                    continue;
                }
                // Whoever took the place of one that ends may say what it runs.
                Met::Closed if first => first = false,
                Met::Closed | Met::Mute => origins.found_mute(address),
            }
            connected = connect(self, None, address).await;
        }
        connected
    }

    /// Asks at a connection to `worker`, on which nothing was sent that is not answered.
    async fn meet(&self, conn: &mut Conn, worker: BackendId) -> Met {
        let (Some(resumes), Some(backend)) = (self.to_meet(), self.live.backend(worker)) else {
            return Met::Mute;
        };
        self.counters().one(Counter::WorkersMet);
        // It is to answer without waiting for the application, so this belongs to connecting; and it is waited for in vain once
        // in a while at most.
        let patience = self.pool().timeouts.connect;
        let met = within(patience, self.ask(conn, worker, &resumes, backend)).await;
        match met {
            Some(Ok(Met::Worker(instance))) => match self.worker.origins.unread(conn) {
                Unread::Nothing => Met::Worker(instance),
                // A body behind the response to HEAD would be the response to the request that follows.
                Unread::Data => Met::Mute,
                Unread::End => Met::Closed,
            },
            Some(Ok(met)) => met,
            Some(Err(Fault::NoResponse)) => Met::Closed,
            Some(Err(_)) | None => Met::Mute,
        }
    }

    async fn ask(
        &self,
        conn: &mut Conn,
        worker: BackendId,
        resumes: &Resumes<'_>,
        backend: &Backend,
    ) -> Result<Met, Fault> {
        let mut request = Vec::with_capacity(256);
        let target = resume::target(self.live.settings().resume.classifier);
        let mut head = encode::Head::request(&mut request, b"HEAD", target.as_bytes());
        head.field(b"Host", backend.address().authority().as_bytes());
        head.field(b"User-Agent", user_agent());
        head.finish();
        let since = self.now();
        head_of(conn, &request, Method::Head, |response| {
            let Some(Ok(state)) = WorkerState::read(response.head.fields) else { return Met::Mute };
            if resumes.met(worker, &balanced(&state), since, self.now()) == Heard::Unknown {
                self.want(worker);
            }
            if response.keep_alive { Met::Worker(state.instance.as_ref().into()) } else { Met::Closed }
        })
        .await
    }
}
