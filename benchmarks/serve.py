"""The endpoint under load: many requests at once against one at a time, on the same server and the same texts.

    python -m benchmarks serve

Starts `rationalizer serve` on a model trained for this, asks 1,000 times with 50 requests under way, then one after
the other. None may be lost, and answers must be the same both ways.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import print_table
from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews

REQUESTS, AT_ONCE, ALONE = 1000, 50, 300


@contextmanager
def serving(run: Path) -> Iterator[int]:
    """`rationalizer serve` as a process of its own; gives its port."""
    command = [sys.executable, "-m", "rationalizer", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+) ", line)
        if found is None:
            raise RuntimeError(line + process.stderr.read())
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(30)


async def ask(port: int, texts: Sequence[str], at_once: int) -> tuple[list[dict | None], list[float], float]:
    """The answers (None: lost), each one's seconds, and the seconds of all.

    Over plain connections, each of which has one request under way: a full HTTP client would be slower than the
    server, and would be measured instead.
    """
    answers: list[dict | None] = [None] * len(texts)
    seconds = [0.0] * len(texts)
    waiting = iter(range(len(texts)))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for k in waiting:
            start = time.perf_counter()
            answers[k] = await post(reader, writer, {"text": texts[k]})
            seconds[k] = time.perf_counter() - start
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return answers, seconds, time.perf_counter() - start


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: dict) -> dict | None:
    body = json.dumps(question).encode()
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in headers if line.lower().startswith("content-length:"))
    answer = await reader.readexactly(length)
    return json.loads(answer) if " 200 " in status else None


def main() -> None:
    corpus = reviews(train=600, dev=60, test=REQUESTS)
    texts = [example.text for example in corpus.test]
    model = Rationalizer("spectra", epochs=1, min_epochs=1)
    model.fit([e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train], progress=False)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        with serving(Path(folder)) as port:
            alone, alone_seconds, alone_total = asyncio.run(ask(port, texts[:ALONE], 1))
            together, together_seconds, together_total = asyncio.run(ask(port, texts, AT_ONCE))
    lost = sum(answer is None for answer in [*alone, *together])
    expected = [list(one.selected) for one in model.explain(texts)]
    found = [answer and answer["explanations"][0]["selected"] for answer in together]
    wrong = sum(one is not None and one != other for one, other in zip(found, expected, strict=True))
    rows = []
    for name, seconds, total in (
        ("1 at a time", alone_seconds, alone_total),
        (f"{AT_ONCE} at a time", together_seconds, together_total),
    ):
        cut = statistics.quantiles(seconds, n=100)
        rows.append([name, len(seconds), len(seconds) / total, *(1e3 * cut[p - 1] for p in (50, 95, 99))])
    print_table(["requests", "count", "per second", "p50 ms", "p95 ms", "p99 ms"], rows)
    print(f"\nlost {lost}, wrong {wrong}; {rows[1][2] / rows[0][2]:.1f} times the throughput of one at a time")


if __name__ == "__main__":
    main()
