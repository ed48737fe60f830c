"""Keeping of results in `runs/`."""

import datetime
import json
import subprocess

from . import machine, tools

RUNS = tools.BENCH / "runs"


def commit():
    """The commit that is checked out, or None."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tools.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None


def begin(binary):
    """A run without results: the day, the commit, and the machine with the programs taking part, `binary` among them."""
    return {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine.describe(binary)}


def keep(run, path=None, kind=""):
    """Writes a run to `path`; if there is none, to the next free `runs/DATE KIND.json`. Returns where it is."""
    if path is None:
        RUNS.mkdir(exist_ok=True)
        path = RUNS / f"{run['date']}{kind}.json"
        number = 2
        while path.exists():
            path = RUNS / f"{run['date']}{kind}-{number}.json"
            number += 1
    path.write_text(json.dumps(_rounded(run), indent=1, ensure_ascii=False) + "\n")
    return path


def _rounded(value):
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value
