"""How much load a run applies: the issue's numbers, or few enough to see in a minute that everything works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Rounds and load of each kind of row."""

    # Seven rounds of four seconds: the median of the ratios then moves by about one per cent between quiet runs.
    rounds: int = 7
    seconds: int = 4
    ab_requests: int = 20000
    ab_clients: int = 1000
    # A round of a page starts every server and the application anew; for the heavy page it takes minutes.
    page_rounds: int = 3
    page_requests: int = 10000
    page_clients: int = 1000
    idle_connections: int = 7000
    starts: int = 11


QUICK = Effort(
    rounds=1,
    seconds=1,
    ab_requests=2000,
    ab_clients=100,
    page_rounds=1,
    page_requests=500,
    page_clients=50,
    idle_connections=500,
    starts=3,
)
