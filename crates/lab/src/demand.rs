//! The requests of a simulation: drawn at random, or taken from a log.

use sandarac_balance::Random;

use crate::distribution::Lottery;
use crate::scenario::Sites;
use crate::trace::Trace;

/// The source of requests.
pub(crate) enum Demand<'a> {
    /// Sites and their objects, drawn by popularity. A site is a class.
    Sites { settings: &'a Sites, sites: Lottery, objects: Lottery },
    /// The requests of a log. Each class of the log takes the role of a site.
    Log(&'a Trace),
}

impl<'a> Demand<'a> {
    pub(crate) fn of_sites(settings: &'a Sites) -> Demand<'a> {
        Demand::Sites {
            settings,
            sites: Lottery::new(settings.popularity, settings.count),
            objects: Lottery::new(settings.object_popularity, settings.objects),
        }
    }

    pub(crate) fn classes(&self) -> u32 {
        match self {
            Demand::Sites { settings, .. } => settings.count,
            Demand::Log(trace) => trace.classes(),
        }
    }

    pub(crate) fn objects(&self) -> u32 {
        match self {
            Demand::Sites { settings, .. } => settings.count * settings.objects,
            Demand::Log(trace) => trace.objects(),
        }
    }

    /// The names of the classes; an empty one is for requests without a class.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let name = |class| match self {
            Demand::Sites { .. } => format!("site-{class}.example").into_bytes(),
            Demand::Log(trace) => trace.class_name(class).to_vec(),
        };
        (0..self.classes()).map(name).collect()
    }

    /// The site of request `number`, from 1; `None` after the last request.
    pub(crate) fn site(&self, number: u64, random: &mut Random) -> Option<u32> {
        match self {
            Demand::Sites { sites, .. } => Some(sites.draw(random)),
            Demand::Log(trace) => trace.get(number).map(|request| request.class),
        }
    }

    /// The objects that request `number` needs.
    pub(crate) fn objects_of(&self, number: u64, site: u32, mut random: Random) -> impl Iterator<Item = u32> {
        let count = match self {
            Demand::Sites { settings, .. } => settings.objects_per_request,
            Demand::Log(_) => 1,
        };
        (0..count).filter_map(move |_| match self {
            Demand::Sites { settings, objects, .. } => {
                Some(site * settings.objects + objects.draw(&mut random))
            }
            Demand::Log(trace) => trace.get(number).map(|request| request.object),
        })
    }

    /// Calls `changed` for each object that changes with a request. A log has no changes.
    pub(crate) fn churn(&self, random: &mut Random, mut changed: impl FnMut(u32)) {
        let Demand::Sites { settings, sites, objects } = self else { return };
        let mut changes = settings.churn;
        while changes > 0.0 {
            if changes >= 1.0 || random.fraction() < changes {
                changed(sites.draw(random) * settings.objects + objects.draw(random));
            }
            changes -= 1.0;
        }
    }

    /// The arrival time of request `number`, in microseconds from the first, if it is known.
    pub(crate) fn comes_at(&self, number: u64) -> Option<u64> {
        match self {
            Demand::Sites { .. } => None,
            Demand::Log(trace) => trace.get(number).map(|request| request.at),
        }
    }
}
