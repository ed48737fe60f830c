//! The state that a worker reports in a pool that serves a single version (docs/protocols/resume.md).

use sandarac_test_support::{Conn, Request};

use super::{After, Server, head};
use crate::verdict::Count;

/// Where a worker tells its résumé.
pub(crate) const RESUME: &str = "/.well-known/worker-resume";

impl Server {
    /// The value of Worker-State. A backend that was killed is another instance when it comes back, every other time of another
    /// version.
    pub(super) fn worker_state(&self) -> String {
        format!("id=\"{}-{}\", rev=1, inflight=0, version=\"{}\"", self.name, self.born, self.born / 2)
    }

    /// Tells the whole résumé. Some answers to HEAD have a body all the same, in the same write, and it reads as a response.
    pub(super) fn tell_resume(&mut self, conn: &mut Conn, request: &Request) -> After {
        let by = request.target.split_once("by=").map_or("", |(_, by)| by);
        let id = format!("{}-{}", self.name, self.born);
        let resume = format!(
            "{{\"id\":\"{id}\",\"rev\":1,\"by\":\"{by}\",\"version\":\"{}\",\"inflight\":0,\"history\":9999,\"skills\":{{}}}}",
            self.born / 2
        );
        let fields = [
            ("ETag", format!("\"{id}.1\"")),
            ("Worker-State", self.worker_state()),
            ("Cache-Control", "no-store".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            ("Content-Length", resume.len().to_string()),
        ];
        let mut bytes = head(200, &fields);
        let strays = request.method == "HEAD" && self.random.percent(20);
        if strays {
            self.stage.verdict.count(Count::Strays);
        }
        if strays {
            bytes.append(&mut self.stray(request));
        }
        if request.method == "GET" {
            bytes.extend_from_slice(resume.as_bytes());
        }
        if conn.try_send(&bytes).is_ok() { After::Open } else { After::Closed }
    }
}
