# Writes docs/networks_on_gpu.md from the results of time_networks.py and overhead.py.
"""Usage: python bench/networks_torch/document.py [--networks NETWORKS.json] [--overhead OVERHEAD.json] --commit COMMIT

The page keeps its present content for an omitted file.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = ("plain", "graft", "graft, channels last")
MODES = ("eager", "compiled", "eager graph", "compiled graph")
BEST = 5  # number of kernels of a version that the page names
CALLS = {
    "launch": "launch alone",
    "inference_mode": "inference mode",
    "above_launch": "of it above the launch",
    "no_grad": "no_grad",
    "grad_mode": "gradients on, none needed",
    "dispatcher": "torch.ops, no_grad",
    "compiled": "compiled, one of 8",
    "requires_grad": "with gradients",
    "plain_pytorch": "PyTorch, same maths",
}

CALLS_TITLE = "## What a call costs the processor"

HEAD = """<!-- Written by bench/networks_torch/document.py from the results of time_networks.py and overhead.py. -->
# Whole networks on a GPU

{device}, PyTorch {torch}, commit {commit}. Four networks (`bench/networks_torch/networks.py`) with weights from a seed, each in
versions with the same weights:

- *plain*: PyTorch alone. Compiled, it keeps images channels-last from one convolution to the next.
- *graft*: Graft's operators, convolutions too.
- *graft, channels last*: the same after `network.to(memory_format=torch.channels_last)`.

Milliseconds of a call, the median of 7 rounds in which all versions of a network take turns. *Eager* and *compiled*
(`torch.compile`, fullgraph) include what the processor does; *graph* replays a CUDA graph of either, and is what the GPU needs.
The error is the largest of all four ways, against plain PyTorch in f32 without TF32, of the largest output; f32 multiplies in
TF32 in all versions. Graft's fastest way is bold where it is not slower than the fastest of plain PyTorch.

"""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def networks(results: list[dict[str, Any]]) -> str:
    rows = []
    for each in results:
        plain = min(each["ms"][f"plain {mode}"] for mode in MODES)
        for version in VERSIONS:
            times = [each["ms"][f"{version} {mode}"] for mode in MODES]
            cells = [
                f"**{ms:.3f}**" if version != "plain" and ms == min(times) and ms <= plain else f"{ms:.3f}"
                for ms in times
            ]
            error = max(each["errors"][f"{version} {mode}"] for mode in MODES)
            name = f"{each['network']} {'x'.join(map(str, each['shape']))}"
            rows.append([name, each["dtype"], version, *cells, f"{error:.1e}", f"{each['tolerance']:g}"])
    head = [
        "network",
        "type",
        "version",
        "eager",
        "compiled",
        "graph of eager",
        "graph of compiled",
        "error",
        "allowed",
    ]
    return table(head, rows)


def kernels(results: list[dict[str, Any]]) -> str:
    rows = []
    for each in results:
        for version in VERSIONS:
            found = each["kernels"][version]
            names = "; ".join(f"{k['us']:g} in {k['count']} x `{short(k['kernel'])}`" for k in found[:BEST])
            rows.append([each["network"], each["dtype"], version, f"{sum(k['us'] for k in found):.0f}", names])
    return table(["network", "type", "version", "us of the 12 longest", "longest"], rows)


def short(name: str) -> str:
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return name.split("(")[0].replace("|", "")[:64]


def overhead(us: dict[str, dict[str, float]]) -> str:
    rows = [[name, *(f"{each[column]:.1f}" for column in CALLS)] for name, each in us.items()]
    return table(["operator", *CALLS.values()], rows)


def networks_text(timed: dict[str, Any], commit: str) -> str:
    notes = (pathlib.Path(__file__).parent / "notes.md").read_text()
    text = HEAD.format(device=timed["device"], torch=timed["torch"], commit=commit) + networks(timed["results"])
    text += "\n" + notes + "\n## Kernels\n\nOf one call of the compiled version, by PyTorch's profiler.\n\n"
    return text + kernels(timed["results"]) + "\n"


def overhead_text(calls: dict[str, Any], commit: str) -> str:
    text = f"{CALLS_TITLE}\n\n{calls['device']}, PyTorch {calls['torch']}, commit {commit}. Microseconds of a call on a small"
    text += " f32 tensor, one after another; the fastest quartile of 40 rounds in which all take turns."
    return f"{text}\n\n{overhead(calls['us'])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=pathlib.Path)
    parser.add_argument("--overhead", type=pathlib.Path)
    parser.add_argument("--commit", required=True)
    arguments = parser.parse_args()
    page = ROOT / "docs" / "networks_on_gpu.md"
    first, second = page.read_text().split(CALLS_TITLE)
    second = CALLS_TITLE + second
    if arguments.networks is not None:
        first = networks_text(json.loads(arguments.networks.read_text()), arguments.commit)
    if arguments.overhead is not None:
        second = overhead_text(json.loads(arguments.overhead.read_text()), arguments.commit)
    page.write_text(first + second)


if __name__ == "__main__":
    main()
