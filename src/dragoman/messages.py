"""Numbers are put into messages as people write them: counted nouns and durations."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 step", "2,000 steps", or "2 entries" with its `plural`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Return a length of time in the two largest units that it has: "3 h 20 min", "45 s"."""
    if seconds < 59.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(minutes / 60), 24)
    return f"{counted(days, 'day')} {hours} h" if hours else counted(days, "day")
