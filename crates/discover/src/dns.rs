//! Names whose addresses or SRV records are backends, queried again when their TTL has expired.

use super::event::EventReporter;
use super::listing::ListingBuilder;
use super::{IgnoredReason, ListedBackend, Listing, Loss, LossReason};
use crate::resolver;
use hickory_resolver::TokioResolver;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{RData, RecordType};
use parking_lot::Mutex;
use sandarac_balance::{Address, Backend};
use sandarac_config::NameServer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between two queries, whatever the TTL.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The longest time between two queries: a TTL of a day set by mistake should not take a day to repair.
const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The longest time until a name without records is queried again.
const MAX_INTERVAL_WITHOUT_RECORDS: Duration = Duration::from_secs(30);

/// When to query again after one of two queries failed.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What is queried.
pub(super) enum Question {
    /// The addresses of a name, all with this port.
    Addresses(String, u16),
    /// The SRV records of a service.
    Services(String),
}

/// A name whose records are followed.
pub(super) struct DnsName {
    question: Question,
    servers: Vec<NameServer>,
    /// Made when it is first needed.
    resolver: Option<TokioResolver>,
    last: Families,
}

/// The last answers for IPv4 and IPv6, each kept if a later query fails.
pub(super) type Families = Arc<Mutex<[Option<Vec<IpAddr>>; 2]>>;

/// The answer of a name server.
struct DnsAnswer {
    data: Vec<RData>,
    /// How long it is valid.
    ttl: Duration,
}

impl DnsName {
    pub(super) fn new(question: Question, servers: &[NameServer], last: Families) -> DnsName {
        DnsName { question, servers: servers.to_vec(), resolver: None, last }
    }

    /// Reports the records of the name until no name server responds.
    pub(super) async fn follow(&mut self, reporter: &mut EventReporter<'_>) -> Loss {
        if self.resolver.is_none() {
            self.resolver = resolver::uncached(&self.servers);
        }
        let Some(resolver) = self.resolver.clone() else {
            return Loss::new(LossReason::Unreachable, "there is no name server to ask");
        };
        loop {
            let answered = match &self.question {
                Question::Services(name) => services(&resolver, name).await,
                Question::Addresses(name, port) => addresses(&resolver, name, *port, &self.last).await,
            };
            match answered {
                Ok((listing, ttl)) => {
                    reporter.listing(listing);
                    tokio::time::sleep(ttl.clamp(MIN_INTERVAL, MAX_INTERVAL)).await;
                }
                Err(loss) => return loss,
            }
        }
    }
}

/// The addresses of a name. If only one of IPv4 and IPv6 is answered, the last answer for the other remains
/// valid.
async fn addresses(
    resolver: &TokioResolver,
    name: &str,
    port: u16,
    last: &Families,
) -> Result<(Listing, Duration), Loss> {
    let (v4, v6) = tokio::join!(ask(resolver, name, RecordType::A), ask(resolver, name, RecordType::AAAA));
    let mut last = last.lock();
    let mut ttl = MAX_INTERVAL;
    let mut losses = Vec::new();
    for (answer, last) in [v4, v6].into_iter().zip(last.iter_mut()) {
        match answer {
            Ok(answer) => {
                ttl = ttl.min(answer.ttl);
                *last = Some(answer.data.iter().filter_map(RData::ip_addr).collect());
            }
            Err(loss) => {
                ttl = ttl.min(RETRY_AFTER);
                losses.push(loss);
            }
        }
    }
    let mut ips: Vec<IpAddr> = last.iter().flatten().flatten().copied().collect();
    // An empty answer for one proves nothing while the other is unknown.
    if (losses.len() == 2 || ips.is_empty())
        && let Some(loss) = losses.pop()
    {
        return Err(loss);
    }
    // Name servers rotate the list with every answer.
    ips.sort_unstable();
    let mut builder = ListingBuilder::default();
    for ip in ips {
        let text = format!("http://{}", SocketAddr::new(ip, port));
        add(&mut builder, &text, 1, 0);
    }
    Ok((builder.build(), ttl))
}

/// The SRV records of a service. Targets stay names, which are resolved like those of any other backend.
async fn services(resolver: &TokioResolver, name: &str) -> Result<(Listing, Duration), Loss> {
    let answer = ask(resolver, name, RecordType::SRV).await?;
    let mut records: Vec<(u16, String, u16)> = Vec::new();
    for data in &answer.data {
        // The root means that the service is decidedly not available (RFC 2782).
        if let RData::SRV(record) = data
            && !record.target.is_root()
        {
            let target = record.target.to_ascii();
            let text = format!("http://{}:{}", target.trim_end_matches('.'), record.port);
            records.push((record.priority, text, record.weight));
        }
    }
    records.sort_unstable();
    let heaviest = records.iter().map(|(.., weight)| u32::from(*weight)).max().unwrap_or(0);
    let mut builder = ListingBuilder::default();
    for (priority, text, weight) in &records {
        add(&mut builder, text, scaled(u32::from(*weight), heaviest), *priority);
    }
    Ok((builder.build(), answer.ttl))
}

/// The weight of an SRV record, scaled so that `heaviest`, the greatest of them, is within the limit of a
/// backend's weight. 0, which stands for a very small chance, becomes the least weight.
fn scaled(weight: u32, heaviest: u32) -> u32 {
    let weight =
        if heaviest > Backend::MAX_WEIGHT { weight * Backend::MAX_WEIGHT / heaviest } else { weight };
    weight.max(1)
}

fn add(builder: &mut ListingBuilder, text: &str, weight: u32, priority: u16) {
    match text.parse::<Address>() {
        Ok(address) => builder.add(ListedBackend { address, weight, priority }, text.as_bytes()),
        Err(_) => builder.ignore(IgnoredReason::BadAddress, text.as_bytes()),
    }
}

/// The records of `kind` that the name has. An answer without records, or that the name does not exist, is
/// valid too.
async fn ask(resolver: &TokioResolver, name: &str, kind: RecordType) -> Result<DnsAnswer, Loss> {
    match resolver.lookup(name, kind).await {
        Ok(found) => {
            let data = found.answers().iter().map(|record| record.data.clone()).collect();
            Ok(DnsAnswer { data, ttl: found.valid_until().saturating_duration_since(Instant::now()) })
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none)))
            if matches!(none.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
        {
            let ttl = none
                .negative_ttl
                .map_or(MAX_INTERVAL_WITHOUT_RECORDS, |seconds| Duration::from_secs(seconds.into()));
            Ok(DnsAnswer { data: Vec::new(), ttl: ttl.min(MAX_INTERVAL_WITHOUT_RECORDS) })
        }
        Err(NetError::Timeout) => {
            Err(Loss::new(LossReason::TimedOut, format!("asking for {kind} of {name}")))
        }
        // The details of a malformed answer differ each time, and help no one.
        Err(NetError::Proto(_) | NetError::QueryCaseMismatch) => {
            let detail = format!("{kind} of {name}: this is not an answer of a name server");
            Err(Loss::new(LossReason::Malformed, detail))
        }
        Err(error @ NetError::Dns(_)) => {
            Err(Loss::new(LossReason::Failed, format!("{kind} of {name}: {error}")))
        }
        Err(error) => Err(Loss::new(LossReason::Unreachable, format!("{kind} of {name}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_records_keep_their_proportion() {
        assert_eq!([0, 1, 10].map(|weight| scaled(weight, 10)), [1, 1, 10]);
        assert_eq!([0, 1, 30_000, 60_000].map(|weight| scaled(weight, 60_000)), [1, 1, 500, 1000]);
        assert_eq!(scaled(u16::MAX.into(), u16::MAX.into()), Backend::MAX_WEIGHT);
    }
}
