"""Pauses that grow while something keeps failing."""

from __future__ import annotations


class Backoff:
    """Pauses, in seconds, before what has ended is begun again: none after a long life, else twice the last, from
    ``first`` to ``longest``. What ends at once every time costs next to nothing; what ended by chance is back at once.
    """

    def __init__(self, first: float, longest: float, long_life: float) -> None:
        self._first = first
        self._longest = longest
        self._long_life = long_life
        self._next = 0.0

    def pause(self, lived: float) -> float:
        """The pause after a life of so many seconds."""
        if lived >= self._long_life:
            self._next = 0.0
        pause = self._next
        self._next = min(max(2 * pause, self._first), self._longest)
        return pause
