"""The highlight layers' CUDA kernels compile, for a GPU that need not be there: the interpreter checks no types."""

from importlib import import_module

import pytest

pytestmark = pytest.mark.long

compiler = pytest.importorskip("triton.compiler", reason="Triton is not installed")

DOUBLES, BYTES, LONGS, INT = "*fp64", "*u8", "*i64", "i32"
KERNELS = {
    "budget_cuda._budget_kernel": [DOUBLES, BYTES, LONGS, LONGS, DOUBLES, DOUBLES, DOUBLES, INT],
    "total_variation_cuda._forward_kernel": [DOUBLES, BYTES, DOUBLES, DOUBLES, DOUBLES, INT],
    "total_variation_cuda._backward_kernel": [DOUBLES, DOUBLES, BYTES, DOUBLES, DOUBLES, DOUBLES, INT],
    "pair_budget_cuda._forward_kernel": [DOUBLES, DOUBLES, BYTES, LONGS, LONGS, DOUBLES, DOUBLES, DOUBLES, INT],
    "pair_budget_cuda._backward_kernel": [*[DOUBLES] * 3, BYTES, *[DOUBLES] * 4, INT],
    "sequence_budget_map_cuda._map_kernel": [DOUBLES, DOUBLES, BYTES, LONGS, LONGS, DOUBLES, DOUBLES, BYTES, INT, INT],
    "sequence_budget_cuda._closed_form_kernel": [
        *(DOUBLES, DOUBLES, BYTES, LONGS, LONGS, DOUBLES, BYTES, LONGS, BYTES, LONGS, DOUBLES, DOUBLES),
        *(DOUBLES, LONGS, BYTES, INT, INT),
    ],
    "sequence_budget_cuda._read_solutions_kernel": [
        *(DOUBLES, LONGS, BYTES, DOUBLES, LONGS, BYTES, LONGS, DOUBLES, INT, INT)
    ],
    "sequence_budget_cuda._backward_kernel": [
        *(DOUBLES, DOUBLES, DOUBLES, BYTES, BYTES, LONGS, DOUBLES, DOUBLES, DOUBLES, DOUBLES, LONGS, BYTES, INT, INT)
    ],
    "sequence_budget_cuda._read_gradients_kernel": [DOUBLES, LONGS, DOUBLES, DOUBLES, INT, INT],
}


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_compiles(name, bounded, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    target = import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)
    module, _, kernel = name.partition(".")
    function = getattr(import_module(f"rationalizer.ops.kernels.{module}"), kernel)
    if bounded and "BOUNDED" not in function.arg_names:
        pytest.skip("no lower bound")
    sizes = {"BLOCK": 128, "TILE": 16, "BOUNDED": bounded}
    constants = {argument: sizes[argument] for argument in function.arg_names if argument in sizes}
    signature = dict(zip(function.arg_names, KERNELS[name], strict=False)) | dict.fromkeys(constants, "constexpr")
    assert list(signature) == function.arg_names
    places = {(function.arg_names.index(argument),): value for argument, value in constants.items()}
    source = compiler.ASTSource(fn=function, signature=signature, constexprs=places)
    compiled = compiler.compile(source, target=target, options={"num_warps": 1})
    assert compiled.asm["cubin"]
