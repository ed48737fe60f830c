"""Sites of php-fpm: a page of 13 bytes, and the front page of a wiki."""

import os
import shutil
import subprocess
from pathlib import Path

from .. import tools

_MEDIAWIKI = Path("/usr/share/mediawiki")
_PACKAGES = ["mediawiki", "php-cli", "php-fpm", "php-sqlite3", "php-mbstring", "php-xml", "php-intl"]


class Page:
    """A script that prints 13 bytes, run without the extensions that are installed."""

    path = "/index.php"
    text = b"Hello, world!"
    fpm_arguments = ["-n", "-d", "zend_extension=opcache"]
    fpm_settings = ""
    nginx = r"location ~ \.php$ {"

    def __init__(self, directory):
        self.root = directory / "root"
        self.root.mkdir()
        (self.root / "index.php").write_text("<?php header('Cache-Control: no-store'); echo 'Hello, world!';")


class Wiki:
    """Debian's MediaWiki on SQLite, as its installer sets it up, which tells proxies to keep its pages."""

    path = "/index.php/Main_Page"
    text = b"MediaWiki has been installed"
    fpm_arguments = []
    nginx = r"""location ~ ^/index\.php(/|$) {
            fastcgi_split_path_info ^(.+?\.php)(/.*)$;
            fastcgi_param PATH_INFO $fastcgi_path_info;"""
    root = _MEDIAWIKI

    def __init__(self, directory):
        settings = directory / "LocalSettings.php"
        self.fpm_settings = f"env[MW_CONFIG_FILE] = {settings}"
        for name in ("data", "images", "cache"):
            (directory / name).mkdir()
        command = ["php", str(_MEDIAWIKI / "maintenance/install.php"), "--dbtype", "sqlite", "--dbname", "wiki", "--dbpath"]
        command += [str(directory / "data"), "--confpath", str(directory), "--server", "http://127.0.0.1", "--scriptpath", ""]
        command += ["--pass", "of-nobody-but-the-bench", "Bench", "Admin"]
        environment = {**os.environ, "MW_CONFIG_FILE": str(settings)}
        if not _MEDIAWIKI.exists() or not shutil.which("php"):
            raise tools.Missing(f"MediaWiki is needed (Debian: {' '.join(_PACKAGES)})")
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=directory)
        if done.returncode:
            raise tools.Missing(f"the installer of MediaWiki failed: {done.stdout}{done.stderr}")
        with open(settings, "a") as file:
            file.write(
                f"\n$wgUseCdn = true;\n$wgUsePathInfo = true;\n$wgLogos = false;\n$wgCacheDirectory = '{directory}/cache';\n"
            )
