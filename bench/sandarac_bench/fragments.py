"""Pages of fragments: CPU time of Sandarac and of Varnish per page, beside that of hits and passes.

An nginx on the other core serves pages and fragments as files. The client asks in turn over one kept-alive connection. The proxies
take turns, and so do the pages of a round.
"""

import http.client
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from . import peers, record, tools
from .in_turns import measure
from .process import Daemon

#: A line of markup. Pages are cut between lines: Varnish finds no tag within another.
_LINE = "<p>A line of a page, as long as many.</p>\n"
_INCLUDES = 10
#: Lines of a page, which can be cut into two and into eleven parts, and of a fragment.
_PAGE = 22 * (_INCLUDES + 1)
_FRAGMENT = 24

#: The bars: a page, and what it may cost, as multiples of other lines.
_BARS = {"one-own": {"own": 1, "plain": 1.3}, "ten-cached": {"plain": 3}}

#: What `--help` says.
_DESCRIPTION = (
    "Measures the CPU time per page of 10 KB: without fragments (plain), with one that is not stored (one-own), and with "
    "ten that are (ten-cached), beside the pass of such a fragment alone (own), through Sandarac and Varnish. The bars: "
    "one-own costs no more than own and 1.3 times plain, ten-cached no more than three times plain."
)


def main(arguments=None):
    """Runs the lines."""
    return measure(_run, arguments, "fragments", _DESCRIPTION, rounds=7, requests=4000, of="pages")


def _with_includes(urls):
    """A page whose text has the size of all others, and an include between each two parts of it."""
    part = _LINE * (_PAGE // (len(urls) + 1))
    return part + "".join(f'<esi:include src="{url}"/>{part}' for url in urls)


def files():
    """What the origin has: the name of each file, and its content."""
    cached = [f"/cached/{number}.html" for number in range(_INCLUDES)]
    found = {"own/fragment.html": _LINE * _FRAGMENT, "cached/plain.html": _LINE * _PAGE}
    found["cached/one.html"] = _with_includes(["/own/fragment.html"])
    found["cached/ten.html"] = _with_includes(cached)
    found.update({url[1:]: _LINE * _FRAGMENT for url in cached})
    return found


#: The path of each line, and the lines of the body that a client gets.
_LINES = {
    "plain": ("/cached/plain.html", _PAGE),
    "own": ("/own/fragment.html", _FRAGMENT),
    "one-own": ("/cached/one.html", _PAGE + _FRAGMENT),
    "ten-cached": ("/cached/ten.html", _PAGE + _INCLUDES * _FRAGMENT),
}


def _start(directory, name, command, core, port):
    own = directory / f"run {name}"
    own.mkdir()
    server = peers.Server(name, port, Daemon(command, core, own / "output"), own)
    try:
        peers.wait_until_listening(server)
    except StartFailed:
        server.stop()
        raise
    return server


def _origin(directory, port):
    file = directory / "origin.conf"
    file.write_text(
        f"daemon off; master_process off; pid {directory}/origin.pid; error_log stderr crit;\n"
        f"events {{ worker_connections 64; }}\nhttp {{ access_log off; keepalive_requests 1000000; types {{ text/html html; }}\n"
        f"client_body_temp_path {directory}/b; proxy_temp_path {directory}/p; fastcgi_temp_path {directory}/f;\n"
        f"uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;\n"
        f"server {{ listen 127.0.0.1:{port}; root {directory};\n"
        "location /cached/ { add_header Cache-Control max-age=3600; } location /own/ { add_header Cache-Control private; } } }\n"
    )
    return [shutil.which("nginx"), "-e", "stderr", "-p", str(directory), "-c", str(file)]


def _proxies(directory, binary, origin):
    """The proxies by name: command and port."""
    port = peers.free_port()
    file = directory / "sandarac.toml"
    route = '[[route]]\nmatch = "/own/"\npool = "origin"\ncache = "pass"\n[[route]]\npool = "origin"\nfragments = true\n'
    file.write_text(
        f'threads = 1\n[[listen]]\naddress = "127.0.0.1:{port}"\n[pool.origin]\nbackends = ["http://127.0.0.1:{origin}"]\n{route}'
        f'[admin]\nlisten = "unix:{directory}/sandarac.sock"\n'
    )
    yield "sandarac", [str(binary), "--config", str(file)], port
    port = peers.free_port()
    file = directory / "fragments.vcl"
    file.write_text(
        f'vcl 4.1;\nbackend origin {{ .host = "127.0.0.1"; .port = "{origin}"; }}\n'
        'sub vcl_recv { if (req.url ~ "^/own/") { return (pass); } }\n'
        'sub vcl_backend_response { if (bereq.url ~ "^/cached/") { set beresp.do_esi = true; } }\n'
    )
    command = ["varnishd", "-F", "-j", "none", "-T", "none", "-n", directory / "varnish", "-a", f"127.0.0.1:{port}", "-f", file]
    yield "varnish", [*map(str, command), "-s", "malloc,256m", "-p", "thread_pools=1"], port


def _ask(server, path, lines, requests):
    """Asks for a page so often, and returns the CPU time of the server per page in microseconds."""
    length = lines * len(_LINE)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    before = server.daemon.cpu_seconds()
    for _ in range(requests):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200 or len(body) != length:
            raise tools.Missing(f"{server.name} answers {path} with {response.status} and {len(body)} bytes, not {length}")
    spent = server.daemon.cpu_seconds() - before
    connection.close()
    return spent / requests * 1e6


def _run(options):
    if missing := tools.install(["nginx", "varnishd"], False):
        raise tools.Missing(f"these are needed: {' '.join(sorted(missing))}")
    binary = tools.sandarac(options.binary)
    run = {**record.begin(binary), "lines": {}, "bars": []}
    os.sched_setaffinity(0, {options.cores[1]})
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as place:
        directory = Path(place)
        directory.chmod(0o755)
        for name, body in files().items():
            file = directory / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(body)
        port = peers.free_port()
        origin = _start(directory, "origin", _origin(directory, port), options.cores[1], port)
        try:
            measured = _measure(options, directory, binary, port)
        finally:
            origin.stop()
    _show(run, measured)
    return run


def _measure(options, directory, binary, origin):
    """The median of each proxy and line."""
    proxies = list(_proxies(directory, binary, origin))
    samples = {}
    for _ in range(options.rounds):
        for name, command, port in proxies:
            server = _start(directory, name, command, options.cores[0], port)
            try:
                for line, (path, lines) in _LINES.items():
                    _ask(server, path, lines, 50)
                    samples.setdefault((name, line), []).append(_ask(server, path, lines, options.requests))
            finally:
                server.stop()
    return {key: statistics.median(costs) for key, costs in samples.items()}


def _show(run, measured):
    """Prints the table, and judges the bars."""
    names = sorted({name for name, _ in measured})
    print(f"\n{'us/page':<12}" + "".join(f"{name:>12}" for name in names))
    for line in _LINES:
        costs = {name: measured[name, line] for name in names}
        run["lines"][line] = costs
        print(f"{line:<12}" + "".join(f"{cost:>12.1f}" for cost in costs.values()))
    for page, parts in _BARS.items():
        cost = measured["sandarac", page]
        bar = sum(times * measured["sandarac", line] for line, times in parts.items())
        run["bars"].append({"page": page, "us": cost, "bar": bar, "met": cost <= bar})
        print(f"{page}: {cost / bar:.2f} of its bar{'' if cost <= bar else '  MISSED'}")
