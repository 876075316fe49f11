# make_reading_models.py - writes small ONNX files that use the less common parts of the format, for the reading tests.
"""Writes tests/golden/models/<name>.onnx with <name>.npz: inputs and ONNX Runtime's outputs, by tensor name.

  external_data   weights in external_data.bin, one at offset 0, one at offset 4096, one inside the .onnx
  functions       model-local functions that call each other, pass attributes on, and have a default value
  overloads       one function name with two overloads of different bodies (IR version 10)
  if              If inside If; branches read values from outside and return constants and initializers
  loop            Loop with a carried value, a scan output and a value from outside
  typed_data      the same numbers stored as raw_data and in each typed field, in ten element types
  names           empty optional inputs and outputs, nodes without names, tensor names with spaces, slashes, non-ASCII letters

Made with (Python 3.11): onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6. ONNX Runtime 1.22 runs one overload for both.
Run: python tests/golden/generators/make_reading_models.py [--out tests/golden/models]
"""

import argparse
import pathlib

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def random_array(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def save(model, inputs, path):
    """Checks, runs and writes a model with all weights inside."""
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    record(inputs, path)


def record(inputs, path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    np.savez_compressed(path.with_suffix(".npz"), **inputs, **outputs)
    print(f"{path.name}: {path.stat().st_size} bytes, outputs {', '.join(outputs)}")


def external_data(path):
    weights = {"w1": random_array(4, 8), "w2": random_array(8, 3, seed=6)}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], "first"),
        helper.make_node("MatMul", ["h", "w2"], ["s"], "second"),
        helper.make_node("Add", ["s", "bias"], ["y"], "third"),
    ]
    blob, stored = bytearray(), []
    for name, array in weights.items():
        blob += bytes(-len(blob) % 4096)
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": path.with_suffix(".bin").name, "offset": len(blob), "length": array.nbytes}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        blob += array.tobytes()
        stored.append(tensor)
    stored.append(numpy_helper.from_array(random_array(3, seed=7), "bias"))
    graph = helper.make_graph(
        nodes, "external_data",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
        stored,
    )  # fmt: skip
    path.with_suffix(".bin").write_bytes(blob)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    onnx.checker.check_model(str(path), full_check=True)
    record({"x": random_array(2, 4, seed=8)}, path)


FUNCTIONS = """
<ir_version: 8, opset_import: ["" : 17, "example" : 1]>
functions (float[N,6] x) => (float[N,6] y, float[N,6] z)
{
  [one] a = example.SoftSlope<slope = 0.25>(x)
  [two] y = example.SoftSlope<slope = 0.5, bias = 1.5>(a)
  [three] z = example.Shift<amount = -3.0>(y)
}
<domain: "example", opset_import: ["" : 17]>
Shift <amount> (v) => (r)
{
  k = Constant<value_float: float = @amount>()
  r = Add(v, k)
}
<domain: "example", opset_import: ["" : 17, "example" : 1]>
SoftSlope <slope, bias: float = 0.125> (v) => (r)
{
  l = LeakyRelu<alpha: float = @slope>(v)
  r = example.Shift<amount: float = @bias>(l)
}
"""

IF = """
<ir_version: 8, opset_import: ["" : 17]>
branches (float[N,3] x, bool first, bool second) => (float[N,3] y)
<float[3] weight = {1, -2, 3}>
{
  outer = Mul(x, weight)
  chosen = If(first) <
    then_branch = yes () => (float[N,3] a) { a = Relu(outer) },
    else_branch = no () => (float[N,3] b) {
      inner = Neg(outer)
      b = If(second) <
        then_branch = yes_yes () => (float[N,3] c) { c = Add(inner, x) },
        else_branch = yes_no () => (float[N,3] d) <float[1] half = {0.5}> { d = Mul(inner, half) }
      >
    }
  >
  y = Add(chosen, weight)
}
"""

LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
repeats (float[3] x, int64 count) => (float[3] last, float[K,3] every)
<float[3] step = {1, 2, 3}, bool go = {1}>
{
  last, every = Loop(count, go, x) <
    body = turn (int64 i, bool cond, float[3] state) => (bool again, float[3] next, float[3] seen) {
      again = Identity(cond)
      next = Add(state, step)
      seen = Mul(next, x)
    }
  >
}
"""


def overloads(path):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    bodies = {"double": ("Add", ["v", "v"]), "square": ("Mul", ["v", "v"])}
    functions = [
        helper.make_function(
            "example", "Change", ["v"], ["r"], [helper.make_node(o, i, ["r"])], opsets[:1], overload=name
        )
        for name, (o, i) in bodies.items()
    ]
    nodes = [
        helper.make_node("Change", ["x"], ["y"], domain="example", overload="double"),
        helper.make_node("Change", ["x"], ["z"], domain="example", overload="square"),
    ]
    values = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xyz"}
    graph = helper.make_graph(nodes, "overloads", [values["x"]], [values["y"], values["z"]])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
    x = random_array(5)
    save(model, {"x": x}, path)
    results = np.load(path.with_suffix(".npz"))
    assert np.array_equal(results["y"], x + x) and np.array_equal(results["z"], x * x), "overloads were confused"


def typed_data(path):
    """Saves each element type twice: as raw_data, and in the typed field that the format prescribes for it."""
    numbers = [0, 1, 2, 100, 3, 0]
    types = {
        "f32": (TensorProto.FLOAT, np.float32, "float_data", None),
        "f64": (TensorProto.DOUBLE, np.float64, "double_data", None),
        "f16": (TensorProto.FLOAT16, np.float16, "int32_data", np.uint16),
        "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16, "int32_data", np.uint16),
        "i8": (TensorProto.INT8, np.int8, "int32_data", None),
        "u8": (TensorProto.UINT8, np.uint8, "int32_data", None),
        "i32": (TensorProto.INT32, np.int32, "int32_data", None),
        "i64": (TensorProto.INT64, np.int64, "int64_data", None),
        "u64": (TensorProto.UINT64, np.uint64, "uint64_data", None),
        "bool": (TensorProto.BOOL, np.bool_, "int32_data", np.uint8),
    }
    nodes, stored, outputs = [], [], []
    for name, (code, dtype, field, bits) in types.items():
        array = np.array(numbers).astype(dtype)
        if array.dtype.kind in "fi" or name == "bf16":
            array = -array
        words = array.view(bits) if bits else array
        raw = TensorProto(name=f"{name}_raw", data_type=code, dims=[6], raw_data=array.tobytes())
        typed = TensorProto(name=f"{name}_typed", data_type=code, dims=[6])
        getattr(typed, field).extend(words.tolist())
        stored += [raw, typed]
        for tensor in (raw, typed):
            nodes.append(helper.make_node("Cast", [tensor.name], [f"{tensor.name}_f32"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("Add", [f"{tensor.name}_f32", "x"], [f"{tensor.name}_y"]))
            outputs.append(helper.make_tensor_value_info(f"{tensor.name}_y", TensorProto.FLOAT, [6]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    graph = helper.make_graph(nodes, "typed_data", [x], outputs, stored)
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        {"x": random_array(6)},
        path,
    )


def names(path):
    nodes = [
        helper.make_node("Clip", ["Eingang größe", "", "up per"], ["block/0/clip:0"]),
        helper.make_node("Dropout", ["block/0/clip:0"], ["drop", ""]),
        helper.make_node("MaxPool", ["drop"], ["層.1"], kernel_shape=[2, 2]),
        helper.make_node("Resize", ["層.1", "", "scales"], ["out put"], mode="nearest"),
    ]
    graph = helper.make_graph(
        nodes, "names",
        [helper.make_tensor_value_info("Eingang größe", TensorProto.FLOAT, ["batch size", 2, 4, 4])],
        [helper.make_tensor_value_info("out put", TensorProto.FLOAT, ["batch size", 2, 6, 6])],
        [helper.make_tensor("up per", TensorProto.FLOAT, [], [0.5]),
         helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, {"Eingang größe": random_array(2, 2, 4, 4)}, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/models"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    external_data(out / "external_data.onnx")
    save(onnx.parser.parse_model(FUNCTIONS), {"x": random_array(2, 6)}, out / "functions.onnx")
    overloads(out / "overloads.onnx")
    branches = {"x": random_array(2, 3), "first": np.array(False), "second": np.array(False)}
    save(onnx.parser.parse_model(IF), branches, out / "if.onnx")
    save(onnx.parser.parse_model(LOOP), {"x": random_array(3), "count": np.array(4)}, out / "loop.onnx")
    typed_data(out / "typed_data.onnx")
    names(out / "names.onnx")


if __name__ == "__main__":
    main()
