"""Calls the operators through ctypes and the C functions of Graft's library. include/graft/graft_c.h describes each C
function."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from typing import Any

MAX_RANK = 8

Desc = dict[str, Any]  # a tensor: "dtype", "layout", "shape", as graft_timed_cases() returns them


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_char_p),
        ("layout", ctypes.c_char_p),
        ("extents", ctypes.c_int64 * MAX_RANK),
        ("rank", ctypes.c_int32),
        ("data", ctypes.c_void_p),
    ]


class _Call(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.POINTER(_Tensor)),
        ("input_count", ctypes.c_int32),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("output_count", ctypes.c_int32),
    ]


class GraftError(Exception):
    """A failed call; the text is graft_last_error()."""


class Library:
    """The library libgraft_plugins.so, or libgraft_c.so of a build without CUDA. Raises OSError where it cannot be
    loaded. The methods raise GraftError where the C function fails."""

    def __init__(self, path: str) -> None:
        self._c = ctypes.CDLL(path)
        for name, result in {
            "graft_version": ctypes.c_char_p,
            "graft_last_error": ctypes.c_char_p,
            "graft_operator_create": ctypes.c_void_p,
            "graft_operator_destroy": None,
            "graft_storage_bytes": ctypes.c_int64,
            "graft_workspace_bytes": ctypes.c_int64,
            "graft_cuda_variants": ctypes.c_char_p,
            "graft_timed_cases": ctypes.c_char_p,
            "graft_random_cases": ctypes.c_char_p,
            "graft_load_operators": ctypes.c_int,
        }.items():
            getattr(self._c, name).restype = result
        self.version: str = self._c.graft_version().decode()
        self.has_cuda = bool(self._c.graft_has_cuda())

    def _error(self) -> GraftError:
        return GraftError(self._c.graft_last_error().decode())

    def load_operators(self, path: str) -> None:
        """Loads a user's library of operators. Their cases follow Graft's in the lists of cases."""
        if self._c.graft_load_operators(path.encode()):
            raise self._error()

    def timed_cases(self) -> list[dict[str, Any]]:
        text = self._c.graft_timed_cases()
        if text is None:
            raise self._error()
        return json.loads(text)

    def random_cases(self, seed: int, count: int) -> list[dict[str, Any]]:
        """Returns `count` random cases of each operator. The same `seed` gives the same cases."""
        text = self._c.graft_random_cases(ctypes.c_uint64(seed), ctypes.c_int32(count))
        if text is None:
            raise self._error()
        return json.loads(text)

    def storage_bytes(self, desc: Desc) -> int:
        count = self._c.graft_storage_bytes(ctypes.byref(_tensor(desc, 0)))
        if count < 0:
            raise self._error()
        return count

    def run_empty(self, stream: int) -> None:
        if self._c.graft_run_empty(ctypes.c_void_p(stream)):
            raise self._error()

    def call(self, case: dict[str, Any], inputs: Sequence[int], outputs: Sequence[int]) -> OperatorCall:
        """Returns an OperatorCall that runs the case with inputs and outputs at these addresses."""
        return OperatorCall(self._c, self._error, case, inputs, outputs)


class OperatorCall:
    """An operator with its attributes and tensors, which can run many times. The tensors have to outlive it."""

    def __init__(
        self,
        c: ctypes.CDLL,
        error: Callable[[], GraftError],
        case: dict[str, Any],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._c = c
        self._error = error
        self._inputs = _tensors(case["inputs"], inputs)
        self._outputs = _tensors(case["outputs"], outputs)
        self._call = _Call(self._inputs, len(inputs), self._outputs, len(outputs))
        attributes = json.dumps(case["attributes"]).encode()
        self._operator = ctypes.c_void_p(c.graft_operator_create(case["operator"].encode(), attributes))
        if not self._operator:
            raise error()

    def __del__(self) -> None:
        self._c.graft_operator_destroy(getattr(self, "_operator", None))

    def workspace_bytes(self) -> int:
        count = self._c.graft_workspace_bytes(self._operator, ctypes.byref(self._call))
        if count < 0:
            raise self._error()
        return count

    def cuda_variants(self) -> list[str]:
        names = self._c.graft_cuda_variants(self._operator, ctypes.byref(self._call))
        if names is None:
            raise self._error()
        return [name for name in names.decode().split(",") if name]

    def run_cpu(self, threads: int) -> None:
        if self._c.graft_run_cpu(self._operator, ctypes.byref(self._call), threads):
            raise self._error()

    def run_cuda(self, workspace: int, stream: int, variant: str = "") -> None:
        if self._c.graft_run_cuda(
            self._operator,
            ctypes.byref(self._call),
            ctypes.c_void_p(workspace),
            ctypes.c_void_p(stream),
            variant.encode(),
        ):
            raise self._error()


def _tensor(desc: Desc, address: int) -> _Tensor:
    shape = desc["shape"]
    extents = (ctypes.c_int64 * MAX_RANK)(*shape)
    return _Tensor(desc["dtype"].encode(), desc["layout"].encode(), extents, len(shape), address)


def _tensors(descs: Sequence[Desc], addresses: Sequence[int]) -> ctypes.Array[_Tensor]:
    return (_Tensor * len(descs))(*(_tensor(desc, address) for desc, address in zip(descs, addresses)))
