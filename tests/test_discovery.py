"""Registries, and the modules that fill them."""

import sys
from importlib import import_module

import pytest

from rationalizer.discovery import Registry, UnknownNameError, import_modules


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
