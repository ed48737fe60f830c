"""The programs the bench needs: Debian packages, the C programs beside it, and Sandarac itself."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

# Open files of one process: more than the connections of any line.
_DESCRIPTORS = 20000

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent

# Program to look for, and the Debian package that brings it.
PACKAGES = {
    "nginx": "nginx",
    "varnishd": "varnish",
    "haproxy": "haproxy",
    "apache2": "apache2",
    "wrk": "wrk",
    "ab": "apache2-utils",
    "h2load": "nghttp2-client",
    "nghttpx": "nghttp2-proxy",
    "h2o": "h2o",
    "curl": "curl",
    "cc": "gcc",
    "memcached": "memcached",
    "valgrind": "valgrind",
    "openssl": "openssl",
}
# Not programs but modules of Apache, found by their files.
PHP_PACKAGES = ["libapache2-mod-php", "php-sqlite3"]
# Debian starts these as services when it installs them; the bench starts its own on its own ports.
_SERVICES = {"memcached": "memcached", "nginx": "nginx", "varnish": "varnish", "haproxy": "haproxy", "apache2": "apache2", "h2o": "h2o", "nghttp2-proxy": "nghttpx"}


class Missing(Exception):
    """Something the whole bench cannot do without."""


def php_module():
    """The path of Apache's PHP module, or None."""
    return max(Path("/usr/lib/apache2/modules").glob("libphp*.so"), default=None)


def _has_php_sqlite():
    return any(Path("/usr/lib/php").glob("*/sqlite3.so"))


def install(programs, with_php):
    """Installs what is missing of `programs` (and PHP for Apache); prints what it does. Returns what is still missing."""
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    wanted = [PACKAGES[program] for program in programs if not shutil.which(program)]
    if with_php and not (php_module() and _has_php_sqlite()):
        wanted += PHP_PACKAGES
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing from Debian: {' '.join(wanted)}", flush=True)
        _apt(wanted)
    elif wanted:
        print(f"missing, and not installed because this is not root on Debian: {' '.join(wanted)}", flush=True)
    still = {program for program in programs if not shutil.which(program)}
    if with_php and not (php_module() and _has_php_sqlite()):
        still.add("php")
    return still


def _apt(packages):
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install_command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install_command):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            print(f"`{' '.join(command)}` failed: {done.stderr.strip()[-400:]}", flush=True)
    for package in packages:
        if package in _SERVICES and shutil.which("service"):
            subprocess.run(["service", _SERVICES[package], "stop"], capture_output=True)


def compile_c(name, directory):
    """Compiles bench/NAME.c with the system's compiler and returns the program."""
    program = Path(directory) / name
    command = ["cc", "-O2", "-o", str(program), str(BENCH / f"{name}.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"`{' '.join(command)}` failed:\n{done.stderr}")
    return program


def build_tls_programs():
    """Builds the Rust programs of `bench/tls` with the versions the workspace is locked to; returns their directory."""
    here = BENCH / "tls-programs"
    shutil.copyfile(ROOT / "Cargo.lock", here / "Cargo.lock")
    done = subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=here)
    if done.returncode:
        raise Missing("the programs in bench/tls-programs did not build")
    return Path(os.environ.get("CARGO_TARGET_DIR", here / "target")) / "release"


def allow_descriptors():
    """Lets this process and the servers it starts open many connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _DESCRIPTORS), hard))


def sandarac(binary):
    """The Sandarac to measure: `binary` if given, else the release build, made now if it is not there."""
    if binary:
        if not os.access(binary, os.X_OK):
            raise Missing(f"{binary} is not an executable file")
        return Path(binary).resolve()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "sandarac"
    if not program.exists():
        print("building sandarac (cargo build --release -p sandarac-server)", flush=True)
        done = subprocess.run(["cargo", "build", "--release", "-p", "sandarac-server"], cwd=ROOT)
        if done.returncode or not program.exists():
            raise Missing("sandarac did not build; name a binary with --binary, or leave it out with --servers")
    return program
