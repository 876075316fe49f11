"""Describes arrays of NumPy, PyTorch and CuPy to kernels: a type, a shape and an address. This module imports neither
PyTorch nor CuPy: a caller that passes their arrays has imported them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from graft.arrays import dtype_of

_SHORT = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
}
_ELEMENTS_FOR_A_THREAD = 1 << 15  # to start a thread takes as long as to compute some ten thousand elements


def threads_for(elements: int) -> int:
    return max(1, min(len(os.sched_getaffinity(0)), elements // _ELEMENTS_FOR_A_THREAD))


class NumPyArrays:
    """Describes NumPy arrays, on which the reference kernels run."""

    name = "numpy.ndarray"
    to_contiguous = "numpy.ascontiguousarray(...)"

    def device(self, array: Any) -> str:
        return "cpu"

    def dtype(self, array: Any) -> str:
        return _SHORT.get(array.dtype.name, array.dtype.name)

    def address(self, array: Any) -> int:
        return array.__array_interface__["data"][0]

    def is_contiguous(self, array: Any) -> bool:
        return array.flags.c_contiguous

    def is_writable(self, array: Any) -> bool:
        return array.flags.writeable

    def empty(self, dtype: str, shape: tuple[int, ...], like: Any) -> Any:
        return np.empty(shape, dtype_of(dtype))

    def run(self, plan: Any, addresses: list[int], arrays: Sequence[Any]) -> None:
        plan.run_cpu(addresses, threads_for(max(int(array.size) for array in arrays)))


class CuPyArrays:
    """Describes CuPy arrays, on which the CUDA kernels run on CuPy's current stream with memory of CuPy's pool."""

    name = "cupy.ndarray"
    to_contiguous = "cupy.ascontiguousarray(...)"

    def __init__(self) -> None:
        self._cupy = sys.modules["cupy"]

    def device(self, array: Any) -> str:
        return f"cuda:{array.device.id}"

    def dtype(self, array: Any) -> str:
        return _SHORT.get(array.dtype.name, array.dtype.name)

    def address(self, array: Any) -> int:
        return array.data.ptr

    def is_contiguous(self, array: Any) -> bool:
        return array.flags.c_contiguous

    def is_writable(self, array: Any) -> bool:
        return True

    def empty(self, dtype: str, shape: tuple[int, ...], like: Any) -> Any:
        with like.device:
            return self._cupy.empty(shape, dtype_of(dtype))

    def run(self, plan: Any, addresses: list[int], arrays: Sequence[Any]) -> None:
        with arrays[0].device:
            stream = self._cupy.cuda.get_current_stream().ptr
            # CuPy's pool reuses the memory in the order of the stream, so the kernels may still run when it is freed.
            workspace = self._cupy.cuda.alloc(plan.workspace_bytes) if plan.workspace_bytes else None
            plan.run_cuda(addresses, workspace.ptr if workspace else 0, stream)


class TorchArrays:
    """Describes PyTorch tensors. The reference kernels run on tensors on the CPU; the CUDA kernels run on tensors on a
    GPU, on PyTorch's current stream, with workspace memory from PyTorch."""

    name = "torch.Tensor"
    to_contiguous = "x.contiguous()"

    def __init__(self) -> None:
        self._torch = sys.modules["torch"]
        self._short = {getattr(self._torch, name): short for name, short in _SHORT.items()}
        self._long = {short: dtype for dtype, short in self._short.items()}

    def device(self, array: Any) -> str:
        return str(array.device)

    def dtype(self, array: Any) -> str:
        return self._short.get(array.dtype) or str(array.dtype).removeprefix("torch.")

    def address(self, array: Any) -> int:
        if array.requires_grad and self._torch.is_grad_enabled():
            raise ValueError("graft.ops computes no gradients: use graft.torch, or pass x.detach()")
        if self._torch._C._functorch.is_functorch_wrapped_tensor(array):
            raise ValueError("graft.ops does not support tensors inside transforms of torch.func: use graft.torch")
        return array.data_ptr()

    def is_contiguous(self, array: Any) -> bool:
        return array.is_contiguous()

    def is_writable(self, array: Any) -> bool:
        return True

    def empty(self, dtype: str, shape: tuple[int, ...], like: Any) -> Any:
        return self._torch.empty(shape, dtype=self._long[dtype], device=like.device)

    def run(self, plan: Any, addresses: list[int], arrays: Sequence[Any]) -> None:
        device = arrays[0].device
        if device.type == "cpu":
            plan.run_cpu(addresses, threads_for(max(array.numel() for array in arrays)))
        elif device.type == "cuda":
            with self._torch.cuda.device(device):
                stream = self._torch.cuda.current_stream(device).cuda_stream
                workspace = self._torch.empty(plan.workspace_bytes, dtype=self._torch.uint8, device=device)
                plan.run_cuda(addresses, workspace.data_ptr(), stream)
        else:
            raise ValueError(f"a tensor is on {device}; it must be on cpu or cuda")


_kinds: dict[str, Any] = {}


def kind_of(array: Any) -> Any | None:
    """Returns the NumPyArrays, TorchArrays or CuPyArrays object that handles the framework of `array`, or None if
    `array` is no array of these frameworks."""
    if isinstance(array, np.ndarray):
        name, make = "numpy", NumPyArrays
    elif "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor):
        name, make = "torch", TorchArrays
    elif "cupy" in sys.modules and isinstance(array, sys.modules["cupy"].ndarray):
        name, make = "cupy", CuPyArrays
    else:
        return None
    if name not in _kinds:
        _kinds[name] = make()
    return _kinds[name]
