"""The résumé: what a worker knows of its own speed, by request class, under one classifier.

Pure bookkeeping after zc.resumelb: no clock, no file, no lock. Times come in as seconds spent. Its known weaknesses
are mended: what is read back weighs what it weighed when it was written, and a new worker is heard after its first
request rather than after ``history`` of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping

from .document import MAX_CLASSES
from .fields import MAX_SCORE, MIN_SCORE

#: Requests over which speed is remembered, as published.
HISTORY = 9999
#: A class not seen for this many times ``history`` requests is dropped, as published.
SKILL_AGE = 10
#: A score that moved by no more than this share is not news.
HYSTERESIS = 0.05
#: Requests, decayed, below which a class is not worth writing down; and what a file may have least.
MIN_WEIGHT = 1e-6
#: Change sets kept for balancers that are behind.
MAX_CHANGE_SETS = 32
#: Changed classes kept in all of them: more than fit in a field of 4 KiB.
MAX_CHANGES = 512

#: What a class was seen to take: requests and seconds, both decayed.
Seed = tuple[float, float]


class Settings:
    """``history`` and ``max_skill_age``, in requests; shared by the résumés of a worker. May change while it runs."""

    __slots__ = ("history", "max_skill_age")

    def __init__(self, history: int = HISTORY, max_skill_age: int | None = None) -> None:
        if history < 1:
            raise ValueError("history is at least 1 request")
        self.history = history
        self.max_skill_age = SKILL_AGE * history if max_skill_age is None else max_skill_age
        if self.max_skill_age < 1:
            raise ValueError("max_skill_age is at least 1 request")

    def update(self, history: int, max_skill_age: int | None = None) -> None:
        """Takes other values, or raises ``ValueError`` and keeps the old ones."""
        new = Settings(history, max_skill_age)
        self.history, self.max_skill_age = new.history, new.max_skill_age


class _Record:
    """Of one class: when it was last seen, and its decayed seconds and requests as of then."""

    __slots__ = ("requests", "seconds", "seen")

    def __init__(self, seen: int, seconds: float, requests: float) -> None:
        self.seen = seen
        self.seconds = seconds
        self.requests = requests


class Resume:
    """Scores by class, their revision, and what changed lately.

    ``revision`` is that of the empty or seeded résumé; it grows by one with every recomputation that changed something.
    """

    def __init__(
        self,
        settings: Settings,
        revision: int = 1,
        seeds: Mapping[bytes, Seed] | None = None,
        max_classes: int = MAX_CLASSES,
    ) -> None:
        self._settings = settings
        self._max_classes = max_classes
        self._generation = 0
        self.revision = revision
        #: Least recently used first.
        self._records: OrderedDict[bytes, _Record] = OrderedDict()
        #: Classes seen or forgotten since the last recomputation.
        self._touched: set[bytes] = set()
        self._scores: dict[bytes, float] = {}
        #: What changed with the revisions up to the present one, oldest first.
        self._changes: deque[dict[bytes, float]] = deque()
        self._changes_size = 0
        for name, (requests, seconds) in list((seeds or {}).items())[-max_classes:]:
            # More than a full history would weigh more than what this worker can have seen of the class.
            weight = min(requests, float(settings.history))
            self._records[name] = _Record(0, seconds * weight / requests, weight)
            self._scores[name] = _score(requests, seconds)

    @property
    def scores(self) -> Mapping[bytes, float]:
        """Requests per second by class, as of :attr:`revision`."""
        return self._scores

    def earn(self, name: bytes, seconds: float) -> bool:
        """Counts one request of the class ``name`` that took ``seconds``. True where the résumé was recomputed."""
        self._generation += 1
        generation, history = self._generation, self._settings.history
        record = self._records.get(name)
        if record is None:
            self._records[name] = record = _Record(generation, 0.0, 0.0)
        else:
            self._records.move_to_end(name)
        decay = (1.0 - 1.0 / history) ** (generation - record.seen)
        # A clock too coarse to see a request must not make it infinitely fast.
        record.seconds = record.seconds * decay + max(seconds, 1e-9)
        record.requests = record.requests * decay + 1.0
        record.seen = generation
        self._touched.add(name)
        if len(self._records) > self._max_classes:
            self._forget(self._records.popitem(last=False)[0])
        # A new worker is heard soon, at 1, 2, 4, 8 … requests; one that knows its trade speaks every `history`.
        due = generation % history == 0 or (generation < history and generation & (generation - 1) == 0)
        if due:
            self._recompute()
        return due

    def _forget(self, name: bytes) -> None:
        # Only what was told has to be taken back: classes that come and go in between leave nothing behind.
        if name in self._scores:
            self._touched.add(name)
        else:
            self._touched.discard(name)

    def _recompute(self) -> None:
        # The present request is one of them.
        oldest = self._generation - self._settings.max_skill_age + 1
        while self._records:
            name, record = next(iter(self._records.items()))
            if record.seen >= oldest:
                break
            del self._records[name]
            self._forget(name)
        changes: dict[bytes, float] = {}
        # In the order of the classes, so that equal histories give equal bytes.
        for name in sorted(self._touched):
            known = self._scores.get(name)
            seen = self._records.get(name)
            if seen is None:
                if known is not None:
                    del self._scores[name]
                    changes[name] = 0.0
                continue
            score = _score(seen.requests, seen.seconds)
            if known is None or abs(score - known) > HYSTERESIS * known:
                self._scores[name] = score
                changes[name] = score
        self._touched.clear()
        if changes:
            self.revision += 1
            self._remember(changes)

    def _remember(self, changes: dict[bytes, float]) -> None:
        self._changes.append(changes)
        self._changes_size += len(changes)
        while len(self._changes) > MAX_CHANGE_SETS or self._changes_size > MAX_CHANGES:
            self._changes_size -= len(self._changes.popleft())

    def changes_since(self, revision: int) -> dict[bytes, float] | None:
        """Scores that changed after ``revision``, 0 for a class that was dropped; ``None`` where that is no longer, or
        not yet, known."""
        behind = self.revision - revision
        if not 0 <= behind <= len(self._changes):
            return None
        merged: dict[bytes, float] = {}
        for changes in list(self._changes)[len(self._changes) - behind :]:
            merged.update(changes)
        return merged

    def seeds(self) -> Iterable[tuple[bytes, Seed]]:
        """What a successor would be given: requests and seconds by class, aged to the present request, least recently
        used first."""
        rate = 1.0 - 1.0 / self._settings.history
        for name, record in self._records.items():
            decay = rate ** (self._generation - record.seen)
            requests = record.requests * decay
            # Where history is short, a class may have faded to nothing before it is dropped by its age.
            if requests > MIN_WEIGHT:
                yield name, (requests, record.seconds * decay)


def _score(requests: float, seconds: float) -> float:
    """Requests per second as they can be written: three digits after the point."""
    return min(max(round(requests / seconds, 3), MIN_SCORE), MAX_SCORE)
