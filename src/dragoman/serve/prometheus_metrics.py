"""The service is measured for Prometheus.

Their labels are methods, routes, statuses and models; never a key, an address or text.
"""

from __future__ import annotations

from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Metrics:
    """Count what one service does, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        seconds = partial(Histogram, registry=self.registry, buckets=_SECONDS)
        shares = partial(Histogram, registry=self.registry, buckets=_SHARES)
        labels = ("method", "route", "status")
        self.requests = counter("dragoman_requests", "Requests answered.", labels)
        took = "Time from a request's head to the end of its answer."
        self.seconds = seconds("dragoman_request_seconds", took, ("route",))
        refused = "Requests answered with an error, by status."
        self.refusals = counter("dragoman_refusals", refused, ("status",))
        self.accepted = gauge(
            "dragoman_accepted_sentences", "Sentences accepted and not yet answered."
        )
        self.waiting = gauge("dragoman_waiting_sentences", "Sentences not yet in a batch.")
        self.running = gauge("dragoman_running_sentences", "Sentences in a batch now.", ("model",))
        used = "Share of a batch's slots in use, at each step."
        self.fill = shares("dragoman_batch_fill", used, ("model",))
        self.wait = seconds("dragoman_wait_seconds", "Time from acceptance to the first step.")
        self.sentences = counter(
            "dragoman_sentences", "Sentences translated or parsed.", ("model",)
        )
        self.tokens = counter("dragoman_tokens", "Pieces of the translations.", ("model",))
        wrong = "Problems found in translations, and whether they were repaired."
        self.issues = counter("dragoman_issues", wrong, ("model", "kind", "repaired"))
        self.characters = counter("dragoman_characters", "Characters in the texts received.")
        given_up = "Sentences given up by the client or at the deadline."
        self.abandoned = counter("dragoman_abandoned_sentences", given_up)
        self.failures = counter("dragoman_worker_failures", "Searches that ended in an error.")
        self.ready = gauge("dragoman_ready", "1 while requests are accepted.")
        ProcessCollector(registry=self.registry)  # memory, time and open files of the process

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)
