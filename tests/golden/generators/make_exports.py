# make_exports.py - exports small networks with the frameworks' own exporters, for the fusion tests.
"""Writes tests/golden/exports/*.onnx, *.pb and manifest.json.

Each file is the export of one short expression by PyTorch's TorchScript exporter, PyTorch's dynamo exporter, tf2onnx or
paddle2onnx, or TensorFlow's frozen graph of it, which Graft reads itself. The files are not edited afterwards, except
that the dynamo exporter's metadata (stack traces with file paths) is removed. Each file passes onnx.checker and has the
framework's own result in ONNX Runtime, or the script stops.

The operators' folders list the expressions, src/ops/<op>/<op>_exports.py:
  OPERATOR, KINDS           its name, and kinds of it that two exporters (or as many as `exporters` says) have to write
  torch_cases(case), tensorflow_cases(case), paddle_cases(case)
                            a list of case(name, shape of x, its entry in the manifest, expression, ...); `without`
                            names an operator and the entry in the manifest where an exporter leaves it out,
                            `frozen_graph` the differences where Graft reads TensorFlow's own file, and `also_static`
                            requests a file without dynamic dimensions from the dynamo exporter as well
  is_left_out(exporter, nodes)
                            only where some files are no test: whether files with these nodes are

The manifest lists the operators, each with the pass that creates it and its kinds, and for every file
  file, exporter, opset     its origin (the versions are in `exporter`)
  expression                the source
  operator, attributes      the operator into which Graft should fuse it; axes are given as 0..rank-1
  fusions                   number of subgraphs that become that operator
  native                    number of nodes that already are the operator of ONNX
  lowered                   only where TensorRT has it: the operator of ONNX that replaces the fused one
  parts                     only where there are any: fusions that become a part of this one
  required                  false: a good form to recognize, but leaving it unchanged is correct too
  reason                    only where fusions and native are 0: why there is nothing to fuse
  not_on_cpu_engine         only where the CPU engine cannot run the file: why
  nodes                     the operators in the file, in order, constants left out

Made with (Python 3.11, CPU)
  --parts torchscript,dynamo,tensorflow,graphdef:
                            torch==2.8.0 tensorflow-cpu==2.19.1 keras==3.11.3 tf2onnx==1.17.0 onnx==1.18.0
                            onnxscript==0.5.4 onnx-ir==0.1.12 onnxruntime==1.22.1 numpy==2.1.3
  --parts dynamo again:     torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 numpy==2.4.6
  --parts torchscript,dynamo multi_scale_deformable_attention: the versions of "dynamo again"
  --parts paddle:           paddlepaddle==3.0.0 paddle2onnx==2.0.1 onnx==1.17.0 onnxruntime==1.31.1 numpy==2.4.6
Run: python tests/golden/generators/make_exports.py --parts torchscript,dynamo,tensorflow,graphdef
A run replaces the manifest's lines for its own exporters and for the operators that are named after the options (all of
them where none is named), and keeps the others; --out names another folder.
"""

import argparse
import io
import json
import logging
import os
import pathlib
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from operator_files import load_all, operator_folders

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")


def strip_metadata(model):
    """Removes stack traces and other metadata of the exporter, which contain paths of the exporting machine."""
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        for item in [*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer]:
            item.ClearField("metadata_props")
            item.ClearField("doc_string")
        graph.ClearField("metadata_props")
        graph.ClearField("doc_string")
        graphs += [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    model.ClearField("metadata_props")


def cases_of(framework, case, operators):
    """Returns the cases that the folders of these operators list for a framework."""
    return [
        entry
        for folder, cases in load_all("exports").items()
        if folder in operators
        for entry in getattr(cases, f"{framework}_cases")(case)
    ]


class Exports:
    """Collects the files of a run and their lines in the manifest; `operators` are the folders of the run."""

    def __init__(self, out, operators):
        self.out, self.operators, self.entries = out, operators, []

    def add(self, model, stem, exporter, expression, expected, x, y, tolerance=1e-5):
        strip_metadata(model)
        onnx.checker.check_model(model, full_check=True)
        data = model.SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        actual = session.run(None, {session.get_inputs()[0].name: x})[0]
        np.testing.assert_allclose(actual, y, rtol=tolerance, atol=tolerance)
        (self.out / f"{stem}.onnx").write_bytes(data)
        opset = next(o.version for o in model.opset_import if o.domain == "")
        entry = {"file": f"{stem}.onnx", "exporter": exporter, "opset": opset, "expression": expression}
        entry |= {"fusions": 0, "native": 0, "required": True} | expected
        entry["nodes"] = " ".join(n.op_type for n in model.graph.node if n.op_type != "Constant")
        self.entries.append(entry)

    def add_graph(self, graph, stem, exporter, expression, expected):
        for node in graph.node:
            node.ClearField("experimental_debug_info")
        (self.out / f"{stem}.pb").write_bytes(graph.SerializeToString(deterministic=True))
        entry = {"file": f"{stem}.pb", "exporter": exporter, "expression": expression}
        entry |= {"fusions": 0, "native": 0, "required": True} | expected
        entry["nodes"] = " ".join(n.op for n in graph.node if n.op not in ("Const", "Placeholder", "Identity"))
        self.entries.append(entry)

    def write(self):
        path = self.out / "manifest.json"
        old = json.loads(path.read_text())["exports"] if path.exists() else []
        all_cases = load_all("exports")
        exporters = {e["exporter"] for e in self.entries}
        names = {cases.OPERATOR for folder, cases in all_cases.items() if folder in self.operators}
        replaced = [e for e in old if e["exporter"] in exporters and e["operator"] in names]
        new_files = {e["file"] for e in self.entries}
        for entry in replaced:
            if entry["file"] not in new_files:
                (self.out / entry["file"]).unlink(missing_ok=True)
        entries = [e for e in old if e not in replaced] + self.entries
        entries.sort(key=lambda e: e["file"])
        operators = [
            {"operator": cases.OPERATOR, "pass": f"fuse_{folder}", "kinds": cases.KINDS}
            for folder, cases in all_cases.items()
        ]

        def lines(items):
            return ",\n".join("    " + json.dumps(item) for item in items)

        path.write_text(
            f'{{\n  "made_by": "tests/golden/generators/make_exports.py",\n  "operators": [\n{lines(operators)}\n  ],\n'
            f'  "exports": [\n{lines(entries)}\n  ]\n}}\n'
        )
        size = sum((self.out / e["file"]).stat().st_size for e in entries)
        print(f"{len(self.entries)} files written, {len(entries)} in all, {size} bytes")


def torch_cases(operators):
    import torch
    import torch.nn.functional as F
    from torch import nn

    def case(
        name,
        shape,
        expected,
        expression,
        module=None,
        opsets=(17,),
        dtype=torch.float32,
        dynamic=(0,),
        also_static=False,
        without=None,
    ):
        scope = {"torch": torch, "F": F, "nn": nn}
        function = module or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opsets, dtype, dynamic, also_static, without

    return cases_of("torch", case, operators)


def is_left_out(expected, exporter, nodes):
    for cases in load_all("exports").values():
        if hasattr(cases, "is_left_out") and expected["operator"] == cases.OPERATOR:
            return cases.is_left_out(exporter, nodes)
    return False


def export_torch(exports, exporters):
    import torch
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    version = torch.__version__.split("+")[0]
    axis_names = {0: "batch", 2: "height", 3: "width"}
    for name, shape, expected, expression, function, opsets, dtype, dynamic_axes, also_static, without in torch_cases(
        exports.operators
    ):
        module = Wrapped(function).eval()
        x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)
        with torch.no_grad():
            y = module(x).numpy()
        tolerance = 1e-5 if dtype == torch.float32 else 2e-3
        for opset in opsets if "torchscript" in exporters else []:
            buffer = io.BytesIO()
            try:
                torch.onnx.export(
                    module,
                    (x,),
                    buffer,
                    dynamo=False,
                    opset_version=opset,
                    input_names=["x"],
                    output_names=["y"],
                    dynamic_axes={"x": {axis: axis_names[axis] for axis in dynamic_axes}, "y": {0: "batch"}},
                )
            except Exception as error:  # an exporter that fails is reported, but this script continues
                print(f"torchscript cannot export {name} at opset {opset}: {str(error).splitlines()[0]}")
                continue
            stem, exporter = f"torch{version}_script_opset{opset}_{name}", f"torch {version} TorchScript exporter"
            exports.add(
                onnx.load_from_string(buffer.getvalue()), stem, exporter, expression, expected, x.numpy(), y, tolerance
            )
        for dynamic in [True, False] if "dynamo" in exporters else []:
            if not dynamic and not also_static:
                continue
            names = {axis: torch.export.Dim(axis_names[axis]) for axis in dynamic_axes}
            shapes = (names,) if dynamic else None
            opset = max(18, opsets[-1])
            try:
                program = torch.onnx.export(
                    module,
                    (x,),
                    dynamo=True,
                    opset_version=opset,
                    input_names=["x"],
                    output_names=["y"],
                    dynamic_shapes=shapes,
                    verbose=False,
                )
            except Exception as error:
                print(f"dynamo cannot export {name} at opset {opset}: {str(error).splitlines()[0]}")
                continue
            model = program.model_proto
            nodes = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
            if is_left_out(expected, "dynamo", nodes):
                continue
            wanted = without[1] if without and without[0] not in nodes else expected
            stem = f"torch{version}_dynamo_opset{opset}_{name}" + ("" if dynamic else "_static")
            exporter = f"torch {version} dynamo exporter"
            exports.add(model, stem, exporter, expression, wanted, x.numpy(), y, tolerance)


def tensorflow_cases(operators):
    import keras
    import tensorflow as tf

    scope = {"tf": tf, "keras": keras}

    def case(name, shape, expected, expression, opsets=(13,), layer=None, frozen_graph=None):
        function = layer or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opsets, expected | (frozen_graph or {})

    return cases_of("tensorflow", case, operators)


def export_tensorflow(exports):
    import keras
    import tensorflow as tf
    import tf2onnx

    exporter = f"tf2onnx {tf2onnx.__version__}, TensorFlow {tf.__version__}, Keras {keras.__version__}"
    for name, shape, expected, expression, function, opsets, _ in tensorflow_cases(exports.operators):
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        signature = [tf.TensorSpec([None, *shape[1:]], tf.float32, name="x")]
        traced = tf.function(lambda x, f=function: tf.identity(f(x), name="y"), input_signature=signature)
        y = traced(tf.constant(x)).numpy()
        for opset in opsets:
            model, _ = tf2onnx.convert.from_function(traced, input_signature=signature, opset=opset)
            exports.add(
                model,
                f"tf2onnx{tf2onnx.__version__.split()[0]}_opset{opset}_{name}",
                exporter,
                expression,
                expected,
                x,
                y,
            )


def export_graphdef(exports):
    """Writes the TensorFlow expressions as frozen graphs, which Graft reads itself."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    exporter = f"Graft's reader, frozen graph of TensorFlow {tf.__version__}"
    for name, shape, _, expression, function, _, expected in tensorflow_cases(exports.operators):
        signature = [tf.TensorSpec([None, *shape[1:]], tf.float32, name="x")]
        traced = tf.function(lambda x, f=function: tf.identity(f(x), name="y"), input_signature=signature)
        frozen = convert_variables_to_constants_v2(traced.get_concrete_function())
        exports.add_graph(
            frozen.graph.as_graph_def(), f"tensorflow{tf.__version__}_{name}", exporter, expression, expected
        )


def paddle_cases(operators):
    import paddle
    import paddle.nn.functional as F
    from paddle import nn

    def case(name, shape, expected, expression, module=None, opset=13, dynamic=(0,)):
        scope = {"paddle": paddle, "F": F, "nn": nn}
        function = module or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opset, dynamic

    paddle.seed(1)
    return cases_of("paddle", case, operators)


def export_paddle(exports):
    import paddle
    import paddle2onnx

    class Wrapped(paddle.nn.Layer):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    exporter = f"paddle2onnx {paddle2onnx.__version__}, PaddlePaddle {paddle.__version__}"
    for name, shape, expected, expression, function, opset, dynamic in paddle_cases(exports.operators):
        layer = Wrapped(function)
        layer.eval()
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        y = layer(paddle.to_tensor(x)).numpy()
        open_shape = [None if axis in dynamic else size for axis, size in enumerate(shape)]
        spec = [paddle.static.InputSpec(open_shape, "float32", "x")]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model"
            paddle.onnx.export(layer, str(path), input_spec=spec, opset_version=opset)
            model = onnx.load(f"{path}.onnx")
        exports.add(model, f"paddle2onnx{paddle2onnx.__version__}_{name}", exporter, expression, expected, x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="torchscript,dynamo,tensorflow,graphdef")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/exports"))
    parser.add_argument(
        "operators", nargs="*", metavar="OPERATOR", help="folders in src/ops; all of them where none is named"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    exports = Exports(arguments.out, arguments.operators or operator_folders())
    parts = arguments.parts.split(",")
    if "torchscript" in parts or "dynamo" in parts:
        export_torch(exports, parts)
    if "tensorflow" in parts:
        export_tensorflow(exports)
    if "graphdef" in parts:
        export_graphdef(exports)
    if "paddle" in parts:
        export_paddle(exports)
    exports.write()


if __name__ == "__main__":
    main()
