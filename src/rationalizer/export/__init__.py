"""Models without PyTorch: export to ONNX or to a page for browsers, and a class that explains texts with exports."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rationalizer.export.exported_model import ExportedModel
    from rationalizer.export.model_facts import NotExportableError
    from rationalizer.export.web_site import export_site
    from rationalizer.export.write_export import export_model

__all__ = ["ExportedModel", "NotExportableError", "export_model", "export_site"]

_LAZY = {
    "ExportedModel": "exported_model",
    "NotExportableError": "model_facts",
    "export_model": "write_export",
    "export_site": "web_site",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:  # lazy: using a model does not need what exporting one needs
        return getattr(import_module(f"rationalizer.export.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
