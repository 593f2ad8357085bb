"""Latency, CPU time, fairness and memory of the server under load.

    python -m benchmarks serve

Starts `rationalizer serve` with a small trained model, with one process and with several. Ratios compare measurements
on the same server.

- Latency: sequential requests, then 1,000 with 50 concurrent, from a separate process over keep-alive connections;
  texts of 18 and of 100 words. Reports lost requests and answers that differ from the model's. Target: p95 with 50
  concurrent requests is at most 5 (18 words) or 12 times (100 words) the median of sequential requests.
- CPU time per request, which depends less on other programs on the machine. The last of 50 concurrent requests waits
  for all others. With P processes, each on its own core, the ratio of latencies is therefore about
  50/P × CPU time of a concurrent request / CPU time of a sequential request.
- Fairness: latency of ten one-line requests while fifteen requests of the maximum size are waiting.
- Memory: resident memory of the server during 10,000 requests with new words each.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from benchmarks.timing import print_table, verdict
from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews

REQUESTS, CONCURRENT, SEQUENTIAL = 1000, 50, 200
WORDS = 100  # words per text in the longer texts
MAX_RATIOS = {"18 words": 5.0, f"{WORDS} words": 12.0}
LARGE, SMALL = 15, 10
PROCESSES = max(2, min(8, (os.cpu_count() or 2) // 2))
MEMORY_REQUESTS = (1000, 5000, 10_000)
MAX_GROWTH = 1.1  # of the memory, from the first of these numbers of requests


@contextmanager
def serving(run: Path, workers: int = 1) -> Iterator[tuple[int, int]]:
    """Run `rationalizer serve` in a subprocess; yield its port and process ID."""
    command = [sys.executable, "-m", "rationalizer", "serve", str(run), "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+) ", line)
        if found is None:
            raise RuntimeError(line + process.stderr.read())
        yield int(found[1]), process.pid
    finally:
        process.terminate()
        process.wait(30)


Timing = tuple[list[dict | None], list[float], float]


async def send_all(port: int, requests: Sequence[dict], concurrency: int) -> Timing:
    """Return the answers (None if lost), the latency of each in seconds, and the total seconds.

    Uses plain sockets, one request at a time per connection: a full HTTP client would be slower than the server.
    """
    answers: list[dict | None] = [None] * len(requests)
    seconds = [0.0] * len(requests)
    waiting = iter(range(len(requests)))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        for k in waiting:
            start = time.perf_counter()
            answers[k] = await post(reader, writer, requests[k])
            seconds[k] = time.perf_counter() - start
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(concurrency)))
    return answers, seconds, time.perf_counter() - start


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict) -> dict | None:
    body = json.dumps(request).encode()
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in headers if line.lower().startswith("content-length:"))
    answer = await reader.readexactly(length)
    return json.loads(answer) if " 200 " in status else None


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its children; 0 if there is no /proc."""
    folder = Path(f"/proc/{pid}")
    if not folder.is_dir():
        return 0.0
    spent = sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return spent + sum(cpu_seconds(int(child)) for child in (folder / f"task/{pid}/children").read_text().split())


def latency(folder: Path, model: Rationalizer, kinds: dict[str, Sequence[str]]) -> None:
    rows, processed, ends = [], [], []
    for workers in (1, PROCESSES):
        with serving(folder, workers) as (port, pid):
            for kind, texts in kinds.items():
                requests = [{"text": text} for text in texts]
                asyncio.run(send_all(port, requests[:CONCURRENT], CONCURRENT))  # warms up all processes
                start = cpu_seconds(pid)
                sequential = asyncio.run(send_all(port, requests[:SEQUENTIAL], 1))
                middle = cpu_seconds(pid)
                concurrent = asyncio.run(send_all(port, requests, CONCURRENT))
                end = cpu_seconds(pid)
                rows += _times(kind, workers, sequential, concurrent)
                spent = 1e3 * (middle - start) / SEQUENTIAL, 1e3 * (end - middle) / len(texts)
                if all(spent):
                    multiple = CONCURRENT / workers * spent[1] / spent[0]
                    processed.append([kind, workers, *spent, multiple])
                lost = sum(answer is None for answer in [*sequential[0], *concurrent[0]])
                wrong = _count_wrong(model, texts, concurrent[0])
                ends.append(f"{kind}, {workers} process(es): lost {lost}, wrong {wrong}")
    print(f"Target: the largest ratio of p95 with {CONCURRENT} concurrent requests to the sequential median.\n")
    header = ["texts", "processes", "concurrent", "per second", "p50 ms", "p95 ms", "p99 ms", "p95 / sequential"]
    print_table([*header, "target", ""], rows)
    print("\n" + "; ".join(ends) + ".\n\nCPU milliseconds per request:\n")
    if processed:
        multiple = f"{CONCURRENT} / processes × ratio"
        print_table(["texts", "processes", "sequential", f"{CONCURRENT} concurrent", multiple], processed)


def _times(kind: str, workers: int, sequential: Timing, concurrent: Timing) -> list[list[object]]:
    median = statistics.median(sequential[1])
    rows: list[list[object]] = []
    for concurrency, (_, seconds, total) in ((1, sequential), (CONCURRENT, concurrent)):
        percentiles = statistics.quantiles(seconds, n=100)
        ratio = percentiles[94] / median
        times = (1e3 * percentiles[p - 1] for p in (50, 95, 99))
        most = MAX_RATIOS[kind]
        target = ["", ""] if concurrency == 1 else [f"<= {most:g}", verdict(ratio <= most)]
        rows.append([kind, workers, concurrency, len(seconds) / total, *times, ratio, *target])
    return rows


def _count_wrong(model: Rationalizer, texts: Sequence[str], answers: Sequence[dict | None]) -> int:
    expected = [list(one.selected) for one in model.explain(texts)]
    found = [answer and answer["explanations"][0]["selected"] for answer in answers]
    return sum(one is not None and one != other for one, other in zip(found, expected, strict=True))


async def compare_load(port: int) -> tuple[list[float], list[float]]:
    """Return the latencies of one-line requests in seconds, without and with large requests waiting."""
    small = [{"text": f"We had lovely care, number {k}."} for k in range(SMALL)]
    large = [{"texts": [f"{'lovely care ' * 830}"] * 64}] * LARGE
    _, sequential, _ = await send_all(port, small, SMALL)
    load = asyncio.create_task(send_all(port, large, LARGE))
    await asyncio.sleep(1)
    _, loaded, _ = await send_all(port, small, SMALL)
    assert not load.done(), "the large requests finished too early"
    await load
    return sequential, loaded


def fairness(folder: Path) -> None:
    with serving(folder) as (port, _):
        sequential, loaded = asyncio.run(compare_load(port))
    rows = [
        ["without load", 1e3 * max(sequential), 1.0],
        [f"with {LARGE} large requests waiting", 1e3 * max(loaded), max(loaded) / max(sequential)],
    ]
    print(f"\n{SMALL} concurrent one-line requests:\n")
    print_table(["", "slowest ms", "ratio"], rows)


def memory(folder: Path) -> None:
    rng = random.Random(0)

    def unknown_words() -> str:
        return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(3, 12))) for _ in range(rng.randint(1, 100)))

    sizes = []
    with serving(folder) as (port, pid):
        for done, total in pairwise((0, *MEMORY_REQUESTS)):
            asyncio.run(send_all(port, [{"text": unknown_words()} for _ in range(total - done)], 20))
            status = Path(f"/proc/{pid}/status").read_text()
            sizes.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024)
    rows = [
        [total, size, size / sizes[0], verdict(size <= MAX_GROWTH * sizes[0])]
        for total, size in zip(MEMORY_REQUESTS, sizes, strict=True)
    ]
    print("\nResident memory of the server:\n")
    print_table(["requests", "MB", "ratio", f"<= {MAX_GROWTH:g}"], rows)


def main() -> None:
    corpus = reviews(train=600, dev=60, test=REQUESTS)
    model = Rationalizer("spectra", epochs=1, min_epochs=1)
    model.fit([e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train], progress=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder)
        short = [example.text for example in corpus.test]
        words = " ".join(short).split()
        long = [" ".join(words[k % 997 : k % 997 + WORDS]) for k in range(REQUESTS)]
        latency(folder, model, {"18 words": short, f"{WORDS} words": long})
        fairness(folder)
        if Path("/proc/self/status").is_file():
            memory(folder)


if __name__ == "__main__":
    main()
