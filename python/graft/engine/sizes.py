"""Reads the types and sizes of a network's tensors, which Graft compares with those that ONNX defines. The commands
`build` and `trials` use this module in a worker."""

from __future__ import annotations

import collections
from typing import Any

from graft.engine.parsing import dtype_name
from graft.engine.session import Session
from graft.engine.shapes import ShapeRange


def output_types(network: Any) -> dict[str, str]:
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    return {output.name: dtype_name(output.dtype) for output in outputs}


def tensor_sizes(session: Session, network: Any, profiles: list[dict[str, ShapeRange]]) -> list[dict[str, Any]]:
    """Returns the sizes of the network's tensors for the optimum, the smallest and the largest sizes of each profile,
    or once where no input is dynamic.

    TensorRT infers them without a GPU. The call changes the sizes of the network's inputs, so it follows the build."""
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    dynamic = {each.name: each for each in inputs if -1 in tuple(each.shape)}
    cases: list[dict[str, tuple[int, ...]]] = []
    for ranges in profiles or [{}]:
        for end in ("optimum", "minimum", "maximum"):
            case = {name: getattr(ranges[name], end) for name in dynamic if name in ranges}
            if case not in cases:
                cases.append(case)
    answers = []
    with session.silent():
        for case in cases:
            for name, sizes in case.items():
                dynamic[name].shape = sizes
            shapes = known_shapes(network)
            answers.append({"inputs": {name: list(sizes) for name, sizes in case.items()}, "shapes": shapes})
    return answers


def known_shapes(network: Any) -> dict[str, list[int]]:
    """Returns the sizes of the tensors by name, without names that several tensors of the network have: the tensors
    of branches and bodies are in the network too."""
    shapes: dict[str, list[int]] = {}
    names: collections.Counter[str] = collections.Counter()
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        for number in range(layer.num_outputs):
            tensor = layer.get_output(number)
            if tensor is None:
                continue
            names[tensor.name] += 1
            try:
                shapes[tensor.name] = list(tensor.shape)
            except (ValueError, RuntimeError):  # TensorRT infers no rank, or no sizes
                continue
    return {name: shape for name, shape in shapes.items() if names[name] == 1}
