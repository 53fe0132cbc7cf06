"""Where two files stop being aligned."""

import random

import pytest

from dragoman.data.doctor.misalignment import AlignmentMonitor, find_misalignment


def prose(count, seed):
    """Pairs as two languages might have them: other words, lengths alike, now and then a number.

    Words are drawn as in real text, few often and most seldom; a word has one translation most
    of the time, and the order differs.
    """
    draw = random.Random(seed)
    letters = ("etaoinshr", "enirstadu")
    words = [
        tuple("".join(draw.choices(side, k=draw.randint(2, 9))) for side in letters)
        for _ in range(2000)
    ]
    weights = [1 / (rank + 5) for rank in range(2000)]
    for _ in range(count):
        chosen = draw.choices(words, weights, k=draw.randint(3, 30))
        source = [word[0] for word in chosen]
        target = [word[1] for word in chosen if draw.random() < 0.9]
        draw.shuffle(target)
        if draw.random() < 0.1:
            source.append(number := str(draw.randint(2, 2000)))
            target.append(number)
        end = draw.choice("...?!")
        yield " ".join(source) + end, " ".join(target) + end


def misalignment_of(sources, targets):
    watch = AlignmentMonitor()
    for source, target in zip(sources, targets, strict=False):
        watch.add(source, target)
    read = lambda start, stop: (sources[start:stop], targets[start:stop])  # noqa: E731
    return find_misalignment(read, watch, len(targets) - len(sources))


@pytest.mark.slow
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("lines", "missing"), [(300, 1), (1500, 1), (2000, 80)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_line_after_which_lines_are_missing_is_found(side, lines, missing, seed):
    sides = [list(texts) for texts in zip(*prose(lines, seed), strict=True)]
    place = random.Random(seed + lines).randrange(2, lines - missing - 10)
    del sides[side][place : place + missing]
    misalignment = misalignment_of(*sides)
    assert abs(misalignment.line - 1 - place) <= 3 + (missing if side == 1 else 0)
    assert misalignment.offset == (-missing if side == 1 else missing)


@pytest.mark.slow
@pytest.mark.parametrize("place", [203, 411, 640])
def test_where_only_words_tell_the_line_they_do(place):
    draw = random.Random(place)
    sources, targets = [], []
    for _ in range(1000):  # lines alike in length, one in five with a number
        words = [draw.randint(100, 200) for _ in range(8)]
        number = f" {draw.randint(1000, 9999)}" if draw.random() < 0.2 else " none"
        sources.append(" ".join(f"a{chr(word)}b" for word in words) + number)
        targets.append(" ".join(f"c{chr(word + 1000)}d" for word in reversed(words)) + number)
    del targets[place]
    assert abs(misalignment_of(sources, targets).line - 1 - place) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 3, 1490])
def test_a_shift_at_either_end_is_found(place):
    sources, targets = (list(texts) for texts in zip(*prose(1500, 5), strict=True))
    del targets[place]
    assert abs(misalignment_of(sources, targets).line - 1 - place) <= 3


@pytest.mark.slow
def test_a_shift_is_found_though_the_counts_agree():
    sources, targets = (list(texts) for texts in zip(*prose(3000, 6), strict=True))
    del targets[1200]
    del sources[2500]
    misalignment = misalignment_of(sources, targets)
    assert abs(misalignment.line - 1 - 1200) <= 3
    assert misalignment.offset == -1


@pytest.mark.slow
def test_the_first_of_several_shifts_is_the_one():
    sources, targets = (list(texts) for texts in zip(*prose(6000, 7), strict=True))
    del targets[5000]
    del sources[3000:3002]
    del targets[1500]
    assert abs(misalignment_of(sources, targets).line - 1 - 1500) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("lines", [0, 5, 60, 2000])
def test_aligned_files_raise_no_suspicion(lines, seed):
    pairs = list(prose(lines, seed))
    assert misalignment_of([source for source, _ in pairs], [target for _, target in pairs]) is None


@pytest.mark.slow
def test_every_fourth_line_suffices(monkeypatch):
    monkeypatch.setattr("dragoman.data.doctor.misalignment._EVERY_LINE", 100)
    sources, targets = (list(texts) for texts in zip(*prose(5000, 8), strict=True))
    assert misalignment_of(sources, targets) is None
    del sources[3210]
    assert abs(misalignment_of(sources, targets).line - 1 - 3210) <= 3
