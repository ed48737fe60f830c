//! A lookup under way, over the connections of one core.

use sandarac_cache::Begun;
use sandarac_message::vary::VarySpec;
use sandarac_net::PanicPart;
use sandarac_tier::{Lookup, LookupStep, Reply, Target};
use sandarac_wire::entry::Token;

use super::Place;
use super::clock::{now, random};
use super::entry::ban_holds;
use crate::core::Core;

/// A lookup under way, with the place it is about.
pub(super) struct Asking {
    pub(super) place: Place,
    pub(super) target: Target,
    pub(super) lookup: Lookup,
    /// The index, if the target is a variant.
    pub(super) index: Option<Index>,
    /// The purges and bans there had been when the last packet was sent.
    pub(super) begun: Begun,
}

/// An index that was found.
#[derive(Clone)]
pub(super) struct Index {
    pub(super) token: Token,
    pub(super) names: VarySpec,
}

impl Asking {
    pub(super) fn new(core: &Core, place: Place, target: Target, index: Option<Index>) -> Asking {
        let node = place.tier.node;
        let lookup = place.server.ask(|server, _| Lookup::new(target.clone(), node, now(), server, random()));
        Asking { place, target, lookup, index, begun: core.shared.store.begun() }
    }

    /// The next step that is not an exchange of packets.
    pub(super) async fn step(&mut self, core: &Core) -> LookupStep {
        loop {
            let Asking { place, lookup, .. } = self;
            let step = place.server.with(&*core.shared, |server| lookup.next(now(), server, &ban_holds));
            let LookupStep::Send(commands) = step else { return step };
            // What is purged from RAM while the reply is on its way may apply to what it brings.
            self.begun = core.shared.store.begun();
            let replies = core.tier_links.send(&place.tier, &place.server, commands).await;
            self.reply(core, replies);
        }
    }

    fn reply(&mut self, core: &Core, replies: Vec<Reply>) {
        let Asking { place, lookup, .. } = self;
        place.server.with(&*core.shared, |server| lookup.reply(now(), replies, server));
    }

    /// Ends the lookup with what was found.
    pub(super) fn accept(mut self, core: &Core) {
        self.lookup.accept();
        let Asking { place, lookup, .. } = &mut self;
        let step = place.server.with(&*core.shared, |server| lookup.next(now(), server, &ban_holds));
        // It may end a claim.
        if let LookupStep::Send(commands) = step {
            let (core, place) = (core.handle(), place.clone());
            sandarac_net::spawn(PanicPart::Tier, move || async move {
                core.tier_links.send(&place.tier, &place.server, commands).await;
            });
        }
    }

    /// Goes on as if nothing had been found.
    pub(super) fn reject(&mut self) {
        let Asking { place, lookup, .. } = self;
        place.server.ask(|server, _| lookup.reject(now(), server));
    }
}
