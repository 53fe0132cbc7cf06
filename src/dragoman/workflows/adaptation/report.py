"""The report says what an adapted model gains and loses, and whether that could be chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from dragoman.evaluation.metrics import score
from dragoman.evaluation.significance import compare
from dragoman.messages import counted
from dragoman.workflows.adaptation.choice import GENERAL_LOSS, MeasuredSet

Table: TypeAlias = dict[str, Any]

_METRICS: Final = ("bleu", "chrf")
_SIGNIFICANT: Final = 0.05


def compare_set(measured: MeasuredSet, after: Sequence[str], language: str | None) -> Table:
    """Return how the translations of a set compare with those of the first model.

    Where there are no references, it is said how alike the two are.
    """
    if any(measured.texts.target):
        return compare(
            measured.before, after, measured.texts.target, language=language, metrics=_METRICS
        ).to_json()
    alike = score(after, measured.before, language=language, metrics=_METRICS).to_json()
    same = sum(map(str.__eq__, measured.before, after))
    return {"sentences": len(after), "unchanged": same, "agreement": alike}


def write_lines(report: Table) -> list[str]:
    """Return the report for people."""
    return [
        *_describe_set("your text", report["domain"]),
        *(_describe_set("general text", report["general"]) if report["general"] else []),
        *(line for name, found in report["tests"].items() for line in _describe_set(name, found)),
        *report["findings"],
    ]


def _describe_set(name: str, found: Table) -> list[str]:
    title = f"{name}, {counted(found['sentences'], 'sentence')}"
    if "agreement" in found:
        agreement = found["agreement"]
        return [
            f"{title} without references: {found['unchanged']:,} translated as before; BLEU "
            f"{agreement['bleu']['score']:.1f} and chrF {agreement['chrf']['score']:.1f} against "
            "the translations before"
        ]
    lines = []
    for metric, label in (("bleu", "BLEU"), ("chrf", "chrF")):
        one = found[metric]
        low, high = one["interval"]
        lines.append(
            f"{title}: {label} {one['baseline']:.1f} → {one['system']:.1f}, {one['delta']:+.1f} "
            f"[{low:+.1f}, {high:+.1f}], p = {one['p_value']:.3f}"
        )
    return lines


def find_faults(report: Table) -> list[str]:
    """Return what a user must know before using the model, one line each; else that all is well."""
    share, domain, general = report["share"], report["domain"], report["general"]
    if share == 0:
        return [
            "NOT ADAPTED: nothing that was learned made the model better; the run's model is the "
            "one that it began with"
        ]
    found = []
    if domain["bleu"]["delta"] <= 0:
        found.append("NOT BETTER: on your own text the model is not better than before")
    elif domain["bleu"]["p_value"] >= _SIGNIFICANT:
        found.append(
            f"NOT SIGNIFICANT: the gain on your text may be chance (p = "
            f"{domain['bleu']['p_value']:.2f}); more pairs, or more held out with --valid, would "
            "tell"
        )
    else:
        found.append("the gain on your text is significant")
    if not general:
        found.append(
            "general text was not measured, and may be translated worse; --replay FILE with text "
            "in the source language measures and protects it"
        )
    elif "bleu" in general:
        lost = -general["bleu"]["delta"]
        if lost > GENERAL_LOSS:
            found.append(
                f"FORGETTING: {lost:.1f} BLEU are lost on general text; give more of it with "
                "--replay, or lower training.learning_rate"
            )
        else:
            found.append(f"general text: within {GENERAL_LOSS:.0f} BLEU of before")
    return found
