from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.drawing import draw_tree, draw_tree_svg
from dragoman.trees.tree import Leaf, Node, Tree, leaves

CAT = parse_tree(
    "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sees) (NP (DT the) (JJ old) (NN garden))) (. .)))"
)
KOREAN = parse_tree("(S (NP (NNP 철수) (JX 는)) (VP (NP (NN 책을)) (VV 읽었다)) (EM 👍))")
SVG = "{http://www.w3.org/2000/svg}"


def long_sentence(words: int) -> Tree:
    tree: Tree = Leaf("NN", "end")
    for count in range(words - 1):
        tree = Node("VP" if count % 2 else "NP", (Leaf("DT", f"word{count}"), tree))
    return tree


# ---------------------------------------------------------------------------------- terminals


def test_a_tree_that_fits_is_drawn_from_the_root_down_to_its_sentence() -> None:
    assert draw_tree(CAT) == (
        "                 TOP\n"
        "                  │\n"
        "                  S\n"
        "   ┌─────────────┬┴───────────────┐\n"
        "  NP            VP                │\n"
        " ┌─┴──┐     ┌────┴────┐           │\n"
        " │    │     │        NP           │\n"
        " │    │     │    ┌────┼──────┐    │\n"
        "DT   NN    VBZ  DT   JJ     NN    .\n"
        "The  cat  sees  the  old  garden  ."
    )


def test_a_tree_that_does_not_fit_is_drawn_from_left_to_right() -> None:
    tree = parse_tree(
        "(TOP (S (NP (DT The) (NN cat)) (VP (MD will) (VP (VB see) (NP (DT the) (NN garden))"
        " (NP (NN tomorrow)))) (. .)))"
    )
    assert draw_tree(tree, width=40) == (
        "TOP ── S\n"
        "├─ NP ── DT The · NN cat\n"
        "├─ VP\n"
        "│  ├─ MD will\n"
        "│  └─ VP\n"
        "│     ├─ VB see\n"
        "│     ├─ NP ── DT the · NN garden\n"
        "│     └─ NP ── NN tomorrow\n"
        "└─ . ."
    )


def test_words_that_do_not_fit_on_one_line_have_a_line_each() -> None:
    assert draw_tree(CAT, width=34) == (
        "TOP ── S\n"
        "├─ NP ── DT The · NN cat\n"
        "├─ VP\n"
        "│  ├─ VBZ sees\n"
        "│  └─ NP\n"
        "│     ├─ DT the\n"
        "│     ├─ JJ old\n"
        "│     └─ NN garden\n"
        "└─ . ."
    )


def test_the_width_decides_to_the_column() -> None:
    needed = max(map(cell_len, draw_tree(CAT, width=1000).splitlines()))
    assert "┬" in draw_tree(CAT, width=needed)
    assert "├─ " in draw_tree(CAT, width=needed - 1)


def test_double_width_letters_stand_under_their_lines() -> None:
    rows = draw_tree(KOREAN).splitlines()
    assert rows[-1].split() == ["철수", "는", "책을", "읽었다", "👍"]

    def middles(row: str) -> list[int]:
        """The column in the middle of each word, as a terminal shows it."""
        return [
            cell_len(row[: found.start()]) + cell_len(found[0]) // 2
            for found in re.finditer(r"\S+", row)
        ]

    columns = middles(rows[-1])
    assert middles(rows[-2]) == columns
    # The line of lines above the tags ends where the tags stand.
    assert [cell_len(rows[-3][: m.start()]) for m in re.finditer("│", rows[-3])] == columns
    line = "├─ NP ── NNP 철수 · JX 는"  # 22 letters, 25 columns
    assert line not in draw_tree(KOREAN, width=24).splitlines()
    assert line in draw_tree(KOREAN, width=25).splitlines()


@pytest.mark.parametrize("tree", [CAT, KOREAN, long_sentence(40)])
@pytest.mark.parametrize("width", [30, 80, 500])
def test_every_word_is_there_once_and_in_order(tree: Tree, width: int) -> None:
    text = draw_tree(tree, width)
    words = [leaf.word for leaf in leaves(tree)]
    found = re.findall("|".join(sorted(map(re.escape, set(words)), key=len, reverse=True)), text)
    tags = [leaf.tag for leaf in leaves(tree)].count(".")  # a stop is its own tag
    assert [word for word in found if word != "."] == [word for word in words if word != "."]
    assert found.count(".") == words.count(".") + tags
    assert all(row == row.rstrip() for row in text.splitlines())


def test_a_label_wider_than_its_words_has_room() -> None:
    assert draw_tree(parse_tree("(S (WHADVP-SOMETHING (X a)) (WHADVP-OTHER (X b)))")) == (
        "                S\n"
        "        ┌───────┴───────┐\n"
        "WHADVP-SOMETHING  WHADVP-OTHER\n"
        "        │               │\n"
        "        X               X\n"
        "        a               b"
    )


def test_small_trees_are_drawn() -> None:
    assert draw_tree(parse_tree("(NN dog)")) == "NN\ndog"
    assert draw_tree(parse_tree("( (NN dog))")) == " ·\n │\nNN\ndog"  # a label may be empty
    assert draw_tree(parse_tree("(NP (NN dog))"), width=1) == "NP ── NN dog"


def test_what_steers_a_terminal_is_shown_and_not_obeyed() -> None:
    tree = Node("S", (Leaf("X", "\x1b[31mred"), Leaf("Y", "\r\x00")))
    for width in (1, 100):
        text = draw_tree(tree, width)
        assert "\ufffd[31mred" in text
        assert not set(text) & set("\x1b\r\x00")


# ---------------------------------------------------------------------------------- pictures


def texts(svg: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(svg).findall(f"{SVG}text")


def test_a_picture_has_every_label_tag_and_word_as_text() -> None:
    found = texts(draw_tree_svg(CAT))
    kinds = {
        kind: [one.text for one in found if one.get("class") == kind]
        for kind in ("label", "tag", "word")
    }
    assert kinds["label"] == ["TOP", "S", "NP", "VP", "NP"]
    assert kinds["tag"] == ["DT", "NN", "VBZ", "DT", "JJ", "NN", "."]
    assert kinds["word"] == ["The", "cat", "sees", "the", "old", "garden", "."]


@pytest.mark.parametrize("tree", [CAT, KOREAN, parse_tree("(NN dog)"), long_sentence(60)])
def test_words_share_a_line_and_nothing_overlaps_or_leaves_the_picture(tree: Tree) -> None:
    svg = draw_tree_svg(tree)
    root = ElementTree.fromstring(svg)
    found = texts(svg)
    assert len({one.get("y") for one in found if one.get("class") == "word"}) == 1
    rows: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        # 0.45 em a column: less than any text needs, so what overlaps here overlaps for sure.
        half = cell_len(one.text or "") * 15 * 0.45 / 2
        middle = float(one.get("x") or "nan")
        rows.setdefault(one.get("y") or "", []).append((middle - half, middle + half))
        assert 0 < middle - half < middle + half < float(root.get("width") or 0)
        assert 0 < float(one.get("y") or "nan") < float(root.get("height") or 0)
    for row in rows.values():
        for before, after in itertools.pairwise(sorted(row)):
            assert before[1] < after[0]


def test_every_line_goes_from_a_parent_to_its_child() -> None:
    svg = draw_tree_svg(CAT)
    path = ElementTree.fromstring(svg).find(f"{SVG}path")
    assert path is not None
    lines = re.findall(r"M(\d+) (\d+)L(\d+) (\d+)(?:V(\d+))?", path.get("d") or "")
    found = texts(svg)
    # By place and height: TOP and S stand above each other.
    ends = {
        (one.get("class"), one.text): (int(one.get("x") or 0), int(one.get("y") or 0))
        for one in found
    }
    below = [
        sum(
            abs(int(y) - ends["label", label][1]) < 10 and int(x) == ends["label", label][0]
            for x, y, *_ in lines
        )
        for label in ("TOP", "S", "VP", "NP")  # NP: the last
    ]
    assert below == [1, 3, 2, 3]
    assert len(lines) == 1 + 3 + 2 + 3 + 2  # with the first NP's
    *_, last = lines
    assert (int(last[0]), int(last[2])) == (ends["label", "S"][0], ends["word", "."][0])
    assert int(last[1]) < int(last[3]) < int(last[4])  # slants for a step, then falls to the tag
    assert ends["tag", "."][1] - int(last[4]) < 20
    assert {line[4] for line in lines} == {"", last[4]}


def test_markup_and_control_characters_are_text() -> None:
    tree = Node("<S>", (Leaf("&", '</text><script>"'), Leaf("X", "a\x00\x0b\ud800b")))
    found = [one.text for one in texts(draw_tree_svg(tree))]
    assert found == ["<S>", "&", '</text><script>"', "X", "a\ufffd\ufffd\ufffdb"]
    assert "<script>" not in draw_tree_svg(tree)
    draw_tree_svg(tree).encode("utf-8")


def test_a_picture_is_its_own_file_and_always_the_same() -> None:
    svg = draw_tree_svg(CAT)
    assert svg == draw_tree_svg(parse_tree(write_tree(CAT)))
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|@import|url\(", svg)


def luminance(colour: str) -> float:
    """WCAG's, of #rrggbb or #rgb."""
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_texts_are_readable_on_the_light_and_on_the_dark_ground() -> None:
    light, dark = re.search(r"<style>(.*)</style>", draw_tree_svg(CAT))[1].split("@media")  # type: ignore[index]
    for style in (light, dark):
        colours = dict(re.findall(r"\.(\w+)\{fill:(#\w+)", style))
        ground = luminance(colours.pop("ground"))
        assert colours.keys() == {"label", "tag", "word"}
        for colour in colours.values():
            pair = sorted([ground + 0.05, luminance(colour) + 0.05])
            assert pair[1] / pair[0] >= 4.5  # WCAG AA


def test_a_tree_may_be_thousands_deep() -> None:
    tree = long_sentence(1000)
    assert draw_tree(tree).endswith("NN end")
    assert draw_tree_svg(tree).count("<text") == 999 + 2 * 1000
    chain: Tree = Leaf("X", "a")
    for _ in range(3000):
        chain = Node("S", (chain,))
    assert len(draw_tree(chain).splitlines()) == 2 * 3000 + 2
