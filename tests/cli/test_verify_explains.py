# Tests that graft verify reports which property of a node differs, which file is the reference, and how much which
# element differs.
import json

import numpy as np
import onnx
import pytest
from conftest import DIGITS
from onnx import TensorProto, helper, numpy_helper
from onnx_models import save, subgraph
from test_verify_blame import DAMAGES, change_weight, node_of


@pytest.fixture
def first_of(graft, tmp_path):
    """Returns the first divergence of a damaged digits network, and the printed text about it."""

    def run(change):
        model = onnx.load(DIGITS)
        change(model)
        onnx.save(model, tmp_path / "damaged.onnx")
        files = (DIGITS, tmp_path / "damaged.onnx")
        result = graft("verify", *files, "--layers", "--json").json
        return result["first_divergence"], graft("verify", *files, "--layers").out

    return run


def test_another_attribute_is_named_with_both_values(first_of):
    first, text = first_of(DAMAGES["another padding"][0])
    assert first["differences"] == ["attribute pads: [1, 1, 1, 1] in the reference, [2, 2, 0, 0] in the candidate"]
    assert "attribute pads: [1, 1, 1, 1] in the reference" in " ".join(text.split())


def test_another_weight_is_named_with_its_element(first_of):
    values = numpy_helper.to_array(next(t for t in onnx.load(DIGITS).graph.initializer if t.name == "conv2.weight"))
    place = np.unravel_index(np.abs(values).argmax(), values.shape)
    first, _ = first_of(DAMAGES["one weight"][0])
    (difference,) = first["differences"]
    assert difference.startswith("constant 'conv2.weight' (input 1): 1 of 4608 elements differ")
    assert f"first at [{', '.join(map(str, place))}]" in difference
    assert f"{values[place]:.9g} in the reference" in difference


def test_a_weight_that_is_another_in_whole_is_explained(first_of):
    for damage, text in (
        ("output and input channels of a convolution exchanged", "transposed by [1, 0, 2, 3]"),
        ("rows and columns of a convolution exchanged", "transposed by [0, 1, 3, 2]"),
        ("biases in the other order", "mirrored along axis 0"),
        ("a bias", "the reference + 0.5"),
    ):
        first, _ = first_of(DAMAGES[damage][0])
        assert text in first["differences"][0], damage
    first, _ = first_of(lambda m: change_weight(m, "conv3.weight", lambda w: w * 1.5))
    assert "1.5 times the reference" in first["differences"][0]


def test_another_operator_is_named(first_of):
    first, _ = first_of(DAMAGES["an activation is missing"][0])
    assert first["differences"] == ["operator: LeakyRelu in the reference, Identity in the candidate"]


def test_an_input_that_is_a_constant_in_one_only_is_named(first_of):
    def change(model):
        node = node_of(model, "/classifier/MatMul")
        shape = helper.make_node("Identity", [node.input[1]], ["copied"], name="copy")
        twice = helper.make_node("Mul", ["copied", "two"], ["doubled"], name="double")
        model.graph.initializer.append(numpy_helper.from_array(np.float32(2), "two"))
        node.input[1] = "doubled"
        place = list(model.graph.node).index(node)
        model.graph.node.insert(place, twice)
        model.graph.node.insert(place, shape)

    first, text = first_of(change)
    assert first["differences"] is None  # three nodes replace one: they are listed
    assert "node 'double' (Mul)" in text


def small_network(path, *nodes, weights=(), functions=(), domains=()):
    return save(
        path, list(nodes), [("x", [2, 4])], [(nodes[-1].output[0], [2, 4])], list(weights), 17, functions, domains
    )


def scalar(name, value, kind=np.float32):
    return numpy_helper.from_array(np.asarray(value, kind), name)


@pytest.fixture
def differences(graft):
    def run(reference, candidate):
        result = graft("verify", reference, candidate, "--layers", "--json", code=1)
        return result.json["first_divergence"]["differences"]

    return run


def test_exchanged_inputs_are_named(differences, tmp_path):
    def network(name, inputs):
        nodes = [
            helper.make_node("Exp", ["x"], ["a"]),
            helper.make_node("Tanh", ["x"], ["b"]),
            helper.make_node("Softsign", ["x"], ["c"]),
            helper.make_node("Sub", inputs, ["d"], name="difference"),
            helper.make_node("Neg", ["d"], ["y"]),
        ]
        return small_network(tmp_path / name, *nodes)

    reference = network("reference.onnx", ["a", "b"])
    assert differences(reference, network("exchanged.onnx", ["b", "a"])) == [
        "inputs 0 and 1 are exchanged: 'a' and 'b' in the reference, 'b' and 'a' in the candidate"
    ]
    assert differences(reference, network("another.onnx", ["a", "c"])) == [
        "input 1: the computed 'b' in the reference, the computed 'c' in the candidate"
    ]


def body(name, *nodes, inputs=(), outputs, weights=()):
    info = [(n, kind, shape) for n, kind, shape in outputs]
    given = [(n, kind, shape) for n, kind, shape in inputs]
    return subgraph(list(nodes), given, info, list(weights))


REAL, TRUTH, WHOLE = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


@pytest.mark.parametrize("as_node", [False, True])
def test_a_constant_in_a_loop_is_named(differences, tmp_path, as_node):
    def network(name, factor):
        constant = [] if as_node else [scalar("factor", factor)]
        made = [helper.make_node("Constant", [], ["factor"], value=scalar("", factor))] if as_node else []
        inner = body(
            "inner",
            *made,
            helper.make_node("Mul", ["carried", "factor"], ["out"], name="product"),
            helper.make_node("Identity", ["going"], ["still"]),
            inputs=[("turn", WHOLE, []), ("going", TRUTH, []), ("carried", REAL, [2, 4])],
            outputs=[("still", TRUTH, []), ("out", REAL, [2, 4])],
            weights=constant,
        )
        loop = helper.make_node("Loop", ["turns", "truth", "x"], ["y"], name="loop", body=inner)
        return small_network(
            tmp_path / name, loop, weights=[scalar("turns", 3, np.int64), scalar("truth", True, np.bool_)]
        )

    (text,) = differences(network("reference.onnx", 1.5), network("candidate.onnx", 1.25))
    assert text.startswith("body, node 'product' (Mul): constant 'factor' (input 1): ")
    assert "1.5 in the reference, 1.25 in the candidate" in text


def test_what_differs_in_a_branch_is_named(differences, tmp_path):
    def network(name, inputs, value):
        then = body("then", helper.make_node("Sub", inputs, ["t"], name="less"), outputs=[("t", REAL, [2, 4])])
        other = body("else", outputs=[("e", REAL, [2, 4])], weights=[scalar("e", np.full((2, 4), value))])
        branch = helper.make_node("If", ["truth"], ["y"], name="branch", then_branch=then, else_branch=other)
        nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Tanh", ["x"], ["b"]), branch]
        return small_network(tmp_path / name, *nodes, weights=[scalar("truth", True, np.bool_)])

    reference = network("reference.onnx", ["a", "b"], 1)
    found = differences(reference, network("candidate.onnx", ["b", "a"], 2))
    assert found[0].startswith("else_branch, output 0: 8 of 8 elements differ")
    assert found[1].startswith("then_branch, node 'less' (Sub): inputs 0 and 1 are exchanged")


def test_what_differs_in_a_local_function_is_named(differences, tmp_path):
    def network(name, factor):
        nodes = [
            helper.make_node("Constant", [], ["k"], value_float=factor),
            helper.make_node("Mul", ["a", "k"], ["b"], name="product"),
        ]
        function = helper.make_function("own", "Scaled", ["a"], ["b"], nodes, [helper.make_opsetid("", 17)])
        call = helper.make_node("Scaled", ["x"], ["s"], domain="own", name="call")
        return small_network(
            tmp_path / name, call, helper.make_node("Neg", ["s"], ["y"]), functions=[function], domains=["own"]
        )

    (text,) = differences(network("reference.onnx", 3.0), network("candidate.onnx", 2.0))
    assert text.startswith("function own::Scaled, node 'product' (Mul): constant 'k' (input 1): ")


def test_the_reference_is_named(graft, tmp_path):
    model = onnx.load(DIGITS)
    DAMAGES["a bias"][0](model)
    onnx.save(model, tmp_path / "damaged.onnx")
    for layers in ([], ["--layers"]):
        text = " ".join(graft("verify", DIGITS, tmp_path / "damaged.onnx", *layers).out.split())
        assert f"reference {DIGITS}, candidate {tmp_path}/damaged.onnx" in text
        assert "in the reference, " in text
        assert " against " not in text


def test_each_maximum_has_its_own_element(graft, tmp_path):
    """The largest absolute difference and the largest relative one are at different elements."""

    def network(name, values):
        return save(
            tmp_path / name,
            [helper.make_node("Add", ["x", "k"], ["y"], name="add")],
            [("x", [4])],
            [("y", [4])],
            {"k": np.array(values, np.float32)},
        )

    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    files = network("a.onnx", [100, 1, 0.5, 7]), network("b.onnx", [104, 1, 1.5, 7])
    data = f"x={tmp_path}/x.npy"
    for layers in ([], ["--layers"]):
        result = graft("verify", *files, "--data", data, "--json", *layers).json
        (row,) = result["layers" if layers else "outputs"]
        assert (row["max_absolute"], row["max_absolute_at"]) == (4, [0])
        assert (row["max_relative"], row["max_relative_at"]) == (2, [2])
        text = " ".join(graft("verify", *files, "--data", data, *layers).out.split())
        assert "largest difference 4 at [0], relative 2 at [2]" in text


def test_a_tensor_of_nan_has_no_largest_difference_of_0(graft, tmp_path):
    def network(name, factor):
        node = helper.make_node("Mul", ["x", "k"], ["y"], name="scale")
        return save(tmp_path / name, [node], [("x", [4])], [("y", [4])], {"k": np.float32(factor)})

    right = network("a.onnx", 1)
    for factor, text in ((np.nan, "nan"), (np.inf, "inf")):
        wrong = network("b.onnx", factor)
        page = tmp_path / f"{text}.html"
        for layers in ([], ["--layers"]):
            answer = graft("verify", right, wrong, "--json", "--report", page, *layers)
            (row,) = answer.json["layers" if layers else "outputs"]
            assert row["max_absolute"] == row["max_relative"] == text
            written = json.loads(page.with_suffix(".html.json").read_text())
            (table,) = (section for section in written["sections"] if section["title"] == "Tensors")
            assert table["rows"][0][4] == text
        (row,) = (line for line in graft("verify", right, wrong, "--layers").out.splitlines() if "f32[4]  " in line)
        assert row.split()[4:6] == [text, text]


def test_sizes_without_a_name_are_question_marks(graft, tmp_path):
    path = save(
        tmp_path / "open.onnx",
        [helper.make_node("Pad", ["x", "pads"], ["y"], name="crop")],
        [("x", [1, 3, None, None])],
        [("y", None)],
        {"pads": np.array([0, 0, 0, 0, 0, 0, -9, -9])},
    )
    page = tmp_path / "page.html"
    answer = graft("inspect", path, "--report", page, "--json")
    assert answer.json["outputs"][0]["shape"][2:] == ["?", "?"]
    written = page.with_suffix(".html.json").read_text()
    assert "f32[1, 3, ?, ?]" in written
    assert "?0" not in written
    graft("verify", path, path, "--input", "x:1x3x32x32", "--report", page)
    assert "- 9" not in page.with_suffix(".html.json").read_text()
