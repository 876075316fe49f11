#!/usr/bin/env python3
# run_canary.py: builds model.onnx with the TensorRT that is installed here, and names the first node that is wrong.
"""Builds model.onnx with the installed TensorRT, and names the first node that computes wrongly.

Needs NumPy, TensorRT's Python package (tensorrt or tensorrt_rtx), and PyTorch or cuda-python for GPU memory.

The network is first built with its own outputs only, and run on the inputs in this folder. If an output differs from
the CPU's, the inner tensors become outputs as well: the first wrong tensor in the order of computation has correct
inputs. Outputs keep TensorRT from fusing nodes. If all tensors are correct as outputs, tensors are removed from the
outputs again, to find the smallest range of inner tensors with which the network is wrong.

Exit code 0: correct. 1: wrong, see canary_report.json. 2: TensorRT refuses the network, or a requirement is missing.
"""

import argparse
import dataclasses
import importlib
import json
import os
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "BF16": np.uint16,  # NumPy has no bfloat16: the bits
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}
# The error allowed for a build with coarser arithmetic than the model's: 16 epsilon, relative to an element plus the
# largest element.
COARSER = {"typed": 0.0, "tf32": 16 * 2.0**-10, "fp16": 16 * 2.0**-10, "bf16": 16 * 2.0**-7}


class RefusedError(Exception):
    """TensorRT refuses the network, or a requirement is missing."""


class NotBuiltError(RefusedError):
    """The parser accepts the network, but the builder refuses it."""


class TorchMemory:
    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RefusedError("PyTorch finds no GPU")
        self.torch = torch
        self.stream = torch.cuda.Stream()
        self.handle = self.stream.cuda_stream

    def allocate(self, size):
        tensor = self.torch.empty(max(size, 1), dtype=self.torch.uint8, device="cuda")
        return tensor, tensor.data_ptr()

    def upload(self, block, array):
        block[: array.nbytes].copy_(self.torch.from_numpy(array.reshape(-1).view(np.uint8).copy()))
        self.torch.cuda.synchronize()

    def download(self, block, array):
        array.reshape(-1).view(np.uint8)[:] = block[: array.nbytes].cpu().numpy()

    def wait(self):
        self.stream.synchronize()

    def free(self, block):
        """Does nothing: PyTorch frees the memory with its last reference."""


class CudaMemory:
    def __init__(self):
        try:
            self.cuda = importlib.import_module("cuda.bindings.runtime")
        except ImportError:
            self.cuda = importlib.import_module("cuda.cudart")  # cuda-python before 12.6
        self.handle = self.call("cudaStreamCreate")

    def call(self, name, *arguments):
        code, *results = getattr(self.cuda, name)(*arguments)
        if int(code) != 0:
            raise RefusedError(f"{name}: {code}")
        return results[0] if results else None

    def allocate(self, size):
        pointer = self.call("cudaMalloc", max(size, 1))
        return pointer, int(pointer)

    def upload(self, block, array):
        kind = self.cuda.cudaMemcpyKind.cudaMemcpyHostToDevice
        self.call("cudaMemcpy", block, array.ctypes.data, array.nbytes, kind)

    def download(self, block, array):
        kind = self.cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self.call("cudaMemcpy", array.ctypes.data, block, array.nbytes, kind)

    def wait(self):
        self.call("cudaStreamSynchronize", self.handle)

    def free(self, block):
        self.call("cudaFree", block)


def open_memory(wanted):
    kinds = {"torch": TorchMemory, "cuda-python": CudaMemory}
    reasons = []
    for name in kinds if wanted == "auto" else [wanted]:
        try:
            return kinds[name]()
        except (ImportError, RefusedError) as error:
            reasons.append(f"{name}: {error}")
    raise RefusedError(
        f"cannot allocate GPU memory: {'; '.join(reasons)}\nInstall PyTorch with CUDA, or: pip install cuda-python"
    )


def import_tensorrt(wanted):
    names = ["tensorrt", "tensorrt_rtx"] if wanted == "auto" else [wanted]
    reasons = []
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            reasons.append(str(error))
    raise RefusedError(
        f"found no TensorRT for {sys.executable}: {'; '.join(reasons)}\nInstall it for this Python, or use another "
        "Python"
    )


def called(value):
    """Returns a value that is a method in some bindings and an attribute in others."""
    return value() if callable(value) else value


@dataclasses.dataclass
class Finding:
    """A tensor that differs from the CPU's."""

    tensor: str
    node: str
    operator: str
    output: bool
    run: int
    problem: str  # "shape", "not finite", "numbers"
    wrong: int = 0
    compared: int = 0
    index: list = dataclasses.field(default_factory=list)  # index of the element with the largest error
    expected: object = None
    found: object = None
    allowed: object = None

    def text(self):
        what = f"{self.tensor!r}, by node {self.node!r} ({self.operator}), run {self.run}"
        if self.problem == "shape":
            return f"{what}: its shape is {self.found}, but {self.expected} on the CPU"
        share = f"{self.wrong} of {self.compared} compared elements are wrong"
        limit = "" if self.allowed is None else f", allowed difference {self.allowed:.6g}"
        return f"{what}: {share}; {self.index} is {self.found:.6g}, but {self.expected:.6g} on the CPU{limit}"


class Tensor:
    """The CPU's values of one tensor."""

    def __init__(self, facts, expected, allowed, coarser):
        self.facts = facts
        self.name = facts["name"]
        self.is_output = facts["output"]
        self.expected = [run[self.name].astype(np.float64) for run in expected]
        limits = [run[self.name].astype(np.float64) for run in allowed]
        self.allowed = [np.abs(run) for run in limits]
        # Rounding alone makes the elements with a negative limit NaN, infinite or another integer: a number beyond the
        # limit, NaN and infinity show nothing there.
        self.unstable = [np.signbit(run) for run in limits]
        self.undecided = [0] * len(limits)  # number of such elements in the last build, by run
        count, elements = facts["samples"], facts["elements"]
        sample = np.arange(count, dtype=np.int64)
        self.places = sample * (elements // max(count, 1)) + sample * (elements % max(count, 1)) // max(count, 1)
        if coarser and facts["type"] in ("f16", "bf16", "f32", "f64"):
            for expected_run, allowed_run in zip(self.expected, self.allowed):
                finite = np.where(np.isfinite(expected_run), np.abs(expected_run), 0)
                np.maximum(allowed_run, coarser * (finite + finite.max(initial=0)), out=allowed_run)

    def judge(self, run, array):
        """Returns a Finding if the array differs from the CPU's values, otherwise None."""
        facts = {
            "tensor": self.name,
            "node": self.facts["node"],
            "operator": self.facts["operator"],
            "output": self.is_output,
            "run": run,
        }
        if list(array.shape) != self.facts["shape"]:
            return Finding(**facts, problem="shape", expected=self.facts["shape"], found=list(array.shape))
        found = array.reshape(-1)[self.places].astype(np.float64)
        expected, allowed = self.expected[run], self.allowed[run]
        finite = np.isfinite(found) & np.isfinite(expected)
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        with np.errstate(over="ignore"):
            off = np.where(finite, np.abs(np.where(finite, found, 0) - np.where(finite, expected, 0)), np.inf)
        off[same] = 0
        snr = self.facts["tolerance"]["snr_db"]
        if snr is None:
            beyond = ~same & ~(finite & (off <= allowed))
            undecided = beyond & self.unstable[run]
        else:
            # The squares of large numbers exceed f64, so all are divided by the largest.
            left, right = expected[finite], found[finite]
            largest = max(np.abs(left).max(initial=0), np.abs(right).max(initial=0)) or 1.0
            noise = np.sum((left / largest - right / largest) ** 2)
            signal = np.sum((left / largest) ** 2)
            beyond = ~same & ~(finite & (noise <= signal * 10 ** (-snr / 10)))
            undecided = beyond & ~finite & self.unstable[run]
        self.undecided[run] = int(undecided.sum())
        wrong = beyond & ~undecided
        if not wrong.any():
            return None
        # The worst element is NaN or infinite if any wrong one is; otherwise it exceeds its limit the most.
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(wrong, np.nan_to_num(off / allowed, nan=np.inf), -1)
        worst = int(np.argmax(excess))
        return Finding(
            **facts,
            problem="numbers" if finite[wrong].all() else "not finite",
            wrong=int(wrong.sum()),
            compared=len(found),
            index=[int(i) for i in np.unravel_index(int(self.places[worst]), self.facts["shape"])],
            expected=float(expected[worst]),
            found=float(found[worst]),
            allowed=float(allowed[worst]) if snr is None else None,
        )


class Canary:
    def __init__(self, options):
        self.options = options
        self.manifest = json.loads((HERE / "canary.json").read_text())
        self.runs = range(self.manifest["runs"])
        self.inputs = [dict(np.load(HERE / f"inputs_{run}.npz")) for run in self.runs]
        expected = [np.load(HERE / f"expected_{run}.npz") for run in self.runs]
        allowed = [np.load(HERE / f"allowed_{run}.npz") for run in self.runs]
        coarser = COARSER[options.precision]
        self.tensors = [Tensor(facts, expected, allowed, coarser) for facts in self.manifest["tensors"]]
        self.by_name = {tensor.name: tensor for tensor in self.tensors}
        self.builds = 0
        self.memory = self.runtime = None
        self.trt = import_tensorrt(options.tensorrt)
        self.errors = errors = []
        severity = self.trt.ILogger.Severity
        serious = (severity.ERROR, severity.INTERNAL_ERROR)

        class Logger(self.trt.ILogger):
            def __init__(self):
                super().__init__()

            def log(self, level, message):
                if level in serious:
                    errors.append(message)
                if options.verbose or (level == severity.WARNING and options.warnings):
                    print(f"  {message}", file=sys.stderr)

        self.logger = Logger()
        self.builder = self.trt.Builder(self.logger)
        if hasattr(self.trt, "init_libnvinfer_plugins"):
            self.trt.init_libnvinfer_plugins(self.logger, "")
        for library in self.manifest["plugin_libraries"]:
            if self.trt.get_plugin_registry().load_library(str(HERE / library)) is None:
                raise RefusedError(f"{library}: {self.version} refuses to load it{self.last_error()}")

    @property
    def version(self):
        return f"{self.trt.__name__} {self.trt.__version__}"

    def last_error(self):
        return f": {self.errors[-1]}" if self.errors else ""

    def network_flags(self):
        """Returns the flag for a strongly typed network, which keeps the model's types.

        TensorRT 11 and TensorRT-RTX always build strongly typed networks.
        """
        flag = getattr(self.trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
        is_typed = self.options.precision in ("typed", "tf32")
        return 1 << int(flag) if is_typed and flag is not None else 0

    def parse(self):
        """Returns the network and its parser, which has to outlive the network."""
        network = self.builder.create_network(self.network_flags())
        parser = self.trt.OnnxParser(network, self.logger)
        if parser.parse_from_file(str(HERE / self.manifest["model"])):
            return network, parser
        reasons = []
        for number in range(parser.num_errors):
            error = parser.get_error(number)
            name, operator = called(getattr(error, "node_name", "")), called(getattr(error, "node_operator", ""))
            node = f"node {name!r} ({operator}): " if operator else ""
            reasons.append(f"{node}{called(error.desc)}")
        raise RefusedError(
            f"the parser of {self.version} refuses the network: {'; '.join(reasons) or self.last_error()}"
        )

    @staticmethod
    def tensors_of(network):
        layers = [network.get_layer(number) for number in range(network.num_layers)]
        every = [layer.get_output(number) for layer in layers for number in range(layer.num_outputs)]
        return {tensor.name: tensor for tensor in every if tensor is not None}

    def inner_tensors(self):
        """Returns the names of inner tensors that can become outputs, and of those that cannot."""
        network, _parser = self.parse()
        there = self.tensors_of(network)
        names = [tensor.name for tensor in self.tensors if not tensor.is_output]
        marked = [name for name in names if name in there and not getattr(there[name], "is_shape_tensor", False)]
        return marked, [name for name in names if name not in marked]

    def configure(self, network):
        trt = self.trt
        config = self.builder.create_builder_config()
        precision = self.options.precision
        tf32 = getattr(trt.BuilderFlag, "TF32", None)
        if tf32 is not None:
            (config.set_flag if precision == "tf32" else config.clear_flag)(tf32)
        if precision in ("fp16", "bf16"):
            flag = getattr(trt.BuilderFlag, precision.upper(), None)
            if flag is None:
                raise RefusedError(
                    f"--precision {precision}: {self.version} supports only the types of the model\nCreate such a "
                    f"model with: graft quantize --precision {precision.replace('fp', 'f')}"
                )
            config.set_flag(flag)
        profile = self.builder.create_optimization_profile()
        is_needed = False
        for number in range(network.num_inputs):
            tensor = network.get_input(number)
            given = [np.asarray(inputs[tensor.name]) for inputs in self.inputs]
            if getattr(tensor, "is_shape_tensor", False):
                values = np.stack([array.reshape(-1) for array in given])
                lowest, highest = values.min(axis=0).tolist(), values.max(axis=0).tolist()
                profile.set_shape_input(tensor.name, lowest, highest, highest)
                is_needed = True
            if any(size < 0 for size in tensor.shape):
                shapes = np.array([array.shape for array in given])
                lowest, highest = tuple(shapes.min(axis=0).tolist()), tuple(shapes.max(axis=0).tolist())
                profile.set_shape(tensor.name, lowest, highest, highest)
                is_needed = True
        if is_needed:
            config.add_optimization_profile(profile)
        return config

    def build(self, marked):
        """Builds an engine that also returns the marked tensors."""
        self.builds += 1
        network, _parser = self.parse()
        there = self.tensors_of(network)
        for name in marked:
            network.mark_output(there[name])
        plan = self.builder.build_serialized_network(network, self.configure(network))
        if plan is None:
            raise NotBuiltError(f"{self.version} cannot build the network{self.last_error()}")
        return plan

    def run(self, marked):
        """Returns the wrong tensors of an engine that also returns the marked ones, in the order of computation."""
        plan = self.build(marked)
        if self.memory is None:
            self.memory = open_memory(self.options.memory)
            self.runtime = self.trt.Runtime(self.logger)
        engine = self.runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise RefusedError(f"{self.version} cannot load the engine that it built{self.last_error()}")
        context = engine.create_execution_context()
        found = {}
        for run in self.runs:
            for name, array in self.execute(engine, context, self.inputs[run]).items():
                finding = self.by_name[name].judge(run, array) if name in self.by_name else None
                if finding is not None:
                    found.setdefault(name, finding)
        findings = [found[tensor.name] for tensor in self.tensors if tensor.name in found]
        first = f"wrong, first {findings[0].tensor!r}" if findings else "right"
        print(f"build {self.builds}, {len(marked)} inner tensors marked as outputs: {first}", flush=True)
        return findings

    def execute(self, engine, context, inputs):
        trt = self.trt
        names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
        taken = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
        arrays, blocks = {}, {}
        try:
            for name in taken + [name for name in names if name not in taken]:
                kind = TYPES.get(engine.get_tensor_dtype(name).name)
                if kind is None:
                    raise RefusedError(f"tensor {name!r} has the unsupported type {engine.get_tensor_dtype(name).name}")
                if name in taken:
                    given = np.asarray(inputs[name])
                    # NumPy's files store bf16 as two opaque bytes.
                    array = given.view(np.uint16) if given.dtype.kind == "V" else given.astype(kind, copy=False)
                    arrays[name] = np.ascontiguousarray(array).reshape(given.shape)
                    context.set_input_shape(name, given.shape)
                else:
                    shape = tuple(context.get_tensor_shape(name))
                    if any(size < 0 for size in shape):
                        raise RefusedError(
                            f"output {name!r}: its size depends on data, which this script does not support: {shape}"
                        )
                    arrays[name] = np.zeros(shape, kind)
                if engine.get_tensor_location(name) == trt.TensorLocation.HOST:
                    context.set_tensor_address(name, arrays[name].ctypes.data)
                    continue
                blocks[name], address = self.memory.allocate(arrays[name].nbytes)
                if name in taken:
                    self.memory.upload(blocks[name], arrays[name])
                context.set_tensor_address(name, address)
            if not context.execute_async_v3(self.memory.handle):
                raise RefusedError(f"running the engine failed{self.last_error()}")
            self.memory.wait()
            for name, block in blocks.items():
                if name not in taken:
                    self.memory.download(block, arrays[name])
        finally:
            for block in blocks.values():
                self.memory.free(block)
        results = {}
        for name in names:
            if name not in taken:
                is_bf16 = engine.get_tensor_dtype(name).name == "BF16"
                wide = (arrays[name].astype(np.uint32) << 16).view(np.float32) if is_bf16 else arrays[name]
                results[name] = wide.reshape(arrays[name].shape)
        return results

    def buildable(self, names):
        """Returns the tensors that the builder can return: it refuses some tensors as outputs."""
        if not names:
            return []
        try:
            self.build(names)
            return names
        except NotBuiltError:
            middle = len(names) // 2
            return [] if not middle else self.buildable(names[:middle]) + self.buildable(names[middle:])


def groups_of(names, most):
    most = most or max(len(names), 1)
    return [names[begin : begin + most] for begin in range(0, len(names), most)] or [[]]


def find_first(canary, report):
    """Returns the first wrong tensor with inner tensors as outputs, or None if all tensors are correct then."""
    names, report["not_in_network"] = canary.inner_tensors()
    wrong_outputs = []
    for group in groups_of(names, canary.options.most):
        try:
            findings = canary.run(group)
        except NotBuiltError:
            usable = canary.buildable(group)
            report["not_marked"] += [name for name in group if name not in usable]
            names = [name for name in names if name not in report["not_marked"]]
            findings = canary.run(usable)
        if any(not finding.output for finding in findings):
            return findings[0], names
        if findings:
            wrong_outputs.append(findings[0])
    if canary.options.most and len(names) > canary.options.most:
        raise RefusedError(
            "an output is wrong, but no inner tensor is wrong with --most of them marked at a time\nOmit --most to "
            "examine fused nodes"
        )
    return (wrong_outputs[0] if wrong_outputs else None), names


def find_fusion(canary, names):
    """Returns the smallest range of tensors with which the network is wrong if they are not outputs, and the Finding.

    Each step keeps a range with which the network was wrong. `begin` is moved as late, then `end` as early as possible.
    """
    last = None

    def is_wrong(begin, end):
        nonlocal last
        findings = canary.run(names[:begin] + names[end:])
        last = findings[0] if findings else last
        return bool(findings)

    begin, right = 0, len(names)
    while right - begin > 1:
        middle = (begin + right) // 2
        if is_wrong(middle, len(names)):
            begin = middle
        else:
            right = middle
    end, right = len(names), begin
    while end - right > 1:
        middle = (end + right) // 2
        if is_wrong(begin, middle):
            end = middle
        else:
            right = middle
    if last is None:  # no smaller range is wrong
        last = canary.run([])[0]
    return names[begin:end], last


def write_whole(path, text):
    """Writes a file at once. Replaces a symbolic link instead of following it, because it may come from other files."""
    if path.exists() and not path.is_file():
        path.write_text(text)  # a device or a pipe
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with temporary.open("x") as file:
        file.write(text)
    temporary.replace(path)


def search(canary, report):
    """Fills in the report, and returns the exit code."""
    outputs = canary.run([])
    if not outputs:
        report["verdict"] = "good"
        compared = [tensor for tensor in canary.tensors if tensor.is_output]
        report["message"] = f"good: {len(compared)} outputs in {len(canary.runs)} runs match the CPU"
        report["undecided"] = [
            {"tensor": tensor.name, "elements": sum(tensor.undecided)} for tensor in compared if any(tensor.undecided)
        ]
        for each in report["undecided"]:
            report["message"] += (
                f"\nNot decided: {each['elements']} elements of {each['tensor']!r} differ where rounding alone makes them "
                "NaN, infinite or another integer on the CPU, so they are neither right nor wrong; pass real inputs with "
                "--data to graft canary"
            )
        return 0
    report["outputs"] = [dataclasses.asdict(finding) for finding in outputs]
    first, names = find_first(canary, report)
    if first is not None:
        report["verdict"] = "wrong"
        report["first"] = dataclasses.asdict(first)
        report["message"] = f"wrong: the first wrong tensor is {first.text()}"
        return 1
    inside, last = find_fusion(canary, names)
    facts = [canary.by_name[name].facts for name in [*inside, last.tensor]]
    nodes = [{"node": each["node"], "operator": each["operator"]} for each in facts]
    report["verdict"] = "fused"
    report["fusion"] = {"tensors": inside, "nodes": nodes, "wrong": dataclasses.asdict(last)}
    listed = ", ".join(f"{each['node']!r} ({each['operator']})" for each in nodes)
    report["message"] = (
        f"wrong: TensorRT fuses nodes wrongly, from {facts[0]['node']!r} to {last.node!r}: {listed}\nIf "
        f"{', '.join(map(repr, inside))} is not an output, this tensor is wrong: {last.text()}\nIf every inner tensor "
        "is an output, which prevents fusion, all tensors are correct"
    )
    return 1


def plain(value):
    """Returns a value in which NaN and infinities are strings, because JSON does not support them."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorrt", choices=["auto", "tensorrt", "tensorrt_rtx"], default="auto")
    parser.add_argument("--memory", choices=["auto", "torch", "cuda-python"], default="auto")
    parser.add_argument(
        "--precision",
        choices=list(COARSER),
        default="typed",
        help="precision of the build. typed: the model's types, f32 without TF32; the other values widen the "
        "tolerances",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=0,
        metavar="N",
        help="maximum number of inner tensors to return at a time (default: all)",
    )
    parser.add_argument(
        "--parse-only", action="store_true", help="only check whether the parser accepts the network; needs no GPU"
    )
    parser.add_argument("--report", type=pathlib.Path, default=HERE / "canary_report.json", metavar="FILE")
    parser.add_argument("--warnings", action="store_true", help="show TensorRT's warnings")
    parser.add_argument("--verbose", action="store_true", help="show all messages of TensorRT")
    options = parser.parse_args()
    report = {
        "schema": "graft.canary.report/1",
        "verdict": "refused",
        "message": "",
        "tensorrt": None,
        "precision": options.precision,
        "builds": 0,
        "first": None,
        "fusion": None,
        "outputs": [],
        "undecided": [],
        "not_in_network": [],
        "not_marked": [],
    }
    canary = None
    try:
        canary = Canary(options)
        report["tensorrt"] = canary.version
        if options.parse_only:
            names, missing = canary.inner_tensors()
            print(
                f"{canary.version} accepts the network; {len(names)} inner tensors can be returned, {len(missing)} "
                "cannot"
            )
            return 0
        code = search(canary, report)
    except RefusedError as error:
        report["message"] = str(error)
        code = 2
    report["builds"] = canary.builds if canary else 0
    write_whole(options.report, json.dumps(plain(report), indent=2) + "\n")
    print(report["message"], file=sys.stderr if code == 2 else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
