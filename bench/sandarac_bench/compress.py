"""Compression of passing responses: CPU time of Sandarac and of nginx per response, at levels that make bodies of equal size.

An nginx on the other core serves the plain bodies as files. The clients ask in turn over one kept-alive connection, so that a
proxy has one response at a time to compress.
"""

import http.client
import json
import os
import random
import shutil
import statistics
import tempfile
from pathlib import Path

from . import peers, record, tools
from .in_turns import measure
from .process import Daemon

_SIZE = 100_000
_LEVELS = range(1, 10)
_SANDARAC = {"gzip": ("fast", "normal", "best"), "br": ("fast", "normal", "best"), "zstd": ("fast", "normal", "best")}

#: What `--help` says.
_DESCRIPTION = (
    "Measures the CPU time per response of 100 KB of HTML and of JSON that pass through Sandarac and through "
    "nginx with its gzip filter, and are compressed on the way. The bar: gzip costs no more than nginx's at a body "
    "that is not larger."
)


def main(arguments=None):
    """Runs the lines."""
    return measure(_run, arguments, "compress", _DESCRIPTION, rounds=5, requests=400, of="responses")


def bodies():
    """A page and a document of an API, of some 100 KB each, with the words and repetitions that such bodies have."""
    chance = random.Random(1)
    syllables = ["ba", "co", "di", "fu", "ge", "ha", "li", "mo", "nu", "pe", "qua", "ri", "so", "ta", "ve", "wi"]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(3000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    text = lambda count: " ".join(chance.choices(words, weights, k=count))
    page = "<!doctype html><html><head><title>List</title></head><body>\n"
    number = 0
    while len(page) < _SIZE:
        number += 1
        page += f'<article class="card" id="item-{number}"><h2><a href="/items/{number}/{text(1)}">{text(5)}</a></h2>\n'
        page += f'<p class="summary">{text(45)}</p><span class="price">{chance.randint(100, 99999) / 100}</span></article>\n'
    items = []
    while len(json.dumps(items)) < _SIZE:
        items.append(
            {"id": chance.getrandbits(40), "name": text(3), "description": text(15), "price": chance.randint(1, 99999) / 100,
             "tags": text(4).split(), "updated": f"2026-11-{chance.randint(1, 28):02}T10:{chance.randint(10, 59)}:00Z"}
        )
    return {"html": page.encode(), "json": json.dumps(items).encode()}


def _start(directory, name, command, core, port):
    # It goes when the server is stopped; the configurations stay for the next round.
    own = directory / f"run {name}"
    own.mkdir()
    server = peers.Server(name, port, Daemon(command, core, own / "output"), own)
    try:
        peers.wait_until_listening(server)
    except StartFailed:
        server.stop()
        raise
    return server


def _nginx(directory, name, port, server):
    file = directory / f"{name}.conf"
    file.write_text(
        f"daemon off; master_process off; pid {directory}/{name}.pid; error_log stderr crit;\n"
        f"events {{ worker_connections 64; }}\nhttp {{ access_log off; keepalive_requests 1000000;\n"
        f"types {{ text/html html; application/json json; }}\n"
        f"client_body_temp_path {directory}/{name}-body; proxy_temp_path {directory}/{name}-proxy;\n"
        f"fastcgi_temp_path {directory}/{name}-f; uwsgi_temp_path {directory}/{name}-u; scgi_temp_path {directory}/{name}-s;\n{server}\n}}\n"
    )
    return [shutil.which("nginx"), "-e", "stderr", "-p", str(directory), "-c", str(file)]


def _proxies(directory, binary, origin):
    """The proxies by name: command and port."""
    upstream = f"upstream origin {{ server 127.0.0.1:{origin}; keepalive 8; keepalive_requests 1000000; }}"
    for level in _LEVELS:
        port = peers.free_port()
        server = (
            f"{upstream}\nserver {{ listen 127.0.0.1:{port}; gzip on; gzip_comp_level {level}; gzip_types application/json;\n"
            'location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; } }'
        )
        yield f"nginx gzip {level}", "gzip", _nginx(directory, f"gzip-{level}", port, server), port
    for coding, levels in _SANDARAC.items():
        for level in levels:
            port = peers.free_port()
            file = directory / f"{coding}-{level}.toml"
            file.write_text(
                f'threads = 1\n[[listen]]\naddress = "127.0.0.1:{port}"\n[pool.origin]\nbackends = ["http://127.0.0.1:{origin}"]\n'
                f'[[route]]\npool = "origin"\ncache = "pass"\ncompress = {{ codings = ["{coding}"], level = "{level}" }}\n'
                f'[admin]\nlisten = "unix:{directory}/{coding}-{level}.sock"\n'
            )
            yield f"sandarac {coding} {level}", coding, [str(binary), "--config", str(file)], port


def _ask(server, name, coding, requests):
    """Asks for a body so often, and returns CPU time of the server per response in microseconds, and bytes of the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    before, size = server.daemon.cpu_seconds(), 0
    for _ in range(requests):
        connection.request("GET", f"/body.{name}", headers={"Accept-Encoding": coding})
        response = connection.getresponse()
        body = response.read()
        if response.status != 200 or response.headers.get("Content-Encoding") != coding:
            raise tools.Missing(f"{response.status} with the coding {response.headers.get('Content-Encoding')}, not {coding}")
        size = len(body)
    spent = server.daemon.cpu_seconds() - before
    connection.close()
    return spent / requests * 1e6, size


def _run(options):
    if missing := tools.install(["nginx"], False):
        raise tools.Missing(f"these are needed: {' '.join(sorted(missing))}")
    binary = tools.sandarac(options.binary)
    run = {**record.begin(binary), "lines": {}, "bars": []}
    os.sched_setaffinity(0, {options.cores[1]})
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as place:
        directory = Path(place)
        directory.chmod(0o755)
        for name, body in bodies().items():
            (directory / f"body.{name}").write_bytes(body)
        port = peers.free_port()
        plain = f"server {{ listen 127.0.0.1:{port}; root {directory}; }}"
        origin = _start(directory, "origin", _nginx(directory, "origin", port, plain), options.cores[1], port)
        try:
            measured = _measure(options, directory, binary, port)
        finally:
            origin.stop()
    for body in bodies():
        _show(run, body, measured)
    return run


def _measure(options, directory, binary, origin):
    """The samples of each proxy and body; the proxies take turns."""
    proxies = list(_proxies(directory, binary, origin))
    measured = {}
    for _ in range(options.rounds):
        for name, coding, command, port in proxies:
            server = _start(directory, name, command, options.cores[0], port)
            try:
                for body in bodies():
                    _ask(server, body, coding, 20)
                    measured.setdefault((name, body), []).append(_ask(server, body, coding, options.requests))
            finally:
                server.stop()
    return {key: (statistics.median(cost for cost, _ in samples), samples[-1][1]) for key, samples in measured.items()}


def _show(run, body, measured):
    """Prints the table of a body and judges the bar."""
    lines = {name: result for (name, of), result in measured.items() if of == body}
    print(f"\n{body}, {len(bodies()[body])} bytes{'':<10}us/response    bytes")
    for name, (cost, size) in lines.items():
        print(f"  {name:<24}{cost:>12.0f}{size:>9}")
    nginx = [result for name, result in lines.items() if name.startswith("nginx")]
    for name, (cost, size) in lines.items():
        if not name.startswith("sandarac gzip"):
            continue
        # What nginx spends for a body that is no larger, or for its smallest.
        rivals = [other for other, bytes_ in nginx if bytes_ <= size * 1.005] or [max(nginx)[0]]
        met = cost <= min(rivals)
        run["bars"].append({"body": body, "line": name, "us": cost, "nginx": min(rivals), "met": met})
        print(f"  {name}: {cost / min(rivals):.2f} of nginx at no larger a body{'' if met else '  MISSED'}")
    run["lines"][body] = {name: {"us": cost, "bytes": size} for name, (cost, size) in lines.items()}
