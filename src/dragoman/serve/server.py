"""Running the service: a server that leaves in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from types import FrameType
from typing import Any

import uvicorn

from dragoman.errors import ConfigError
from dragoman.serve.app import build, edged
from dragoman.serve.errors import log
from dragoman.serve.middleware import JsonLines
from dragoman.serve.service import Desk
from dragoman.serve.settings import Settings
from dragoman.system.memory import share_freed_memory

__all__ = ["serve"]


def serve(settings: Settings) -> None:
    """Read the models and serve them until a signal comes."""
    with _bound(settings.host, settings.port) as bound:  # first: reading models takes longer
        share_freed_memory()
        desk = Desk(settings)
        _log_as_json()
        # Threads that compute let the one that answers have its turn soon.
        sys.setswitchinterval(0.0005)
        config = uvicorn.Config(
            edged(build(desk)),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=int(settings.patience) + 1,
        )
        _Server(config, desk).run([bound])


def _log_as_json() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    log.setLevel(logging.INFO)
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it would log what it reads


def _bound(host: str, port: int) -> socket.socket:
    try:
        tcp = {"type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP}
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, **tcp)[0]
        # Without the protocol asyncio does not know that answers must not wait for the client's
        # acknowledgement, and each takes 40 ms more.
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"{host} port {port}: cannot listen there ({error.strerror}); choose another --port"
        ) from None
    return found


class _Server(uvicorn.Server):
    """Not ready first, then deaf, then gone; what was accepted is answered."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    async def startup(self, sockets: Any = None) -> None:
        """See uvicorn; says where it listens."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for one in server.sockets:
                host, port = one.getsockname()[:2]
                place = f"[{host}]" if ":" in host else host
                facts = {"host": host, "port": port, "url": f"http://{place}:{port}"}
                log.info("listening", extra={"facts": facts})

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn; a second signal ends it at once."""
        if self._desk.draining:
            self.force_exit = True
            super().handle_exit(sig, frame)
            return
        self._desk.drain()
        loop = asyncio.get_running_loop()
        loop.call_later(self._desk.settings.linger, super().handle_exit, sig, frame)
