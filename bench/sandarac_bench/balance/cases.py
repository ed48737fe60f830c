"""What is compared: algorithms, and the circumstances they have to do well in."""

import dataclasses
from dataclasses import dataclass

from .workload import Workload

#: Worker processes, as in the published experiment in production.
WORKERS = 8

#: Settings of the pool for each algorithm, by the name it has in tables.
ALGORITHMS = {
    "resume": 'balance = "resume"',
    "least_requests": 'balance = "least_requests"',
    "consistent_hash 1.25": 'balance = "consistent_hash"\nload_factor = 1.25',
    "consistent_hash 2": 'balance = "consistent_hash"\nload_factor = 2.0',
    "consistent_hash 4": 'balance = "consistent_hash"\nload_factor = 4.0',
    "maglev": 'balance = "maglev"',
    "peak_ewma": 'balance = "peak_ewma"',
    "round_robin": 'balance = "round_robin"',
    "random": 'balance = "random"',
}
#: What `resume` is held against.
HASHING = [name for name in ALGORITHMS if name.startswith("consistent_hash")]
RIVALS = ("resume", "least_requests", *HASHING)

#: Seconds to a database on another machine and back.
_ROUND_TRIP = 0.0005
#: Of a core, so that eight workers, their balancer and the clients are never in want of two.
_CORE = 0.1
_ONE_SLOW, _MIXED = (3.0,), (3.0, 2.0, 2.0, 1.5, 1.5)


@dataclass(frozen=True)
class Case:
    """Circumstances.

    `memory` is what the caches hold together, as a multiple of all records; `slowness` the factors by which the work of
    the first workers takes longer; `round_trip` seconds that each load waits for a database that is not on this machine;
    `core` the share of a core that each worker has for itself alone, or 0 where all share all cores.
    """

    title: str
    memory: float
    algorithms: tuple = tuple(ALGORITHMS)
    slowness: tuple = ()
    round_trip: float = 0.0
    core: float = 0.0

    @property
    def unequal(self):
        """Whether the case is about workers that differ."""
        return bool(self.slowness)

    def capacity(self, workload):
        """Records that the cache of one worker holds."""
        return int(workload.working_set * self.memory) // WORKERS


CASES = {
    "half": Case("caches that hold half of the working set together", 0.5),
    "all": Case("caches that hold all of the working set together", 1.0),
    "twice": Case("caches that hold twice the working set together", 2.0),
    # Work that is waiting leaves the cores to others, and workers are then what there is too little of, not cores.
    "remote-half": Case("caches that hold half of it, database 0.5 ms away", 0.5, RIVALS, round_trip=_ROUND_TRIP),
    "remote": Case("caches that hold all of it, database 0.5 ms away", 1.0, RIVALS, round_trip=_ROUND_TRIP),
    "remote-twice": Case("caches that hold twice as much, database 0.5 ms away", 2.0, RIVALS, round_trip=_ROUND_TRIP),
    # Where memory is short, what is slow is not the worker but the database.
    "slow": Case("caches that hold twice as much, one worker three times slower", 2.0, RIVALS, _ONE_SLOW),
    "mixed": Case("caches that hold twice as much, workers of mixed speed", 2.0, RIVALS, _MIXED),
    # As where each worker has a machine: what one leaves idle is lost, and one with a queue is late.
    "own-half": Case("a core for each worker, caches that hold half", 0.5, RIVALS, core=_CORE),
    "own": Case("a core for each worker, caches that hold all", 1.0, RIVALS, core=_CORE),
    "own-twice": Case("a core for each worker, caches that hold twice as much", 2.0, RIVALS, core=_CORE),
    "own-slow": Case("a core for each worker, one three times slower, caches that hold twice as much", 2.0, RIVALS, _ONE_SLOW, core=_CORE),
    "own-mixed": Case("a core for each worker, of mixed speed, caches that hold twice as much", 2.0, RIVALS, _MIXED, core=_CORE),
}


@dataclass(frozen=True)
class Effort:
    """How much is played. Requests are lines of the log; `seconds` bounds one part of it."""

    #: More than it takes to ask for every record once, for the choices have to settle as well.
    warm_up: int = 12_000
    requests: int = 4_000
    rounds: int = 3
    clients: int = 16
    seconds: float = 60.0
    workload: Workload = dataclasses.field(default_factory=Workload)


QUICK = Effort(warm_up=0, requests=4_000, rounds=1)
