"""Import this first, in a process of its own: Triton kernels then run on CPU tensors, in Triton's interpreter."""

import os

os.environ["TRITON_INTERPRET"] = "1"

from triton.runtime import interpreter

_patch_lang_tensor = interpreter._patch_lang_tensor


def _patch_for_numpy_2_4(tensor, scope):
    """The interpreter's scalars are arrays of shape (1,), which NumPy 2.4 no longer takes for integers."""
    _patch_lang_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = _patch_for_numpy_2_4
