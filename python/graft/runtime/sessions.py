"""Compiles models with ONNX Runtime, and reads and writes the tensors in messages. Graph optimizations are off: ONNX
Runtime 1.31 computes some functions in int8 wrongly with them, and the reference for comparisons has to compute the
model as it is written."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

# Without this setting ONNX Runtime refuses every model with an opset that is newer than its release, whichever
# operators the model uses.
os.environ.setdefault("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
import onnxruntime  # noqa: E402
from numpy.typing import NDArray

from graft.runtime.messages import ErrorKind, Failure, ModelToCompile, Reader, Writer

Array = NDArray[Any]

ENGINE = f"ONNX Runtime {onnxruntime.__version__}"

# The NumPy types by their codes in ONNX (TensorProto.DataType).
DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}

onnxruntime.disable_telemetry_events()
# Some kernels write warnings through this logger instead of the logger of their session.
onnxruntime.set_default_logger_severity(4)


class Session:
    """A compiled model. Several threads may run it at once."""

    def __init__(self, given: ModelToCompile) -> None:
        self._source = given.source
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = given.threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        # Threads that spin while they wait for work take the cores from the other CPU engine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        try:
            self._session = inference_session(given.model, options)
        except Exception as refused:
            raise Failure(
                ErrorKind.BAD_INPUT,
                f"{given.source}: the CPU engine cannot compile this model: {ENGINE}: {shortened(refused)}",
            ) from refused
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        try:
            found = self._session.run(self._outputs, inputs)
        except Exception as failed:
            raise Failure(
                ErrorKind.BAD_INPUT,
                f"{self._source}: cannot run with {described(inputs)}: {ENGINE}: {shortened(failed)}",
            ) from failed
        outputs = dict(zip(self._outputs, found, strict=True))
        for name, tensor in outputs.items():
            if not isinstance(tensor, np.ndarray) or tensor.dtype not in CODES:
                raise Failure(
                    ErrorKind.BAD_INPUT,
                    f"{self._source}: output '{name}' is not a tensor of numbers, and the CPU engine returns only "
                    "tensors of numbers",
                )
        return outputs


def inference_session(model: bytes | str, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Compiles a model of any IR version. ONNX Runtime refuses a model whose IR version is newer than its own without
    looking at the nodes; such a model is compiled with the newest IR version that this release supports. ONNX Runtime
    still refuses operators and types that it lacks, by their names."""

    def compiled(content: Any) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"], enable_fallback=False)

    try:
        return compiled(model)
    except Exception as refused:
        newest = re.search(r"max supported IR version: (\d+)", str(refused))
        if newest is None:
            raise
        # ModelProto.ir_version is field 1, and where a field occurs twice, protobuf keeps the last value.
        other_version = b"\x08" + bytes([int(newest[1])])
        if isinstance(model, bytes):
            return compiled(model + other_version)
        with open(model, "ab") as file:
            file.write(other_version)
        return compiled(model)


def shortened(error: Exception) -> str:
    """Returns the message without ONNX Runtime's error codes and the positions in its sources."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Fatal error: )?", "", str(error).strip())
    return re.sub(r"\S*/onnxruntime/\S+:\d+ [^\n]*?\) ", "", text)


def described(inputs: dict[str, Array]) -> str:
    texts = [f"{name}: {tensor.dtype}{list(tensor.shape)}" for name, tensor in inputs.items()]
    return ", ".join(texts) or "no inputs"


def write_tensors(body: Writer, tensors: dict[str, Array]) -> None:
    body.number(len(tensors))
    for name, tensor in tensors.items():
        body.text(name)
        body.number(CODES[tensor.dtype])
        body.number(tensor.ndim)
        for size in tensor.shape:
            body.number(size)
        body.block(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)


def read_tensors(body: Reader) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    for _ in range(body.number()):
        name = body.text()
        dtype = DTYPES[body.number()]
        shape = [body.number() for _ in range(body.number())]
        tensors[name] = np.frombuffer(body.block(), dtype).reshape(shape)
    return tensors
