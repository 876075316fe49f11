"""Times cases on a GPU with device events, and PyTorch eager and torch.compile in the same way. Operators and peers run
on PyTorch's current stream and on PyTorch's tensors, so that they have the same clock and the same memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from graft.bench.judge import SMALL_BYTES
from graft.bench.library import GraftError, Library, OperatorCall
from graft.bench.peers import QUANTIZED, TYPES, exact, inputs_of, is_deterministic, peer

REPEATS = 31
CHOICE_REPEATS = 5  # to choose between variants
NO_CHOICE_SECONDS, NO_CHOICE_FACTOR = (
    0.02,
    10,
)  # a variant whose first run takes longer than both limits is not timed further: seconds, and a factor of the best
WARM_REPEATS = 101  # each takes a few microseconds, so that the resolution of the clock is visible
HEAD_START = 300_000  # cycles for which the device is kept busy: longer than the host of any peer needs to queue a call
FLUSH_BYTES = 1 << 30  # with 256 MiB, an H200 at times kept other data in its cache, see README.md
COPY_BYTES = 1 << 30
MATRIX = 8192  # rows and columns of the matrix products that measure the highest throughput of arithmetic


class CudaBench:
    """The benchmark on a GPU. Raises RuntimeError where PyTorch finds no GPU."""

    def __init__(self, library: Library, peers: Sequence[str]) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no GPU")
        self.library = library
        self.peers = peers
        torch.manual_seed(1)
        torch.backends.cudnn.benchmark = True
        self.flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.copy = self._copy_bandwidth()
        self.matmul = {"f16": self._matmul_tflop_s("f16"), "i8": self._matmul_tflop_s("i8")}
        self.empty_kernel_us = 1e6 * self._seconds(lambda: library.run_empty(stream()), warm=True)

    def facts(self) -> dict[str, Any]:
        return {
            "name": torch.cuda.get_device_properties(0).name,
            "torch": torch.__version__.split("+")[0],
            "copy_gb_s": self.copy / 1e9,
            "empty_kernel_us": self.empty_kernel_us,
            "matmul_tflop_s": self.matmul,
        }

    def _seconds(self, call: Callable[[], Any], warm: bool = False, repeats: int = REPEATS) -> float:
        call()  # the first run also compiles and allocates
        wanted = WARM_REPEATS if warm else repeats
        times: list[float] = []
        late: list[float] = []
        while len(times) < wanted and len(late) < wanted:
            if warm:
                call()
            else:
                torch.amax(self.flush)
            torch.cuda._sleep(HEAD_START)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            # Where the head start was over before the call was queued, the sample includes time of the host.
            samples = late if begin.query() else times
            end.synchronize()  # each call finds an empty queue, however fast the host is
            samples.append(begin.elapsed_time(end))
        return statistics.median(times or late) / 1e3

    def _copy_bandwidth(self) -> float:
        source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
        target = torch.empty_like(source)
        return 2 * source.nbytes / self._seconds(lambda: target.copy_(source))

    def _matmul_tflop_s(self, dtype: str) -> float | None:
        """Returns the TFLOP/s of a large square matrix product in PyTorch, or None where PyTorch has no product of this
        type."""
        desc = {"dtype": dtype, "layout": "linear", "shape": [MATRIX, MATRIX]}
        a, b = random_tensor(desc), random_tensor(desc).t()
        multiply = torch._int_mm if dtype == "i8" else torch.matmul
        try:
            return 2 * MATRIX**3 / self._seconds(lambda: multiply(a, b), repeats=CHOICE_REPEATS) / 1e12
        except RuntimeError:
            return None

    def measure(self, case: dict[str, Any]) -> dict[str, Any]:
        """Returns the measurements of a case as an entry of "results"; see README.md."""
        inputs = inputs_of(case) or [random_tensor(desc) for desc in case["inputs"]]
        outputs = [torch.empty(storage_shape(d), dtype=TYPES[d["dtype"]], device="cuda") for d in case["outputs"]]
        traffic = sum(tensor.nbytes for tensor in (*inputs, *outputs))
        row = {"bytes": traffic, "peers": {}, "difference": None}
        try:
            call = self.library.call(case, [t.data_ptr() for t in inputs], [t.data_ptr() for t in outputs])
            workspace = torch.empty(max(call.workspace_bytes(), 1), dtype=torch.uint8, device="cuda")
            variant = self._fastest_variant(call, workspace, case["choose_variant"])

            def ours() -> None:
                call.run_cuda(workspace.data_ptr(), stream(), variant)

            row |= self._times(ours, case, traffic) | {"variant": variant}
        except (GraftError, RuntimeError) as error:
            return row | {"failed": str(error)}
        if self.peers and case["inputs"][0]["dtype"] not in QUANTIZED:
            self._measure_peers(case, row, ours, inputs, outputs)
        return row

    def _fastest_variant(self, call: OperatorCall, workspace: torch.Tensor, choose: bool) -> str:
        """Returns the name of the first CUDA variant that runs the call or, with `choose`, of the fastest variant, as
        TensorRT chooses by timing all variants. Raises GraftError where no variant runs."""
        times: dict[str, float] = {}
        problem: GraftError | None = None
        for variant in call.cuda_variants():
            run = partial(call.run_cuda, workspace.data_ptr(), stream(), variant)
            try:
                first = seconds_of(run)
            except GraftError as error:  # the variant is for another generation of GPUs
                problem = error
                continue
            if not choose:
                return variant
            if times and first > max(NO_CHOICE_SECONDS, NO_CHOICE_FACTOR * min(times.values())):
                continue
            times[variant] = self._seconds(run, repeats=CHOICE_REPEATS)
        if not times:
            raise problem or GraftError("no CUDA variant supports the case")
        return min(times, key=times.__getitem__)

    def _times(self, call: Callable[[], Any], case: dict[str, Any], traffic: int) -> dict[str, Any]:
        seconds = self._seconds(call)
        return {
            "us": 1e6 * seconds,
            "warm_us": 1e6 * self._seconds(call, warm=True) if traffic <= SMALL_BYTES else None,
            "of_copy": traffic / seconds / self.copy,
            "tflop_s": case["operations"] / seconds / 1e12 if case["operations"] else None,
        }

    def _measure_peers(
        self,
        case: dict[str, Any],
        row: dict[str, Any],
        ours: Callable[[], Any],
        stored_inputs: Sequence[torch.Tensor],
        stored_outputs: Sequence[torch.Tensor],
    ) -> None:
        function = peer(case["operator"], case["attributes"])
        compared_with = exact(case["operator"], case["attributes"])
        if function is None or compared_with is None:
            return
        tf32 = bool(case["attributes"].get("allow_tf32", False))
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        x, *rest = (logical(tensor, desc) for tensor, desc in zip(stored_inputs, case["inputs"]))
        tensors = [x, *(tensor.to(x.dtype) if tensor.is_floating_point() else tensor for tensor in rest)]
        if case["operations"] and x.dim() == 4:
            # cuDNN's fastest kernels take channels last.
            tensors = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in tensors]
        try:
            expected = compared_with(*tensors)
            ours()
            row["difference"] = max(
                relative_difference(found_of(stored, desc, wanted), wanted)
                for stored, desc, wanted in zip(
                    stored_outputs, case["outputs"], expected if isinstance(expected, tuple) else (expected,)
                )
            )
        except RuntimeError as error:  # PyTorch has no such kernel, or not enough memory
            row["peers"]["eager"] = {"failed": first_line(error)}
            return
        del expected
        # PyTorch only warns, because it has no deterministic kernel for some operators. Without this call torch.compile
        # does not compute the same bits in every run either.
        torch.use_deterministic_algorithms(is_deterministic(case), warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        for name in self.peers:
            try:
                run = function
                if name == "compiled":
                    torch._dynamo.reset()
                    run = torch.compile(function, dynamic=False)
                row["peers"][name] = self._times(lambda run=run: run(*tensors), case, row["bytes"])
            except Exception as error:  # noqa: BLE001  (a compiler may fail in any way; the other figures stay valid)
                row["peers"][name] = {"failed": first_line(error)}
        torch.use_deterministic_algorithms(False)

    def tidy(self) -> None:
        torch.cuda.empty_cache()


def seconds_of(call: Callable[[], Any]) -> float:
    """Returns the seconds that one call takes, including work that is done only in a first call."""
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def first_line(error: BaseException) -> str:
    """Returns the first line of the error's text, or the first two lines if the first one ends in a colon, as in errors
    of torch.compile."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    return " ".join(line.strip() for line in lines[: 2 if lines[0].endswith(":") else 1])


def storage_shape(desc: dict[str, Any]) -> tuple[int, ...]:
    shape = desc["shape"]
    if desc["layout"] == "hwc8":
        return (shape[0], *shape[2:], -(-shape[1] // 8) * 8)
    if desc["layout"] == "chw32":
        return (shape[0], -(-shape[1] // 32), *shape[2:], 32)
    return tuple(shape)


def random_tensor(desc: dict[str, Any]) -> torch.Tensor:
    shape = storage_shape(desc)
    if desc["dtype"] == "i8":
        return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda")
    return torch.randn(shape, device="cuda").to(TYPES[desc["dtype"]])


def logical(stored: torch.Tensor, desc: dict[str, Any]) -> torch.Tensor:
    """Returns the tensor `stored`, whose memory layout `desc` describes, with the axes N,C,spatial and without the
    channels that pad the layout. The result is a view, except for chw32, where it may be a copy."""
    channels = desc["shape"][1] if len(desc["shape"]) > 1 else 0
    if desc["layout"] == "hwc8":
        return stored.permute(0, 3, 1, 2)[:, :channels]
    if desc["layout"] == "chw32":
        n, groups, height, width, lanes = stored.shape
        return stored.permute(0, 1, 4, 2, 3).reshape(n, groups * lanes, height, width)[:, :channels]
    return stored


def found_of(stored: torch.Tensor, desc: dict[str, Any], expected: torch.Tensor) -> torch.Tensor:
    """Returns the operator's output in the shape of the expected tensor. Where the size depends on data, the output has
    room for the largest size, and its first elements are returned."""
    return logical(stored, desc).flatten()[: expected.numel()].reshape(expected.shape)


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Returns the Euclidean norm of the difference, divided by the norm of the expected tensor unless this is 0."""
    norm = float(expected.float().norm())
    difference = float((found.float() - expected.float()).norm())
    return difference / norm if norm else difference
