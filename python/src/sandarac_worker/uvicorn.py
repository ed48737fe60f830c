"""An ASGI application under uvicorn, in a worker process of the runner. Needs the extra ``uvicorn``."""

from __future__ import annotations

import signal
import socket
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from .asgi import AsgiApplication, AsgiMiddleware
from .worker import Worker

if TYPE_CHECKING:
    from .control import Control, Plan
    from .listener import Listener


class _Server(uvicorn.Server):
    """Tells the runner when it serves, and takes its socket out of sight before it stops."""

    def __init__(self, config: uvicorn.Config, listener: Listener, control: Control, max_requests: int) -> None:
        super().__init__(config)
        self._listener = listener
        self._control = control
        self._max_requests = max_requests
        self._spent = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listener.announce()
            self._control.say(f"ready {self._listener.address}")

    async def on_tick(self, counter: int) -> bool:
        if not self._spent and 0 < self._max_requests <= self.server_state.total_requests:
            self._spent = True
            self._control.say("spent")
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.withdraw()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # The runner decides what a Ctrl-C means; uvicorn would raise the signal again once it is done.
        self.should_exit = True


def serve(app: AsgiApplication, plan: Plan, worker: Worker, listener: Listener, control: Control) -> int:
    """Serves until SIGTERM or the runner's end. Returns the exit status."""
    config = uvicorn.Config(
        app if isinstance(app, AsgiMiddleware) else AsgiMiddleware(app, worker),
        log_level="warning",
        access_log=False,
        # The balancer says who asks; the application is told by its own means, as under the WSGI server.
        proxy_headers=False,
        # Longer than a balancer keeps its own, so that it is the one to close them.
        timeout_keep_alive=300,
        timeout_graceful_shutdown=round(plan.drain_timeout),
    )
    server = _Server(config, listener, control, plan.max_requests)

    def leave() -> None:
        server.should_exit = True

    control.listen(worker, leave)
    server.run(sockets=[listener.socket])
    # uvicorn has put back what was there before it; a second SIGTERM must not come between the worker and its résumé.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return 0 if server.started else 3
