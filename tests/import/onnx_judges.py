# The judges of ONNX models: ONNX Runtime, and the reference implementation of the onnx package where ONNX Runtime
# cannot run a model.
"""Compares both with the results that ONNX's own tests store, with the tolerances of ONNX's own test runner."""

import os
import pathlib
from collections import namedtuple

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

# Without this, ONNX Runtime refuses newer operator sets, whichever operators the model uses.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
# The newest version of the file format that ONNX Runtime 1.31 reads. Later versions changed nothing that it needs.
ONNXRUNTIME_IR_VERSION = 13

# Prefixes of names of node tests, with a larger absolute tolerance than ONNX's 1e-7: 0 is exact where their expected
# results contain 1.9e-7, the rounding of the transform that computed them.
ROUNDED = {"test_dft_inverse": 1e-6}

# data_sets: pairs of inputs and expected outputs.
Case = namedtuple("Case", "name model data_sets rtol atol")


def to_array(value):
    """Returns a value of a test case (an array, a number, a TensorProto for types that NumPy lacks, a list, or
    nothing) as an array."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if value is None or isinstance(value, (list, dict)):
        return value
    return np.asarray(value)


def difference(found, expected, rtol, atol):
    """Returns a description of the first difference, or nothing where the outputs agree."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected are {len(expected)}"
    for one, value in zip(found, expected, strict=True):
        wanted = to_array(value)
        if isinstance(wanted, (list, tuple)):
            wrong = difference(one, wanted, rtol, atol)
            if wrong:
                return wrong
            continue
        if wanted is None:
            if one is not None:
                return "a value, expected is none"
            continue
        one = np.asarray(one)
        if one.shape != wanted.shape:
            return f"shape {one.shape}, expected is {wanted.shape}"
        if wanted.dtype.kind in "OUST":
            if not np.array_equal(one.astype(str), wanted.astype(str)):
                return "another text"
            continue
        if one.dtype != wanted.dtype:
            return f"type {one.dtype}, expected is {wanted.dtype}"
        limit = rtol
        if wanted.dtype.name == "bfloat16":
            limit = max(rtol, 2**-6)  # two steps of bfloat16, as in ONNX's runner
        if wanted.dtype.kind not in "fciub":
            one, wanted = one.astype(np.float32), wanted.astype(np.float32)
        try:
            np.testing.assert_allclose(one, wanted, rtol=limit, atol=atol)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""


def run_onnxruntime(model, values):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, ONNXRUNTIME_IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {}
    for info, value in zip(real_inputs(model), values, strict=False):
        array = to_array(value)
        if array is None:
            continue
        # ONNX Runtime has other names for these types than NumPy.
        if isinstance(array, np.ndarray) and array.dtype.kind not in "fciubOUST":
            raw = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
            array = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, info.type.tensor_type.elem_type)
        feeds[info.name] = array
    return session.run(None, feeds)


def run_reference(model, values):
    names = [info.name for info in real_inputs(model)]
    return ReferenceEvaluator(model).run(None, dict(zip(names, map(to_array, values), strict=False)))


def real_inputs(model):
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [info for info in model.graph.input if info.name not in defaults]


JUDGES = {"ONNX Runtime": run_onnxruntime, "onnx.reference": run_reference}


def judge(model, case):
    """Returns (the judge that computes the expected values, "") or ("", the difference that each judge shows)."""
    said = []
    for name, run in JUDGES.items():
        try:
            wrong = ""
            for inputs, expected in case.data_sets:
                wrong = wrong or difference(run(model, inputs), expected, case.rtol, case.atol)
        except Exception as error:  # noqa: BLE001 - a judge that cannot run a model says so in a type of its own
            wrong = f"cannot: {' '.join(str(error).split())[:200]}"
        if not wrong:
            return name, ""
        said.append(f"{name}: {wrong}")
    return "", "; ".join(said)


def node_cases(first="", last="\x7f"):
    """Returns ONNX's tests of operators, from the modules whose name lies between the two. The onnx package creates
    the cases while it imports these modules, the poolings with loops in Python."""
    import importlib  # noqa: PLC0415
    import pkgutil  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    from onnx.backend.test.case import node  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in pkgutil.walk_packages(node.__path__, node.__name__ + "."):
            if first <= found.name.removeprefix(node.__name__ + ".") < last:
                importlib.import_module(found.name)
    cases = [Case(c.model_name, c.model, c.data_sets, c.rtol, c.atol) for c in node._NodeTestCases]  # noqa: SLF001
    least = {case.name: limit for case in cases for name, limit in ROUNDED.items() if case.name.startswith(name)}
    return [case._replace(atol=max(case.atol, least.get(case.name, 0))) for case in cases]


def with_constants(case):
    """Returns the case with its parameters as constants, as exporters write them. Parameters are sizes, axes,
    indices and scales: all inputs but the first that hold integers, or real numbers of at most one dimension.
    Returns nothing for a model of other than one node with tensors and one set of data."""
    graph, values = case.model.graph, case.data_sets[0][0] if case.data_sets else []
    if len(graph.node) != 1 or len(case.data_sets) != 1 or len(values) != len(graph.input):
        return None
    if any(isinstance(value, (list, dict)) for value in values):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.input[:]
    left = []
    for i, (info, value) in enumerate(zip(graph.input, values, strict=True)):
        array = None if value is None else to_array(value)
        is_parameter = i > 0 and array is not None and array.dtype.kind in ("iub" if array.ndim > 1 else "iubf")
        if is_parameter:
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
        else:
            model.graph.input.append(info)
            left.append(value)
    return case._replace(model=model, data_sets=[(left, case.data_sets[0][1])])


def read_value(path, info):
    content = path.read_bytes()
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return onnx.TensorProto.FromString(content)


def stored_cases(kind):
    """Returns the models of other tests of the onnx package, which contains them with their results."""
    cases = []
    for folder in sorted((DATA / kind).iterdir()):
        model = onnx.load(folder / "model.onnx")
        sets = []
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = [read_value(data / f"input_{i}.pb", info) for i, info in enumerate(real_inputs(model))]
            outputs = [read_value(data / f"output_{i}.pb", info) for i, info in enumerate(model.graph.output)]
            sets.append((inputs, outputs))
        cases.append(Case(folder.name, model, sets, 1e-3, 1e-7))
    return cases


def light_case(name):
    """Returns a network of 2017 in which all elements of a weight are equal."""
    path = DATA / "light" / f"light_{name}.onnx"
    model = onnx.load(path)
    (info,) = real_inputs(model)
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(
        np.float32
    )  # the inputs of ONNX's test runner
    y = onnx.TensorProto.FromString(path.with_name(f"light_{name}_output_0.pb").read_bytes())
    return Case(f"light_{name}", model, [([x], [y])], 1e-3, 1e-7)
