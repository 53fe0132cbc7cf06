"""What the doctor has to say: findings, for people and for programs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Diagnosis", "Finding", "Severity", "percentiles", "spread"]

Severity = Literal["error", "warning", "ok"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what was seen."""

    severity: Severity
    check: str
    message: str
    where: str | None = None

    def line(self) -> str:
        """The finding for people."""
        place = f"  [{self.where}]" if self.where else ""
        return f"{self.severity:<8}{self.check:<13}{self.message}{place}"


@dataclass(slots=True)
class Diagnosis:
    """All findings, the worst first."""

    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    """The numbers behind them, for programs."""

    @property
    def has_errors(self) -> bool:
        """Whether anything should be mended before training."""
        return any(finding.severity == "error" for finding in self.findings)

    def add(self, severity: Severity, check: str, message: str, where: str | None = None) -> None:
        """Note a finding."""
        self.findings.append(Finding(severity, check, message, where))

    def sort(self) -> None:
        """Put errors first and what is well last."""
        self.findings.sort(key=lambda finding: ("error", "warning", "ok").index(finding.severity))

    def lines(self) -> list[str]:
        """The diagnosis for people."""
        counts = Counter(finding.severity for finding in self.findings)
        return [
            *(finding.line() for finding in self.findings),
            f"{counts['error']} error(s), {counts['warning']} warning(s)",
        ]

    def to_json(self) -> dict[str, Any]:
        """The diagnosis for programs."""
        findings = [dataclasses.asdict(finding) for finding in self.findings]
        return {"findings": findings, "figures": self.figures}


def percentiles(counts: npt.NDArray[np.int64]) -> list[int]:
    """The 50th, 90th and 99th, of how often each value occurred."""
    ranks = np.cumsum(counts)
    return [int(np.searchsorted(ranks, share * ranks[-1])) for share in (0.5, 0.9, 0.99)]


def spread(shares: Sequence[int], most: int) -> str:
    """Percentiles and maximum in words."""
    return f"half up to {shares[0]}, 90% to {shares[1]}, 99% to {shares[2]}, longest {most:,}"
