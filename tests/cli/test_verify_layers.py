# graft verify --layers: locates an error at its node, in every place and through every rewrite. NumPy and ONNX Runtime
# compute the expected figures.
import copy
import shlex

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA, PROGRAM, run_command
from onnx import TensorProto, helper, numpy_helper
from onnx_models import make_model, run_onnx, save, session_of

SIZE = 12  # the height and width of the image


class Network:
    """A chain of nodes; weights are small random numbers."""

    def __init__(self):
        self.nodes, self.weights, self.last = [], [], "image"
        self.random = np.random.default_rng(7)

    def weight(self, name, *shape):
        values = (self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, op, *inputs, first=None, **attributes):
        name = f"n{len(self.nodes)}_{op}"
        self.nodes.append(helper.make_node(op, [first or self.last, *inputs], [f"{name}_out"], name=name, **attributes))
        self.last = f"{name}_out"
        return self.last

    def convolution(self, channels_in, channels, **attributes):
        i = len(self.nodes)
        self.add(
            "Conv", self.weight(f"w{i}", channels, channels_in, 3, 3), self.weight(f"b{i}", channels), **attributes
        )


def network_of_sixty(path):
    """Saves sixty nodes, of which five become Graft's operators with --plugins always: InstanceNorm twice, Padding,
    Upsampling and L2Normalize."""
    net = Network()
    net.convolution(3, 8, pads=[1] * 4)
    for block in range(6):
        before = net.last
        net.convolution(8, 8, pads=[1] * 4)
        if block in (1, 3):
            net.add("InstanceNormalization", net.weight(f"scale{block}", 8), net.weight(f"bias{block}", 8))
        net.add(("Sigmoid", "Tanh", "Softplus", "Elu", "Sigmoid", "Softplus")[block])
        net.convolution(8, 8, pads=[1] * 4)
        net.add("Mul", net.constant(f"half{block}", np.float32(0.5)))
        net.add("Add", before)
        net.add("Softsign")
        if block == 2:
            net.add("Pad", net.constant("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1])), mode="reflect")
        if block == 4:
            net.add(
                "Resize",
                "",
                net.constant("scales", np.array([1, 1, 2, 2], np.float32)),
                mode="linear",
                coordinate_transformation_mode="align_corners",
            )
    net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    while len(net.nodes) < 51:
        net.add("Tanh" if len(net.nodes) % 2 else "Sigmoid")
        net.add("Sub", net.constant(f"shift{len(net.nodes)}", np.float32(0.3)))
        net.convolution(8, 8, pads=[1] * 4)
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("Gemm", net.weight("fc", 8, 16), net.weight("fc_bias", 16))
    embedding = net.last
    net.add("ReduceL2", axes=[1], keepdims=1)
    norm = net.add("Clip", net.constant("epsilon", np.float32(1e-12)))
    net.add("Div", norm, first=embedding)
    while len(net.nodes) < 59:
        net.add("Gemm", net.weight(f"fc{len(net.nodes)}", 16, 16), net.weight(f"fcb{len(net.nodes)}", 16))
    net.add("Softmax", axis=1)
    assert len(net.nodes) == 60
    return save(path, net.nodes, [("image", ["n", 3, SIZE, SIZE])], [(net.last, ["n", 16])], net.weights)


@pytest.fixture(scope="module")
def sixty(tmp_path_factory):
    """Returns the network, and the converted one."""
    folder = tmp_path_factory.mktemp("sixty")
    path = network_of_sixty(folder / "network.onnx")
    converted = folder / "converted.onnx"
    run_command(PROGRAM, "convert", path, "-o", converted, "--plugins", "always", code=0)
    return path, converted


def seeded(model, position, name_stays):
    """Returns a copy with an error of 1 % after a node. The name of the node's output is that of the wrong tensor or
    of the correct one."""
    changed = copy.deepcopy(model)
    node = changed.graph.node[position]
    name = node.output[0]
    factor = helper.make_tensor("seeded_factor", TensorProto.FLOAT, [], [1.01])
    changed.graph.initializer.append(factor)
    if name_stays:
        node.output[0] = "seeded_right"
        wrong = helper.make_node("Mul", ["seeded_right", "seeded_factor"], [name], name="seeded")
    else:
        wrong = helper.make_node("Mul", [name, "seeded_factor"], ["seeded_wrong"], name="seeded")
        for reader in changed.graph.node:
            reader.input[:] = ["seeded_wrong" if i == name else i for i in reader.input]
        changed.graph.output[0].name = (
            "seeded_wrong" if changed.graph.output[0].name == name else changed.graph.output[0].name
        )
    changed.graph.node.insert(position + 1, wrong)
    return changed


def test_the_converted_network_has_five_operators_and_agrees(graft, sixty):
    path, converted = sixty
    graft_nodes = [node for node in onnx.load(converted).graph.node if node.domain == "graft"]
    assert len(graft_nodes) == 5
    assert len({node.op_type for node in graft_nodes}) == 4
    for kernels in ("functions", "own"):
        result = graft("verify", path, converted, "--layers", "--json", "--kernels", kernels, code=0).json
        assert result["equal"] and result["first_divergence"] is None
        assert all(layer["equal"] for layer in result["layers"])
        # Every node of the reference belongs to some row.
        covered = {node for layer in result["layers"] for node in layer["reference_nodes"]}
        assert len(covered) == 60


@pytest.mark.parametrize("part", range(6))
def test_one_percent_behind_any_node_is_pinned_to_it(graft, sixty, tmp_path, part):
    path, converted = sixty
    model = onnx.load(converted)
    positions = range(len(model.graph.node))
    for position in positions[part::6]:
        node = model.graph.node[position]
        candidate = tmp_path / f"seeded{position}.onnx"
        onnx.save(seeded(model, position, True), candidate)
        answer = graft("verify", path, candidate, "--layers", "--json")
        output = next(layer for layer in answer.json["layers"] if layer["is_output"])
        # A normalization may remove the error again: the outputs determine the exit code, not internal tensors.
        assert answer.code == (0 if output["equal"] else 1), f"{position} {node.op_type}: {answer.out}{answer.err}"
        assert (
            "tensors inside the network differ" in answer.err or "1 tensor inside the network differs" in answer.err
        ) == output["equal"]
        first = answer.json["first_divergence"]
        assert first is not None, f"{position} {node.op_type}: nothing found"
        assert first["candidate"] == node.output[0], f"{position} {node.op_type}: {first}"
        assert "1.01 times the reference" in first["why"]


def all_tensors(path, feeds):
    """Returns every tensor of a model of standard operators, computed by ONNX Runtime."""
    model = onnx.load(path)
    known = {o.name for o in model.graph.output}
    names = [o for node in model.graph.node for o in node.output if o and o not in known]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    return run_onnx(model, feeds)


def test_figures_are_those_of_onnx_runtime_and_numpy(graft, sixty, tmp_path):
    path, _ = sixty
    candidate = tmp_path / "seeded.onnx"
    onnx.save(seeded(onnx.load(path), 10, True), candidate)
    image = np.random.default_rng(3).standard_normal((2, 3, SIZE, SIZE)).astype(np.float32)
    np.save(tmp_path / "image.npy", image)
    answer = graft(
        "verify", path, candidate, "--layers", "--json", "--data", f"image={tmp_path}/image.npy", "--atol", "1e-5"
    )
    expected = all_tensors(path, {"image": image})
    found = all_tensors(candidate, {"image": image})
    layers = {layer["candidate"]: layer for layer in answer.json["layers"]}
    assert len(layers) == 60
    for name in (f"n{i}_{node.op_type}_out" for i, node in enumerate(onnx.load(path).graph.node)):
        layer, a, b = layers[name], expected[name].astype(np.float64), found[name].astype(np.float64)
        noise = 2e-6 * np.abs(a).max() + 1e-7  # ONNX Runtime and the CPU engine round differently
        error = np.abs(a - b)
        assert layer["elements"] == a.size
        assert abs(layer["max_absolute"] - error.max()) < noise, name
        assert abs(layer["reference_range"]["lowest"] - a.min()) < noise
        assert abs(layer["candidate_range"]["highest"] - b.max()) < noise
        assert sum(layer["error_histogram"].values()) == a.size
        if error.max() > 100 * noise:
            assert layer["snr_db"] == pytest.approx(10 * np.log10((a**2).sum() / (error**2).sum()), abs=0.1), name
            assert layer["cosine"] == pytest.approx((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()), abs=1e-6)
            assert not layer["equal"]


def flatten_networks(tmp_path, wrong, size=(4, 5)):
    """Saves a reference (Conv, Transpose to NHWC, Flatten, MatMul, Relu) and a candidate in which the nodes `wrong`
    replace the Transpose and the Flatten. Returns the paths of both. `wrong` must compute 'flat' from 'features'."""
    random = np.random.default_rng(1)
    h, w = size

    def tensor(name, *shape):
        return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)

    weights = [tensor("w", 3, 3, 1, 1), tensor("fc", 3 * h * w, 7)]
    nodes = [helper.make_node("Conv", ["image", "w"], ["features"], name="conv")]
    right = [
        helper.make_node("Transpose", ["features"], ["last"], name="to_nhwc", perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["last"], ["flat"], name="flatten"),
    ]
    tail = [
        helper.make_node("MatMul", ["flat", "fc"], ["scores"], name="fully_connected"),
        helper.make_node("Relu", ["scores"], ["y"], name="relu"),
    ]
    ends = [("image", [2, 3, h, w])], [("y", [2, 7])]
    reference = save(tmp_path / "right.onnx", nodes + right + tail, *ends, weights)
    candidate = save(tmp_path / "wrong.onnx", nodes + wrong + tail, *ends, weights)
    return reference, candidate


@pytest.mark.parametrize("size", [(4, 5), (4, 4), (3, 3)])
def test_a_network_flattened_in_the_wrong_order_is_called_that(graft, tmp_path, size):
    files = flatten_networks(tmp_path, [helper.make_node("Flatten", ["features"], ["flat"], name="flatten")], size)
    first = graft("verify", *files, "--layers", "--json", code=1).json["first_divergence"]
    assert first["candidate"] == "flat"
    assert first["layout"] == "flattened in another order"
    assert "NCHW in the candidate, NHWC in the reference" in first["why"]
    text = graft("verify", *files, "--layers").out
    assert "flattened in the wrong order" in text
    assert "skipped" not in text


def test_a_tensor_in_another_order_that_the_rest_expects_is_no_divergence(graft, tmp_path):
    """The candidate has two more Transposes and the same output: the tensor between them has another order and the
    same name."""
    random = np.random.default_rng(1)
    weights = {"w": random.standard_normal((4, 4, 1, 1)).astype(np.float32)}

    def network(name, inner):
        first = helper.make_node("Conv", ["image", "w"], ["features"], name="conv")
        return save(tmp_path / name, [first, *inner], [("image", [1, 4, 4, 4])], [("y", [1, 4, 4, 4])], weights)

    reference = network(
        "a.onnx",
        [helper.make_node("Tanh", ["features"], ["t"], name="tanh"), helper.make_node("Relu", ["t"], ["y"])],
    )
    candidate = network(
        "b.onnx",
        [
            helper.make_node("Transpose", ["features"], ["turned"], perm=[0, 2, 3, 1]),
            helper.make_node("Tanh", ["turned"], ["t"], name="tanh"),
            helper.make_node("Transpose", ["t"], ["back"], perm=[0, 3, 1, 2]),
            helper.make_node("Relu", ["back"], ["y"]),
        ],
    )
    answer = graft("verify", reference, candidate, "--layers", "--json", code=0)
    layer = next(layer for layer in answer.json["layers"] if layer["candidate"] == "t")
    assert layer["layout"] == "transposed"
    assert "NHWC in the candidate" in layer["diagnosis"]


@pytest.mark.parametrize(
    ("axis", "order", "layout"),
    [
        (1, [2, 1, 0], "channels swapped"),
        (1, [1, 2, 0], "channels swapped"),
        (2, [4, 3, 2, 1, 0], "mirrored"),
        (3, [5, 0, 1, 2, 3, 4], "rotated"),
        (3, [5, 0, 2, 1, 3, 4], "slices in another order"),
    ],
)
def test_swapped_and_mirrored_axes_are_called_that(graft, tmp_path, axis, order, layout):
    weight = np.random.default_rng(1).standard_normal((3, 3, 1, 1)).astype(np.float32)
    ends = [("image", [2, 3, 5, 6])], [("y", [2, 3, 5, 6])]

    def network(name, indices):
        nodes = [
            helper.make_node("Conv", ["image", "w"], ["features"], name="conv"),
            helper.make_node("Gather", ["features", "order"], ["moved"], name="swap", axis=axis),
            helper.make_node("Tanh", ["moved"], ["y"], name="tanh"),
        ]
        return save(tmp_path / name, nodes, *ends, {"w": weight, "order": np.array(indices)})

    reference, candidate = network("a.onnx", sorted(order)), network("b.onnx", order)
    first = graft("verify", reference, candidate, "--layers", "--json", code=1).json["first_divergence"]
    assert (first["candidate"], first["layout"]) == ("moved", layout)
    assert f"axis {axis}" in first["why"]


def test_renamed_tensors_are_paired_by_structure_and_by_values(graft, sixty, tmp_path):
    """Every tensor has another name, and each Softsign is decomposed into x / (1 + |x|)."""
    path, _ = sixty
    model = onnx.load(path)
    names = {o: f"other_{k}" for k, o in enumerate(o for node in model.graph.node for o in node.output)}
    nodes = []
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one"))
    for node in model.graph.node:
        node.name = f"other_{node.name}"
        node.input[:] = [names.get(i, i) for i in node.input]
        node.output[:] = [names.get(o, o) for o in node.output]
        if node.op_type == "Softsign":
            x, y = node.input[0], node.output[0]
            nodes += [
                helper.make_node("Abs", [x], [f"{y}_abs"]),
                helper.make_node("Add", [f"{y}_abs", "one"], [f"{y}_sum"]),
                helper.make_node("Div", [x, f"{y}_sum"], [y], name=node.name),
            ]
        else:
            nodes.append(node)
    model.graph.output[0].name = names[model.graph.output[0].name]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    candidate = tmp_path / "renamed.onnx"
    onnx.save(model, candidate)
    answer = graft("verify", path, candidate, "--layers", "--json", code=0)
    assert len(answer.json["layers"]) == 60
    assert {layer["matched_by"] for layer in answer.json["layers"]} >= {"structure", "values", "output"}
    wrong = tmp_path / "wrong.onnx"
    position = next(i for i, node in enumerate(nodes) if node.op_type == "Div")
    onnx.save(seeded(model, position, True), wrong)
    first = graft("verify", path, wrong, "--layers", "--json").json["first_divergence"]
    assert first["candidate_node"] == "seeded"


@pytest.mark.parametrize(("factor", "code"), [(1.01, 0), (-1, 1)])
def test_the_outputs_decide_on_the_exit_code(graft, tmp_path, factor, code):
    """ArgMax returns the same class for 1.01 times the scores."""

    def network(name, factor):
        nodes = [
            helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
            helper.make_node("Mul", ["t", "factor"], ["scores"], name="scale"),
            helper.make_node("ArgMax", ["scores"], ["class"], name="class", axis=1),
        ]
        return save(tmp_path / name, nodes, [("x", [4, 9])], [("class", TensorProto.INT64, [4, 1])], {"factor": factor})

    files = network("a.onnx", np.float32(1)), network("b.onnx", np.float32(factor))
    classes = [
        session_of(path).run(None, {"x": np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)})[0]
        for path in files
    ]
    assert (classes[0] == classes[1]).all() == (code == 0)
    assert graft("verify", *files).code == code
    answer = graft("verify", *files, "--layers", "--json")
    assert answer.code == code
    assert answer.json["equal"] == (code == 0)
    assert answer.json["first_divergence"]["candidate"] == "scores"
    warning = "the outputs are the same, so the exit code is 0; 1 tensor inside the network differs, first 'scores' by node 'scale'"
    assert (warning in " ".join(answer.err.split())) == (code == 0)


def test_a_changed_weight_is_pinned_to_its_layer(graft, changed):
    answer = graft("verify", DIGITS, changed, "--layers", "--json", "--data", f"image={DIGITS_DATA}:images")
    assert answer.json["first_divergence"]["candidate"] == "/classifier/MatMul_output_0"


def test_reduce_writes_the_node_with_its_inputs(graft, sixty, tmp_path):
    path, converted = sixty
    model = onnx.load(converted)
    position = next(i for i, node in enumerate(model.graph.node) if node.op_type == "Elu")
    candidate = tmp_path / "seeded.onnx"
    onnx.save(seeded(model, position, True), candidate)
    out = tmp_path / "small part.onnx"
    reduced = graft("verify", path, candidate, "--reduce", out, "--json").json["reduced"]
    small = onnx.load(out)
    onnx.checker.check_model(small, full_check=True)
    assert [node.op_type for node in small.graph.node] == ["Elu", "Mul"]
    assert [node.op_type for node in onnx.load(reduced["reference"]).graph.node] == ["Elu"]
    # ONNX Runtime shows the error in the two files.
    feeds = dict(np.load(reduced["inputs"]))
    results = [session_of(file).run(None, feeds)[0] for file in (reduced["reference"], out)]
    np.testing.assert_allclose(results[1], results[0] * 1.01, rtol=1e-5)
    # The command in the report shows it too.
    again = run_command(*shlex.split(reduced["command"].replace("graft ", f"{PROGRAM} ", 1)), code=1)
    assert "1.01 times the reference" in again.stdout


def test_reduce_says_which_inputs_no_file_of_numpy_can_contain(graft, tmp_path):
    """The reshape fails, and its input is u4, which NumPy does not have."""

    def network(*nodes):
        weights = [
            numpy_helper.from_array(np.float32(3), "three"),
            numpy_helper.from_array(np.array([5], np.int64), "sizes"),
        ]
        first = [
            helper.make_node("Mul", ["x", "three"], ["m"]),
            helper.make_node("Cast", ["m"], ["codes"], to=TensorProto.UINT4),
        ]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([*first, *nodes], "g", [x], [y], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    back = {"to": TensorProto.FLOAT}
    reference, candidate, out = (tmp_path / f"{name}.onnx" for name in ("reference", "candidate", "small"))
    onnx.save(network(helper.make_node("Cast", ["codes"], ["y"], **back)), reference)
    turned = helper.make_node("Reshape", ["codes", "sizes"], ["turned"])
    onnx.save(network(turned, helper.make_node("Cast", ["turned"], ["y"], **back)), candidate)
    answer = graft("verify", reference, candidate, "--engine", "openvino", "--reduce", out, code=1)
    assert [value.name for value in onnx.load(out).graph.input] == ["codes"]
    assert not out.with_suffix(".npz").exists()
    assert "NumPy files cannot contain their types: codes (u4)" in answer.err


def test_reduce_refuses_another_ending(graft, tmp_path):
    answer = graft("verify", DIGITS, DIGITS, "--reduce", tmp_path / "small.pb", code=2)
    assert ".onnx" in answer.err


def rounded(values, kind, scale=1.0):
    """Rounds f32 values to another type."""
    if kind == "f16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)
    if kind == "bf16":
        bits = np.atleast_1d(values).astype(np.float32).view(np.uint32).reshape(np.shape(values))
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return np.asarray(bits).view(np.float32)
    return (np.clip(np.rint(values / np.float32(scale)), -128, 127) * np.float32(scale)).astype(np.float32)


def int8_weights(node, index, values):
    """Rounds the weights that Graft quantizes, with one scale for each output channel."""
    if index != 1 or node.op_type not in ("Conv", "Gemm"):
        return values
    axis = 0 if node.op_type == "Conv" else 1
    others = tuple(i for i in range(values.ndim) if i != axis)
    scale = np.abs(values).max(axis=others, keepdims=True) / 127
    return (np.clip(np.rint(values / scale), -128, 127) * scale).astype(np.float32)


def emulated_tensors(path, image, kind, exact):
    """Runs a model node by node in ONNX Runtime, with each tensor rounded by NumPy."""
    model = onnx.load(path)
    known = {"image": rounded(image, kind, np.abs(image).max() / 127)}
    weights = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    for node in model.graph.node:
        feeds = {}
        for index, name in enumerate(node.input):
            if name in known:
                feeds[name] = known[name]
            elif name:
                values = weights[name]
                if values.dtype == np.float32 and not (node.op_type == "Resize" and index):
                    values = int8_weights(node, index, values) if kind == "int8" else rounded(values, kind)
                feeds[name] = values
        infos = [(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
        single = make_model([node], infos, [helper.make_empty_tensor_value_info(node.output[0])])
        session = session_of(single)
        (result,) = session.run(None, feeds)
        name = node.output[0]
        moves = node.op_type in ("Flatten",)
        known[name] = result if moves else rounded(result, kind, np.abs(exact[name]).max() / 127)
    return known


@pytest.mark.parametrize("kind", ["f16", "bf16", "int8"])
def test_emulation_is_what_numpy_and_onnx_runtime_make_of_it(graft, sixty, tmp_path, kind):
    path, _ = sixty
    image = np.random.default_rng(5).standard_normal((2, 3, SIZE, SIZE)).astype(np.float32)
    np.save(tmp_path / "image.npy", image)
    answer = graft("verify", path, "--emulate", kind, "--json", "--data", f"image={tmp_path}/image.npy")
    assert answer.code in (0, 1), answer.err
    assert answer.json["emulated"] == kind
    exact = all_tensors(path, {"image": image})
    expected = emulated_tensors(path, image, kind, exact)
    step = {"f16": 2**-10, "bf16": 2**-7, "int8": 1 / 64}[kind]
    for layer in answer.json["layers"]:
        name = layer["candidate"]
        a, b = exact[name].astype(np.float64), expected[name].astype(np.float64)
        snr = 10 * np.log10((a**2).sum() / ((a - b) ** 2).sum())
        assert layer["snr_db"] == pytest.approx(snr, abs=3), name  # ties that are rounded differently add up
        assert abs(layer["candidate_range"]["highest"] - b.max()) <= 4 * step * np.abs(a).max(), name
        alone = rounded(exact[name], kind, np.abs(exact[name]).max() / 127).astype(np.float64)
        snr = 10 * np.log10((a**2).sum() / ((a - alone) ** 2).sum())
        # From 100 dB on the error is the last bit of f32, which depends on the order of a sum.
        assert layer["rounding"]["snr_db"] == pytest.approx(snr, abs=0.3 if snr < 100 else 6), name
        assert layer["rounding"]["overflow"] == 0
        assert abs(layer["rounding"]["underflow"] - ((alone == 0) & (a != 0)).sum()) <= 2, name


def narrow_network(path, *nodes, constants):
    weights = {name: np.float32(value) for name, value in constants.items()}
    return save(path, list(nodes), [("x", [1, 64])], [(nodes[-1].output[0], [1, 64])], weights)


def test_overflow_in_f16_is_found_where_it_begins(graft, tmp_path):
    path = narrow_network(
        tmp_path / "large.onnx",
        helper.make_node("Mul", ["x", "hundred"], ["hundreds"], name="scale"),
        helper.make_node("Mul", ["hundreds", "hundreds"], ["squares"], name="square"),
        helper.make_node("Sqrt", ["squares"], ["sizes"], name="root"),
        helper.make_node("Div", ["sizes", "hundred"], ["y"], name="back"),
        constants={"hundred": 400.0},
    )
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)
    np.save(tmp_path / "x.npy", x)
    data = f"x={tmp_path}/x.npy"
    assert graft("verify", path, path, "--data", data).code == 0
    answer = graft("verify", path, "--emulate", "f16", "--data", data, "--json", code=1)
    first = answer.json["first_divergence"]
    assert first["candidate"] == "squares"
    layer = next(layer for layer in answer.json["layers"] if layer["candidate"] == "squares")
    with np.errstate(over="ignore"):
        beyond = np.isinf(((x * np.float32(400)) ** 2).astype(np.float16)).sum()
    assert layer["rounding"]["overflow"] == beyond
    text = graft("verify", path, "--emulate", "f16", "--data", data).out
    assert "beyond the range of the type" in text
    assert "squares" in text
    # bf16 has the range of f32, and enough digits for the outputs.
    assert graft("verify", path, "--emulate", "bf16", "--data", data).code == 0


def test_cancellation_is_where_f16_loses_most(graft, tmp_path):
    path = narrow_network(
        tmp_path / "cancel.onnx",
        helper.make_node("Add", ["x", "offset"], ["shifted"], name="shift"),
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node("Sub", ["shifted", "offset"], ["back"], name="cancel"),
        helper.make_node("Mul", ["back", "t"], ["y"], name="product"),
        constants={"offset": 1000.0},
    )
    answer = graft("verify", path, "--emulate", "f16", "--json", code=1)
    assert answer.json["weakest"] == "back"
    assert "'back' by node 'cancel' (Sub)" in graft("verify", path, "--emulate", "f16").out


def test_int8_saturates_what_its_first_run_did_not_have(graft, tmp_path):
    path = narrow_network(
        tmp_path / "plain.onnx",
        helper.make_node("Exp", ["x"], ["e"], name="exp"),
        helper.make_node("Mul", ["e", "e"], ["y"], name="square"),
        constants={},
    )
    answer = graft("verify", path, "--emulate", "int8", "--seeds", "8", "--json")
    assert answer.json["runs"] == 8
    assert sum(layer["rounding"]["saturated"] for layer in answer.json["layers"]) > 0


@pytest.mark.parametrize(("op", "domain"), [("Reshape", ""), ("Unknown", "elsewhere")])
def test_a_model_that_does_not_run_is_reduced_to_the_node(graft, tmp_path, op, domain):
    """Sixty-four elements do not fit into 7 x 9, and the other operator is unknown; the nodes around it run."""

    def network(name, op, domain, sizes):
        nodes = [helper.make_node("Tanh", ["x"], ["t0"], name="first")]
        nodes += [helper.make_node("Tanh", [f"t{i}"], [f"t{i + 1}"], name=f"tanh{i}") for i in range(10)]
        nodes += [
            helper.make_node(op, ["t10", "sizes"], ["picked"], name="pick", domain=domain),
            helper.make_node("Tanh", ["picked"], ["y"], name="last"),
        ]
        weights = [numpy_helper.from_array(np.array(sizes), "sizes")]
        ends = [("x", [1, 64])], [("y", None)]
        return save(tmp_path / name, nodes, *ends, weights, domains=[domain] if domain else ())

    reference = network("right.onnx", "Reshape", "", [8, 8])
    candidate = network("wrong.onnx", op, domain, [7, 9])
    out = tmp_path / "small.onnx"
    answer = graft("verify", reference, candidate, "--reduce", out, "--json", code=1)
    assert answer.json["failure"]["node"] == "pick"
    assert [node.name for node in onnx.load(out).graph.node] == ["pick"]
    run_command(*answer.json["reduced"]["command"].replace("graft ", f"{PROGRAM} ", 1).split(), code=2)
    with pytest.raises(Exception, match=op):
        session_of(out).run(None, dict(np.load(answer.json["reduced"]["inputs"])))
    assert "the candidate does not run: node 'pick'" in graft("verify", reference, candidate, "--layers").out


def test_one_model_needs_a_type_to_emulate(graft):
    answer = graft("verify", DIGITS, code=2)
    assert "--emulate" in answer.err


@pytest.mark.parametrize("files", [["digits.pb"], ["digits.prototxt", "digits.caffemodel"]])
def test_the_same_network_in_three_formats(graft, tmp_path, files):
    """The formats differ in names, in the image's layout, and in operators."""
    folder = DIGITS.parent
    candidate = [folder / name for name in files]
    answer = graft("verify", DIGITS, *candidate, "--layers", "--json", code=0)
    found = {layer["reference"] for layer in answer.json["layers"]}
    assert {"/conv1/Conv_output_0", "/act3/LeakyRelu_output_0", "embedding", "logits"} <= found
    graft("verify", *candidate, DIGITS, "--layers", "--json", code=0)
    # A wrong weight, compared with the other format.
    model = onnx.load(DIGITS)
    weight = next(t for t in model.graph.initializer if t.name == "conv2.weight")
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.01), weight.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    wrong = graft("verify", *candidate, tmp_path / "wrong.onnx", "--layers", "--json", code=1)
    assert "/conv2/Conv" in wrong.json["first_divergence"]["candidate_nodes"]
