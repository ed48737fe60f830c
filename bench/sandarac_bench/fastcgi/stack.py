"""php-fpm, and the proxies before it."""

import os
import shutil
import socket
import time
from pathlib import Path

from .. import load, peers, tools
from ..process import Daemon, StartFailed

# The page of 13 bytes.
PAGE = "<?php header('Cache-Control: no-store'); echo 'Hello, world!';"
_PROCESSES = 4
_PATIENCE = 20

_FPM = """[global]
error_log = {directory}/fpm.log
[www]
listen = {directory}/fpm.sock
listen.backlog = 4096
listen.mode = 0666
{user}
pm = static
pm.max_children = {processes}
"""

_NGINX = """worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log stderr crit;
worker_rlimit_nofile 20000;
{user}
events {{
    worker_connections 8192;
    multi_accept on;
}}
http {{
    access_log off;
    keepalive_timeout 600s;
    keepalive_requests 100000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {directory}/root;
        location ~ \\.php$ {{
            try_files $fastcgi_script_name =404;
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
            fastcgi_param DOCUMENT_ROOT $realpath_root;
            fastcgi_pass unix:{directory}/fpm.sock;
        }}
    }}
}}
"""

_SANDARAC = """threads = 1
[[listen]]
address = "127.0.0.1:{port}"
[pool.php]
backends = ["fcgi+unix:{directory}/fpm.sock"]
[pool.php.fastcgi]
root = "{directory}/root"
[[route]]
pool = "php"
cache = "pass"
"""


class Stack:
    """php-fpm with the page, on the core of the clients, and the proxies, each on the core of the server."""

    def __init__(self, cores, sandarac, directory):
        self._core, self._others = cores
        self._sandarac = sandarac
        self._directory = Path(directory)
        self._started = []
        root = self._directory / "root"
        root.mkdir()
        (root / "index.php").write_text(PAGE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self._started:
            self._started.pop().stop()

    def start_php(self):
        program = max(Path("/usr/sbin").glob("php-fpm*"), default=None)
        if not program:
            raise tools.Missing("php-fpm is needed (Debian: php-fpm)")
        root = _is_root()
        path = self._write("fpm.conf", _FPM, user="user = root" if root else "", processes=_PROCESSES)
        command = [program, "--nodaemonize", "-n", "-d", "zend_extension=opcache", "--fpm-config", path]
        self._daemon("fpm", command + ["--allow-to-run-as-root"] * root, self._others)
        self._wait(self._connect_to_php, self._started[-1])

    def start(self, name):
        """Starts a proxy. Returns its process and its port."""
        port = peers.free_port()
        if name == "nginx":
            program = shutil.which("nginx") or "/usr/sbin/nginx"
            path = self._write("nginx.conf", _NGINX, port=port, user="user root;" if _is_root() else "")
            command = [program, "-c", path]
        else:
            command = [self._sandarac, "-c", self._write("sandarac.toml", _SANDARAC, port=port)]
        daemon = self._daemon(name, command, self._core)
        self._wait(lambda: load.fetch(port, "/index.php"), daemon)
        status, _, body = load.fetch(port, "/index.php")
        if (status, body) != (200, b"Hello, world!"):
            raise load.LoadFailed(f"{name}: {status} {body[:100]!r}")
        return daemon, port

    def _connect_to_php(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._directory / "fpm.sock"))

    def _write(self, name, template, **values):
        path = self._directory / name
        path.write_text(template.format(directory=self._directory, **values))
        return path

    def _daemon(self, name, command, core):
        daemon = Daemon(command, core, self._directory / f"{name}.output")
        self._started.append(daemon)
        return daemon

    @staticmethod
    def _wait(attempt, daemon):
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return attempt()
            except OSError as failure:
                if time.monotonic() > deadline or not daemon.running:
                    raise StartFailed(f"{daemon.output()}: {failure}") from failure
                time.sleep(0.05)


def _is_root():
    return os.geteuid() == 0
