"""A web server on a loopback socket, in a thread of the test."""

import asyncio
import threading

from aiohttp import web


class FakeServer:
    """A context manager; `origin` is the address. Subclasses add their routes."""

    port = 0

    def add_routes(self, app: web.Application) -> None:
        """Say what is answered."""
        raise NotImplementedError

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.origin = asyncio.run_coroutine_threadsafe(self.listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def listen(self) -> str:
        """Listen, and return the address."""
        app = web.Application(client_max_size=1 << 30)
        self.add_routes(app)
        # Hanging handlers are cancelled at once when the server stops.
        self._runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        await self._runner.cleanup()
        # Connections just accepted or closed let go of their sockets some turns of the loop later.
        for _ in range(20):
            await asyncio.sleep(0.0005)
