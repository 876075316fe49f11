# Tests that graft verify --layers never blames an undamaged node, for any damage and any tolerance.
import copy

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import helper, numpy_helper
from onnx_models import save


def weight_of(model, name):
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


def change_weight(model, name, change):
    tensor = weight_of(model, name)
    values = np.ascontiguousarray(change(numpy_helper.to_array(tensor).copy()), np.float32)
    tensor.CopyFrom(numpy_helper.from_array(values, name))


def node_of(model, name):
    return next(node for node in model.graph.node if node.name == name)


def one_larger(values):
    values.flat[np.abs(values).argmax()] *= 1.5
    return values


def one_is_nan(values):
    values.flat[5] = np.nan
    return values


def swap_channels(model):
    order = np.arange(32)
    order[[3, 9]] = [9, 3]
    change_weight(model, "conv2.weight", lambda values: values[order])
    change_weight(model, "conv2.bias", lambda values: values[order])


def padded_elsewhere(model):
    next(a for a in node_of(model, "/conv3/Conv").attribute if a.name == "pads").ints[:] = [2, 2, 0, 0]


def steeper(model):
    node_of(model, "/act2/LeakyRelu").attribute[0].f *= 1.5


def no_activation(model):
    node = node_of(model, "/act3/LeakyRelu")
    node.op_type = "Identity"
    node.ClearField("attribute")


def flattened_as_nhwc(model):
    nodes = list(model.graph.node)
    place = next(i for i, node in enumerate(nodes) if node.op_type == "Flatten")
    turn = helper.make_node("Transpose", [nodes[place].input[0]], ["turned"], perm=[0, 2, 3, 1], name="turn")
    nodes[place].input[0] = "turned"
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:place], turn, *nodes[place:]])


@pytest.fixture(scope="module")
def data(session_folder):
    """Saves a few of the images, because many tests run with them."""
    path = session_folder / "images.npy"
    np.save(path, np.load(DIGITS_DATA)["images"][:64])
    return f"image={path}"


# The damage, and the nodes of which one has to be blamed.
DAMAGES = {
    "no damage": (lambda m: None, []),
    "one weight": (lambda m: change_weight(m, "conv2.weight", one_larger), ["/conv2/Conv"]),
    "output and input channels of a convolution exchanged": (
        lambda m: change_weight(m, "conv3.weight", lambda w: w.transpose(1, 0, 2, 3)),
        ["/conv3/Conv"],
    ),
    "rows and columns of a convolution exchanged": (
        lambda m: change_weight(m, "conv3.weight", lambda w: w.transpose(0, 1, 3, 2)),
        ["/conv3/Conv"],
    ),
    "biases in the other order": (lambda m: change_weight(m, "conv1.bias", lambda b: b[::-1]), ["/conv1/Conv"]),
    "two channels swapped": (swap_channels, ["/conv2/Conv"]),
    "weights of a fully connected layer in another order": (
        lambda m: change_weight(
            m, "embed.weight", lambda w: w.reshape(32, 32, 4, 4).transpose(0, 2, 3, 1).reshape(32, 512)
        ),
        ["/embed/Gemm"],
    ),
    "a weight is NaN": (lambda m: change_weight(m, "embed.bias", one_is_nan), ["/embed/Gemm"]),
    "a bias": (lambda m: change_weight(m, "embed.bias", lambda b: b + 0.5), ["/embed/Gemm"]),
    "another padding": (padded_elsewhere, ["/conv3/Conv"]),
    "another slope": (steeper, ["/act2/LeakyRelu"]),
    "an activation is missing": (no_activation, ["/act3/LeakyRelu"]),
    "flattened in another order": (flattened_as_nhwc, ["turn", "/Flatten"]),
}
TOLERANCES = [[], ["--atol", "0.03"], ["--atol", "0.3"], ["--rtol", "0.5"]]


@pytest.mark.parametrize("damage", DAMAGES)
def test_only_the_damaged_node_is_blamed(graft, data, tmp_path, damage):
    change, guilty = DAMAGES[damage]
    model = onnx.load(DIGITS)
    change(model)
    onnx.save(model, tmp_path / "damaged.onnx")
    for tolerance in TOLERANCES:
        answer = graft("verify", DIGITS, tmp_path / "damaged.onnx", "--layers", "--json", "--data", data, *tolerance)
        first = answer.json["first_divergence"]
        if first is None:
            assert tolerance or not guilty
            continue
        assert any(name in first["candidate_nodes"] for name in guilty), (tolerance, first)


@pytest.mark.parametrize("kind", ["f16", "bf16", "int8"])
def test_rounding_in_many_nodes_is_no_other_order(graft, data, kind):
    """Rounding changes many elements a little. The report must not explain that as elements in another order (the
    key `layout`), although the sorted elements agree within 5 %."""
    result = graft("verify", DIGITS, "--emulate", kind, "--json", "--data", data).json
    assert result["first_divergence"] is None
    assert {layer["layout"] for layer in result["layers"]} == {None}


def test_the_damage_is_found_under_emulation_too(graft, data, tmp_path):
    for damage in ("another padding", "a bias", "rows and columns of a convolution exchanged"):
        change, guilty = DAMAGES[damage]
        model = copy.deepcopy(onnx.load(DIGITS))
        change(model)
        onnx.save(model, tmp_path / "damaged.onnx")
        answer = graft("verify", DIGITS, tmp_path / "damaged.onnx", "--emulate", "int8", "--json", "--data", data)
        assert guilty[0] in answer.json["first_divergence"]["candidate_nodes"], damage


def numbered(path, shifted, damaged=None, name="{1}"):
    """Saves a network with numbered tensors and nodes, as old PyTorch exporters write them: with an additional node,
    each name is that of another tensor."""
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"

    def add(op, *inputs, **attributes):
        nonlocal last
        number = len(nodes)
        nodes.append(
            helper.make_node(op, [last, *inputs], [name.format(op, 11 + number)], name=f"{op}_{number}", **attributes)
        )
        last = nodes[-1].output[0]

    for i in range(6):
        if i == shifted:
            add("Identity")
        values = (random.standard_normal((8, 8, 3, 3)) / 9).astype(np.float32)
        weights.append(numpy_helper.from_array(values * np.float32(1.01 if i == damaged else 1), f"w{i}"))
        add("Conv", f"w{i}", pads=[1] * 4)
        add(("Relu", "Tanh", "Sigmoid")[i % 3])
    nodes[-1].output[0] = "y"
    return save(path, nodes, [("x", [2, 8, 6, 6])], [("y", [2, 8, 6, 6])], weights)


@pytest.mark.parametrize("shifted", [0, 2, 5])
def test_numbers_for_names_are_not_trusted(graft, tmp_path, shifted):
    reference = numbered(tmp_path / "a.onnx", None)
    same = numbered(tmp_path / "b.onnx", shifted)
    answer = graft("verify", reference, same, "--layers", "--json", code=0)
    assert answer.json["first_divergence"] is None
    assert len(answer.json["layers"]) == 12
    wrong = numbered(tmp_path / "c.onnx", shifted, damaged=3)
    first = graft("verify", reference, wrong, "--layers", "--json").json["first_divergence"]
    assert first["reference_node"] == "Conv_6"
    assert first["candidate_node"] == f"Conv_{6 if shifted > 3 else 7}"


def test_numbers_in_names_are_not_trusted_either(graft, tmp_path):
    reference = numbered(tmp_path / "a.onnx", None, name="tensor_{1}")
    same = numbered(tmp_path / "b.onnx", 1, name="tensor_{1}")
    graft("verify", reference, same, "--layers", "--json", code=0)
