"""The application that the workers run: pages out of a database, through a cache of its own in each process.

It is what the balancer is for: a page is cheap where its records are at hand, and dear where they have to be loaded.
Settings come from the environment, for the runner starts all workers alike. What a worker did is asked of it by
`GET /-/state`, and it is made slow by `POST /-/slowness?FACTOR`, both on its own socket and not through the balancer.
"""

import html
import json
import os
import sqlite3
import time
from collections import OrderedDict

from .workload import Workload, decode, encode, site_of

#: Path of the database, seconds that each load waits for it, records in the cache of a process, the workload as JSON, and the
#: share of a core that a worker has for itself alone, or 0 where all share all cores.
DATABASE, ROUND_TRIP = "SANDARAC_BENCH_DATABASE", "SANDARAC_BENCH_ROUND_TRIP"
CAPACITY, WORKLOAD = "SANDARAC_BENCH_CAPACITY", "SANDARAC_BENCH_WORKLOAD"
CORE = "SANDARAC_BENCH_CORE"


class Records:
    """The records, the least recently used of which are forgotten; `loads` counts those read from the database."""

    def __init__(self, path, round_trip, capacity):
        self.loads = 0
        self.cached = OrderedDict()
        self._capacity = capacity
        self._round_trip = round_trip
        self._database = sqlite3.connect(path, isolation_level=None, timeout=10)
        # What a crash of the machine would lose is of no worth.
        self._database.execute("PRAGMA synchronous = OFF")
        self._version = None
        self._heard = 0

    def refresh(self):
        """Forgets what other processes have changed."""
        (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return
        self._version = version
        for change, record in self._database.execute("SELECT id, record FROM change WHERE id > ?", (self._heard,)):
            self._heard = change
            self.cached.pop(record, None)

    def get(self, number):
        """A record, loaded where it is not at hand."""
        record = self.cached.get(number)
        if record is not None:
            self.cached.move_to_end(number)
            return record
        self.loads += 1
        if self._round_trip:
            time.sleep(self._round_trip)
        record = decode(self._read(number))
        self.cached[number] = record
        if len(self.cached) > self._capacity:
            self.cached.popitem(last=False)
        return record

    def change(self, number):
        """Writes a record anew; every process will have to load it again."""
        self._database.execute("BEGIN IMMEDIATE")
        record = decode(self._read(number))
        record["version"] += 1
        self._database.execute("UPDATE record SET data = ? WHERE id = ?", (encode(record), number))
        self._database.execute("INSERT INTO change (record) VALUES (?)", (number,))
        self._database.execute("COMMIT")
        self.cached.pop(number, None)

    def _read(self, number):
        return self._database.execute("SELECT data FROM record WHERE id = ?", (number,)).fetchone()[0]


class SharedCores:
    """The machine as it is: what one worker leaves idle, others use. A slow worker does its work several times over."""

    def __init__(self):
        self.slowness = 1.0
        self.worked = self._began = 0.0

    def __enter__(self):
        self._began = time.thread_time()

    def __exit__(self, *_):
        spent = time.thread_time() - self._began
        while time.thread_time() - self._began < self.slowness * spent:
            pass
        self.worked += time.thread_time() - self._began


class OwnCore:
    """A core that is slower than the machine's, and this worker's alone: after each request it rests for as long as the CPU time
    that the process has taken since the one before would have lasted longer there."""

    def __init__(self, share):
        self.slowness = 1.0
        self.worked = 0.0
        self._share = share
        self._accounted = time.process_time()

    def __enter__(self):
        pass

    def __exit__(self, *_):
        used = time.process_time()
        spent, self._accounted = used - self._accounted, used
        took = spent * self.slowness / self._share
        time.sleep(took - spent)
        self.worked += took


class Application:
    """The WSGI application."""

    def __init__(self):
        self._workload = Workload(**json.loads(os.environ[WORKLOAD]))
        self._compositions = self._workload.compositions()
        self._records = None
        self._pages = self._changes = 0
        core = float(os.environ[CORE])
        self._core = OwnCore(core) if core else SharedCores()

    def __call__(self, environ, start_response):
        if self._records is None:
            # Here, because SQLite wants a connection to stay with the thread that made it.
            round_trip, capacity = float(os.environ[ROUND_TRIP]), int(os.environ[CAPACITY])
            self._records = Records(os.environ[DATABASE], round_trip, capacity)
        path = environ["PATH_INFO"]
        kind, _, number = path[1:].partition("/")
        if kind == "-":
            body = self._control(number, environ["QUERY_STRING"])
        else:
            with self._core:
                body = self._answer(kind, int(number), environ["HTTP_HOST"], path)
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        return [body]

    def _answer(self, kind, number, host, path):
        self._records.refresh()
        first = site_of(host) * self._workload.records
        if kind == "record":
            self._changes += 1
            self._records.change(first + number)
            return b"changed"
        self._pages += 1
        records = [self._records.get(first + each) for each in self._compositions[number]]
        return f"<!-- {host} {path} --><title>{host}</title>{''.join(map(_article, records))}".encode()

    def _control(self, what, query):
        if what == "slowness":
            self._core.slowness = float(query)
        state = {
            "pages": self._pages,
            "changes": self._changes,
            "loads": self._records.loads,
            "worked": self._core.worked,
            "cached": list(self._records.cached),
        }
        return json.dumps(state).encode()


def _article(record):
    title, author, teaser = (html.escape(record[key]) for key in ("title", "author", "teaser"))
    tags = "".join(f"<li>{html.escape(tag)}</li>" for tag in record["tags"])
    return (
        f'<article><h2><a href="/article/{record["number"]}">{title}</a></h2>'
        f"<p>by {author}, version {record['version']}</p><p>{teaser}</p><ul>{tags}</ul></article>"
    )
