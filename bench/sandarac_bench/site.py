"""The sample site of Shellac's three pages: files for Apache, and the database of the blog."""

import random
import shutil
import sqlite3

from .tools import BENCH

# The words the static page and the blog's texts are drawn from; a fixed seed makes every run serve the same bytes.
_WORDS = (
    "the resin of a small cypress hardens to pale tears that dissolve in spirit and dry to a clear film "
    "which painters spread over a finished picture so that dust and light may not reach the colours beneath"
).split()
_SEED = 2013
_ARTICLES = 500
_USERS = 60
_COMMENTS_EACH = 16
_YEAR_2020 = 1577836800


def build(directory):
    """Writes the pages and the database below `directory`; returns the directory Apache is to serve and the database."""
    files = directory / "www"
    files.mkdir()
    for name in ("light.php", "article.php"):
        shutil.copy(BENCH / "site" / name, files / name)
    draw = random.Random(_SEED)
    paragraphs = "\n".join(f"<p>{_sentence(draw, 90)}</p>" for _ in range(20))
    (files / "static.html").write_text(f"<!DOCTYPE html>\n<title>Static</title>\n<h1>A static page</h1>\n{paragraphs}\n")
    database = directory / "blog.sqlite"
    _fill(database, draw)
    for path in (files, database, *files.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return files, database


def _sentence(draw, words):
    return " ".join(draw.choice(_WORDS) for _ in range(words)).capitalize() + "."


def _fill(path, draw):
    with sqlite3.connect(path) as database:
        database.executescript(
            """
            CREATE TABLE options (name TEXT PRIMARY KEY, value TEXT);
            CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE articles (id INTEGER PRIMARY KEY, author INTEGER, written INTEGER, title TEXT, body TEXT);
            CREATE TABLE comments (id INTEGER PRIMARY KEY, article INTEGER, author INTEGER, written INTEGER, body TEXT);
            CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE article_tags (article INTEGER, tag INTEGER, PRIMARY KEY (article, tag));
            CREATE TABLE links (position INTEGER PRIMARY KEY, title TEXT, target TEXT);
            CREATE INDEX comments_of_article ON comments (article, written);
            CREATE INDEX articles_of_author ON articles (author);
            CREATE INDEX articles_by_time ON articles (written);
            """
        )
        options = {"name": "Notes on resin", "motto": "Clear, hard and slightly brittle", "footer": "All texts are random."}
        database.executemany("INSERT INTO options VALUES (?, ?)", options.items())
        database.executemany("INSERT INTO users VALUES (?, ?)", [(user, f"Writer {user}") for user in range(1, _USERS + 1)])
        database.executemany("INSERT INTO tags VALUES (?, ?)", enumerate(sorted(set(_WORDS)), 1))
        database.executemany(
            "INSERT INTO links VALUES (?, ?, ?)", [(number, f"Link {number}", f"/links/{number}") for number in range(8)]
        )
        for article in range(1, _ARTICLES + 1):
            written = _YEAR_2020 + article * 300000
            body = "".join(f"<p>{_sentence(draw, 80)}</p>" for _ in range(8))
            title = _sentence(draw, 5)
            database.execute("INSERT INTO articles VALUES (?, ?, ?, ?, ?)", (article, _user(draw), written, title, body))
            database.executemany(
                "INSERT INTO comments (article, author, written, body) VALUES (?, ?, ?, ?)",
                [(article, _user(draw), written + 600 * n, _sentence(draw, 30)) for n in range(_COMMENTS_EACH)],
            )
            tags = draw.sample(range(1, len(set(_WORDS)) + 1), 4)
            database.executemany("INSERT INTO article_tags VALUES (?, ?)", [(article, tag) for tag in tags])
    database.close()


def _user(draw):
    return draw.randint(1, _USERS)
