//! Applies the events of a pool's sources to the pool.

use crate::pool::{Member, SourceState};
use crate::shared::Shared;
use crate::site::Site;
use sandarac_balance::Algorithm;
use sandarac_config::Source;
use sandarac_discover::{Event, Ignored, Listing, LiveSettings, LossReason, watch};
use std::sync::Arc;

/// How many ignored entries are logged with their text.
const MAX_EXAMPLES: usize = 3;

/// Watches a source of the pool at `place` for as long as it is polled. `source` is its position in the
/// pool's configuration.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, place: usize, source: usize) {
    let config = &site.config.pools[place];
    let pool = &site.pools()[place];
    let of = &config.discover[source];
    // Processes that start together poll at different times.
    let seed = pool.live().settings().seed ^ (source as u64) << 32;
    let log = |what: String| shared.log(&format!("pool {}: {of}: {what}", config.name));
    let say_settings = |before: LiveSettings, now: LiveSettings| match now == before {
        true => {}
        false if now == LiveSettings::default() => {
            log("it gives no settings any more; the configured ones are in force".to_owned());
        }
        false => log(format!("it gives settings: {now}")),
    };
    let (mut state, memory) = pool.followed(source);
    // The reasons of its losses since it was last reachable. Alternating failure reasons are reported once.
    let mut lost_for: Vec<LossReason> = Vec::new();
    let mut ignored_before = Ignored::default();
    // Ignored entries are logged again only if they change.
    let mut say_ignored = |ignored: &Ignored| {
        if ignored_before != *ignored {
            log_ignored(ignored, &log);
            ignored_before = ignored.clone();
        }
    };
    let heard = |event| {
        state.told = true;
        let told = SourceState { told: true, ..SourceState::default() };
        match event {
            Event::Listing(listing) => {
                say_ignored(&listing.ignored);
                let members = members(config.algorithm(), &listing);
                log(match members.len() {
                    1 => "1 backend".to_owned(),
                    count => format!("{count} backends"),
                });
                say_settings(state.settings, listing.settings);
                let (ignored, settings) = (listing.ignored.total(), listing.settings);
                state = SourceState { members: members.len(), ignored, settings, ..told };
                pool.found(source, members);
            }
            Event::Emptied { settings, ignored } => {
                say_ignored(&ignored);
                // Without a socket there is no backend. A registry, in contrast, may have forgotten running
                // backends.
                let gone = matches!(of, Source::Directory(_)) && pool.emptied(source);
                log(match pool.has_found(source) {
                    true => "it names no backend; those that it named last stay".to_owned(),
                    false if gone => "it names no backend any more".to_owned(),
                    false => "it names no backend yet".to_owned(),
                });
                say_settings(state.settings, settings);
                state = SourceState { ignored: ignored.total(), settings, ..told };
            }
            Event::Lost(loss) => {
                if !lost_for.contains(&loss.reason) {
                    lost_for.push(loss.reason);
                    log(match pool.has_found(source) {
                        true => format!("lost: {loss}; the backends that it named last stay"),
                        false => format!("{loss}; it is waited for"),
                    });
                }
                state.lost = Some(loss.to_string());
            }
            Event::Back => {
                lost_for.clear();
                log(if pool.has_found(source) { "found again" } else { "found" }.to_owned());
                state.lost = None;
            }
        }
        pool.set_source_state(config, source, state.clone());
    };
    watch(of.clone(), &site.config.dns, memory, seed, heard).await;
}

/// The backends to use. Those of a later priority are only for algorithms that use an order.
fn members(algorithm: Algorithm, listing: &Listing) -> Vec<Member> {
    let used = if algorithm == Algorithm::Fallback { &listing.members[..] } else { listing.preferred() };
    used.iter().map(|found| Member { address: found.address.clone(), weight: found.weight }).collect()
}

fn log_ignored(ignored: &Ignored, log: &impl Fn(String)) {
    for entry in ignored.examples().iter().take(MAX_EXAMPLES) {
        log(format!("not taken, {}: \"{}\"", entry.reason, entry.text));
    }
    if ignored.total() as usize > MAX_EXAMPLES {
        log(format!("{} entries were not taken", ignored.total()));
    }
}
