"""A diagnosis holds the doctor's findings, for people and for programs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dragoman.messages import counted

Severity = Literal["error", "warning", "ok"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold one thing that was checked, and what was found."""

    severity: Severity
    check: str
    message: str
    where: str | None = None

    def line(self) -> str:
        """Return the finding for people."""
        place = f"  [{self.where}]" if self.where else ""
        return f"{self.severity:<8}{self.check:<13}{self.message}{place}"


@dataclass(slots=True)
class Diagnosis:
    """Hold all findings, the worst first."""

    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    """The numbers behind them, for programs."""

    @property
    def has_errors(self) -> bool:
        """Return whether anything should be mended before training."""
        return any(finding.severity == "error" for finding in self.findings)

    def add(self, severity: Severity, check: str, message: str, where: str | None = None) -> None:
        """Add a finding to what the doctor reports."""
        self.findings.append(Finding(severity, check, message, where))

    def sort(self) -> None:
        """Put errors first and what is well last."""
        self.findings.sort(key=lambda finding: ("error", "warning", "ok").index(finding.severity))

    def lines(self) -> list[str]:
        """Return the diagnosis for people."""
        counts = Counter(finding.severity for finding in self.findings)
        return [
            *(finding.line() for finding in self.findings),
            f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}",
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis for programs."""
        findings = [dataclasses.asdict(finding) for finding in self.findings]
        return {"findings": findings, "figures": self.figures}


def percentiles(counts: npt.NDArray[np.int64]) -> list[int]:
    """Return the 50th, 90th and 99th percentile, given how often each value occurred."""
    ranks = np.cumsum(counts)
    return [int(np.searchsorted(ranks, share * ranks[-1])) for share in (0.5, 0.9, 0.99)]


def describe_percentiles(shares: Sequence[int], most: int) -> str:
    """Put percentiles and maximum into words."""
    return f"median {shares[0]}, 90% up to {shares[1]}, 99% up to {shares[2]}, longest {most:,}"
