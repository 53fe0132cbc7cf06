"""Count the instructions that int8 products take on every instruction set, from the machine code.

    python benchmarks/kernel_instructions.py tests/inference/cpu/kernel_products.c
    python benchmarks/kernel_instructions.py tests/inference/cpu/kernel_products.c \
        --prefix aarch64-linux-gnu-

Of each instruction set's widest tile, the innermost loop with the most multiplications, it prints
the instructions of one round, its multiply-accumulates, and how many of these an instruction does.
No such processor is needed, only a compiler. What a processor makes of the instructions is another
matter: it may do several in a cycle, or one in 16.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

FLAGS = (
    *("-O3", "-fno-math-errno", "-fno-trapping-math", "-fassociative-math", "-fno-signed-zeros"),
    *("-freciprocal-math", "-ffinite-math-only", "-pthread", "-Isrc/dragoman/inference/cpu"),
)
"""The kernel is compiled as setup.py compiles it."""
PRODUCTS = {
    # what multiplies, and how many products of 8 bits it makes
    "sse2": {"pmaddwd": 8},
    "avx2": {"vpmaddubsw": 32},
    "avx_vnni": {"vpdpbusd": 32},
    "avx512": {"vpmaddubsw": 64},
    "avx512_vnni": {"vpdpbusd": 64},
    "amx": {"tdpbusd": 16 * 16 * 64},
    "neon": {"smull": 4, "smull2": 4, "smlal": 4, "smlal2": 4},
    "neon_dotprod": {"sdot": 16},
    "neon_i8mm": {"smmla": 32},
}
FUNCTIONS = {"amx": "product"}
"""Where the widest tile is, if not in vector_tiles."""


def disassemble(program: Path, prefix: str) -> Iterator[tuple[str, list[tuple[int, str, str]]]]:
    """Yield each function's name, and the address, name and operands of its instructions."""
    command = [f"{prefix}objdump", "-d", "--no-show-raw-insn", str(program)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and (head := re.match(r"[0-9a-f]+ <([\w.]+)>:", lines[0])):
            parsed = (
                re.match(r"\s*([0-9a-f]+):\s+(?:\{vex\} )?(\S+)\s*(.*)", line) for line in lines[1:]
            )
            yield head[1], [(int(one[1], 16), one[2], one[3]) for one in parsed if one]


def innermost_loops(code: list[tuple[int, str, str]]) -> Iterator[list[str]]:
    """Yield the names of the instructions of each loop that has no other loop in it."""
    places = {address: n for n, (address, _, _) in enumerate(code)}
    loops = []
    for n, (_, name, operands) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", operands)
        if target and re.match(r"j|b\.|cbn?z|tbn?z", name):
            start = places.get(int(target[1], 16))
            if start is not None and start <= n:
                loops.append((start, n))
    for start, end in loops:
        if not any((a, b) != (start, end) and start <= a and b <= end for a, b in loops):
            yield [name for _, name, _ in code[start : end + 1]]


def count(code: list[tuple[int, str, str]], products: dict[str, int]) -> tuple[int, int]:
    """Return the instructions and the multiply-accumulates of the loop that has most of these."""
    found = [
        (sum(products.get(one, 0) for one in loop), len(loop)) for loop in innermost_loops(code)
    ]
    macs, instructions = max(found, default=(0, 0))
    return instructions, macs


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile, count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a C file that includes kernel.c")
    parser.add_argument("--prefix", default="", help="of the compiler's and objdump's names")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "program"
        compiler = [f"{given.prefix}gcc", *FLAGS, str(given.source), "-o", str(program), "-lm"]
        subprocess.run(compiler, check=True)
        functions = dict(disassemble(program, given.prefix))
    print(f"{'':14} instructions     MACs  MACs/instruction")
    for name, products in PRODUCTS.items():
        if code := functions.get(f"{FUNCTIONS.get(name, 'vector_tiles')}_{name}"):
            instructions, macs = count(code, products)
            print(f"{name:14} {instructions:12} {macs:8,} {macs / max(1, instructions):17.1f}")


if __name__ == "__main__":
    main()
