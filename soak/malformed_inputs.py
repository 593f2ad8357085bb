"""Malformed files and command lines: a one-line error and exit code 2, or success; never a traceback."""

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

COMMAND_SECONDS = 20.0
# Values of any option: a valid value of one is invalid for most others.
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

    def check_case(case: Case) -> None:
        folder = soak.folder / f"case-{case.number}"
        folder.mkdir()
        _check_command(case, folder, model)

    soak.check(250, check_case, seconds=COMMAND_SECONDS + 10)


def _check_command(case: Case, folder: Path, model: Path) -> None:
    arguments = _command_line(case, folder, model)
    case.note("rationalizer", *map(repr, arguments))
    code, stderr = call(arguments, folder)
    require("Traceback" not in stderr, f"code {code}:", stderr[-1500:])
    require(code >= 0, "ended by signal", -code, stderr[-1500:])
    if code == 0:
        return
    require(code in (1, 2), "exit code", code, stderr[-1500:])
    lines = [line for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    usage = any(line.startswith("Usage: ") for line in lines)  # an option that does not exist, as Typer says it
    if code != 2 or (not usage and (len(errors) != 1 or lines[-1] != errors[0])):
        raise Unclear(f"code {code}, and not one line of error: {stderr[-1500:]!r}")


def _command_line(case: Case, folder: Path, model: Path) -> list[str]:
    command = case.pick(["explain", "explain", "evaluate", "train", "train", "info"])
    run = str(model) if case.chance(0.9) else case.pick([str(folder / "nowhere"), str(folder), "", "/dev/null"])
    arguments = [command]
    if command != "train":
        arguments.append(run)
    if command in ("explain", "evaluate", "train") and case.chance(0.8):
        path = str(write_malformed(case, folder))
        arguments += ["--file", path] if command == "explain" else [path]
    elif command == "train":
        arguments.append(case.pick(["nothing", "", "reviewz", str(folder / "none.csv")]))
    if command == "train":
        arguments += [*QUICK, "--out", str(folder / "run")]
    for _ in range(int(case.pick([0, 0, 1, 2]))):
        arguments += [case.pick(OPTIONS[command]), case.pick(VALUES)]
    if case.chance(0.05):
        arguments.append(case.pick(["--nope", "--", "extra", "-x", "--resume", "--overwrite"]))
    return arguments


def call(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Return exit code (or minus the signal) and standard error, from a fork that has imported everything."""
    import rationalizer.cli

    out = folder / "stderr"
    child = os.fork()
    if child == 0:
        _run_and_exit(rationalizer.cli.main, arguments, folder, out)
    deadline = time.monotonic() + COMMAND_SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), out.read_text(errors="replace")
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Hung(f"longer than {COMMAND_SECONDS:g} s; stderr was {out.read_text(errors='replace')[-500:]!r}")
        time.sleep(0.005)


def _run_and_exit(main, arguments: list[str], folder: Path, out: Path) -> None:
    """Run the command in the fork, and exit."""
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
