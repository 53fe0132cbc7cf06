"""The metrics of the service, for Prometheus.

Their labels are methods, routes, statuses and models; never a key, an address or text.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Metrics:
    """Count what one service does, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "dragoman_requests", "Answers.", ("method", "route", "status"), registry=registry
        )
        self.seconds = Histogram(
            *("dragoman_request_seconds", "From the request's head to the answer's end."),
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.refusals = Counter(
            *("dragoman_refusals", "Requests answered with an error, by status."),
            ("status",),
            registry=registry,
        )
        self.accepted = Gauge(
            "dragoman_accepted_sentences", "Accepted and not yet answered.", registry=registry
        )
        self.waiting = Gauge("dragoman_waiting_sentences", "Not yet in a batch.", registry=registry)
        self.running = Gauge(
            "dragoman_running_sentences", "In a batch now.", ("model",), registry=registry
        )
        self.fill = Histogram(
            *("dragoman_batch_fill", "Share of a batch's places in use, at each step."),
            ("model",),
            buckets=_SHARES,
            registry=registry,
        )
        self.wait = Histogram(
            *("dragoman_wait_seconds", "From acceptance to the first step."),
            buckets=_SECONDS,
            registry=registry,
        )
        self.sentences = Counter(
            "dragoman_sentences", "Translated or parsed.", ("model",), registry=registry
        )
        self.tokens = Counter(
            "dragoman_tokens", "Pieces of the translations.", ("model",), registry=registry
        )
        self.characters = Counter(
            "dragoman_characters", "In the texts received.", registry=registry
        )
        self.abandoned = Counter(
            *("dragoman_abandoned_sentences", "Given up by the client or at the deadline."),
            registry=registry,
        )
        self.failures = Counter(
            "dragoman_worker_failures", "Searches that ended in an error.", registry=registry
        )
        ProcessCollector(registry=registry)  # memory, time and open files of the process
        self.ready = Gauge("dragoman_ready", "1 while requests are accepted.", registry=registry)

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)
