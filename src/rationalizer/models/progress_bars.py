"""Whether somebody watches, on a terminal or in a notebook, and a bar for those who do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

PATIENCE = 2.0  # seconds without a bar


def is_watched() -> bool:
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Whether the program runs in a kernel of Jupyter's, whose errors no terminal shows."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


@contextmanager
def notebook_bar(title: str, total: int) -> Iterator[Callable[[int], object] | None]:
    """Gives a function that is told how much more is done; outside of notebooks None. The bar appears after a while."""
    if not in_notebook():
        yield None
        return
    if find_spec("ipywidgets") is None:  # tqdm.auto would complain of it
        from tqdm import tqdm
    else:
        from tqdm.auto import tqdm
    with tqdm(total=total, desc=title, delay=PATIENCE, unit=" texts") as bar:
        yield bar.update
