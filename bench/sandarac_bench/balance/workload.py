"""What is asked for: many sites of many records, their popularity by Zipf's law, and records that change."""

import bisect
import itertools
import json
import random
import sqlite3
import zlib
from dataclasses import dataclass

_WORDS = (
    "council water budget school harbour festival winter market bridge library traffic hospital election storm garden "
    "theatre railway forest museum river station mayor family police company energy farmer village season history"
).split()


@dataclass(frozen=True)
class Workload:
    """Sizes, and the seed that everything is drawn from: equal workloads make equal databases and equal logs.

    A page shows `records_per_page` of the `records` of its site. `changes` records change with each page asked for.
    """

    sites: int = 100
    records: int = 100
    pages: int = 100
    records_per_page: int = 30
    record_bytes: int = 4096
    zipf: float = 0.9
    changes: float = 0.05
    seed: int = 1

    @property
    def working_set(self):
        """Records of all sites together."""
        return self.sites * self.records

    def compositions(self):
        """Of each page, which records of its site it shows; the same for all sites."""
        chance = random.Random(f"{self.seed} pages")
        return [chance.sample(range(self.records), self.records_per_page) for _ in range(self.pages)]


def host(site):
    """The name of a site by its number."""
    return f"www.site-{site:03}.example"


def site_of(name):
    """The number of a site by its name."""
    return int(name[len("www.site-") :][:3])


def encode(record):
    """A record as it lies in the database."""
    return zlib.compress(json.dumps(record).encode())


def decode(data):
    """The same as the application wants it."""
    return json.loads(zlib.decompress(data))


def build_database(workload, path):
    """Writes all records. They are `record_bytes` long before they are compressed."""
    chance = random.Random(f"{workload.seed} records")
    prose = _prose(chance)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    database.execute("CREATE TABLE change (id INTEGER PRIMARY KEY, record INTEGER NOT NULL)")
    with database:
        database.executemany(
            "INSERT INTO record VALUES (?, ?)",
            ((number, encode(_record(workload, chance, prose, number))) for number in range(workload.working_set)),
        )
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def _words(chance, count):
    return " ".join(chance.choices(_WORDS, k=count)).capitalize()


def _prose(chance):
    """A text that the records are cut from."""
    # Figures between the words: out of so short a list, words alone would compress far better than prose does.
    return " ".join(f"{_words(chance, 12)} {chance.getrandbits(48):x}" for _ in range(20_000))


def _record(workload, chance, prose, number):
    record = {
        "number": number % workload.records,
        "title": _words(chance, 7),
        "author": _words(chance, 2).title(),
        "version": 1,
        "tags": chance.sample(_WORDS, 5),
        "teaser": _words(chance, 25) + " & more.",
        "text": "",
    }
    length = workload.record_bytes - len(json.dumps(record))
    start = chance.randrange(len(prose) - length)
    record["text"] = prose[start : start + length]
    return record


def make_log(workload, warm_up, measured):
    """A log of requests as lines `METHOD HOST TARGET`, and where in it steady state begins: `warm_up` lines in, or
    after every record was asked for once where that is later. `measured` lines follow."""
    chance = random.Random(f"{workload.seed} log")
    # Which site is how popular has nothing to do with its name.
    ranks = chance.sample(range(workload.sites), workload.sites)
    weights = list(itertools.accumulate((rank + 1) ** -workload.zipf for rank in range(workload.sites)))

    def draw():
        return ranks[bisect.bisect(weights, chance.random() * weights[-1])]

    compositions = workload.compositions()
    unseen = set(range(workload.working_set))
    lines = []
    steady = None
    while steady is None or len(lines) < steady + measured:
        if steady is None and not unseen and len(lines) >= warm_up:
            steady = len(lines)
        site, page = draw(), chance.randrange(workload.pages)
        lines.append(f"GET {host(site)} /page/{page}")
        unseen.difference_update(site * workload.records + number for number in compositions[page])
        if chance.random() < workload.changes:
            lines.append(f"POST {host(draw())} /record/{chance.randrange(workload.records)}")
    return lines[: steady + measured], steady
