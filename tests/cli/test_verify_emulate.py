# graft verify --emulate covers branches, loops, local functions and constants. NumPy's rounding is the reference.
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import constant, info, node, save, subgraph


@pytest.fixture
def emulate(graft, tmp_path):
    """Returns the JSON and the printed text of verify for x = 1 to 8."""
    np.save(tmp_path / "x.npy", np.arange(1, 9, dtype=np.float32).reshape(1, 8))

    def run(path, kind="f16"):
        arguments = ["verify", path, "--emulate", kind, "--data", f"x={tmp_path / 'x.npy'}"]
        answer = graft(*arguments, "--json")
        assert answer.err == "", answer.err
        return answer.code, answer.json, " ".join(graft(*arguments).out.split())

    return run


def layer_of(result, name):
    return next(layer for layer in result["layers"] if layer["candidate"] == name)


def test_a_loop_that_leaves_the_range_inside(emulate, tmp_path):
    """Each iteration multiplies by 300 twice and divides again: the carried value exceeds f16 inside, but not at the
    end of an iteration."""
    body = subgraph(
        [
            node("Mul", "carried many", "large"),
            node("Mul", "large many", "larger"),
            node("Div", "larger many", "smaller"),
            node("Div", "smaller many", "out"),
            node("Identity", "going", "still"),
        ],
        [("turn", TensorProto.INT64, []), ("going", TensorProto.BOOL, []), info("carried")],
        [("still", TensorProto.BOOL, []), info("out")],
        [constant("many", 300)],
    )
    path = save(
        tmp_path / "loop.onnx",
        [node("Loop", "turns truth x", "y", body=body)],
        [("x", [1, 8])],
        [("y", [1, 8])],
        [constant("turns", 2, np.int64), constant("truth", True, np.bool_)],
    )
    code, result, _ = emulate(path)
    assert code == 1
    with np.errstate(over="ignore"):
        beyond = np.isinf((np.arange(1, 9, dtype=np.float32) * 300 * 300).astype(np.float16)).sum()
    assert layer_of(result, "y")["candidate_range"]["infinite"] == beyond
    assert result["first_divergence"]["candidate"] == "y"
    assert result["first_divergence"]["op"] == "Loop"
    assert emulate(path, "bf16")[0] == 0


def test_a_branch_is_rounded_too(emulate, tmp_path):
    def branch(*nodes):
        return subgraph(list(nodes), [], [info(nodes[-1].output[0])])

    path = save(
        tmp_path / "if.onnx",
        [
            node(
                "If",
                "truth",
                "y",
                then_branch=branch(
                    node("Mul", "x third", "thirds"), node("Add", "thirds large", "sum"), node("Sub", "sum large", "a")
                ),
                else_branch=branch(node("Neg", "x", "b")),
            )
        ],
        [("x", [1, 8])],
        [("y", [1, 8])],
        [constant("truth", True, np.bool_), constant("third", 1 / 3), constant("large", 1024)],
    )
    code, result, _ = emulate(path)
    assert code == 1
    half = np.float16
    thirds = (np.arange(1, 9, dtype=half).astype("f4") * np.float32(half(1 / 3))).astype(half).astype("f4")
    expected = ((thirds + np.float32(1024)).astype(half).astype("f4") - np.float32(1024)).astype(half)
    found = layer_of(result, "y")["candidate_range"]
    assert (found["lowest"], found["highest"]) == (expected.min(), expected.max())


def test_a_local_function_is_looked_into(emulate, tmp_path):
    function = helper.make_function(
        "own",
        "Norm",
        ["a"],
        ["d"],
        [node("Mul", "a k", "b"), node("Mul", "b b", "c"), node("Sqrt", "c", "d")],
        [helper.make_opsetid("", 17)],
    )
    function.node.insert(0, helper.make_node("Constant", [], ["k"], value_float=400.0))
    path = save(
        tmp_path / "function.onnx",
        [helper.make_node("Norm", ["x"], ["n"], domain="own", name="norm"), node("Neg", "n", "y")],
        [("x", [1, 8])],
        [("y", [1, 8])],
        functions=[function],
        domains=["own"],
    )
    code, result, text = emulate(path)
    assert code == 1
    assert result["first_divergence"]["candidate"].endswith("c")
    assert result["first_divergence"]["op"] == "Mul"
    assert "beyond the range of the type" in text


@pytest.mark.parametrize("where", ["main", "branch"])
def test_weights_beyond_the_range_are_named(emulate, tmp_path, where):
    weights = constant("weights", [1, -2e5, 7e4, 3, 4, 5, 65504, 1e-3])
    product = node("Mul", "x weights", "product")
    if where == "main":
        nodes, initializers = [product, node("Neg", "product", "y")], [weights]
    else:
        branch = subgraph([product], [], [info("product")], [weights])
        other = subgraph([node("Neg", "x", "other")], [], [info("other")])
        nodes = [node("If", "truth", "y", then_branch=branch, else_branch=other)]
        initializers = [constant("truth", True, np.bool_)]
    path = save(tmp_path / "weights.onnx", nodes, [("x", [1, 8])], [("y", [1, 8])], initializers)
    code, result, text = emulate(path)
    assert code == 1
    (large,) = result["large_constants"]
    assert (large["name"], large["overflow"], large["elements"]) == ("weights", 2, 8)
    assert large["largest"] == pytest.approx(2e5)
    assert "the constant 'weights' that node 'product' (Mul) reads: 2 of 8 elements, up to 2e+05" in text
    assert emulate(path, "bf16")[1]["large_constants"] == []
