# many_machines.py - measures how the calibration of ResNet-50 scales with the processes of a Ray cluster on this machine.
"""Usage: python bench/quantize/many_machines.py [--samples 96] [--runs 3] [--processes 1 2 4]

The network has the architecture of ResNet-50 with seeded weights, and each sample is a file. One process without Ray, and
then clusters of each number of processes, quantize the network; the results must have the same bytes. Prints the median of
the wall time and of the CPU time of the calls, which includes the judgment of the result on one sample in the calling
process. The clusters have started before the time is measured; a first call, which is not measured, starts their
processes. Needs ray, and the package graft on PYTHONPATH.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import graft
import numpy as np
import onnx
import ray
from onnx import numpy_helper

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"


def resnet50() -> onnx.ModelProto:
    """Returns ResNet-50 of the onnx package with initial weights as before training in place of its constants."""
    model = onnx.load(LIGHT)
    random = np.random.default_rng(50)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape, name = constants[node.input[0]], node.output[0]
        if len(shape) > 1:
            values = random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        else:
            values = np.full(shape, 1.0 if name.endswith(("_bn_s_0", "_bn_riv_0")) else 0.0)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of the processes of the cluster so far."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if path.name == str(os.getpid()) or (path / "cmdline").read_bytes().startswith(b"ray::"):
                ticks += sum(map(int, (path / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            continue  # the process has ended
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(call: Callable[[], graft.QuantizeResult], runs: int) -> tuple[str, bytes]:
    """Returns the medians of wall time and CPU time as text, and the model of the last run."""
    times, cpu_times = [], []
    for _ in range(runs):
        begin, cpu_begin = time.perf_counter(), cpu_seconds()
        result = call()
        times.append(time.perf_counter() - begin)
        cpu_times.append(cpu_seconds() - cpu_begin)
    text = f"{statistics.median(times):.1f} s, {statistics.median(cpu_times):.1f} s of the processors"
    return text, result.model.serialize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=96)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(resnet50(), folder / "resnet50.onnx")
        model = graft.convert(folder / "resnet50.onnx", check=False, progress=False).model
        data = folder / "data"
        data.mkdir()
        random = np.random.default_rng(0)
        for i in range(options.samples):
            np.save(data / f"{i:05}.npy", random.normal(0, 1, (1, 3, 224, 224)).astype(np.float32))
        arguments = {"precision": "int8", "data": data, "judged": 1, "progress": False}
        alone, expected = measure(lambda: graft.quantize(model, **arguments), options.runs)
        print(f"{len(os.sched_getaffinity(0))} cores, {options.samples} samples; without Ray: {alone}", flush=True)
        for processes in options.processes:
            ray.init(num_cpus=processes, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            graft.ray.quantize(model, **arguments | {"samples": 2 * processes}, part=1)
            spread, found = measure(lambda: graft.ray.quantize(model, **arguments), options.runs)
            ray.shutdown()
            if found != expected:
                sys.exit(f"{processes} processes: the model has other bytes than that of one process without Ray")
            print(f"{processes} processes: {spread}", flush=True)


if __name__ == "__main__":
    main()
