"""Finding the application that a command line names."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from typing import Any

_NAME = re.compile(r"(?P<module>[\w.]+)(?::(?P<object>[\w.]+)(?P<call>\(\))?)?")


class NotLoadable(Exception):
    """The application is not where it is said to be, or is none."""


def load(name: str, directory: str | None = None) -> Any:
    """The object ``module:object``, ``module:factory()`` called, or ``application`` of ``module``. ``directory``, the
    current one if not given, comes first in ``sys.path``. Raises :class:`NotLoadable`; what the module raises passes
    through."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise NotLoadable(f"not module:object: {name}")
    directory = os.path.abspath(directory or os.getcwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        app: Any = importlib.import_module(found["module"])
    except ModuleNotFoundError as error:
        # One that the module itself misses is its own affair, and worth its traceback.
        if error.name and (found["module"] == error.name or found["module"].startswith(f"{error.name}.")):
            raise NotLoadable(f"there is no module {error.name} in {directory} or installed") from error
        raise
    for part in (found["object"] or "application").split("."):
        try:
            app = getattr(app, part)
        except AttributeError as error:
            raise NotLoadable(f"{found['module']} has no {part}") from error
    if found["call"]:
        app = app()
    if not callable(app):
        raise NotLoadable(f"{name} cannot be called")
    return app


def is_asgi(app: Any) -> bool:
    """Whether an application is ASGI 3: one whose call is to be awaited."""
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(getattr(app, "__call__", None))  # noqa: B004
