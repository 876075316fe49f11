# Measures the CPU time of a call of graft.torch, apart from the launch of its kernel.
"""Usage: python bench/networks_torch/overhead.py [RESULT.json]

Times many successive calls on small tensors by the clock of the host. "launch" is the extension's own call with
prepared addresses; "compiled" is one of eight calls in a compiled function. PyTorch's operators of the same maths are
measured as well.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import graft.torch
import torch
import torch.nn.functional as F
from graft._definitions import DEFINITIONS, arranged
from graft.torch._library import _plan

CALLS = 300  # fewer than a stream holds before a launch has to wait
COMPILED = 8  # calls in one compiled function
ROUNDS = 40  # rounds in which all ways of all operators alternate

# A way to call: PyTorch's mode, the function, and the number of operators that one call runs.
Way = tuple[Callable[[], AbstractContextManager[Any]], Callable[[], Any], int]


def microseconds(way: Way) -> float:
    mode, function, operators = way
    calls = CALLS // operators
    torch.cuda.synchronize()
    with mode():
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) / calls / operators * 1e6


def quartile(times: Iterable[float]) -> float:
    """Returns the first quartile: other load halves the processor's speed for seconds at a time, also for PyTorch's
    own operators."""
    return statistics.quantiles(times, n=4)[0]


def ways_of(name: str, tensors: list[Any], attributes: dict[str, Any], plain: Callable[[], Any]) -> dict[str, Way]:
    definition = DEFINITIONS[name]
    values = definition.convert([attributes.get(info.name, info.default) for info in definition.attributes])
    plan = _plan(definition, *arranged(definition, tensors), values)
    y = torch.empty(plan.output_shapes[0], device="cuda")
    workspace = torch.empty(max(plan.workspace_bytes, 1), dtype=torch.uint8, device="cuda").data_ptr()
    addresses = [*(each.data_ptr() for each in tensors), y.data_ptr()]
    stream = torch.cuda.current_stream().cuda_stream
    function, operator = getattr(graft.torch, name), getattr(torch.ops.graft, name).default

    def call() -> Any:
        return function(*tensors, **attributes)

    def calls_in_one(xs: list[Any]) -> list[Any]:
        return [function(x, *tensors[1:], **attributes) for x in xs]

    # Compiled code belongs to the code object, and a code object shared by all operators would exceed the limit of
    # versions.
    calls_in_one.__code__ = calls_in_one.__code__.replace(co_name=f"calls_of_{name}")
    copies = [tensors[0].clone() for _ in range(COMPILED)]
    compiled = torch.compile(calls_in_one, fullgraph=True)
    parameters = [each.clone().requires_grad_() for each in tensors]
    return {
        "launch": (nullcontext, lambda: plan.run_cuda(addresses, workspace, stream), 1),
        "inference_mode": (torch.inference_mode, call, 1),
        "no_grad": (torch.no_grad, call, 1),
        "compiled": (torch.no_grad, lambda: compiled(copies), COMPILED),
        "dispatcher": (torch.no_grad, lambda: operator(*tensors, **attributes), 1),
        "grad_mode": (nullcontext, call, 1),
        "requires_grad": (nullcontext, lambda: function(*parameters, **attributes), 1),
        "plain_pytorch": (nullcontext, plain, 1),
    }


def row_of(times: dict[str, list[float]]) -> dict[str, float]:
    row = {way: quartile(each) for way, each in times.items()}
    row["above_launch"] = quartile(
        full - launch for full, launch in zip(times["inference_mode"], times["launch"], strict=True)
    )
    return {key: round(value, 2) for key, value in row.items()}


def main() -> None:
    x = torch.randn(1, 16, 8, 8, device="cuda")
    c = torch.ones(16, device="cuda")
    w = torch.randn(16, 16, 3, 3, device="cuda")
    calls: dict[str, tuple[list[Any], dict[str, Any], Callable[[], Any]]] = {
        "leaky_relu": ([x], {"alpha": 0.1}, lambda: F.leaky_relu(x, 0.1)),
        "l2_normalize": ([x], {"axes": [1]}, lambda: F.normalize(x, dim=1)),
        "l2norm_helper": ([x], {"op_type": 1}, lambda: x.clamp(min=0.1)),
        "instance_norm": ([x, c, c], {}, lambda: F.instance_norm(x, weight=c, bias=c)),
        "convolution": ([x, w, c], {"pad": [1, 1]}, lambda: F.conv2d(x, w, c, padding=1)),
        "upsampling": ([x], {"scales": [2.0]}, lambda: F.interpolate(x, scale_factor=2, mode="nearest")),
        "padding": (
            [x],
            {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "reflect"},
            lambda: F.pad(x, (1, 1, 1, 1), mode="reflect"),
        ),
        "spatial_pyramid_pooling": ([x], {"levels": [1]}, lambda: F.adaptive_max_pool2d(x, 1)),
        "normalize": ([x, c], {}, lambda: F.normalize(x, dim=1) * c.reshape(1, 16, 1, 1)),
    }
    ways = {name: ways_of(name, *call) for name, call in calls.items()}
    times: dict[str, dict[str, list[float]]] = {name: {way: [] for way in each} for name, each in ways.items()}
    for number in range(ROUNDS + 1):
        for name, each in ways.items():
            for key, way in each.items():
                took = microseconds(way)
                if number > 0:
                    times[name][key].append(took)
    results = {name: row_of(each) for name, each in times.items()}
    for name, row in results.items():
        print(f"{name:24s} " + "  ".join(f"{key} {value:6.2f}" for key, value in row.items()))
    text = json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "us": results}, indent=1)
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
