"""Registries, and the modules that fill them."""

import sys
from importlib import import_module

import pytest

from rationalizer import discovery
from rationalizer.discovery import PluginRegistry, Registry, UnknownNameError, import_modules, load_plugins


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "shapes"
    folder.mkdir()
    (folder / "__init__.py").write_text("from rationalizer.discovery import Registry\nSHAPES = Registry('shape')\n")
    (folder / "circle.py").write_text(module("circle"))
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("shapes")
    for name in [name for name in sys.modules if name.split(".")[0] == "shapes"]:
        del sys.modules[name]


def module(name):
    return f"from shapes import SHAPES\n\n@SHAPES.register({name!r})\nclass Shape:\n    pass\n"


def test_modules_register_by_being_there(package):
    import_modules("shapes")
    assert list(package.SHAPES) == ["circle"]
    assert package.SHAPES["circle"].name == "circle"


def test_folders_appended_later_are_found(package, tmp_path):
    import_modules("shapes")
    own = tmp_path / "own"
    own.mkdir()
    package.__path__.append(str(own))
    import_modules("shapes")
    (own / "square.py").write_text(module("square"))
    import_modules("shapes")
    assert list(package.SHAPES) == ["circle", "square"]


def test_unknown_names_get_a_suggestion():
    registry = Registry("shape")
    registry.register("circle")(len)
    with pytest.raises(UnknownNameError, match="did you mean 'circle'") as raised:
        registry["circel"]
    assert (raised.value.kind, raised.value.name) == ("shape", "circel")
    assert isinstance(raised.value, ValueError)
    assert registry.get("circel") is None


def test_a_name_is_registered_once():
    registry = Registry("shape")
    registry.register("circle")(len)
    assert not hasattr(len, "name")
    with pytest.raises(ValueError, match="circle"):
        registry.register("circle")(print)


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package with an entry point, in a process that has loaded no plugins."""
    (tmp_path / "hexagons.py").write_text(
        "from tests.test_discovery import SHAPES\nSHAPES.register('hexagon')(len)\nassert 'hexagon' in SHAPES\n"
    )
    package = tmp_path / "hexagons-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: hexagons\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[rationalizer.plugins]\nhexagons = hexagons\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(discovery, "_plugins_are_loaded", False)
    yield
    SHAPES.clear()
    sys.modules.pop("hexagons", None)


SHAPES = PluginRegistry("shape")
READS = {
    "in": lambda: "hexagon" in SHAPES,
    "get": lambda: SHAPES.get("hexagon"),
    "item": lambda: SHAPES["hexagon"],
    "list": lambda: list(SHAPES) == ["hexagon"],
    "length": lambda: len(SHAPES) == 1,
    "keys": lambda: list(SHAPES.keys()) == ["hexagon"],
    "values": lambda: list(SHAPES.values()) == [len],
    "items": lambda: dict(SHAPES.items()) == {"hexagon": len},
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_every_way_to_read_loads_plugins(plugin, read):
    assert read()


def test_packages_installed_later_are_found_when_searched_again(plugin, monkeypatch):
    monkeypatch.setattr(discovery, "_plugins_are_loaded", True)
    assert "hexagon" not in SHAPES
    load_plugins(again=True)
    assert "hexagon" in SHAPES


def test_broken_plugins_raise_each_time(monkeypatch):
    monkeypatch.setattr(discovery, "_plugins_are_loaded", False)
    monkeypatch.setattr(discovery, "BUNDLED_PLUGINS", ("no_such_module",))
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            list(SHAPES)
