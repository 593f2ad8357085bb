"""What rationales for each label cost: the time of a training step and its memory, beside one shared rationale.

    python scripts/label_costs.py [--labels 1 10 100] [--words 64] [--encoder bilstm] [--device cpu]

Each model trains in a process of its own on the same random texts, with the defaults. The time is the median of the
last 12 of 24 steps, on a CPU the CPU time of one thread; memory is the largest resident memory of the process, on CUDA
the largest allocated one.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time

STEPS, TIMED = 24, 12


def texts(count: int, length: int, labels: int) -> tuple[list[str], list[list[str]]]:
    generator = random.Random(0)
    rows, truth = [], []
    for _ in range(count):
        own = [k for k in range(labels) if generator.random() < min(0.3, 3 / labels)]
        words = [f"w{generator.randrange(3000)}" for _ in range(length)]
        for k in own:
            words[generator.randrange(length)] = f"label{k}"
        rows.append(" ".join(words))
        truth.append([f"l{k}" for k in own])
    return rows, truth


def measure(labels: int, rationales: str, words: int, encoder: str, device: str) -> dict[str, float]:
    import torch
    from lightning_fabric import Fabric

    from rationalizer.data import make_corpus
    from rationalizer.models import configure
    from rationalizer.training.loop import TrainingLoop
    from rationalizer.training.trainer import _Training, describe_model

    rows, truth = texts(1000, words, labels)
    corpus = make_corpus(rows, truth, classes=[f"l{k}" for k in range(labels)])
    settings = {"rationales": rationales, "embeddings": None} if encoder == "bilstm" else {"rationales": rationales}
    config = configure(overrides={"encoder": encoder, **settings})
    fabric = Fabric(accelerator="cuda" if device.startswith("cuda") else "cpu", devices=1)
    training = _Training(corpus, describe_model(corpus, config), None, fabric, True, False)
    loop = TrainingLoop(training._build_model(None), corpus, config, fabric)
    loop._setup()
    loop.batches = STEPS
    # CPU time does not depend on what else the machine does; on a GPU only wall time counts.
    clock = time.perf_counter if fabric.device.type == "cuda" else time.process_time
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loader = loop.load_batches(corpus.train, shuffle=True, seed=0)
    seconds: list[float] = []
    while len(seconds) < STEPS:
        for batch in loader:
            batch = batch.to(loop.device)
            start = clock()
            loss = loop.module(lambda batch=batch: loop.training_step(batch))
            fabric.backward(loss)
            loop._update_weights()
            if fabric.device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(clock() - start)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = (after - before) / 1024
    if fabric.device.type == "cuda":
        megabytes = torch.cuda.max_memory_allocated() / 2**20
    timed = sorted(seconds[-TIMED:])
    return {"seconds": timed[len(timed) // 2], "megabytes": megabytes, "total": after / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--words", type=int, default=64)
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs=2)
    arguments = parser.parse_args()
    common = (arguments.words, arguments.encoder, arguments.device)
    if arguments.one:
        print(json.dumps(measure(int(arguments.one[0]), arguments.one[1], *common)))
        return
    print("labels  rationales  step       memory of the steps  ratio of the step to shared")
    for labels in arguments.labels:
        shared = None
        for rationales in ("shared", "per-label", "disjoint"):
            command = [sys.executable, __file__, "--one", str(labels), rationales, "--words", str(common[0])]
            command += ["--encoder", common[1], "--device", common[2]]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            shared = shared or found["seconds"]
            ratio = found["seconds"] / shared
            print(
                f"{labels:6}  {rationales:10}  {1000 * found['seconds']:6.1f} ms  {found['megabytes']:6.0f} MB, "
                f"{found['total']:5.0f} MB in all  {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
