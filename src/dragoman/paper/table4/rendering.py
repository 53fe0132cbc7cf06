"""The text tables and the picture of Table 4 show our rows beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.errors import ConfigError
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style
from dragoman.paper.paper_values import TABLE_4
from dragoman.paper.table4.results import PAPER_TRANSFORMER, Scores, Table4
from dragoman.paper.text_table import TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = ("#2f6db3", "#1fa58f", "#9a6be0", "#c0399a", "#4c8c2b", "#62aee6")
_PAPERS: Final = "#e07a1f"


def render(table: Table4) -> str:
    """Return all tables for a terminal."""
    return "\n\n".join(part.to_text() for part in text_tables(table))


def paper_table() -> TextTable:
    """Return a table of the paper's rows alone."""
    rows = [(row.parser, row.training, f"{row.f1:.1f}") for row in TABLE_4]
    title = "Table 4 in the paper: F1 on section 23 of the Wall Street Journal"
    return TextTable(title, ("parser", "training", "F1"), rows, text_columns=2)


def text_tables(table: Table4) -> list[TextTable]:
    """Return tables of scores beside the paper's, speed, F1 by length, and tried settings."""
    return [
        _scores_table(table),
        *_speed_tables(table),
        *_length_tables(table),
        *_tried_settings(table),
    ]


def _scores_table(table: Table4) -> TextTable:
    header = ("parser", "training", "F1", "±", "precision", "recall", "complete", "tags")
    empty = ("",) * 7
    rows = []
    for row in table.rows:
        found = ("failed", *empty[1:]) if row.scores is None else _figures(row.scores)
        theirs = "" if row.paper is None else f"{row.paper.f1:.1f}"
        rows.append((row.parser, row.training, *found, theirs))
    rows += [(row.parser, row.training, *empty, f"{row.f1:.1f}") for row in TABLE_4]
    return TextTable(
        f"Table 4 on {table.name}",
        (*header, "≤ 40 words", "the paper's"),
        rows,
        "\n".join(_notes(table)),
        text_columns=2,
    )


def _figures(scores: Scores) -> tuple[str, ...]:
    return (
        f"{scores.f1:.2f}",
        f"{(scores.high - scores.low) / 2:.2f}",
        f"{scores.precision:.2f}",
        f"{scores.recall:.2f}",
        f"{scores.complete_match:.2f}",
        f"{scores.tagging_accuracy:.2f}",
        f"{scores.short_f1:.2f}",
    )


def _notes(table: Table4) -> Iterator[str]:
    for row in table.rows:
        if row.failure is not None and row.scores is None:
            yield f"{row.parser}: {row.failure}"
        if row.scores is not None and row.scores.left_out:
            yield (
                f"{row.parser}: {row.scores.left_out} sentences without a tree of their words "
                f"count nowhere; as missed, F1 would be {row.scores.f1_all_lines:.2f}."
            )
    kind = "test sentences" if table.held_out else "validation sentences, for want of a test set"
    yield f"Ours: {table.sentences:,} {kind}, {table.words:,} words; ± half the 95% interval."
    signatures = dict.fromkeys(scores.signature for _, scores in table.scored)
    yield from (f"Labelled brackets, F1|{signature}." for signature in signatures)
    if table.wsj:
        yield "The paper's: section 23 of the Wall Street Journal, as ours."
    else:
        yield (
            "The paper's: section 23 of the Wall Street Journal, another treebank than ours; only "
            "with --wsj can the two be compared."
        )


def _speed_tables(table: Table4) -> Iterator[TextTable]:
    """Yield how large each parser is, and how fast with and without a beam."""
    header = ["parser", "layers × width", "parameters", "steps", "min", "greedy F1", "words/s"]
    header += ["sentences/s", "beam", "α", "F1", "words/s", "sentences/s"]
    rows = []
    for row, scores in table.scored:
        if row.greedy is None or row.beam is None:
            continue
        rows.append(
            (
                row.parser,
                row.size,
                f"{row.parameters / 1e6:.2f}M" if row.parameters else "",
                f"{row.steps:,}" if row.steps else "",
                f"{row.minutes:.1f}" if row.minutes else "",
                *_speed_columns(table, row.greedy),
                str(row.beam),
                f"{row.length_penalty:g}",
                *_speed_columns(table, scores),
            )
        )
    devices = dict.fromkeys(row.greedy.device for row, _ in table.scored if row.greedy is not None)
    note = (
        f"On {'; '.join(devices)}, one parser at a time. min: of training by the run's clock, "
        "beside the runs that shared the device."
    )
    if rows:
        yield TextTable("Size and speed", header, rows, note, text_columns=2)


def _speed_columns(table: Table4, scores: Scores) -> tuple[str, str, str]:
    assert scores.seconds is not None, "a parser takes time"
    words, sentences = table.words / scores.seconds, table.sentences / scores.seconds
    return f"{scores.f1:.2f}", f"{words:,.0f}", f"{sentences:,.1f}"


def _length_tables(table: Table4) -> Iterator[TextTable]:
    if not table.scored:
        return
    heads = [f"{one.lengths} ({one.sentences})" for one in table.scored[0][1].by_length]
    rows = [
        (row.parser, *(f"{b.f1:.1f} ± {(b.high - b.low) / 2:.1f}" for b in scores.by_length))
        for row, scores in table.scored
    ]
    note = "Words, punctuation among them (sentences of that length); ± half the 95% interval."
    yield TextTable("F1 by sentence length", ("parser", *heads), rows, note)


def _tried_settings(table: Table4) -> Iterator[TextTable]:
    rows = [
        (
            row.parser,
            one.setting,
            "failed" if one.f1 is None else f"{one.f1:.2f}",
            "chosen" if one.chosen else "",
        )
        for row in table.rows
        for one in row.tried
    ]
    if rows:
        note = "Greedy, and beams with what was chosen before them; the test set had no part in it."
        if not table.held_out:
            note = "Chosen on the trees that are scored above, for want of a test set."
        header = ("parser", "setting", "F1", "")
        yield TextTable("Chosen on the validation trees", header, rows, note, text_columns=2)


# --- the picture ---


def draw(table: Table4, path: Path) -> Path:
    """Draw F1 by sentence length, and F1 beside the paper's rows."""
    check_format(path)
    if not table.scored:
        reasons = "; ".join(f"{row.parser}: {row.failure}" for row in table.rows)
        raise ConfigError(f"there is no parser to draw, all failed ({reasons}); run it again")
    with style("".join(row.parser for row in table.rows)):
        from matplotlib.figure import Figure

        lines = len(table.scored) + len(TABLE_4)
        figure = Figure(figsize=(11.6, 1.4 + 0.26 * lines), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(5, 6))
        _draw_lengths(left, table)
        _draw_scores(right, table)
        save_figure(figure, path)
    return path


def _draw_lengths(axes: Axes, table: Table4) -> None:
    for place, (row, scores) in enumerate(table.scored):
        values = [bucket.f1 for bucket in scores.by_length]
        below = [b.f1 - b.low for b in scores.by_length]
        above = [b.high - b.f1 for b in scores.by_length]
        shift = 0.06 * (place - (len(table.scored) - 1) / 2)
        axes.errorbar(
            [shift + at for at in range(len(values))],
            values,
            yerr=[below, above],
            fmt="o-",
            color=_colour(place),
            markersize=4,
            linewidth=1.6,
            elinewidth=1,
            label=row.parser,
        )
    buckets = table.scored[0][1].by_length
    axes.set_xticks(
        range(len(buckets)),
        [f"{one.lengths}\n({one.sentences})" for one in buckets],
        color=TEXT_COLOUR,
    )
    axes.set_xlim(-0.5, len(buckets) - 0.5)
    axes.set_xlabel("words (sentences)")
    axes.set_title("F1 by sentence length, with 95% intervals")
    axes.grid(visible=False, axis="x")
    axes.legend(loc="best")


def _draw_scores(axes: Axes, table: Table4) -> None:
    """Draw our parsers above the paper's, each from high to low."""
    ours = [
        (scores.f1, row.parser, _colour(place)) for place, (row, scores) in enumerate(table.scored)
    ]
    theirs = [(row.f1, f"{row.parser}, {row.training}", _PAPERS) for row in TABLE_4]
    shown = sorted(ours, reverse=True) + sorted(theirs, reverse=True)
    least = min(f1 for f1, _, _ in shown)
    most = max(f1 for f1, _, _ in shown)
    room = max(most - least, 5.0)
    for place, (f1, _, colour) in enumerate(shown):
        mine = place < len(ours)
        axes.plot(f1, place, "o" if mine else "D", color=colour, markersize=6 if mine else 4.5)
        axes.annotate(
            f"{f1:.2f}" if mine else f"{f1:.1f}",
            (f1, place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.axhline(len(ours) - 0.5, color="#b8bfca", linewidth=1)
    axes.set_yticks(range(len(shown)), [name for _, name, _ in shown], color=TEXT_COLOUR)
    for label, (_, name, _) in zip(axes.get_yticklabels(), shown, strict=True):
        if name.startswith(PAPER_TRANSFORMER.parser):
            label.set_fontweight("bold")
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(least - 0.08 * room, most + 0.18 * room)
    on = "all on WSJ 23" if table.wsj else f"ours on {table.name}, the paper's on WSJ 23"
    axes.set_title(f"F1: {on}")


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
