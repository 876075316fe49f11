"""Changes valid models in ways that mutations of bytes do not reach: inputs left out, sizes and attributes at their
extremes.

tools/fuzz.py and tests/python/mutated_models/test_mutated_models.py run the models through the Python package in child
processes. A finding is a model that ends a child, that Graft reports as a defect of its own, or that needs more memory
or time than allowed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import onnx

Seed = tuple[str, bytes, str]  # name, content, ending of the file's name

EXTREMES = (
    0,
    1,
    -1,
    2,
    3,
    7,
    100,
    4097,
    65537,
    (1 << 24) + 1,
    (1 << 31) - 1,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    -(1 << 63),
)
SIZES = (0, 1, 2, 3, 7, 1000, 4097, 65537, 1 << 24, 1 << 31, 1 << 40, (1 << 62) + 1)


def node_tests() -> list[Seed]:
    """Returns the models of ONNX's own node tests: every operator, with most of its attributes."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    models = [(case.name, case.model.SerializeToString(), ".onnx") for case in cases if case.model is not None]
    return sorted(models)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.HasField("g") or attribute.graphs else []:
                yield from _graphs(inner)


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    nodes = [node for graph in _graphs(model.graph) for node in graph.node]
    return nodes + [node for function in model.functions for node in function.node]


def leave_out(content: bytes, random_numbers: random.Random) -> bytes:
    """Empties the name of an input or output of a node, or removes it."""
    model = onnx.ModelProto.FromString(content)
    nodes = [node for node in _nodes(model) if node.input or node.output]
    for _ in range(random_numbers.choice((1, 1, 1, 2))):
        if not nodes:
            break
        node = random_numbers.choice(nodes)
        names = node.input if node.input and random_numbers.random() < 0.85 else node.output
        if not names:
            continue
        at = random_numbers.randrange(len(names))
        change = random_numbers.choice(("absent", "absent", "absent", "shorter", "longer", "twice"))
        if change == "absent":
            names[at] = ""
        elif change == "shorter":
            del names[at:]
        elif change == "longer":
            names.extend(["", names[at]] if names is node.input else [f"more{at}"])
        elif names is node.input:
            names[at] = random_numbers.choice([name for each in nodes for name in each.input] or [""])
    return model.SerializeToString()


def change_sizes(content: bytes, random_numbers: random.Random) -> bytes:
    """Changes sizes of inputs, types, and integers in attributes and constants that are sizes, axes or counts."""
    model = onnx.ModelProto.FromString(content)
    changes: list[Callable[[], None]] = []
    for value in [*model.graph.input, *model.graph.output]:
        dims = value.type.tensor_type.shape.dim
        for dim in dims:
            changes.append(lambda dim=dim: setattr(dim, "dim_value", random_numbers.choice(SIZES)))
            changes.append(lambda dim=dim: setattr(dim, "dim_param", random_numbers.choice("abn")))
        changes.append(lambda dims=dims: dims.add(dim_value=random_numbers.choice(SIZES)) and None)
        if dims:
            changes.append(lambda dims=dims: dims.__delitem__(len(dims) - 1))
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.INT:
                changes.append(lambda a=attribute: setattr(a, "i", random_numbers.choice(EXTREMES)))
            if attribute.type == onnx.AttributeProto.INTS:
                changes.append(lambda a=attribute: a.ints.append(random_numbers.choice(EXTREMES)))
                if attribute.ints:
                    at = random_numbers.randrange(len(attribute.ints))
                    changes.append(lambda a=attribute, i=at: a.ints.__setitem__(i, random_numbers.choice(EXTREMES)))
                    changes.append(lambda a=attribute: a.ints.pop() and None)
            changes.append(lambda n=node, a=attribute: n.attribute.remove(a))
    # Integer inputs become constants, which are mostly sizes, axes and counts.
    for value in list(model.graph.input):
        tensor = value.type.tensor_type
        if tensor.elem_type not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            continue
        count = 1
        for dim in tensor.shape.dim:
            count *= max(dim.dim_value, 1)
        if count > 64:
            continue
        changes.append(lambda v=value, n=count: _become_constant(model, v, n, random_numbers))
    for _ in range(random_numbers.choice((1, 1, 2, 3))):
        if changes:
            try:
                random_numbers.choice(changes)()
            except (ValueError, IndexError):  # an earlier change removed the target of this one
                continue
    return model.SerializeToString()


def _become_constant(model: onnx.ModelProto, value: onnx.ValueInfoProto, count: int, numbers: random.Random) -> None:
    if value not in model.graph.input:
        return
    kind = value.type.tensor_type.elem_type
    most = (1 << 31) - 1 if kind == onnx.TensorProto.INT32 else (1 << 63) - 1
    chosen = [max(-most, min(numbers.choice(EXTREMES), most)) for _ in range(count)]
    dims = [max(dim.dim_value, 1) for dim in value.type.tensor_type.shape.dim]
    model.graph.initializer.append(onnx.helper.make_tensor(value.name, kind, dims, chosen))
    model.graph.input.remove(value)


def change_bytes(content: bytes, random_numbers: random.Random) -> bytes:
    """Changes, repeats and removes bytes; for files of any format."""
    data = bytearray(content)
    for _ in range(random_numbers.choice((1, 1, 2, 4))):
        if not data:
            break
        at = random_numbers.randrange(len(data))
        length = random_numbers.choice((1, 2, 8, 64))
        change = random_numbers.randrange(4)
        if change == 0:
            data[at] ^= 1 << random_numbers.randrange(8)
        elif change == 1:
            data[at : at + length] = random_numbers.randbytes(length)
        elif change == 2:
            del data[at : at + length]
        else:
            data[at:at] = data[at : at + length] * random_numbers.choice((1, 3, 20))
    return bytes(data)


MUTATIONS = {"left_out": leave_out, "sizes": change_sizes, "bytes": change_bytes}


@dataclass
class Limits:
    """The limits for a file. The time is the sum over the child and the engines' processes, the memory that of the
    largest of these."""

    seconds: int = 20
    mebibytes: int = 2048


@dataclass
class Finding:
    """A file that exposes a fault, and the reason."""

    name: str
    content: bytes
    why: str


def _use(path: pathlib.Path) -> None:
    """Inspects, converts and verifies a file without TensorRT."""
    import graft

    model = graft.load(path, progress=False)
    graft.inspect(model, judge="rule", progress=False)
    converted = graft.convert(model, engine="openvino", check=False, progress=False)
    graft.verify(model, converted.model, seeds=1, progress=False)


def _processes() -> list[pathlib.Path]:
    """Returns this process and the engines' processes that it started."""
    children = pathlib.Path("/proc/self/task").glob("*/children")
    numbers = [number for each in children for number in each.read_text().split()]
    return [pathlib.Path("/proc", number) for number in ("self", *numbers)]


def _peak_mebibytes() -> float:
    peaks = [0.0]
    for process in _processes():
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmHWM"):
                peaks.append(int(line.split()[1]) / 1024)
    return max(peaks)


def _forget_peaks() -> None:
    for process in _processes():
        (process / "clear_refs").write_text("5")


def _seconds() -> float:
    """Returns the processor time of these processes, including ended ones."""
    ticks = 0
    for process in _processes():
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:13] if process.name != "self" else fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _work(files: list[tuple[str, bytes, str]], first: int, limits: Limits, report: int, folder: pathlib.Path) -> None:
    """Runs files in this process, which may die of one of them; reports each file before it runs."""
    import graft

    faulthandler.disable()  # of the test's process; the child's exit status shows a crash
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for at in range(first, len(files)):
        _, content, ending = files[at]
        path = folder / f"m{ending}"
        path.write_bytes(content)
        os.write(report, json.dumps({"begun": at}).encode() + b"\n")
        _forget_peaks()
        before = _seconds()
        own = resource.getrusage(resource.RUSAGE_SELF)
        most = int(own.ru_utime + own.ru_stime) + limits.seconds + 5
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        why = ""
        try:
            _use(path)
        except graft.Error as error:
            if error.kind == "internal":
                why = f"internal error: {error}"
        except MemoryError:
            pass
        seconds = _seconds() - before
        if not why and seconds > limits.seconds:
            why = f"{seconds:.0f} s of processor time"
        if not why and _peak_mebibytes() > limits.mebibytes:
            why = f"{_peak_mebibytes():.0f} MiB"
        os.write(report, json.dumps({"ended": at, "why": why[:2000]}).encode() + b"\n")


def run(files: list[tuple[str, bytes, str]], limits: Limits | None = None) -> list[Finding]:
    """Runs files with their names and extensions, one after another, in a child that is replaced where it dies."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="graft-fuzz-") as folder:
        return _run_in(pathlib.Path(folder), files, limits)


def _run_in(folder: pathlib.Path, files: list[tuple[str, bytes, str]], limits: Limits) -> list[Finding]:
    findings = []
    first = 0
    while first < len(files):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                _work(files, first, limits, writing, folder)
            except BaseException as error:
                os.write(writing, json.dumps({"failed": repr(error)}).encode() + b"\n")
            os._exit(0)
        os.close(writing)
        begun = first
        is_open = False
        with os.fdopen(reading) as lines:
            for line in lines:
                said = json.loads(line)
                if "failed" in said:
                    findings.append(Finding(files[begun][0], files[begun][1], said["failed"]))
                    is_open = False
                elif "begun" in said:
                    begun, is_open = said["begun"], True
                else:
                    is_open = False
                    if said["why"]:
                        findings.append(Finding(files[begun][0], files[begun][1], said["why"]))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if is_open:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            findings.append(Finding(files[begun][0], files[begun][1], f"ended by {how}"))
        first = begun + 1
    return findings


def mutated(seeds: list[Seed], mutation: str, count: int, seed: int) -> list[tuple[str, bytes, str]]:
    """Returns `count` mutated files, the same ones for the same `seed`; every seed model is used before one is used
    again."""
    numbers = random.Random(seed)
    order = list(seeds)
    numbers.shuffle(order)
    files = []
    for i in range(count):
        name, content, ending = order[i % len(order)]
        files.append((f"{name}-{mutation}-{seed}-{i}{ending}", MUTATIONS[mutation](content, numbers), ending))
    return files


if __name__ == "__main__":
    print(__doc__, file=sys.stderr)
    sys.exit(2)
