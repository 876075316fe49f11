"""Times cases on the CPU: the reference kernels, and PyTorch and ONNX Runtime where they are installed. Only f32, the
type in which Graft computes on the CPU, and only small cases are timed: the reference kernels are written to be
correct, not fast. `graft bench` writes the models for ONNX Runtime, `<index of the case>.onnx`."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graft.bench.judge import SMALL_BYTES
from graft.bench.library import GraftError, Library

REPEATS = 31
SECONDS = 0.3  # after this time, no further repeat begins once there are three
COPY_BYTES = 256 << 20


class CpuBench:
    empty_kernel_us = None

    def __init__(self, library: Library, peers: Sequence[str], models: pathlib.Path | None) -> None:
        self.library = library
        self.models = models
        self.threads = os.cpu_count() or 1
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # ONNX Runtime otherwise leaves a file in the temporary folder
        modules = {"eager": "torch", "compiled": "torch", "onnxruntime": "onnxruntime"}
        self.peers = [name for name in peers if importlib.util.find_spec(modules[name])]
        self.missing = sorted({modules[name] for name in peers if name not in self.peers})
        source = np.ones(COPY_BYTES, np.uint8)
        target = np.empty_like(source)
        self.copy = 2 * COPY_BYTES / seconds_of(lambda: np.copyto(target, source))

    def facts(self) -> dict[str, Any]:
        found = {"name": processor_name(), "threads": self.threads, "copy_gb_s": self.copy / 1e9}
        if "eager" in self.peers:
            import torch

            found["torch"] = torch.__version__.split("+")[0]
        if "onnxruntime" in self.peers:
            import onnxruntime

            found["onnxruntime"] = onnxruntime.__version__
        return found | {"empty_kernel_us": None, "missing": self.missing}

    @staticmethod
    def takes(case: dict[str, Any]) -> bool:
        tensors = case["inputs"] + case["outputs"]
        elements = sum(int(np.prod(desc["shape"])) for desc in tensors)
        return all(d["dtype"] == "f32" and d["layout"] == "linear" for d in tensors) and 4 * elements <= SMALL_BYTES

    def measure(self, case: dict[str, Any]) -> dict[str, Any]:
        random = np.random.default_rng(1)
        inputs = [random.standard_normal(desc["shape"], np.float32) for desc in case["inputs"]]
        outputs = [np.empty(desc["shape"], np.float32) for desc in case["outputs"]]
        traffic = sum(array.nbytes for array in (*inputs, *outputs))
        row = {"bytes": traffic, "peers": {}, "difference": None, "variant": "reference"}
        try:
            call = self.library.call(case, [a.ctypes.data for a in inputs], [a.ctypes.data for a in outputs])
            row |= self._times(lambda: call.run_cpu(self.threads), case, traffic)
        except GraftError as error:
            return row | {"failed": str(error)}
        for name in self.peers:
            make = self._onnx_runtime if name == "onnxruntime" else self._torch
            try:
                made = make(case, inputs, compiled=name == "compiled")
                if made is None:
                    continue
                expected = np.asarray(made())
                difference = relative_difference(outputs[0].reshape(expected.shape), expected)
                row["difference"] = max(difference, row["difference"] or 0.0)
                row["peers"][name] = self._times(made, case, traffic)
            except Exception as error:  # noqa: BLE001  (a peer may fail in any way; the other figures stay valid)
                row["peers"][name] = {"failed": (str(error).strip() or type(error).__name__).splitlines()[0]}
        return row

    def _times(self, call: Callable[[], Any], case: dict[str, Any], traffic: int) -> dict[str, Any]:
        seconds = seconds_of(call)
        return {
            "us": 1e6 * seconds,
            "warm_us": 1e6 * seconds,
            "of_copy": traffic / seconds / self.copy,
            "tflop_s": case["operations"] / seconds / 1e12 if case["operations"] else None,
        }

    def _torch(self, case: dict[str, Any], inputs: Sequence[np.ndarray], compiled: bool) -> Callable[[], Any] | None:
        import torch

        from graft.bench.peers import peer

        function = peer(case["operator"], case["attributes"])
        if function is None:
            return None
        tensors = [torch.from_numpy(array) for array in inputs]
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function, dynamic=False)
        return lambda: function(*tensors)

    def _onnx_runtime(
        self, case: dict[str, Any], inputs: Sequence[np.ndarray], compiled: bool
    ) -> Callable[[], Any] | None:
        import onnxruntime

        model = self.models / f"{case['index']}.onnx" if self.models else None
        if model is None or not model.is_file():
            return None
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        feeds = {port.name: array for port, array in zip(session.get_inputs(), inputs)}
        return lambda: session.run(None, feeds)[0]

    def tidy(self) -> None:
        pass


def processor_name() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def seconds_of(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < REPEATS and (len(times) < 3 or time.perf_counter() - started < SECONDS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def relative_difference(found: np.ndarray, expected: np.ndarray) -> float:
    norm = float(np.linalg.norm(expected.astype(np.float64).ravel()))
    difference = float(np.linalg.norm((found.astype(np.float64) - expected).ravel()))
    return difference / norm if norm else difference
