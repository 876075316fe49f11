# Times the networks of networks.py on a GPU: eager, compiled and as CUDA graphs, with PyTorch's and Graft's operators
# in one run.
"""Usage: python bench/networks_torch/time_networks.py RESULT.json [--only NAME] [--dtype f16|f32] [--commit COMMIT]

Needs PyTorch with CUDA; PYTHONPATH has the package graft. Exit code 1 if an output differs by more than its tolerance.
Compilation takes longest: with --compile-only, several of these at once fill PyTorch's cache for the one that times.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from networks import NETWORKS, image, make

DTYPES = {"f16": torch.float16, "f32": torch.float32}
# Tolerance relative to the largest output, compared with plain PyTorch in f32 without TF32: products have 10 (TF32) or
# 11 bits, over up to 20 layers.
TOLERANCES = {"f16": 2e-2, "f32": 5e-3}
# The timed versions, and the memory format of weights: a convolution with channels-last weights has a channels-last
# output.
VERSIONS = {
    "plain": ("plain", torch.contiguous_format),
    "graft": ("graft", torch.contiguous_format),
    "graft, channels last": ("graft", torch.channels_last),
}
ROUNDS = 7
ROUND_MS = 40.0


def milliseconds(function: Callable[[], Any], count: int) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def median_ms(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Returns the median time of each function in rounds in which all alternate, so that a changing clock affects
    all of them."""
    counts = {}
    for name, function in functions.items():
        for _ in range(3):
            function()
        counts[name] = max(3, int(ROUND_MS / max(milliseconds(function, 3), 1e-3)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            times[name].append(milliseconds(function, counts[name]))
    return {name: statistics.median(each) for name, each in times.items()}


def graph_of(function: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = function()
    return graph.replay, y


def kernels(function: Callable[[], Any], most: int = 12) -> list[dict[str, Any]]:
    """Returns the device time of one call by kernel, longest first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    found = [
        {"kernel": event.key[:120], "count": event.count, "us": round(event.self_device_time_total, 1)}
        for event in profile.key_averages()
        if event.self_device_time_total > 0
    ]
    return sorted(found, key=lambda each: -each["us"])[:most]


def error_of(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).abs().max() / exact.abs().max())


def measure(name: str, dtype: str) -> dict[str, Any]:
    x = image(name, DTYPES[dtype], "cuda")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    exact = make(name, "plain", torch.float32, "cuda")(x.float()).double()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    torch._dynamo.reset()  # code that is compiled below is kept until the end
    functions: dict[str, Callable[[], Any]] = {}
    errors: dict[str, float] = {}
    profiles: dict[str, Any] = {}
    compile_seconds = {}
    keep = []
    for version, (kind, memory_format) in VERSIONS.items():
        network = make(name, kind, DTYPES[dtype], "cuda", memory_format)
        compiled = torch.compile(network, fullgraph=True)
        started = time.monotonic()
        errors[f"{version} compiled"] = error_of(compiled(x), exact)
        compile_seconds[version] = round(time.monotonic() - started, 1)
        errors[f"{version} eager"] = error_of(network(x), exact)
        for mode, run in (("eager", network), ("compiled", compiled)):
            functions[f"{version} {mode}"] = lambda run=run: run(x)
            replay, y = graph_of(functions[f"{version} {mode}"])
            replay()
            torch.cuda.synchronize()
            errors[f"{version} {mode} graph"] = error_of(y, exact)
            functions[f"{version} {mode} graph"] = replay
            keep.append((network, compiled, y))
        profiles[version] = kernels(functions[f"{version} compiled"])
    return {
        "network": name, "dtype": dtype, "shape": list(x.shape), "ms": median_ms(functions), "errors": errors,
        "tolerance": TOLERANCES[dtype], "kernels": profiles, "compile_seconds": compile_seconds,
    }  # fmt: skip


def compile_only(name: str, dtype: str) -> None:
    x = image(name, DTYPES[dtype], "cuda")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    for kind, memory_format in VERSIONS.values():
        torch.compile(make(name, kind, DTYPES[dtype], "cuda", memory_format), fullgraph=True)(x)


def table(results: list[dict[str, Any]]) -> str:
    modes = ["eager", "compiled", "eager graph", "compiled graph"]
    lines = [
        "| network | type | version | eager ms | compiled ms | graph of eager ms | graph of compiled ms | largest error | allowed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        for version in VERSIONS:
            times = " | ".join(f"{each['ms'][f'{version} {mode}']:.3f}" for mode in modes)
            error = max(each["errors"][f"{version} {mode}"] for mode in modes)
            shape = "x".join(map(str, each["shape"]))
            lines.append(
                f"| {each['network']} {shape} | {each['dtype']} | {version} | {times} | {error:.1e} | {each['tolerance']:g} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("--dtype", choices=DTYPES)
    parser.add_argument("--commit", default="")
    parser.add_argument("--compile-only", action="store_true")
    arguments = parser.parse_args()
    results = []
    document = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "commit": arguments.commit,
        "results": results,
    }
    with torch.inference_mode():
        for dtype in [arguments.dtype] if arguments.dtype else DTYPES:
            for name in [arguments.only] if arguments.only else NETWORKS:
                if arguments.compile_only:
                    compile_only(name, dtype)
                    continue
                results.append(measure(name, dtype))
                # keeps the results if a later network fails
                arguments.result.write_text(json.dumps(document, indent=1))
                print(table(results[-1:]), flush=True)
    if arguments.compile_only:
        return 0
    wrong = [
        f"{each['network']} {each['dtype']} {mode}: {error:.2e}, allowed {each['tolerance']}"
        for each in results
        for mode, error in each["errors"].items()
        if not error <= each["tolerance"]
    ]
    print("\n".join(["", table(results), "", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
