# Compares ill-conditioned networks in two mathematically equal forms by graft.verify.
"""Prints the number of pairs with another verdict than "same", and of pairs whose verdict changes between runs.

    PYTHONPATH=build/python .deps/venv/bin/python bench/verify/ill_conditioned.py --networks 300 --runs 3

The two forms of a network differ only in the order of sums, in fused or decomposed normalizations, and in products
instead of divisions, so "different" and "disputed" are wrong verdicts.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (1, 4, 6, 6)


class Form:
    """A form of a network; nodes are appended to the current tensor."""

    def __init__(self, is_reference: bool) -> None:
        self.is_reference = is_reference
        self.at = "x"
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def model(self) -> onnx.ModelProto:
        nodes = [*self._nodes, helper.make_node("Identity", [self.at], ["y"])]
        ends = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE if name == "x" else None)] for name in "xy"
        ]
        graph = helper.make_graph(nodes, "network", *ends, self._weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


Stage = Callable[[Form, np.random.Generator], None]


def offset(form: Form, random: np.random.Generator) -> None:
    """Appends a scale and a shift to a small variance around a large mean."""
    scale, mean = 10.0 ** -random.integers(0, 6), 1.27 * 10.0 ** random.integers(0, 4)
    c = form.constant(mean)
    if form.is_reference:
        form.at = form.op("Add", form.op("Mul", form.at, form.constant(scale)), c)
    else:
        form.at = form.op("Add", c, form.op("Div", form.at, form.constant(1 / scale)))


def constant_image(form: Form, random: np.random.Generator) -> None:
    zero = form.op("Sub", form.at, form.at)
    value = random.uniform(50, 200)
    image = form.op("Add", zero, form.constant(value))
    if form.is_reference:
        form.at = form.op("Div", image, form.constant(127.5))
    else:
        form.at = form.op("Mul", image, form.constant(1 / 127.5))


def opened(form: Form, x: str, axes: list[int], epsilon: float) -> str:
    centered = form.op("Sub", x, form.op("ReduceMean", x, axes=axes))
    variance = form.op("ReduceMean", form.op("Mul", centered, centered), axes=axes)
    root = form.op("Sqrt", form.op("Add", variance, form.constant(epsilon)))
    return form.op("Mul", centered, form.op("Reciprocal", root))


def instance_norm(form: Form, random: np.random.Generator) -> None:
    epsilon = 10.0 ** -random.integers(5, 12)
    if form.is_reference:
        ones, zeros = form.constant(np.ones(4)), form.constant(np.zeros(4))
        form.at = form.op("InstanceNormalization", form.at, ones, zeros, epsilon=epsilon)
    else:
        form.at = opened(form, form.at, [2, 3], epsilon)


def layer_norm(form: Form, random: np.random.Generator) -> None:
    epsilon = 10.0 ** -random.integers(5, 12)
    if form.is_reference:
        form.at = form.op("LayerNormalization", form.at, form.constant(np.ones(6)), axis=-1, epsilon=epsilon)
    else:
        form.at = opened(form, form.at, [-1], epsilon)


def batch_norm(form: Form, random: np.random.Generator) -> None:
    """Appends a batch normalization whose mean is near to the numbers, with almost no variance."""
    scale, bias, variance = random.uniform(0.5, 2, 4), random.uniform(-1, 1, 4), 10.0 ** -random.uniform(0, 8, 4)
    mean = random.uniform(-1, 1, 4) * 10.0 ** random.integers(0, 4)
    if form.is_reference:
        values = [form.constant(value) for value in (scale, bias, mean, variance)]
        form.at = form.op("BatchNormalization", form.at, *values)
        return
    factor = scale / np.sqrt(variance + 1e-5)
    folded = bias - mean * factor
    product = form.op("Mul", form.at, form.constant(factor.reshape(1, 4, 1, 1)))
    form.at = form.op("Add", product, form.constant(folded.reshape(1, 4, 1, 1)))


def cancellation(form: Form, random: np.random.Generator) -> None:
    """Appends (x + c)^2 - c^2 - 2cx, which equals x^2."""
    c = float(10 ** random.integers(0, 3))
    a = form.op("Add", form.at, form.constant(c))
    if form.is_reference:
        difference = form.op("Sub", form.op("Mul", a, a), form.constant(c * c))
        form.at = form.op("Sub", difference, form.op("Mul", form.at, form.constant(2 * c)))
    else:
        twice = form.op("Mul", form.at, form.constant(2 * c))
        form.at = form.op("Sub", form.op("Sub", form.op("Mul", a, a), twice), form.constant(c * c))


def softmax(form: Form, random: np.random.Generator) -> None:
    """Appends a softmax of large logits."""
    logits = form.op("Mul", form.at, form.constant(10.0 ** random.integers(1, 4)))
    if form.is_reference:
        form.at = form.op("Softmax", logits, axis=-1)
    else:
        powers = form.op("Exp", form.op("Sub", logits, form.op("ReduceMax", logits, axes=[-1])))
        form.at = form.op("Div", powers, form.op("ReduceSum", powers, form.ints(-1)))


def reductions(form: Form, random: np.random.Generator) -> None:
    """Appends a mean of means, and subtracts it."""
    shifted = form.op("Add", form.at, form.constant(10.0 ** random.integers(0, 4)))
    if form.is_reference:
        mean = form.op("ReduceMean", shifted, axes=[2, 3])
    else:
        mean = form.op("ReduceMean", form.op("ReduceMean", shifted, axes=[3]), axes=[2])
    form.at = form.op("Sub", shifted, mean)


def division(form: Form, random: np.random.Generator) -> None:
    """Appends a division by a number that may be small."""
    square = form.op("ReduceMean", form.op("Mul", form.at, form.at), axes=[1])
    small = form.op("Add", square, form.constant(10.0 ** -random.integers(2, 6)))
    if form.is_reference:
        form.at = form.op("Div", form.at, small)
    else:
        form.at = form.op("Mul", form.op("Reciprocal", small), form.at)


def chain(form: Form, random: np.random.Generator) -> None:
    """Appends a long chain in which each step rounds."""
    for _ in range(random.integers(8, 24)):
        factor, term = random.uniform(0.9, 1.2), random.uniform(-0.2, 0.2)
        product = (
            form.op("Mul", form.at, form.constant(factor))
            if form.is_reference
            else form.op("Div", form.at, form.constant(1 / factor))
        )
        form.at = form.op("Tanh", form.op("Add", product, form.constant(term)))
    form.at = form.op("Sub", form.op("Exp", form.at), form.constant(1))


def products(form: Form, random: np.random.Generator) -> None:
    """Appends (x A) B or x (A B), with numbers that cancel."""
    a = random.standard_normal((6, 12)).astype(np.float32) * 100
    b = np.linalg.pinv(a.astype(np.float64)).astype(np.float32)
    left, right = form.constant(a), form.constant(b)
    if form.is_reference:
        product = form.op("MatMul", form.op("MatMul", form.at, left), right)
    else:
        product = form.op("MatMul", form.at, form.op("MatMul", left, right))
    form.at = form.op("Sub", product, form.op("Mul", form.at, form.constant(0.999)))


FIRST: list[Stage] = [offset, constant_image, cancellation, batch_norm, products]
LATER: list[Stage] = [
    offset,
    instance_norm,
    layer_norm,
    batch_norm,
    cancellation,
    softmax,
    reductions,
    division,
    chain,
    products,
]


def networks(seed: int) -> tuple[onnx.ModelProto, onnx.ModelProto, str]:
    """Returns the two forms of a network, and the names of its stages."""
    choice = np.random.default_rng(seed)
    stages = [FIRST[choice.integers(len(FIRST))]]
    stages += [LATER[choice.integers(len(LATER))] for _ in range(choice.integers(1, 4))]
    forms = Form(True), Form(False)
    for form in forms:
        random = np.random.default_rng([seed, 1])  # equal numbers for both forms
        for stage in stages:
            stage(form, random)
    return forms[0].model(), forms[1].model(), " > ".join(stage.__name__ for stage in stages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first network")
    parser.add_argument("--runs", type=int, default=3, help="comparisons of each network")
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    import graft

    verdicts: collections.Counter[str] = collections.Counter()
    unstable = 0
    start = time.process_time()
    for seed in range(arguments.first, arguments.first + arguments.networks):
        reference, candidate, stages = networks(seed)
        found = [
            graft.verify(reference, candidate, engine=arguments.engine).verdict for _ in range(max(1, arguments.runs))
        ]
        verdicts[found[0]] += 1
        unstable += len(set(found)) > 1
        if set(found) != {"same"}:
            print(f"network {seed}: {', '.join(found)}: {stages}", flush=True)
    print(dict(verdicts), f"{unstable} with other verdicts in other runs, {time.process_time() - start:.0f} s")
    # Where rounding alone moves most numbers by more than the largest number, the verdict is "nothing compared", which
    # is not wrong.
    wrong = arguments.networks - verdicts["same"] - verdicts["nothing compared"]
    return 0 if wrong == 0 and unstable == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
