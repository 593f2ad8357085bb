"""Malformed files and command lines: one line that says what is wrong and exit code 2, or success; no traceback."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from soak import small_models
from soak.cases import Case, Hung, Soak, Unclear, require
from soak.malformed_files import write_malformed

LONGEST = 20.0
# Of any option: what is right for one is wrong for most others.
VALUES = ["", "0", "-1", "1", "20%", "150%", "0.2", "1e400", "nan", "x", "text=label", "label=", "=", "epochs=1",
          "epochs=x", "hidden=-1", "nope=1", "cuda", "cuda:99", "cpu", "jsonl", "[bold]", "é" * 300, "a/b"]  # fmt: skip
OPTIONS = {
    "explain": ["--budget", "--batch-size", "--format", "--out", "--column", "--device", "--file"],
    "evaluate": ["--budget", "--split", "--json", "--report", "--column", "--aspect", "--data-dir"],
    "train": ["--budget", "--method", "--column", "--set", "--seed", "--encoder", "--embeddings", "--aspect",
              "--device", "--devices", "--precision", "--strategy", "--data-dir"],
    "info": ["--nope"],
}  # fmt: skip
QUICK = ["--set", "epochs=1", "--set", "hidden=4", "--set", "vector_size=4", "--set", "embeddings=none"]


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")

    def judge(case: Case) -> None:
        folder = soak.folder / f"case-{case.number}"
        folder.mkdir()
        _judge(case, folder, model)

    soak.check(250, judge, seconds=LONGEST + 10)


def _judge(case: Case, folder: Path, model: Path) -> None:
    arguments = _command_line(case, folder, model)
    case.note("rationalizer", *map(repr, arguments))
    code, said = call(arguments, folder)
    require("Traceback" not in said, f"code {code}:", said[-1500:])
    require(code >= 0, "ended by signal", -code, said[-1500:])
    if code == 0:
        return
    require(code in (1, 2), "exit code", code, said[-1500:])
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    usage = any(line.startswith("Usage: ") for line in lines)  # an option that does not exist, as Typer says it
    if code != 2 or (not usage and (len(errors) != 1 or lines[-1] != errors[0])):
        raise Unclear(f"code {code}, and not one line of error: {said[-1500:]!r}")


def _command_line(case: Case, folder: Path, model: Path) -> list[str]:
    command = case.pick(["explain", "explain", "evaluate", "train", "train", "info"])
    run = str(model) if case.chance(0.9) else case.pick([str(folder / "nowhere"), str(folder), "", "/dev/null"])
    given = [command]
    if command != "train":
        given.append(run)
    if command in ("explain", "evaluate", "train") and case.chance(0.8):
        path = str(write_malformed(case, folder))
        given += ["--file", path] if command == "explain" else [path]
    elif command == "train":
        given.append(case.pick(["nothing", "", "reviewz", str(folder / "none.csv")]))
    if command == "train":
        given += [*QUICK, "--out", str(folder / "run")]
    for _ in range(int(case.pick([0, 0, 1, 2]))):
        given += [case.pick(OPTIONS[command]), case.pick(VALUES)]
    if case.chance(0.05):
        given.append(case.pick(["--nope", "--", "extra", "-x", "--resume", "--overwrite"]))
    return given


def call(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Exit code (or minus the signal) and standard error, of a fork that has everything imported already."""
    import rationalizer.cli

    out = folder / "stderr"
    child = os.fork()
    if child == 0:
        _become(rationalizer.cli.main, arguments, folder, out)
    deadline = time.monotonic() + LONGEST
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), out.read_text(errors="replace")
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Hung(f"longer than {LONGEST:g} s; it had said {out.read_text(errors='replace')[-500:]!r}")
        time.sleep(0.005)


def _become(main, arguments: list[str], folder: Path, out: Path) -> None:
    """The rest of a fork's life."""
    code = 1
    try:
        os.chdir(folder)
        for number, target in enumerate(("/dev/null", "/dev/null", str(out))):
            os.dup2(os.open(target, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT), number)
        sys.stdin, sys.stdout, sys.stderr = (open(n, "r" if n == 0 else "w", closefd=False) for n in range(3))  # noqa: SIM115
        sys.argv = ["rationalizer", *arguments]
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
