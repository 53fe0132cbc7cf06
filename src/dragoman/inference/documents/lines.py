"""Texts of several lines: what is translated of them, and the whole again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.inference import Translation

__all__ = ["Lines"]


class Lines:
    """Some texts as one list of lines; blank ones and the white space around lines stay."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text.split("\n") for text in texts]
        self.wanted = [line.strip() for lines in self._texts for line in lines if line.strip()]
        """What is to be translated."""

    def __len__(self) -> int:
        return len(self.wanted)

    def joined(self, found: Sequence[Translation]) -> list[Translation]:
        """The translation of each text, from those of the lines wanted."""
        coming = iter(found)
        return [
            _whole(
                "\n".join(lines), [(line, next(coming) if line.strip() else None) for line in lines]
            )
            for lines in self._texts
        ]


def _whole(text: str, parts: Sequence[tuple[str, Translation | None]]) -> Translation:
    """One text; its alternative n joins the n-th of each line, or the best where there is none."""
    there = [one for _, one in parts if one is not None]
    if len(parts) == 1 and there and parts[0][0] == parts[0][0].strip():
        return there[0]
    most = max((len(one.alternatives) for one in there), default=0)
    ranked = [_ranked(text, parts, n) for n in range(most + 1)]
    return replace(ranked[0], alternatives=tuple(ranked[1:]))


def _ranked(text: str, parts: Sequence[tuple[str, Translation | None]], rank: int) -> Translation:
    lines, chosen, pairs = [], [], []
    sources = targets = 0  # words before this line
    for line, best in parts:
        if best is None:
            lines.append(line)
            continue
        others = [best, *best.alternatives]
        one = others[min(rank, len(others) - 1)]
        chosen.append(one)
        start = len(line) - len(line.lstrip())
        lines.append(line[:start] + one.text + line[len(line.rstrip()) :])
        pairs += [(s + sources, t + targets) for s, t in one.alignment]
        sources += len(line.split())
        targets += len(one.text.split())
    return Translation(
        text,
        "\n".join(lines),
        sum(one.score for one in chosen),
        tuple(token for one in chosen for token in one.tokens),
        tuple(pairs),
        log_prob=sum(one.log_prob for one in chosen),
    )
