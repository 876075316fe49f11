"""Converts between NumPy arrays and the toolkit's tensors, which are the name of a type, a shape and the bytes. No
element of a contiguous array is copied. bf16 and f8e4m3fn are types of the package ml_dtypes, which is installed with
onnx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graft.errors import Error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    # Tensors by name, as the extension takes and returns them: type, shape, bytes.
    Packed = dict[str, tuple[str, list[int], NDArray[np.uint8]]]

TYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    "float64": "f64",
    "int16": "i16",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
NUMPY_NAMES = {name: numpy_name for numpy_name, name in TYPES.items()}


def pack(arrays: Mapping[str, ArrayLike], what: str) -> Packed:
    """Returns the arrays as tensors of the toolkit. Raises Error naming `what`, the caller's argument, and the input
    for a type that the toolkit does not have."""
    import numpy as np

    packed: Packed = {}
    for name, given in arrays.items():
        array = np.asarray(given)
        if array.dtype.name not in TYPES or array.dtype.byteorder == ">":
            subject = f"input '{name}'" if name else "the array"
            raise Error(
                f"{what}: {subject} has the dtype {array.dtype}; it must be one of {', '.join(TYPES)}, in "
                "little-endian order"
            )
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        packed[name] = (TYPES[array.dtype.name], list(array.shape), flat)
    return packed


def unpack(packed: Mapping[str, tuple[str, list[int], Any]]) -> dict[str, NDArray[Any]]:
    """Returns the tensors of the toolkit, by name, as NumPy arrays that share the tensors' memory."""
    return {name: data.view(dtype_of(dtype)).reshape(shape) for name, (dtype, shape, data) in packed.items()}


def dtype_of(name: str) -> np.dtype[Any]:
    import numpy as np

    if name not in ("bf16", "f8e4m3fn"):
        return np.dtype(NUMPY_NAMES[name])
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise Error(
            f"{name} is not one of NumPy's own types\nInstall the package that defines this type: pip install ml_dtypes",
            "missing_tool",
        ) from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, NUMPY_NAMES[name]))
    return dtype
