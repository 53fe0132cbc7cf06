"""Plain texts of several lines: each line is translated, and the text put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.inference import Translation


class Lines:
    """Hold some texts as one list of lines; blank lines and the white space around lines stay."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text.split("\n") for text in texts]
        self.plain = [line.strip() for lines in self._texts for line in lines if line.strip()]
        """The lines to translate."""
        self.tagged: list[str] = []
        """Nothing, for plain text has no tags; see `HtmlTexts`."""

    def __len__(self) -> int:
        return len(self.plain)

    def assemble(
        self, plain: Sequence[Translation], tagged: Sequence[Translation] = ()
    ) -> list[Translation]:
        """Return the translation of each text, given those of its lines."""
        assert not tagged
        coming = iter(plain)
        return [
            _join(
                "\n".join(lines), [(line, next(coming) if line.strip() else None) for line in lines]
            )
            for lines in self._texts
        ]


def get_alternative(best: Translation, rank: int) -> Translation:
    """Return the alternative of a rank, 0 being the best, or the last if there are fewer."""
    ranked = (best, *best.alternatives)
    return ranked[min(rank, len(ranked) - 1)]


def _join(text: str, lines: Sequence[tuple[str, Translation | None]]) -> Translation:
    """Join the lines of a text; its alternatives are joined from those of the same rank."""
    translated = [one for _, one in lines if one is not None]
    if len(lines) == 1 and translated and lines[0][0] == lines[0][0].strip():
        return translated[0]
    most = max((len(one.alternatives) for one in translated), default=0)
    best, *others = (_join_rank(text, lines, rank) for rank in range(most + 1))
    return replace(best, alternatives=tuple(others))


def _join_rank(
    text: str, lines: Sequence[tuple[str, Translation | None]], rank: int
) -> Translation:
    joined, chosen, pairs = [], [], []
    source_words = target_words = 0  # before this line
    for line, best in lines:
        if best is None:
            joined.append(line)
            continue
        one = get_alternative(best, rank)
        chosen.append(one)
        start = len(line) - len(line.lstrip())
        joined.append(line[:start] + one.text + line[len(line.rstrip()) :])
        pairs += [(s + source_words, t + target_words) for s, t in one.alignment]
        source_words += len(line.split())
        target_words += len(one.text.split())
    return Translation(
        text,
        "\n".join(joined),
        sum(one.score for one in chosen),
        tuple(token for one in chosen for token in one.tokens),
        tuple(pairs),
        log_prob=sum(one.log_prob for one in chosen),
    )
