"""The service runs in a web server that shuts down in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from types import FrameType
from typing import Any

import uvicorn

from dragoman.errors import ConfigError
from dragoman.serve.app import build_app, wrap_in_middleware
from dragoman.serve.errors import log
from dragoman.serve.middleware import JsonFormatter
from dragoman.serve.service import TranslationService
from dragoman.serve.settings import Settings
from dragoman.system.malloc import share_freed_memory


def serve(settings: Settings) -> None:
    """Load the models and serve them until a signal comes."""
    with _bind(settings.host, settings.port) as bound:  # first: loading models takes longer
        share_freed_memory()
        service = TranslationService(settings)
        _log_as_json()
        # Threads that compute let the one that answers have its turn soon.
        sys.setswitchinterval(0.0005)
        config = uvicorn.Config(
            wrap_in_middleware(build_app(service)),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=int(settings.limits.drain_seconds) + 1,
        )
        _Server(config, service).run([bound])


def _log_as_json() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    log.setLevel(logging.INFO)
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it would log what it reads


def _bind(host: str, port: int) -> socket.socket:
    try:
        tcp = {"type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP}
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, **tcp)[0]
        # Without the protocol asyncio does not know that answers must not wait for the client's
        # acknowledgement, and each takes 40 ms more.
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"{host} port {port}: cannot listen there ({error.strerror}); choose another --port"
        ) from None
    return bound


class _Server(uvicorn.Server):
    """End in order at a signal: first not ready, then not listening, then gone.

    What was accepted before is answered.
    """

    def __init__(self, config: uvicorn.Config, service: TranslationService) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: Any = None) -> None:
        """Start as uvicorn does, and log where the server listens."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for one in server.sockets:
                host, port = one.getsockname()[:2]
                address = f"[{host}]" if ":" in host else host
                fields = {"host": host, "port": port, "url": f"http://{address}:{port}"}
                log.info("listening", extra={"fields": fields})
        if self.started:
            self._log_models()

    def _log_models(self) -> None:
        registry = self._service.registry
        for one in (*registry.models, *registry.pivots):
            task = "parsing" if one.is_parser else "translation"
            pair = {} if one.is_parser else {"source": one.source, "target": one.target}
            through = {"through": one.through} if one.through else {}
            default = registry.is_default(one)
            fields = {"name": one.name, "task": task, **pair, **through, "default": default}
            log.info("model", extra={"fields": fields})

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down at the first signal, and exit at once at the second."""
        if self._service.admission.draining:
            self.force_exit = True
            super().handle_exit(sig, frame)
            return
        self._service.admission.drain()
        loop = asyncio.get_running_loop()
        loop.call_later(self._service.settings.linger, super().handle_exit, sig, frame)
