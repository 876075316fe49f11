# make_exports.py - exports small networks with the frameworks' own exporters, for the fusion tests.
"""Writes tests/golden/exports/*.onnx, *.pb and manifest.json.

Each file is what PyTorch's TorchScript exporter, PyTorch's dynamo exporter, tf2onnx or paddle2onnx makes of one short
expression, or TensorFlow's frozen graph of it, which Graft reads itself.
Nothing is edited afterwards except that the dynamo exporter's metadata (stack traces with file paths) is removed. Each
file passes onnx.checker and gives the framework's own result in ONNX Runtime, or the script stops.

The manifest lists for every file
  file, exporter, opset     where it comes from (the versions are in `exporter`)
  expression                the source; those of padding, upsampling, pooling and instance norm are in export_forms.py
  operator, attributes      what Graft should fuse it into; axes are given as 0..rank-1
  fusions                   how many sub-graphs become that operator
  native                    how many nodes already are ONNX LeakyRelu
  lowered                   only where TensorRT has it: the operator of ONNX that the fusion ends as
  parts                     only where there are any: fusions that become a part of this one
  required                  false: a good form to recognize, but leaving it alone is correct too
  reason                    only where fusions and native are 0: why there is nothing to fuse
  not_on_cpu_engine         only where the CPU engine cannot run the file: why
  nodes                     the operators in the file, in order, constants left out

Made with (Python 3.11, CPU)
  --parts torchscript,dynamo,tensorflow,graphdef:
                            torch==2.8.0 tensorflow-cpu==2.19.1 keras==3.11.3 tf2onnx==1.17.0 onnx==1.18.0
                            onnxscript==0.5.4 onnx-ir==0.1.12 onnxruntime==1.22.1 numpy==2.1.3
  --parts dynamo again:     torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 numpy==2.4.6
  --parts paddle:           paddlepaddle==3.0.0 paddle2onnx==2.0.1 onnx==1.17.0 onnxruntime==1.31.1 numpy==2.4.6
Run: python tools/make_exports.py --parts torchscript,dynamo,tensorflow,graphdef [--out tests/golden/exports]
A run replaces the manifest's lines for its own exporters and leaves the others.
"""

import argparse
import io
import json
import logging
import os
import pathlib
import tempfile
import warnings

import export_forms
import numpy as np
import onnx
import onnxruntime

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")

IMAGE, EMBEDDING, SEQUENCE = (2, 4, 3, 5), (3, 8), (2, 5, 6)


def l2(axes, epsilon, mode, **more):
    attributes = {"axes": axes, "epsilon": epsilon, "epsilon_mode": mode}
    return {"operator": "L2Normalize", "attributes": attributes, "fusions": 1} | more


def leaky(alpha, **more):
    return {"operator": "LeakyReLU", "attributes": {"alpha": alpha}, "fusions": 1} | more


def native(alpha, count=1):
    return leaky(alpha, fusions=0, native=count)


def nothing(operator, reason):
    return {"operator": operator, "attributes": {}, "fusions": 0, "reason": reason}


OPTIONAL = {"required": False}
NO_EPSILON = nothing("L2Normalize", "nothing guards against a zero norm: x / 0 must stay NaN")
NOT_A_MODE = nothing("L2Normalize", "epsilon is added to the norm, which none of the three modes computes")


def strip_metadata(model):
    """Removes stack traces and other exporter notes, which hold paths of the machine that exported."""
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


# What Graft makes of a frozen graph where that differs from what it makes of tf2onnx's file.
GRAPH_DIFFERS = {
    "maximum": {"fusions": 1, "native": 0},
    # tf2onnx writes tf_half_pixel_for_nn, which TensorRT refuses; Graft's reader what TensorRT has itself.
    "resize_nearest": {"fusions": 0, "attributes": {}, "reason": export_forms.NATIVE},
    "ssd_between_convolutions": {"parts": 1},
    "ssd_shared": {"parts": 1},
}


class Exports:
    """The files of one run and their lines in the manifest."""

    def __init__(self, out):
        self.out, self.entries = out, []

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
        entry |= {"fusions": 0, "native": 0, "required": True} | expected | GRAPH_DIFFERS.get(stem.split("_", 1)[1], {})
        entry["nodes"] = " ".join(n.op for n in graph.node if n.op not in ("Const", "Placeholder", "Identity"))
        self.entries.append(entry)

    def write(self):
        path = self.out / "manifest.json"
        old = json.loads(path.read_text())["exports"] if path.exists() else []
        mine = {e["exporter"] for e in self.entries}
        new_files = {e["file"] for e in self.entries}
        for entry in old:
            if entry["exporter"] in mine and entry["file"] not in new_files:
                (self.out / entry["file"]).unlink(missing_ok=True)
        entries = [e for e in old if e["exporter"] not in mine] + self.entries
        entries.sort(key=lambda e: e["file"])
        lines = ",\n".join("    " + json.dumps(e) for e in entries)
        path.write_text(f'{{\n  "made_by": "tools/make_exports.py",\n  "exports": [\n{lines}\n  ]\n}}\n')
        size = sum((self.out / e["file"]).stat().st_size for e in entries)
        print(f"{len(self.entries)} files written, {len(entries)} in all, {size} bytes")


def torch_forms():
    import torch
    import torch.nn.functional as F
    from torch import nn

    def case(name, shape, expected, expression, module=None, opsets=(17,), dtype=torch.float32, dynamic=(0,)):
        scope = {"torch": torch, "F": F, "nn": nn}
        function = module or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opsets, dtype, dynamic

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.conv = nn.Conv2d(4, 6, 3, padding=1)
            self.act = nn.LeakyReLU(0.2)
            self.left, self.right = nn.Linear(6, 4), nn.Linear(6, 4)

        def forward(self, x):
            x = F.normalize(self.act(self.conv(x)), dim=1)
            x = x.mean(dim=(2, 3))
            return F.normalize(self.left(x), dim=-1) + F.normalize(self.right(x), dim=-1)

    norm12 = l2([1], 1e-12, "norm")
    return [
        case("f_normalize", IMAGE, norm12, "F.normalize(x, dim=1)", opsets=(9, 11, 13, 17, 18, 20)),
        case("f_normalize_last", SEQUENCE, l2([2], 1e-12, "norm"), "F.normalize(x, dim=-1)", opsets=(17, 18)),
        case("f_normalize_eps", EMBEDDING, l2([1], 1e-4, "norm"), "F.normalize(x, dim=1, eps=1e-4)", opsets=(13, 18)),
        case("f_normalize_axes", IMAGE, l2([1, 2, 3], 1e-12, "norm"), "F.normalize(x, dim=(1, 2, 3))", opsets=(17,)),
        case(
            "f_normalize_f16",
            EMBEDDING,
            l2([1], 0.0, "norm"),
            "F.normalize(x.half(), dim=1) (1e-12 is 0 in f16)",
            lambda x: F.normalize(x, dim=1),
            dtype=torch.float16,
        ),
        case("norm_clamp_min", IMAGE, l2([1], 1e-6, "norm"), "x / x.norm(dim=1, keepdim=True).clamp_min(1e-6)"),
        case(
            "vector_norm_clamp",
            SEQUENCE,
            l2([2], 1e-12, "norm"),
            "x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12)",
        ),
        case(
            "norm_maximum",
            EMBEDDING,
            l2([1], 1e-12, "norm"),
            "x / torch.maximum(x.norm(dim=1, keepdim=True), torch.tensor(1e-12))",
        ),
        case(
            "norm_unsqueeze",
            EMBEDDING,
            norm12 | OPTIONAL,
            "x / x.norm(dim=1).clamp_min(1e-12).unsqueeze(1)",
        ),
        case(
            "rsqrt_clamp_pow",
            IMAGE,
            l2([1], 1e-12, "max"),
            "x * torch.rsqrt(torch.clamp(x.pow(2).sum(1, keepdim=True), min=1e-12))",
            opsets=(11, 17),
        ),
        case(
            "rsqrt_clamp_mul",
            SEQUENCE,
            l2([2], 1e-6, "max"),
            "x * torch.rsqrt((x * x).sum(-1, keepdim=True).clamp_min(1e-6))",
        ),
        case(
            "div_sqrt_clamp_square",
            EMBEDDING,
            l2([1], 1e-8, "max"),
            "x / torch.sqrt(torch.square(x).sum(1, keepdim=True).clamp(min=1e-8))",
        ),
        case(
            "div_sqrt_add",
            IMAGE,
            l2([1], 1e-3, "add"),
            "x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-3)",
            opsets=(11, 17),
        ),
        case(
            "rsqrt_add_axes",
            IMAGE,
            l2([2, 3], 1e-3, "add"),
            "x * torch.rsqrt((x ** 2).sum((2, 3), keepdim=True) + 1e-3)",
        ),
        case(
            "div_sqrt_add_small", IMAGE, l2([1], 1e-10, "add"), "x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-10)"
        ),
        case("norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / x.norm(dim=-1, keepdim=True)"),
        case("norm_plus_epsilon", EMBEDDING, NOT_A_MODE, "x / (x.norm(dim=1, keepdim=True) + 1e-3)"),
        case(
            "network",
            IMAGE,
            l2([1], 1e-12, "norm", fusions=3, native=1),
            "convolution, nn.LeakyReLU(0.2), three F.normalize",
            Network(),
        ),
        case("leaky_relu", IMAGE, native(0.1), "F.leaky_relu(x, 0.1)", opsets=(11, 17)),
        case("nn_leaky_relu", IMAGE, native(0.01), "nn.LeakyReLU()(x)"),
        case("where_greater", IMAGE, leaky(0.1), "torch.where(x > 0, x, 0.1 * x)", opsets=(11, 17)),
        case("where_greater_equal", EMBEDDING, leaky(0.2), "torch.where(x >= 0, x, x * 0.2)"),
        case("where_less", EMBEDDING, leaky(0.2), "torch.where(x < 0, 0.2 * x, x)"),
        case("maximum", IMAGE, leaky(0.1), "torch.maximum(x, 0.1 * x)"),
        case("maximum_swapped", EMBEDDING, leaky(0.3), "torch.maximum(0.3 * x, x)"),
        case("clamp_sum", EMBEDDING, leaky(0.1), "x.clamp(min=0) + 0.1 * x.clamp(max=0)"),
        case("relu_minus_relu", IMAGE, leaky(0.1), "F.relu(x) - 0.1 * F.relu(-x)"),
        *export_forms.torch_forms(case),
    ]


def dynamo_drops_epsilon(name, model):
    """The dynamo exporter's optimizer removes "+ 1e-10" as if it were zero: what is left has no epsilon."""
    return name == "div_sqrt_add_small" and not any(n.op_type == "Add" for n in model.graph.node)


def dynamo_pads_itself(expected, model):
    """What the TorchScript exporter writes with slices is one Pad in mode wrap here, which the CPU engine does not run."""
    return expected["operator"] == "Padding" and [n.op_type for n in model.graph.node if n.op_type != "Constant"] == [
        "Pad"
    ]


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
    for name, shape, expected, expression, function, opsets, dtype, dynamic_axes in torch_forms():
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
            except Exception as error:  # an exporter that cannot do it is worth knowing, not a failure of this script
                print(f"torchscript cannot export {name} at opset {opset}: {str(error).splitlines()[0]}")
                continue
            stem, exporter = f"torch{version}_script_opset{opset}_{name}", f"torch {version} TorchScript exporter"
            exports.add(
                onnx.load_from_string(buffer.getvalue()), stem, exporter, expression, expected, x.numpy(), y, tolerance
            )
        for dynamic in [True, False] if "dynamo" in exporters else []:
            if not dynamic and name not in ("f_normalize", "f_normalize_last"):
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
            wanted = NO_EPSILON if dynamo_drops_epsilon(name, model) else expected
            if dynamo_pads_itself(expected, model):
                continue
            stem = f"torch{version}_dynamo_opset{opset}_{name}" + ("" if dynamic else "_static")
            exporter = f"torch {version} dynamo exporter"
            exports.add(model, stem, exporter, expression, wanted, x.numpy(), y, tolerance)


def tensorflow_forms():
    import keras
    import tensorflow as tf

    scope = {"tf": tf, "keras": keras}

    def case(name, shape, expected, expression, opsets=(13,), layer=None):
        function = layer or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opsets

    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Lambda(lambda x: tf.math.l2_normalize(x, axis=-1)),
            keras.layers.Conv2D(4, 3, padding="same"),
        ]
    )
    nhwc = (2, 4, 5, 3)
    return [
        case("l2_normalize_nhwc", nhwc, l2([3], 1e-12, "max"), "tf.math.l2_normalize(x, axis=-1)", (9, 11, 13, 18)),
        case(
            "l2_normalize_axis1", nhwc, l2([1], 1e-6, "max"), "tf.math.l2_normalize(x, axis=1, epsilon=1e-6)", (11, 13)
        ),
        case(
            "l2_normalize_axes", nhwc, l2([1, 2, 3], 1e-12, "max"), "tf.math.l2_normalize(x, axis=[1, 2, 3])", (11, 18)
        ),
        case("l2_normalize_embedding", EMBEDDING, l2([1], 1e-10, "max"), "tf.nn.l2_normalize(x, 1, epsilon=1e-10)"),
        case("maximum_norm", nhwc, l2([3], 1e-12, "norm"), "x / tf.maximum(tf.norm(x, axis=-1, keepdims=True), 1e-12)"),
        case(
            "div_sqrt_add",
            nhwc,
            l2([3], 1e-10, "add"),
            "x / tf.sqrt(tf.reduce_sum(tf.square(x), axis=-1, keepdims=True) + 1e-10)",
        ),
        case(
            "rsqrt_maximum",
            EMBEDDING,
            l2([1], 1e-12, "max"),
            "tf.math.rsqrt(tf.maximum(1e-12, tf.reduce_sum(x ** 2, 1, keepdims=True))) * x",
        ),
        case("keras_unit_normalization", nhwc, l2([3], 1e-12, "norm"), "keras.layers.UnitNormalization(axis=-1)(x)"),
        case("keras_ops_normalize", EMBEDDING, l2([1], 1e-7, "norm"), "keras.ops.normalize(x, axis=-1)"),
        case("tf_norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / tf.norm(x, axis=-1, keepdims=True)"),
        case("leaky_relu", nhwc, native(0.1), "tf.nn.leaky_relu(x, alpha=0.1)", (9, 13)),
        case("keras_leaky_relu", nhwc, native(0.3), "keras.layers.LeakyReLU(negative_slope=0.3)(x)"),
        case("keras_ops_leaky_relu", nhwc, native(0.2), "keras.ops.leaky_relu(x, 0.2)"),
        case("maximum", EMBEDDING, native(0.1), "tf.maximum(x, 0.1 * x)"),
        # tf2onnx writes x * Cast(x > 0) + 0.1 * x * Cast(not x > 0), which is NaN at infinity where tf.where is not.
        case("where", EMBEDDING, leaky(0.1) | OPTIONAL, "tf.where(x > 0, x, 0.1 * x)", (11, 13)),
        case("relu_minus_relu", nhwc, leaky(0.1), "tf.nn.relu(x) - 0.1 * tf.nn.relu(-x)"),
        case(
            "network",
            (2, 8, 8, 3),
            l2([1], 1e-12, "max", native=1),
            "Keras, NHWC: Conv2D, LeakyReLU(0.2), l2_normalize(axis=-1), Conv2D; tf2onnx moves the transposes, so axis 1",
            (13,),
            network,
        ),
        *export_forms.tensorflow_forms(case),
    ]


def export_tensorflow(exports):
    import keras
    import tensorflow as tf
    import tf2onnx

    exporter = f"tf2onnx {tf2onnx.__version__}, TensorFlow {tf.__version__}, Keras {keras.__version__}"
    for name, shape, expected, expression, function, opsets in tensorflow_forms():
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
    """The same expressions as frozen graphs, which Graft reads itself."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    exporter = f"Graft's reader, frozen graph of TensorFlow {tf.__version__}"
    for name, shape, expected, expression, function, _ in tensorflow_forms():
        signature = [tf.TensorSpec([None, *shape[1:]], tf.float32, name="x")]
        traced = tf.function(lambda x, f=function: tf.identity(f(x), name="y"), input_signature=signature)
        frozen = convert_variables_to_constants_v2(traced.get_concrete_function())
        exports.add_graph(
            frozen.graph.as_graph_def(), f"tensorflow{tf.__version__}_{name}", exporter, expression, expected
        )


def paddle_forms():
    import paddle
    import paddle.nn.functional as F
    from paddle import nn

    def case(name, shape, expected, expression, module=None, opset=13, dynamic=(0,)):
        scope = {"paddle": paddle, "F": F, "nn": nn}
        function = module or eval(f"lambda x: {expression}", scope)  # the expression in the manifest is what runs
        return name, shape, expected, expression, function, opset, dynamic

    paddle.seed(1)
    any_size = (0, 2, 3)
    norm12 = l2([1], 1e-12, "norm")
    return [
        case("f_normalize", IMAGE, norm12, "F.normalize(x, axis=1)"),
        case("f_normalize_opset9", IMAGE, norm12, "F.normalize(x, axis=1)", opset=9),
        case("f_normalize_opset17", IMAGE, norm12, "F.normalize(x, axis=1)", opset=17),
        case("f_normalize_any_size", IMAGE, norm12, "F.normalize(x, axis=1)", dynamic=any_size),
        case("f_normalize_last", SEQUENCE, l2([2], 1e-12, "norm"), "F.normalize(x, axis=-1)"),
        case("f_normalize_epsilon", EMBEDDING, l2([1], 1e-4, "norm"), "F.normalize(x, axis=1, epsilon=1e-4)"),
        case(
            "norm_clip", IMAGE, l2([1], 1e-6, "norm"), "x / paddle.clip(paddle.norm(x, axis=1, keepdim=True), min=1e-6)"
        ),
        case(
            "norm_maximum",
            EMBEDDING,
            l2([1], 1e-6, "norm"),
            "x / paddle.maximum(paddle.norm(x, axis=1, keepdim=True), paddle.full([1], 1e-6))",
        ),
        case("norm_unsqueeze", EMBEDDING, l2([1], 1e-6, "norm"), "x / x.norm(axis=1).clip(min=1e-6).unsqueeze(1)"),
        case(
            "div_sqrt_add",
            IMAGE,
            l2([1], 1e-3, "add"),
            "x / paddle.sqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3)",
        ),
        case(
            "rsqrt_add_any_size",
            IMAGE,
            l2([1], 1e-3, "add"),
            "x * paddle.rsqrt(x.square().sum(1, keepdim=True) + 1e-3)",
            dynamic=any_size,
        ),
        case(
            "pow_add",
            IMAGE,
            l2([1], 1e-3, "add"),
            "x * paddle.pow(paddle.sum(x**2, axis=1, keepdim=True) + 1e-3, -0.5)",
        ),
        case(
            "rsqrt_clip",
            SEQUENCE,
            l2([2], 1e-6, "max"),
            "x * paddle.rsqrt(x.square().sum(-1, keepdim=True).clip(min=1e-6))",
        ),
        case("norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / paddle.linalg.norm(x, axis=-1, keepdim=True)"),
        case("norm_plus_epsilon", EMBEDDING, NOT_A_MODE, "x / (paddle.norm(x, axis=1, keepdim=True) + 1e-3)"),
        case(
            "norm_p3",
            EMBEDDING,
            nothing("L2Normalize", "the norm of third powers"),
            "F.normalize(x, p=3, axis=1)",
        ),
        case("norm_p1", EMBEDDING, nothing("L2Normalize", "the sum of absolute values"), "F.normalize(x, p=1, axis=1)"),
        case("leaky_relu", IMAGE, native(0.1), "F.leaky_relu(x, 0.1)"),
        case("nn_leaky_relu", IMAGE, native(0.01), "nn.LeakyReLU()(x)"),
        case("prelu", IMAGE, leaky(0.25), "nn.PReLU()", nn.PReLU()),
        case("where_greater", IMAGE, leaky(0.1), "paddle.where(x > 0, x, 0.1 * x)", dynamic=any_size),
        case("where_less", EMBEDDING, leaky(0.2), "paddle.where(x < 0, 0.2 * x, x)"),
        case("maximum", IMAGE, leaky(0.1), "paddle.maximum(x, 0.1 * x)"),
        case("clip_sum", EMBEDDING, leaky(0.1), "x.clip(min=0) + 0.1 * x.clip(max=0)"),
        case("relu_minus_relu", IMAGE, leaky(0.1), "F.relu(x) - 0.1 * F.relu(-x)"),
        *export_forms.paddle_forms(case),
    ]


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
    for name, shape, expected, expression, function, opset, dynamic in paddle_forms():
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
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    exports = Exports(arguments.out)
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
