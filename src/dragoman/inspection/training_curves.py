"""The training curves of a run, or of several, are drawn from their metrics.jsonl."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dragoman.errors import DataError
from dragoman.inspection.plotting import check_format, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Series: TypeAlias = dict[int, float]
"""Values by step."""

COLOURS: Final = ("#2f6db3", "#e07a1f", "#3a9a63", "#a5478f", "#7a6a4f", "#c43d4b", "#3f9fb5")
DASHES: Final = ("--", ":", "-.")
METRICS: Final = {"bleu": "BLEU", "f1": "F1"}
"""The scores of validation, as metrics.jsonl names them and as people do."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Hold what is drawn of a run."""

    name: str
    training: Series = field(default_factory=dict)
    validation: Series = field(default_factory=dict)
    score: Series = field(default_factory=dict)
    """BLEU, or F1 of a parser."""
    others: dict[str, Series] = field(default_factory=dict)
    """The scores of other sets that are scored at every validation, by their names."""
    learning_rate: Series = field(default_factory=dict)
    speed: Series = field(default_factory=dict)
    metrics: set[str] = field(default_factory=set)
    """The names of the metrics that were found."""


def draw_curves(runs: Path | Sequence[Path], out: Path | None = None) -> Path:
    """Draw loss, BLEU or F1, learning rate and speed, by default to curves.png in the first run."""
    runs = [runs] if isinstance(runs, Path) else list(runs)
    if not runs:
        raise DataError("there are no runs to draw; give at least one")
    out = out or runs[0] / "curves.png"
    check_format(out)
    curves = [_read_run(run) for run in runs]
    with style("".join(curve.name for curve in curves)):
        _draw(curves, out)
    return out


def _read_run(run: Path) -> Curves:
    file = run / "metrics.jsonl"
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{run}: has no metrics.jsonl; give the directory of a run") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    curves = Curves(run.resolve().name)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            # The last line may be half written by a run that goes on, or was killed.
            event = _parse_event(line)
            if event is not None:
                _add_event(curves, event)
            elif number < len(lines):
                raise DataError(f"{file}:{number}: not a line of metrics; was the file changed?")
    if not (curves.training or curves.validation or curves.score):
        raise DataError(f"{file}: there is nothing to draw yet; train some more")
    return curves


def _parse_event(line: str) -> dict[str, Any] | None:
    """Return the event of a line, or None if it is not one."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("step"), int) else None


def _add_event(curves: Curves, event: dict[str, Any]) -> None:
    def put(series: Series, *names: str) -> None:
        """Store the first of the names that has a number; a later line replaces an earlier one."""
        for name in names:
            value = event.get(name)
            if isinstance(value, (int, float)) and math.isfinite(value):
                series[event["step"]] = value
                return

    match event.get("kind"):
        case "train":
            put(curves.training, "nll", "loss")  # like validation: without label smoothing
            put(curves.learning_rate, "learning_rate")
            put(curves.speed, "tokens_per_second")
        case "valid":
            put(curves.validation, "nll", "loss")
            put(curves.score, *METRICS)
            for name in event:
                metric, slash, other = name.partition("/")
                if metric in METRICS:
                    curves.metrics.add(METRICS[metric])
                    if slash:
                        put(curves.others.setdefault(other, {}), name)


def _draw(curves: list[Curves], out: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    panels = [
        ("loss, nats a piece", _draw_losses, any(c.training or c.validation for c in curves)),
        (f"validation {_metric(*curves)}", _draw_score, any(c.score for c in curves)),
        ("learning rate", _draw_learning_rate, any(c.learning_rate for c in curves)),
        ("target tokens a second", _draw_speed, any(c.speed for c in curves)),
    ]
    panels = [panel for panel in panels if panel[2]]
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(5.2 * columns, 3.1 * rows), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    for number, (axes, (title, draw, _)) in enumerate(zip(places, panels, strict=False)):
        draw(axes, curves)
        axes.set_title(title)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.margins(x=0.02)
        if number >= len(panels) - columns:
            axes.set_xlabel("step")
    if len(curves) == 1:
        places[0].legend()
        figure.suptitle(curves[0].name, x=0.012, ha="left", fontsize=12)
    else:
        _name_runs(figure, curves)
    save_figure(figure, out)


def _name_runs(figure: Figure, curves: list[Curves]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=_colour(number), linewidth=2) for number in range(len(curves))]
    names = [
        f"{curve.name}   {_metric(curve)} {max(curve.score.values()):.1f}"
        if curve.score
        else curve.name
        for curve in curves
    ]
    figure.legend(lines, names, loc="outside upper left", ncols=min(3, len(curves)))


def _metric(*curves: Curves) -> str:
    return ", ".join(sorted(set[str]().union(*(curve.metrics for curve in curves))))


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _line(axes: Axes, series: Series, **style: Any) -> None:
    steps = sorted(series)
    axes.plot(steps, [series[step] for step in steps], **style)


def _draw_losses(axes: Axes, curves: list[Curves]) -> None:
    for number, curve in enumerate(curves):
        colour = _colour(number)
        _line(axes, curve.training, color=colour, linewidth=1, alpha=0.45, label="training")
        valid: Any = {"linewidth": 1.8, "marker": "o", "markersize": 3, "label": "validation"}
        _line(axes, curve.validation, color=colour, **valid)
    # The first steps would leave no room for the rest.
    values = sorted(v for c in curves for s in (c.training, c.validation) for v in s.values())
    usual = values[int(0.98 * (len(values) - 1))]
    low, high = axes.get_ylim()
    if high > 1.5 * usual > 0:
        axes.set_ylim(low, 1.1 * usual)


def _draw_score(axes: Axes, curves: list[Curves]) -> None:
    _draw_other_sets(axes, curves)
    for number, curve in enumerate(curves):
        if not curve.score:
            continue
        colour = _colour(number)
        _line(axes, curve.score, color=colour, linewidth=1.8, marker="o", markersize=3)
        best = max(curve.score, key=lambda step: curve.score[step])
        place = (best, curve.score[best])
        axes.plot(*place, "o", color=colour, markersize=7, fillstyle="none")
        if len(curves) == 1:
            above: Any = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
            axes.annotate(f"{place[1]:.1f}", place, **above, color=colour, fontweight="bold")
    axes.margins(y=0.15)


def _draw_other_sets(axes: Axes, curves: list[Curves]) -> None:
    """Draw each set in its own kind of dashes, with its name where it ends."""
    names = sorted({name for curve in curves for name in curve.others})
    for number, curve in enumerate(curves):
        for name, series in curve.others.items():
            dashes = DASHES[names.index(name) % len(DASHES)]
            _line(axes, series, color=_colour(number), linewidth=1.2, linestyle=dashes, alpha=0.8)
    for name in names:
        ends = [(max(c.others[name]), c.others[name]) for c in curves if c.others.get(name)]
        if ends:
            last, series = max(ends, key=lambda end: end[0])
            below: Any = {"xytext": (0, -11), "textcoords": "offset points", "ha": "right"}
            axes.annotate(name, (last, series[last]), **below, fontsize=7, color="0.35")


def _draw_learning_rate(axes: Axes, curves: list[Curves]) -> None:
    for number, curve in enumerate(curves):
        _line(axes, curve.learning_rate, color=_colour(number), linewidth=1.5)
    axes.yaxis.set_major_formatter("{x:g}")


def _draw_speed(axes: Axes, curves: list[Curves]) -> None:
    from matplotlib.ticker import EngFormatter

    for number, curve in enumerate(curves):
        _line(axes, curve.speed, color=_colour(number), linewidth=1.2)
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
