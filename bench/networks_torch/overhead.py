# What a call of graft.torch costs on the CPU above the launch of its kernel.
"""Usage: python bench/networks_torch/overhead.py [RESULT.json]

Calls on small tensors, many one after another, by the clock of the host: the launch alone is the extension's own call with
addresses that are ready; compiled is one of eight calls in a compiled function. PyTorch's operators of the same maths stand
beside them.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import graft.torch
import torch
import torch.nn.functional as F
from graft._definitions import DEFINITIONS, arranged
from graft.torch._library import _plan

CALLS = 300
COMPILED = 8  # calls in one compiled function
ROUNDS = 15


def microseconds(function: Callable[[], Any], calls: int = CALLS) -> float:
    times = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):  # fewer than a stream holds before a launch has to wait
            function()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(times[1:])


def measure(name: str, tensors: list[Any], attributes: dict[str, Any], plain: Callable[[], Any]) -> dict[str, float]:
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

    row = {"launch": microseconds(lambda: plan.run_cuda(addresses, workspace, stream))}
    with torch.inference_mode():
        row["inference_mode"] = microseconds(call)
    with torch.no_grad():
        row["no_grad"] = microseconds(call)
        torch._dynamo.reset()  # for every operator compiles the same function anew
        copies = [tensors[0].clone() for _ in range(COMPILED)]
        compiled = torch.compile(lambda xs: [function(x, *tensors[1:], **attributes) for x in xs], fullgraph=True)
        row["compiled"] = microseconds(lambda: compiled(copies), CALLS // COMPILED) / COMPILED
        row["dispatcher"] = microseconds(lambda: operator(*tensors, **attributes))
    row["grad_mode"] = microseconds(call)
    for tensor in tensors:
        tensor.requires_grad_()
    row["requires_grad"] = microseconds(call)
    for tensor in tensors:
        tensor.requires_grad_(False)
    row["plain_pytorch"] = microseconds(plain)
    print(f"{name:24s} " + "  ".join(f"{key} {value:6.2f}" for key, value in row.items()), flush=True)
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
    results = {name: measure(name, *call) for name, call in calls.items()}
    text = json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "us": results}, indent=1)
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
