"""WordPress on MariaDB behind Sandarac: installed by its own installer, read, logged in to, edited, uploaded to, and purged."""

import glob
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = "/usr/share/wordpress"
USER, PASSWORD = "edwina", "correct horse battery staple"
PATIENCE = 60
IS_ROOT = os.getuid() == 0

# Sends PURGE for a page that was edited, as plugins for that do.
PURGER = """<?php
add_action('save_post', function ($id) {
    foreach ([get_permalink($id), home_url('/')] as $url) {
        wp_remote_request($url, ['method' => 'PURGE', 'timeout' => 10]);
    }
}, 99);
"""


def wait_for(what, found):
    """Waits until `found` returns something true."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


class Site:
    """WordPress with all that it needs, in a directory of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.wordpress = os.path.join(directory, "wordpress")
        # The package consists of links into directories of the system.
        shutil.copytree(PROGRAM, self.wordpress, ignore=shutil.ignore_patterns(".htaccess"))
        os.makedirs(os.path.join(self.wordpress, "wp-content/uploads"), exist_ok=True)
        os.makedirs(os.path.join(self.wordpress, "wp-content/mu-plugins"), exist_ok=True)
        self.write("wordpress/wp-content/mu-plugins/purge.php", PURGER)
        self.write("wordpress/wp-content/uploads/evil.php", "<?php echo 'ran';")
        self.database()
        self.php()
        self.proxy()

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, name, *command):
        log = open(self.path(f"{name}.log"), "wb")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def log(self, name):
        with open(self.path(f"{name}.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def database(self):
        data, place = self.path("data"), self.path("db.sock")
        user = pwd.getpwuid(os.getuid()).pw_name
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={user}"]
        subprocess.run(install + ["--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL)
        options = [f"--datadir={data}", f"--socket={place}", "--skip-networking", f"--user={user}"]
        self.start("database", "/usr/sbin/mariadbd", "--no-defaults", f"--pid-file={self.path('db.pid')}", *options)
        wait_for("MariaDB", lambda: os.path.exists(place))
        make = "CREATE DATABASE site; CREATE USER site@localhost IDENTIFIED BY 'site'; GRANT ALL ON site.* TO site@localhost;"
        subprocess.run(["mariadb", "--no-defaults", f"--socket={place}", "-u", "root", "-e", make], check=True)

    def php(self):
        lines = ["[global]", f"error_log = {self.path('fpm-errors.log')}", "[www]", f"listen = {self.path('fpm.sock')}"]
        lines += ["user = root"] if IS_ROOT else []
        lines += ["pm = static", "pm.max_children = 4"]
        lines += ["php_admin_value[post_max_size] = 64M", "php_admin_value[upload_max_filesize] = 64M", ""]
        self.write("fpm.conf", "\n".join(lines))
        binary = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
        as_root = ["--allow-to-run-as-root"] if IS_ROOT else []
        self.start("fpm", binary, "--nodaemonize", "--fpm-config", self.path("fpm.conf"), *as_root)
        wait_for("php-fpm", lambda: os.path.exists(self.path("fpm.sock")))

    def proxy(self):
        with open(os.path.join(ROOT, "examples/wordpress.toml"), encoding="utf-8") as file:
            text = file.read()
        for old, new, count in [
            ('address = ":8080"', 'address = "127.0.0.1:0"', 1),
            ("/run/php/php-fpm.sock", self.path("fpm.sock"), 1),
            ('"/srv/wordpress"', f'"{self.wordpress}"', 3),
        ]:
            assert text.count(old) == count, f"{old} is in the example {text.count(old)} times"
            text = text.replace(old, new)
        self.write("sandarac.toml", text)
        command = [os.environ["SANDARAC_BIN"], "-c", self.path("sandarac.toml"), "--admin", self.path("admin")]
        self.start("sandarac", *command)
        told = wait_for("Sandarac", lambda: "ready" in self.log("sandarac") and self.log("sandarac"))
        self.port = int(re.search(r"listening on 127\.0\.0\.1:(\d+)", told).group(1))
        url = f"http://127.0.0.1:{self.port}"
        settings = {
            "DB_NAME": "site", "DB_USER": "site", "DB_PASSWORD": "site", "DB_HOST": f"localhost:{self.path('db.sock')}",
            "DB_CHARSET": "utf8mb4", "DB_COLLATE": "", "WP_HOME": url, "WP_SITEURL": url,
        }
        config = "<?php\n" + "".join(f"define('{name}', '{value}');\n" for name, value in settings.items())
        config += "define('DISABLE_WP_CRON', true);\n$table_prefix = 'wp_';\n"
        config += "if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');\nrequire_once ABSPATH . 'wp-settings.php';\n"
        self.write("wordpress/wp-config.php", config)

    def end(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Browser:
    """Keeps the cookies that it gets. A connection for each request."""

    def __init__(self, site):
        self.site, self.cookies = site, {}

    def ask(self, method, target, body=None, fields=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=PATIENCE)
        fields = dict(fields)
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, target, body, fields)
        response = connection.getresponse()
        response.text = response.read().decode("utf-8", "replace")
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                cookie, _, content = value.split(";")[0].partition("=")
                self.cookies[cookie] = content
        connection.close()
        response.cache = response.getheader("Cache-Status") or ""
        return response

    def get(self, target):
        return self.ask("GET", target)

    def post(self, target, **fields):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", target, urllib.parse.urlencode(fields), kind)

    def log_in(self):
        self.get("/wp-login.php")
        answer = self.post("/wp-login.php", log=USER, pwd=PASSWORD, testcookie="1")
        assert answer.status == 302, (answer.status, answer.text[-500:])
        self.nonce = self.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
        return self

    def rest(self, path, body, **fields):
        answer = self.ask("POST", f"/?rest_route=/wp/v2/{path}", body, {"X-WP-Nonce": self.nonce, **fields})
        assert answer.status in (200, 201), (answer.status, answer.text[:500])
        return json.loads(answer.text)

    def publish(self, title, text, page=None):
        about = json.dumps({"title": title, "content": text, "status": "publish"})
        made = self.rest(f"posts/{page}" if page else "posts", about, **{"Content-Type": "application/json"})
        return made["id"], made["link"].split(f":{self.site.port}", 1)[1]


def is_hit(answer):
    return "; hit" in answer.cache


def the_installer_sets_up_a_site(site):
    fields = {"weblog_title": "Village", "user_name": USER, "admin_password": PASSWORD, "admin_password2": PASSWORD}
    fields |= {"pw_weak": "on", "admin_email": "edwina@example.org", "blog_public": "1", "language": ""}
    visitor = Browser(site)
    assert "WordPress" in visitor.get("/wp-admin/install.php").text
    answer = visitor.post("/wp-admin/install.php?step=2", **fields)
    assert answer.status == 200 and "Success" in answer.text, answer.text[-1000:]
    assert "Village" in Browser(site).get("/").text


def a_page_is_made_once_for_all_visitors(site):
    first, second = Browser(site).get("/?p=1&utm_source=a"), Browser(site).get("/?p=1")
    assert first.status in (200, 301), first.status
    assert is_hit(second), second.cache
    style = re.search(r"/wp-includes/[^'\" ]+\.css", Browser(site).get("/").text)
    if style:
        answer = Browser(site).get(style.group(0))
        assert answer.status == 200 and "detail=file" in answer.cache, answer.cache


def pages_of_the_editor_are_for_the_editor(site):
    editor = Browser(site).log_in()
    _, link = editor.publish("Harvest", "It has begun.")
    for browser in (editor, editor):
        seen = browser.get(link)
        assert seen.status == 200 and "wpadminbar" in seen.text and not is_hit(seen), seen.cache
    for _ in range(2):
        seen = Browser(site).get(link)
        assert "It has begun." in seen.text and "wpadminbar" not in seen.text, seen.text[:500]
        assert not any(value in seen.text for value in editor.cookies.values() if len(value) > 8)
    assert is_hit(Browser(site).get(link))
    assert "wpadminbar" in editor.get(link).text


def an_edit_is_seen_by_everyone_at_once(site):
    editor = Browser(site).log_in()
    page, link = editor.publish("News", "Nothing yet.")
    assert "Nothing yet." in Browser(site).get(link).text
    assert is_hit(Browser(site).get(link))
    editor.publish("News", "The harvest is in.", page)
    seen = Browser(site).get(link)
    assert "The harvest is in." in seen.text and not is_hit(seen), seen.cache
    assert is_hit(Browser(site).get(link))


def an_upload_of_20_mb_is_served_as_a_file(site):
    editor = Browser(site).log_in()
    content = "A line of text\n" * (20_000_000 // 15)
    fields = {"Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="long.txt"'}
    made = editor.rest("media", content, **fields)
    path = made["source_url"].split(f":{site.port}", 1)[1]
    read = Browser(site).get(path)
    assert read.text == content and "detail=file" in read.cache, (read.status, read.cache)


def no_source_is_sent_and_nothing_among_uploads_runs(site):
    for path in ("/wp-content/uploads/evil.php", "/wp-content/uploads/evil.php/x", "/wp-config.php", "/wp-config.php.", "/.htaccess"):
        seen = Browser(site).get(path)
        assert "<?php" not in seen.text and "DB_PASSWORD" not in seen.text, (path, seen.text[:200])
        assert seen.text != "ran", path
    assert Browser(site).get("/wp-content/uploads/evil.php").status == 403


def how_to_blocks(kind):
    """The blocks of one kind in the part about WordPress of the page about personal corners, without their indentation."""
    with open(os.path.join(ROOT, "docs/how-to/one-personal-corner.md"), encoding="utf-8") as file:
        part = file.read().split("\n## WordPress\n", 1)[1]
    return [textwrap.dedent(block) for block in re.findall(rf"^ *```{kind}\n(.*?)^ *```", part, re.DOTALL | re.MULTILINE)]


def members_get_cached_pages_with_a_corner_of_their_own(site):
    """As the page says, word for word."""
    [plugin] = how_to_blocks("php")
    corner, stored = how_to_blocks("text")
    site.write("wordpress/wp-content/mu-plugins/personal-corner.php", plugin)
    with open(site.path("sandarac.toml"), encoding="utf-8") as file:
        text = file.read()
    text = text.replace('"wordpress_logged_in_*", "wordpress_sec_*", ', "")
    before, uploads, pages = text.partition("# Uploads:")
    first, pool, rest = (uploads + pages).rpartition('pool = "wordpress"\n')
    corner = corner.replace("/srv/wordpress", site.wordpress)
    site.write("sandarac.toml", f"{before}{corner}\n{first}{pool}fragments = true\n{rest}\n{stored}")
    command = [os.environ["SANDARAC_BIN"], "reload", "--admin", site.path("admin")]
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert told.returncode == 0, (told.returncode, told.stdout)

    editor, stranger = Browser(site).log_in(), Browser(site)
    _, page = editor.publish("Members", "All see this.")
    made, own, public = editor.get(page), editor.get(page), stranger.get(page)
    assert not is_hit(made) and is_hit(own) and is_hit(public), (made.cache, own.cache, public.cache)
    for seen in (made, own):
        assert "All see this." in seen.text, (seen.status, seen.text[:2000])
        assert f"Hello, {USER}." in seen.text and "wpadminbar" not in seen.text, seen.text[:2000]
    assert "Hello" not in public.text and "Log in</a>" in public.text, public.text[:2000]
    for seen in (made, own, public):
        assert "<esi:" not in seen.text and seen.getheader("Cache-Control") == "private, no-cache", seen.getheaders()


TESTS = [
    the_installer_sets_up_a_site,
    a_page_is_made_once_for_all_visitors,
    pages_of_the_editor_are_for_the_editor,
    an_edit_is_seen_by_everyone_at_once,
    an_upload_of_20_mb_is_served_as_a_file,
    no_source_is_sent_and_nothing_among_uploads_runs,
    members_get_cached_pages_with_a_corner_of_their_own,
]


def main():
    missing = [path for path in (PROGRAM, "/usr/sbin/mariadbd") if not os.path.exists(path)]
    if missing or not glob.glob("/usr/sbin/php-fpm*"):
        sys.exit(f"wordpress: Debian's wordpress, mariadb-server, php-fpm or php-mysql is missing: {missing}")
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        site = None
        try:
            site = Site(directory)
            for test in TESTS:
                try:
                    test(site)
                    print(f"ok      {test.__name__}", flush=True)
                except (AssertionError, OSError, ValueError, KeyError, http.client.HTTPException) as error:
                    failed += 1
                    print(f"FAILED  {test.__name__}: {type(error).__name__}: {error}", flush=True)
            if failed:
                print(site.log("sandarac"), site.log("fpm"), sep="\n")
        finally:
            if site:
                site.end()
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
