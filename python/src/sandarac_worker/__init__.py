"""Workers that tell the balancer what they are good at.

:class:`WsgiMiddleware` and :class:`AsgiMiddleware` keep a résumé of the application they wrap, by request class, and
tell it to the balancer over plain HTTP (docs/protocols/resume.md). ``sandarac-worker module:app --workers 8`` runs an
application in processes of its own, each behind a socket of its own; :mod:`sandarac_worker.gunicorn` does so under
gunicorn.
"""

from .asgi import AsgiMiddleware
from .worker import Worker, process_worker
from .wsgi import WsgiMiddleware

__version__ = "0.1.0"
__all__ = ["AsgiMiddleware", "Worker", "WsgiMiddleware", "__version__", "process_worker"]
