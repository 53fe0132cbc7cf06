"""Measure the service under load: its speed, its memory, and what it does with too much.

    python benchmarks/serve_load.py MODEL test.en --clients 64 --seconds 120

starts the service on a free port of this machine and sends it requests from a process of its own,
over loopback, one connection a client. Requests are of mixed lengths: four fifths have one line of
the file, drawn at random, the others four or sixteen. The phases are, in turn:

    offline    the same lines by `Translator.translate_lines`, in a process without a server
    load       that many clients, each sending its next request as soon as it has its answer; the
               clock for speed starts after ten seconds, or a third of the time
    overload   four times the rate of the load phase, whether answered or not; then the load again
    term       SIGTERM in the middle of the load: no request on a connection in use is lost

`--phases` chooses some of them. Each prints a line of JSON. The clients run on the same cores as
the service, so that their own time is part of what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

OFFLINE = """
import json, sys, time, dragoman
model, lines, seconds = sys.argv[1], sys.stdin.read().splitlines(), float(sys.argv[2])
translator = dragoman.load(model)
translator.translate(lines[:20])
began, done = time.perf_counter(), 0
while time.perf_counter() - began < seconds:
    part = [lines[(done + n) % len(lines)] for n in range(500)]
    done += len(list(translator.translate_lines(part)))
print(json.dumps({"sentences_per_second": done / (time.perf_counter() - began)}))
"""


@dataclass
class Record:
    """Record the answers that the clients got."""

    begin: float = 0.0
    """When the clock for speed starts: once the service is full."""
    end: float = float("inf")
    """When that clock stops."""
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """How long each request took that was answered with 200."""
    refusals: list[float] = field(default_factory=list)
    """How long each request took that was refused with 503."""
    requests: int = 0
    """How many were answered with 200 while the clock ran."""
    sentences: int = 0
    """How many sentences these had."""
    not_json: int = 0

    def add(self, status: str, seconds: float, sentences: int, is_json: bool) -> None:
        """Add an answer."""
        self.statuses[status] += 1
        self.not_json += not is_json
        if status in ("200", "503"):
            (self.seconds if status == "200" else self.refusals).append(seconds)
        if status == "200" and self.begin <= time.perf_counter() < self.end:
            self.requests += 1
            self.sentences += sentences

    def speed(self) -> dict[str, float]:
        """Return how much was answered while the clock ran."""
        elapsed = min(self.end, time.perf_counter()) - self.begin
        return {
            "seconds": round(elapsed, 1),
            "requests_per_second": round(self.requests / elapsed, 1),
            "sentences_per_second": round(self.sentences / elapsed, 1),
        }

    def answers(self) -> dict[str, Any]:
        """Return which answers there were, and how long they took."""
        table: dict[str, Any] = {"statuses": dict(self.statuses), "not_json": self.not_json}
        for name, times in (("latency_ms", self.seconds), ("refusal_ms", self.refusals)):
            if times:
                table[name] = {
                    f"p{share}": round(1e3 * sorted(times)[int(share / 100 * (len(times) - 1))], 1)
                    for share in (50, 95, 99, 100)
                }
        return table


class Client:
    """Send one request at a time over one HTTP/1.1 connection."""

    def __init__(self, port: int, record: Record) -> None:
        self._port, self._record = port, record
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, lines: Sequence[str]) -> str:
        """Send a request and return its status, or why there is none."""
        body = json.dumps({"q": "\n".join(lines), "source": "en", "target": "de"}).encode()
        began = time.perf_counter()
        if self._streams is not None and self._streams[0].at_eof():
            self.close()  # it was idle for a while, and the service has closed it
        used = self._streams is not None
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(
                b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%b" % (len(body), body)
            )
            status, content, closing = await _read_answer(reader)
            if closing:
                self.close()
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            # A connection nobody has answered on may never have left the system's own queue.
            status, content = ("lost" if used else "not accepted"), b"{}"
        try:
            json.loads(content)
            is_json = True
        except ValueError:
            is_json = False
        self._record.add(status, time.perf_counter() - began, len(lines), is_json)
        return status

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _read_answer(reader: asyncio.StreamReader) -> tuple[str, bytes, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return lines[0].split()[1], content, headers.get("connection") == "close"


def draw_requests(lines: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Yield requests without end, mostly of one line and sometimes of several."""
    draw = random.Random(seed)
    while True:
        size = draw.choices((1, 4, 16), (80, 15, 5))[0]
        yield [draw.choice(lines) for _ in range(size)]


async def send_in_turn(
    port: int, lines: Sequence[str], clients: int, seconds: float, record: Record
) -> None:
    """Let each client send its next request when it has its answer."""
    began = time.perf_counter()
    end = record.end = began + seconds
    record.begin = began + min(10.0, seconds / 3)

    async def one(seed: int) -> None:
        client, coming = Client(port, record), draw_requests(lines, seed)
        while time.perf_counter() < end:
            status = await client.ask(next(coming))
            if status in ("lost", "not accepted"):
                break
            if status == "503":
                await asyncio.sleep(1)  # as Retry-After asks
        client.close()

    await asyncio.gather(*map(one, range(clients)))


async def send_at_rate(
    port: int, lines: Sequence[str], rate: float, seconds: float, record: Record
) -> None:
    """Send so many requests a second, whether they are answered or not."""
    coming, idle, tasks = draw_requests(lines, 0), [], set()
    began, sent = time.perf_counter(), 0
    record.begin, record.end = began, began + seconds

    async def one() -> None:
        client = idle.pop() if idle else Client(port, record)
        await client.ask(next(coming))
        idle.append(client)

    while (elapsed := time.perf_counter() - began) < seconds:
        while sent < elapsed * rate:
            task = asyncio.create_task(one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*tasks)
    for client in idle:
        client.close()


class Service:
    """Run the service as a process."""

    def __init__(self, model: Path, options: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "serve", str(model), "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if '"listening"' in line:
                self.port = int(json.loads(line)["port"])
                break
        else:
            raise SystemExit("the service did not start")
        Thread(target=self._discard, daemon=True).start()

    def _discard(self) -> None:
        assert self.process.stderr is not None
        for _ in self.process.stderr:
            pass

    @property
    def megabytes(self) -> float:
        """Return the resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def measure(service: Service, run: Any, record: Record, memory_from: float) -> dict[str, Any]:
    """Run a phase, measuring the memory after its first `memory_from` seconds."""
    began = time.perf_counter()
    task = asyncio.create_task(run)
    memory: list[tuple[float, float]] = []
    while not task.done():
        memory.append((time.perf_counter() - began, service.megabytes))
        await asyncio.wait({task}, timeout=1)
    await task
    table = {**record.speed(), **record.answers()}
    first = next((mb for at, mb in memory if at >= memory_from), memory[0][1])
    most, last = max(mb for _, mb in memory), memory[-1][1]
    table["memory_mb"] = {"first": round(first), "most": round(most), "last": round(last)}
    table["memory_growth"] = round(most / first - 1, 4)
    return table


async def terminate(service: Service, lines: Sequence[str], clients: int) -> dict[str, Any]:
    """Send SIGTERM after five seconds of load, and return what became of the requests."""
    record = Record()
    load = asyncio.create_task(send_in_turn(service.port, lines, clients, 60, record))
    await asyncio.sleep(5)
    began = time.perf_counter()
    service.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(service.process.wait)
    drained = time.perf_counter() - began
    await load
    return {"drained_seconds": round(drained, 2), **record.answers()}


def main() -> None:
    """Run the phases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path, help="English lines, to be translated to German")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--phases", default="offline,load,overload,term")
    parser.add_argument("--options", default="", help="options of the service, as one word")
    arguments = parser.parse_args()
    lines = [line for line in arguments.source.read_text(encoding="utf-8").splitlines() if line]
    random.Random(1).shuffle(lines)

    def report(phase: str, table: dict[str, Any]) -> None:
        print(json.dumps({"phase": phase, **table}), flush=True)

    phases = arguments.phases.split(",")
    offline = 0.0
    if "offline" in phases:
        seconds = str(min(60.0, arguments.seconds))
        command = [sys.executable, "-c", OFFLINE, str(arguments.model), seconds]
        done = subprocess.run(
            command, input="\n".join(lines), capture_output=True, text=True, check=True
        )
        offline = json.loads(done.stdout)["sentences_per_second"]
        report("offline", {"sentences_per_second": round(offline, 1)})
    if {"load", "overload", "term"}.isdisjoint(phases):
        return
    service = Service(arguments.model, arguments.options.split())

    async def run_phases() -> None:
        rate = 0.0
        if "load" in phases or "overload" in phases:
            record = Record()
            run = send_in_turn(service.port, lines, arguments.clients, arguments.seconds, record)
            table = await measure(service, run, record, min(60, arguments.seconds / 2))
            if offline:
                table["of_offline"] = round(table["sentences_per_second"] / offline, 3)
            report("load", table)
            rate = table["requests_per_second"]
        if "overload" in phases:
            record = Record()
            run = send_at_rate(service.port, lines, 4 * rate, arguments.seconds / 4, record)
            report("overload", await measure(service, run, record, 0))
            record = Record()
            run = send_in_turn(
                service.port, lines, arguments.clients, arguments.seconds / 4, record
            )
            report("after", await measure(service, run, record, 0))
        if "term" in phases:
            report("term", await terminate(service, lines, arguments.clients))

    try:
        asyncio.run(run_phases())
    finally:
        service.process.kill()


if __name__ == "__main__":
    main()
