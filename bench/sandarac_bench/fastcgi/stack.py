"""php-fpm, and the proxies before it."""

import os
import shutil
import socket
import time
from pathlib import Path

from .. import load, peers, tools
from ..process import Daemon, StartFailed

_PROCESSES = 4
_PATIENCE = 20
# Seconds of a look at php-fpm, and of its CPU time meanwhile, below which it has no work left.
_LOOK = 0.2
_IDLE = 0.02

_FPM = """[global]
error_log = {directory}/fpm.log
[www]
listen = {directory}/fpm.sock
listen.backlog = 4096
listen.mode = 0666
{user}
pm = static
pm.max_children = {processes}
{settings}
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
    fastcgi_cache_path {directory}/cached keys_zone=pages:8m;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {root};
        {location}
            try_files $fastcgi_script_name =404;
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
            fastcgi_param DOCUMENT_ROOT $realpath_root;
            fastcgi_pass unix:{directory}/fpm.sock;
            {cache}
        }}
    }}
}}
"""

# Pages of MediaWiki expired in 1970, by Expires, and vary with cookies.
_NGINX_CACHE = """fastcgi_cache pages;
            fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 1h;
            fastcgi_ignore_headers Expires Cache-Control Vary;"""

_SANDARAC = """threads = 1
[[listen]]
address = "127.0.0.1:{port}"
[pool.php]
backends = ["fcgi+unix:{directory}/fpm.sock"]
[pool.php.fastcgi]
root = "{root}"
[[route]]
pool = "php"
{cache}
"""

_APACHE = """ServerRoot {directory}
DefaultRuntimeDir {directory}
PidFile {directory}/apache.pid
ErrorLog {directory}/apache-error.log
LogLevel crit
ServerName localhost
Listen 127.0.0.1:{port}
ListenBacklog 4096
{user}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_fcgi_module /usr/lib/apache2/modules/mod_proxy_fcgi.so

ThreadLimit 600
ServerLimit 1
StartServers 1
ThreadsPerChild 600
MaxRequestWorkers 600
KeepAlive On
KeepAliveTimeout 600
MaxKeepAliveRequests 0
ProxyTimeout 600

DocumentRoot {root}
<Directory {root}>
    Require all granted
    AllowOverride None
    Options FollowSymLinks
</Directory>
<FilesMatch "\\.php$">
    SetHandler "proxy:unix:{directory}/fpm.sock|fcgi://localhost"
</FilesMatch>
"""


class Stack:
    """php-fpm with a site, on the core of the clients, and the proxies, each on the core of the server."""

    def __init__(self, cores, sandarac, directory, site):
        self._core, self._others = cores
        self._sandarac = sandarac
        self._directory = Path(directory)
        self._started = []
        self.site = site(self._directory)

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
        user, settings = "user = root" if root else "", self.site.fpm_settings
        path = self._write("fpm.conf", _FPM, user=user, processes=_PROCESSES, settings=settings)
        command = [program, "--nodaemonize", *self.site.fpm_arguments, "--fpm-config", path]
        self._php = self._daemon("fpm", command + ["--allow-to-run-as-root"] * root, self._others)
        self._wait(self._connect_to_php, self._php)

    def start(self, name, caches=False):
        """Starts a proxy, which caches or does not. Returns its process and its port."""
        port, root = peers.free_port(), self.site.root
        user = "user root;" if _is_root() else ""
        suffix = f"{name}{'-caching' * caches}"
        if name == "nginx":
            cache = _NGINX_CACHE if caches else ""
            values = {"port": port, "user": user, "root": root, "location": self.site.nginx, "cache": cache}
            command = [shutil.which("nginx"), "-c", self._write(f"{suffix}.conf", _NGINX, **values)]
        elif name == "apache":
            user = "User www-data\nGroup www-data" if _is_root() else ""
            command = ["apache2", "-DFOREGROUND", "-f", self._write(f"{suffix}.conf", _APACHE, port=port, user=user, root=root)]
        else:
            cache = "" if caches else 'cache = "pass"'
            path = self._write(f"{suffix}.toml", _SANDARAC, port=port, root=root, cache=cache)
            command = [self._sandarac, "-c", path, "--admin", self._directory / f"{suffix}.sock"]
        daemon = self._daemon(suffix, command, self._core)
        self._wait(lambda: load.fetch(port, self.site.path), daemon)
        status, _, body = load.fetch(port, self.site.path)
        if status != 200 or self.site.text not in body:
            raise load.LoadFailed(f"{name}: {status} {body[:100]!r}")
        return daemon, port

    def cpu_seconds(self):
        """CPU time of php-fpm and of all proxies."""
        return sum(daemon.cpu_seconds() for daemon in self._started)

    def php_seconds(self):
        """CPU time of php-fpm."""
        return self._php.cpu_seconds()

    def settle(self):
        """Waits until php-fpm has no work left, which it goes on with when clients have gone."""
        before = -1.0
        while self._php.cpu_seconds() - before > _IDLE:
            before = self._php.cpu_seconds()
            time.sleep(_LOOK)

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
