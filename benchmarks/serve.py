"""The endpoint under load, each figure as a ratio to one measured on the same server.

    python -m benchmarks serve

Starts `rationalizer serve` on a model trained for this, with one process and with several.

- Latency: requests one after the other, then 1,000 with 50 under way, from a process of its own, over connections that
  stay open; texts of 18 words and of 100. None may be lost, and answers must be those of the model. What counts is the
  95th percentile of the latter as a multiple of the median of the former, which shall be at most 3.
- Where that comes from, and what other work on the machine changes less: seconds of the processor. Of 50 requests the
  last one waits for all, so on P processes with a core each the multiple is about 50/P times what a request takes of
  the processor in a crowd, over what it takes alone.
- Fairness: ten requests of one line while fifteen of the largest allowed are waiting.
- Memory: what the server's process holds in the course of 10,000 requests, each of words never seen before.
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
from pathlib import Path

from benchmarks.timing import print_table, verdict
from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews

REQUESTS, AT_ONCE, ALONE = 1000, 50, 200
AT_MOST = 3.0  # times as long as one alone
WORDS = 100  # of the longer texts
LARGE, SMALL = 15, 10
PROCESSES = max(2, min(8, (os.cpu_count() or 2) // 2))
SOAK, STEPS = 10_000, 5


@contextmanager
def serving(run: Path, workers: int = 1) -> Iterator[tuple[int, int]]:
    """`rationalizer serve` as a process of its own; gives its port and its number."""
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


Asked = tuple[list[dict | None], list[float], float]


async def ask(port: int, questions: Sequence[dict], at_once: int) -> Asked:
    """The answers (None: lost), each one's seconds, and the seconds of all.

    Over plain connections, each of which has one request under way: a full HTTP client would be slower than the
    server, and would be measured instead.
    """
    answers: list[dict | None] = [None] * len(questions)
    seconds = [0.0] * len(questions)
    waiting = iter(range(len(questions)))

    async def worker() -> None:
        encoder, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        for k in waiting:
            start = time.perf_counter()
            answers[k] = await post(encoder, writer, questions[k])
            seconds[k] = time.perf_counter() - start
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return answers, seconds, time.perf_counter() - start


async def post(encoder: asyncio.StreamReader, writer: asyncio.StreamWriter, question: dict) -> dict | None:
    body = json.dumps(question).encode()
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    status, *headers = (await encoder.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in headers if line.lower().startswith("content-length:"))
    answer = await encoder.readexactly(length)
    return json.loads(answer) if " 200 " in status else None


def processor(pid: int) -> float:
    """Seconds of the processor that a process and those it started have had; 0 where there is no /proc."""
    folder = Path(f"/proc/{pid}")
    if not folder.is_dir():
        return 0.0
    spent = sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return spent + sum(processor(int(child)) for child in (folder / f"task/{pid}/children").read_text().split())


def latency(folder: Path, model: Rationalizer, kinds: dict[str, Sequence[str]]) -> None:
    rows, processed, ends = [], [], []
    for workers in (1, PROCESSES):
        with serving(folder, workers) as (port, pid):
            for kind, texts in kinds.items():
                questions = [{"text": text} for text in texts]
                asyncio.run(ask(port, questions[:AT_ONCE], AT_ONCE))  # each process has answered some
                start = processor(pid)
                alone = asyncio.run(ask(port, questions[:ALONE], 1))
                between = processor(pid)
                together = asyncio.run(ask(port, questions, AT_ONCE))
                end = processor(pid)
                rows += _times(kind, workers, alone, together)
                spent = 1e3 * (between - start) / ALONE, 1e3 * (end - between) / len(texts)
                if all(spent):
                    multiple = AT_ONCE / workers * spent[1] / spent[0]
                    processed.append([kind, workers, *spent, multiple])
                lost = sum(answer is None for answer in [*alone[0], *together[0]])
                wrong = _wrong(model, texts, together[0])
                ends.append(f"{kind}, {workers} process(es): lost {lost}, wrong {wrong}")
    print(f"At most {AT_MOST:g} times as long as one alone:\n")
    print_table(["texts", "processes", "at once", "a second", "p50 ms", "p95 ms", "p99 ms", "p95 / alone", ""], rows)
    print("\n" + "; ".join(ends) + ".\n\nMilliseconds of the processor a request:\n")
    if processed:
        multiple = f"{AT_ONCE} / processes x ratio"
        print_table(["texts", "processes", "alone", f"{AT_ONCE} at once", multiple], processed)


def _times(kind: str, workers: int, alone: Asked, together: Asked) -> list[list[object]]:
    median = statistics.median(alone[1])
    rows: list[list[object]] = []
    for at_once, (_, seconds, total) in ((1, alone), (AT_ONCE, together)):
        cut = statistics.quantiles(seconds, n=100)
        ratio = cut[94] / median
        times = (1e3 * cut[p - 1] for p in (50, 95, 99))
        said = "" if at_once == 1 else verdict(ratio <= AT_MOST)
        rows.append([kind, workers, at_once, len(seconds) / total, *times, ratio, said])
    return rows


def _wrong(model: Rationalizer, texts: Sequence[str], answers: Sequence[dict | None]) -> int:
    expected = [list(one.selected) for one in model.explain(texts)]
    found = [answer and answer["explanations"][0]["selected"] for answer in answers]
    return sum(one is not None and one != other for one, other in zip(found, expected, strict=True))


async def crowd(port: int) -> tuple[list[float], list[float]]:
    """The seconds of one-line requests alone, and of as many amid large ones."""
    small = [{"text": f"We had lovely care, number {k}."} for k in range(SMALL)]
    large = [{"texts": [f"{'lovely care ' * 830}"] * 64}] * LARGE
    _, alone, _ = await ask(port, small, SMALL)
    under_way = asyncio.create_task(ask(port, large, LARGE))
    await asyncio.sleep(1)
    _, amid, _ = await ask(port, small, SMALL)
    assert not under_way.done(), "the large requests were done too soon to be in the way"
    await under_way
    return alone, amid


def fairness(folder: Path) -> None:
    with serving(folder) as (port, _):
        alone, amid = asyncio.run(crowd(port))
    rows = [["alone", 1e3 * max(alone), 1.0], [f"amid {LARGE} large ones", 1e3 * max(amid), max(amid) / max(alone)]]
    print(f"\n{SMALL} requests of one line at once:\n")
    print_table(["", "slowest ms", "ratio"], rows)


def memory(folder: Path) -> None:
    rng = random.Random(0)

    def strange() -> str:
        return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(3, 12))) for _ in range(rng.randint(1, 100)))

    held = []
    with serving(folder) as (port, pid):
        for _ in range(STEPS):
            asyncio.run(ask(port, [{"text": strange()} for _ in range(SOAK // STEPS)], 20))
            status = Path(f"/proc/{pid}/status").read_text()
            held.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024)
    rows = [[(k + 1) * SOAK // STEPS, size, size / held[0]] for k, size in enumerate(held)]
    print("\nMemory of the server:\n")
    print_table(["requests", "MB", "ratio"], rows)


def main() -> None:
    corpus = reviews(train=600, dev=60, test=REQUESTS)
    model = Rationalizer("spectra", epochs=1, min_epochs=1)
    model.fit([e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train], progress=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder)
        short = [example.text for example in corpus.test]
        running = " ".join(short).split()
        long = [" ".join(running[k % 997 : k % 997 + WORDS]) for k in range(REQUESTS)]
        latency(folder, model, {"18 words": short, f"{WORDS} words": long})
        fairness(folder)
        if Path("/proc/self/status").is_file():
            memory(folder)


if __name__ == "__main__":
    main()
