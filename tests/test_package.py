"""The package as a whole: light to import, layered, honest about its version."""

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import rationalizer

PACKAGE = Path(rationalizer.__file__).parent
# Bottom to top: a module may import its own layer and those before it.
ORDER = [
    "subprocesses",
    "ray_cluster",
    "suggestions",
    "plurals",
    "assignments",
    "progress",
    "discovery",
    "ranges",
    "ops",
    "graph",
    "text",
    "work_limits",
    "word_support",
    "constraints",
    "nn",
    "compile",
    "data",
    "metrics",
    "models",
    "inference",
    "training",
    "drawing",
    "compare",
    "hub",
    "records",
    "prediction_gaps",
    "prediction_warnings",
    "explaining",
    "label_explanations",
    "not_fitted",
    "estimator",
    "model",
    "export",
    "auditing",
    "bulk",
    "server",
    "paper",
    "cli",
    "__init__",
]
HEAVY = [
    "lightning_fabric",
    "matplotlib",
    "pyarrow",
    "pandas",
    "typer",
    "rich",
    "tensorboard",
    "gradio",
    "fastapi",
    "transformers",
    "datasets",
    "ray",
    "huggingface_hub",
    "clarabel",
]


def layer(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The layers that a module imports from, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rationalizer" and len(parts) > 1 and parts[1] in ORDER:
                found.add(parts[1])
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downward(path):
    own = layer(path)
    if path.name == "__main__.py":
        own = "cli"
    assert own in ORDER, f"{own} has no place in the order of layers"
    above = {name for name in imports(path) if ORDER.index(name) > ORDER.index(own)}
    assert not above, f"{own} must not import {above}"


def test_only_the_command_line_imports_the_paper():
    importing = {layer(path) for path in PACKAGE.rglob("*.py") if "paper" in imports(path)}
    assert importing == {"paper", "cli"}


STEPS = {  # in one process, one after the other: what none of them may have brought so far
    "import rationalizer.subprocesses": ("torch", "numpy"),  # Ray and Slurm start a process that waits for each run
    "import rationalizer": ("rationalizer.training", *HEAVY),
    "import rationalizer.cli": ("torch", "numba", "fastapi"),  # for help
    "import io, contextlib, rationalizer.cli.models": (),
    "with contextlib.redirect_stdout(io.StringIO()): rationalizer.cli.models.models()": ("torch", "numba"),
    "rationalizer.Rationalizer().get_params()": ("lightning_fabric", "pandas", "tensorboard", "sklearn"),
    "import rationalizer.nn, rationalizer.training": ("lightning_fabric", "transformers"),
}


def test_imports_are_light():
    script = "import sys\n" + "".join(
        f"{step}\nprint([name for name in {unwanted!r} if name in sys.modules])\n" for step, unwanted in STEPS.items()
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert dict(zip(STEPS, done.stdout.splitlines(), strict=True)) == dict.fromkeys(STEPS, "[]")


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Rationaliser'"):
        rationalizer.Rationaliser  # noqa: B018


# Modules of one name that mean the same thing in both places.
SHARED_NAMES = {
    "__init__",
    "__main__",
    "base",  # the base class of the parts that a package discovers
    "budget",  # text: the number of words; ops: the layer that keeps to it
    "evaluate",  # inference: the function; cli: the command
    "hans",  # paper/datasets: the dataset; cli: the command that scores a model on it
}


def test_module_names_are_unique():
    stems = [path.stem for path in PACKAGE.rglob("*.py")]
    assert {stem for stem in stems if stems.count(stem) > 1} <= SHARED_NAMES


def test_version():
    assert rationalizer.__version__ == version("rationalizer")


def test_public_names_exist():
    for name in rationalizer.__all__:
        assert getattr(rationalizer, name) is not None
    for name in rationalizer.ops.__all__:
        assert callable(getattr(rationalizer.ops, name))


def test_dir():
    assert set(rationalizer.__all__) <= set(dir(rationalizer))
