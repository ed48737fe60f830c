"""The application that the workers of these tests run.

A page says which site, which path, which process and which release it is of, in every line, so that a page made of two
would show. What a site's pages need is loaded by the first request for it and kept in memory, which has room for a few
sites; so workers have something to be good at.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Callable

#: Sites that a worker keeps in memory.
ROOM = 8
#: Seconds that loading a site takes, and those that a page takes.
LOADING, PAGE = 0.02, 0.002
LINES = 50


def _release() -> str:
    path = os.environ.get("RELEASE_FILE")
    return Path(path).read_text().strip() if path else "1"


release = _release()
loaded: OrderedDict[str, None] = OrderedDict()


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    host, path = environ["HTTP_HOST"], environ["PATH_INFO"]
    if host in loaded:
        loaded.move_to_end(host)
    else:
        time.sleep(LOADING)
        loaded[host] = None
        if len(loaded) > ROOM:
            loaded.popitem(last=False)
    time.sleep(PAGE)
    line = f"{host} {path} {os.getpid()} {release}\n".encode()
    if path.startswith("/slow"):
        fields = [("Content-Type", "text/plain"), ("Cache-Control", "max-age=60")]
        if path.startswith("/slow/length"):
            fields.append(("Content-Length", str(LINES * len(line))))
        start_response("200 OK", fields)
        return slowly(line, environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Cache-Control", "no-store")])
    return [line * LINES]


def slowly(line: bytes, gate: str) -> Iterator[bytes]:
    """Half of a page, and the other half once the file named `gate` is gone."""
    half = LINES // 2
    yield line * half
    while os.path.exists(gate):
        time.sleep(0.005)
    yield line * (LINES - half)
