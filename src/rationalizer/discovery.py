"""Registries that are filled by the modules of a package: a new kind of thing is one new file in its folder."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, TypeVar

from rationalizer.suggestions import did_you_mean

PLUGINS = "rationalizer.plugins"  # group of entry points; each names a module that registers things when it is imported
BUNDLED_PLUGINS = ("rationalizer.paper",)  # imported by name too: a source checkout may have no entry points

T = TypeVar("T")
_Registered = TypeVar("_Registered")


def import_modules(package: str) -> None:
    """Import every module of a package, so that each can register what it defines.

    Modules are searched on the package's `__path__`. To use a folder of your own, append it to the `__path__` and call
    this function again; modules that are imported already are skipped.
    """
    invalidate_caches()  # a file may be newer than Python's listing of its folder
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


class UnknownNameError(KeyError, ValueError):
    """No entry of a registry has this name."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; {did_you_mean(name, known)}")
        self.kind, self.name = kind, name

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class Registry(dict[str, T]):
    """A dictionary from names to classes (or other objects). Looking up an unknown name raises `UnknownNameError`.

    Args:
        kind: what the entries are, for messages: "extractor", "constraint", …
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, name: str) -> T:
        raise UnknownNameError(self.kind, name, list(self))

    def register(self, name: str) -> Callable[[_Registered], _Registered]:
        """Decorator that adds a class or function as `name`; a class also gets it as its attribute `name`."""

        def add(entry: _Registered) -> _Registered:
            if name in self:
                raise ValueError(f"the {self.kind} {name!r} is already registered, by {self[name]!r}")
            if isinstance(entry, type):
                entry.name = name  # type: ignore[attr-defined]
            self[name] = entry  # type: ignore[assignment]
            return entry

        return add


_plugins_are_loaded = False


def load_plugins(*, again: bool = False) -> None:
    """Import the bundled plugins and those of installed packages.

    The installed packages are searched once per process; `again` searches for packages that were installed since.
    """
    global _plugins_are_loaded
    if _plugins_are_loaded and not again:
        return
    _plugins_are_loaded = True  # before the imports: plugins read the registries that they add to
    try:
        for module in BUNDLED_PLUGINS:
            import_module(module)
        for point in entry_points(group=PLUGINS):
            point.load()
    except BaseException:
        _plugins_are_loaded = False
        raise


class PluginRegistry(Registry[T]):
    """A registry that plugins add entries to. Reading it imports the plugins first."""

    def __missing__(self, name: str) -> T:
        load_plugins()
        return self[name] if dict.__contains__(self, name) else super().__missing__(name)

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return super().__iter__()

    def __len__(self) -> int:
        load_plugins()
        return super().__len__()

    def get(self, name: str, default: Any = None) -> Any:
        load_plugins()
        return super().get(name, default)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        load_plugins()
        return super().keys()

    def values(self) -> ValuesView[T]:  # type: ignore[override]
        load_plugins()
        return super().values()

    def items(self) -> ItemsView[str, T]:  # type: ignore[override]
        load_plugins()
        return super().items()
