"""Load time, time of an explanation, throughput and memory of one model with PyTorch, NumPy and ONNX Runtime.

    python scripts/export_speed.py sentiment
    python scripts/export_speed.py runs/minilm --texts 200
    python scripts/export_speed.py sentiment --serve   # requests per second and memory of `rationalizer serve`

Each runtime has a process of its own with one thread. Times are those of the processor (user and system), which other
programs on the machine disturb less than wall time. "load" is all until the model is ready, imports included. NumPy
computes BiLSTM models only. The throughput is that of texts of 6 to 30 words, in batches of 128 with PyTorch. With
--serve, eight clients send requests of one text each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COMMON = ["a", "the", "is", "in", "of", "and", "to", "on", "with", "at", "are", "for"]
NEXT = 20  # explanations after the first


def measure(runtime: str, model: str, count: int) -> dict[str, float]:
    """Measure one runtime in this process."""
    started = time.process_time()
    loaded: Any
    if runtime == "pytorch":
        from rationalizer import Rationalizer

        loaded = Rationalizer.load(model, device="cpu")
    else:
        from rationalizer import ExportedModel

        loaded = ExportedModel.load(model, threads=1)
    found = {"load": time.process_time() - started}
    texts = make_texts(count + NEXT + 1, pairs=loaded.pairs)
    found["first"] = timed(loaded, texts[:1])
    found["next"] = sum(timed(loaded, [text]) for text in texts[1 : NEXT + 1]) / NEXT
    found["texts_per_second"] = count / timed(loaded, texts[NEXT + 1 :])
    unit = 1 if sys.platform == "darwin" else 1024
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return found


def timed(model: Any, texts: list[Any]) -> float:
    started = time.process_time()
    model.explain_examples(model.examples(texts))
    return time.process_time() - started


def serve(model: str, count: int) -> tuple[float, float]:
    """Return the requests per second of the server's processor time, and its memory in MB."""
    command = [sys.executable, "-m", "rationalizer", "serve", model, "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            address = next(match[0] for line in server.stderr if (match := re.search(r"http://[\w.:]+", line)))
            pairs = model.endswith("nli")

            def send(text: Any) -> None:
                body = {"premise": text[0], "hypothesis": text[1]} if pairs else {"text": text}
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{address}/explain", json.dumps(body).encode(), headers)
                urllib.request.urlopen(request).read()

            texts = make_texts(count + 20, pairs=pairs)
            with ThreadPoolExecutor(8) as clients:
                list(clients.map(send, texts[:20]))
                before = _processor_seconds(server.pid)
                list(clients.map(send, texts[20:]))
            seconds = _processor_seconds(server.pid) - before
            status = Path(f"/proc/{server.pid}/status").read_text()
            return count / seconds, int(status.partition("VmRSS:")[2].split()[0]) / 1000
        finally:
            server.terminate()


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_texts(count: int, *, pairs: bool) -> list[Any]:
    from rationalizer.text import BUNDLED, load_vectors

    random_ = random.Random(0)
    words = load_vectors(BUNDLED, limit=3000).words

    def text() -> str:
        # With as many common words as sentences have: without them, a model checks the language of a text.
        length = random_.randint(3, 15)
        return " ".join(random_.choices(COMMON, k=length) + random_.choices(words, k=length))

    return [(text(), text()) if pairs else text() for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--runtime", choices=("pytorch", "numpy", "onnx"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.runtime:
        print(json.dumps(measure(options.runtime, options.model, options.texts)))
        return
    from rationalizer.export import export_model
    from rationalizer.export.model_facts import read_facts
    from rationalizer.hub import locate

    with tempfile.TemporaryDirectory() as folder:
        runs = {"pytorch": options.model}
        if read_facts(locate(options.model)).is_bilstm:
            runs["numpy"] = options.model
        runs["onnx"] = str(export_model(options.model, Path(folder) / "float32"))
        runs["onnx, 8 bit"] = str(export_model(options.model, Path(folder) / "8bit", eight_bit=True))
        if options.serve:
            print("| runtime | requests per CPU second | memory of the server |\n|---|---|---|")
            for name in ("pytorch", "onnx"):
                rate, memory = serve(runs[name], options.texts)
                print(f"| {name} | {rate:.0f} | {memory:.0f} MB |", flush=True)
            return
        print("| runtime | files | load | first | next | texts/s | memory |\n|---|---|---|---|---|---|---|")
        for name, model in runs.items():
            command = [sys.executable, __file__, model, "--texts", str(options.texts)]
            command += ["--runtime", name.partition(",")[0]]
            done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout)
            size = sum(path.stat().st_size for path in locate(model).iterdir() if path.is_file()) / 1e6
            times = [f"{1000 * found[key]:.3g} ms" for key in ("load", "first", "next")]
            print(
                f"| {name} | {size:.1f} MB | {' | '.join(times)} | {found['texts_per_second']:.0f} | "
                f"{found['megabytes']:.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
