"""An ASGI application under uvicorn, in a worker process of the runner. Needs the extra ``uvicorn``."""

from __future__ import annotations

import signal
import socket
import time
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from .asgi import AsgiApplication, AsgiMiddleware, Message, Receive, Scope, Send
from .connection import Timeouts
from .worker import Worker

if TYPE_CHECKING:
    from .control import Control, Plan
    from .listener import Listener


class Server(uvicorn.Server):
    """Tells the runner when it serves, and takes its socket out of sight before it stops."""

    def __init__(
        self,
        app: AsgiApplication,
        plan: Plan,
        worker: Worker,
        listener: Listener,
        control: Control,
        grace: float = Timeouts.grace,
    ) -> None:
        self._app = app if isinstance(app, AsgiMiddleware) else AsgiMiddleware(app, worker)
        super().__init__(
            uvicorn.Config(
                self._run,
                interface="asgi3",
                log_level="warning",
                access_log=False,
                # The balancer says who asks; the application is told by its own means, as under the WSGI server.
                proxy_headers=False,
                # Longer than a balancer keeps its own, so that it is the one to close them.
                timeout_keep_alive=300,
                timeout_graceful_shutdown=round(plan.drain_timeout),
            )
        )
        self._listener = listener
        self._control = control
        self._max_requests = plan.max_requests
        self._spent_at = plan.max_requests
        self._grace = grace
        #: When it stops, once it has been told to.
        self._stops_at: float | None = None

    def leave(self) -> None:
        """Stops after the grace period: uvicorn closes idle connections at once, with the requests that are under way
        to them. From any thread, or a signal handler."""
        if self._stops_at is None:
            self._stops_at = time.monotonic() + self._grace
            self._listener.withdraw()

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_or_end(message: Message) -> None:
            if message["type"] == "http.response.start" and self._stops_at is not None:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, send_or_end)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._stops_at is None:
            self._listener.announce()
            self._control.say(f"ready {self._listener.address}")

    async def on_tick(self, counter: int) -> bool:
        if 0 < self._spent_at <= self.server_state.total_requests:
            # Again, should no successor come of it.
            self._spent_at = self.server_state.total_requests + self._max_requests
            self._control.say("spent")
        if self._stops_at is not None and self._stops_at <= time.monotonic():
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.withdraw()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # The runner decides what a Ctrl-C means; uvicorn would raise the signal again once it is done.
        self.leave()


def serve(app: AsgiApplication, plan: Plan, worker: Worker, listener: Listener, control: Control) -> int:
    """Serves until SIGTERM or the runner's end. Returns the exit status."""
    server = Server(app, plan, worker, listener, control)
    control.listen(worker, server.leave)
    server.run(sockets=[listener.socket])
    # uvicorn has put back what was there before it; a second SIGTERM must not come between the worker and its résumé.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return 0 if server.started else 3
