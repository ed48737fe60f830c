"""Runs with bars of their own, against one Sandarac."""

import json
import signal
import sys
import time

from . import load, record, tools
from .process import Daemon, StartFailed

_PATIENCE = 120


def main(measure, options, kind):
    """Keeps and prints the run that `measure` returns. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = measure(options)
    except (tools.Missing, StartFailed, load.LoadFailed, TimeoutError) as failure:
        print(failure, file=sys.stderr)
        return 2
    for bar in run["bars"]:
        print(f"{'met   ' if bar['met'] else 'MISSED'} {bar['bar']}: {bar['value']}")
    missed = sum(not bar["met"] for bar in run["bars"])
    print(f"kept in {record.keep(run, options.out, kind)}")
    print(f"{len(run['bars']) - missed} passed, {missed} failed")
    return int(missed > 0)


def binary(options, *programs):
    """The sandarac to measure; allows this process many descriptors. Fails where programs that the run needs are missing."""
    if missing := tools.install(list(programs), False):
        raise tools.Missing(f"these are needed: {' '.join(sorted(missing))}")
    tools.allow_descriptors()
    return tools.sandarac(options.binary)


def add(run, bar, value, met):
    """Adds a bar to a run."""
    run["bars"].append({"bar": bar, "value": value, "met": bool(met)})


def wait(what, done):
    """Waits until something is done."""
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.1)


class Proxy:
    """A Sandarac that answers on `port`, and has its admin interface at `admin` in `directory`."""

    def __init__(self, binary, config, directory, core, port, path, started):
        self.port = port
        (directory / "sandarac.toml").write_text(config)
        self.daemon = Daemon([binary, "-c", directory / "sandarac.toml"], core, directory / "sandarac.log")
        started.append(self.daemon)
        self._admin = directory / "admin"
        wait("the proxy", lambda: self._answers(path))

    def _answers(self, path):
        if not self.daemon.running:
            raise StartFailed(self.daemon.output())
        try:
            return load.fetch(self.port, path)[0] == 200
        except OSError:
            return False

    def metrics(self, name):
        """The metrics of this name: their labels and values."""
        connection = load.UnixConnection(self._admin, 10)
        connection.request("GET", "/stats")
        metrics = json.loads(connection.getresponse().read())["metrics"]
        connection.close()
        return [(dict(metric.get("labels", [])), metric["value"]) for metric in metrics if metric["name"] == name]
