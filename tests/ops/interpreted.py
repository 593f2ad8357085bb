"""Import this first, in a process of its own: Triton kernels then run on CPU tensors, in Triton's interpreter."""

import os
from types import SimpleNamespace

os.environ["TRITON_INTERPRET"] = "1"

from triton import language
from triton.runtime import interpreter

_patch_lang_tensor = interpreter._patch_lang_tensor
_patch_lang = interpreter._patch_lang
_ALL_OF_IT = SimpleNamespace(__globals__={"language": language, "core": language.core})


def _patch_for_numpy_2_4(tensor, scope):
    """The interpreter's scalars are arrays of shape (1,), which NumPy 2.4 no longer takes for integers."""
    _patch_lang_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


def _call_what_is_patched(self, *args, **kwargs):
    return self.rewrite()(*args, **kwargs)


interpreter._patch_lang_tensor = _patch_for_numpy_2_4
# Triton looks all its functions through at every call of a device function, for a quarter of the time. Once a launch
# is enough, if it is done for all that device functions use.
interpreter._patch_lang = lambda kernel: _patch_lang(_ALL_OF_IT)
interpreter.InterpretedFunction.__call__ = _call_what_is_patched
