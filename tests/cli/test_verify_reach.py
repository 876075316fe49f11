# Tests graft verify of networks that differ only for rare inputs: unreached parts are reported, and synthetic integers
# reach more. ONNX Runtime shows with other inputs that the files differ.
import math

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import save, session_of, subgraph

I32, I64, U32 = TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32
F32 = TensorProto.FLOAT


def network(path, text_nodes, inputs, outputs, **constants):
    """Saves a network. `text_nodes` are (operator, inputs, outputs, attributes); inputs and outputs are (name, type,
    shape)."""
    nodes = [
        helper.make_node(op, reads.split(), gives.split(), name=f"{op}_{i}", **(attributes[0] if attributes else {}))
        for i, (op, reads, gives, *attributes) in enumerate(text_nodes)
    ]
    return save(path, nodes, inputs, outputs, constants, opset=18)


def differ(paths, **inputs):
    """Returns whether ONNX Runtime computes different outputs from these inputs."""
    first, second = (session_of(path).run(None, inputs) for path in paths)
    return any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))


WEIGHT = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)


def part_of_weight(path, weight):
    """Saves a network that adds two of the ten rows of a weight, selected by a constant."""
    return network(
        path,
        [("Gather", "w rows", "r"), ("ReduceSum", "r axes", "s", {"keepdims": 0}), ("Add", "x s", "y")],
        [("x", F32, ["N", 4])],
        [("y", F32, ["N", 4])],
        w=weight,
        rows=np.array([1, 2]),
        axes=np.array([0]),
    )


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_weights_that_no_output_depends_on_are_named(graft, tmp_path, layers):
    changed = WEIGHT.copy()
    changed[4:] = 0
    paths = part_of_weight(tmp_path / "a.onnx", WEIGHT), part_of_weight(tmp_path / "b.onnx", changed)
    answer = graft("verify", *paths, *layers, code=0)
    expected = "the weights 'w' differ in 24 of 40 elements, and no output shows this difference: the inputs may not reach these weights"
    assert f"warning: {expected}; use real inputs with --data" in " ".join(answer.err.split())
    assert graft("verify", *paths, *layers, "--json").json["unreached"] == [expected]
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    assert "; use other data" in graft("verify", *paths, *layers, "--data", f"x={tmp_path / 'x.npy'}").err
    if layers:
        assert "no tensor differs on these inputs" in answer.out


def selection(path, **attributes):
    """Saves a network that selects boxes by their scores. Its single box is selected whatever its form is."""
    return network(
        path,
        [("NonMaxSuppression", "b s most", "sel", attributes)],
        [("b", F32, [1, 1, 4]), ("s", F32, [1, 1, 1])],
        [("sel", I64, ["n", 3])],
        most=np.array([10]),
    )


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_an_attribute_that_no_output_shows_is_named(graft, tmp_path, layers):
    paths = selection(tmp_path / "a.onnx"), selection(tmp_path / "b.onnx", center_point_box=1)
    answer = graft("verify", *paths, *layers, "--json", code=0)
    assert answer.json["unreached"] == [
        "node 'NonMaxSuppression_0' (NonMaxSuppression): center_point_box is 0 in the reference and 1 in the candidate, "
        "and no output shows this difference: the inputs may not reach the node"
    ]
    assert "the inputs may not reach the node" in " ".join(graft("verify", *paths, *layers).err.split())
    written = selection(tmp_path / "c.onnx", center_point_box=0)
    assert graft("verify", paths[0], written, *layers, "--json").json["unreached"] == [], "0 is the default"


def test_synthetic_boxes_overlap_and_their_scores_pass(graft, tmp_path):
    """ONNX Runtime selects other boxes if they are read in the other form, and none on scores from 0 to 1."""

    def many(path, form):
        return network(
            path,
            [("NonMaxSuppression", "b s most iou least", "sel", {"center_point_box": form})],
            [("b", F32, [1, 30, 4]), ("s", F32, [1, 3, 30])],
            [("sel", I64, ["n", 3])],
            most=np.array([10]),
            iou=np.array([0.5], np.float32),
            least=np.array([50], np.float32),
        )

    paths = many(tmp_path / "a.onnx", 0), many(tmp_path / "b.onnx", 1)
    random = np.random.default_rng(0)
    runs = [{"b": random.random((1, 30, 4), "f4"), "s": random.random((1, 3, 30), "f4") + 50} for _ in range(20)]
    assert sum(differ(paths, **inputs) for inputs in runs) > 10
    answer = graft("verify", *paths, "--seeds", "20", code=1)
    out = " ".join(answer.out.split())
    assert (
        "synthetic input 'b' has values from 0 to 1, since node 'NonMaxSuppression_0' (NonMaxSuppression) reads boxes"
        in out
    )
    assert (
        "synthetic input 's' has values from 49 to 51, since node 'NonMaxSuppression_0' (NonMaxSuppression) selects scores above 50"
        in out
    )


def of_one(path, op, **attributes):
    return network(path, [(op, "x", "y", attributes)], [("x", F32, [2, 3, 4])], [("y", F32, [2, 3, 4])])


def test_an_operator_that_no_output_shows_is_named(graft, tmp_path):
    paths = of_one(tmp_path / "a.onnx", "Relu"), of_one(tmp_path / "b.onnx", "Abs")
    assert differ(paths, x=np.full((2, 3, 4), -1, np.float32))
    assert not differ(paths, x=np.ones((2, 3, 4), np.float32))
    np.save(tmp_path / "x.npy", np.ones((2, 3, 4), np.float32))
    answer = graft("verify", *paths, "--data", f"x={tmp_path / 'x.npy'}", "--json", code=0)
    assert answer.json["unreached"] == [
        "node 'Relu_0' (Relu): the operator is Relu in the reference and Abs in the candidate, and no output shows this difference: "
        "the inputs may not reach the node"
    ]


def test_a_cast_to_a_narrower_type_is_not_named(graft, tmp_path):
    def cast(path, to):
        nodes = [("Cast", "x", "h", {"to": to}), ("Cast", "h", "y", {"to": F32})]
        return network(path, nodes, [("x", F32, [4])], [("y", F32, [4])])

    paths = cast(tmp_path / "a.onnx", F32), cast(tmp_path / "b.onnx", TensorProto.FLOAT16)
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    answer = graft("verify", *paths, "--data", f"x={tmp_path / 'x.npy'}", "--json", code=0)
    assert answer.json["unreached"] == []


def test_the_same_axis_counted_from_the_end_is_not_named(graft, tmp_path):
    paths = of_one(tmp_path / "a.onnx", "Softmax", axis=-2), of_one(tmp_path / "b.onnx", "Softmax", axis=1)
    assert not differ(paths, x=np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32))
    answer = graft("verify", *paths, "--json", code=0)
    assert answer.json["unreached"] == []


def test_weights_that_something_else_makes_up_for_are_not_named(graft, tmp_path):
    """A factor of two moves from one weight to another; a third weight is not reached."""

    def scaled(path, factor, rest):
        return network(
            path,
            [("MatMul", "x a", "h"), ("MatMul", "h b", "z"), ("Gather", "c row", "r"), ("Add", "z r", "y")],
            [("x", F32, ["N", 10])],
            [("y", F32, ["N", 4])],
            a=np.float32(factor) * WEIGHT,
            b=WEIGHT[:4] / np.float32(factor),
            c=np.array([[1, 2, 3, 4], [rest] * 4], np.float32),
            row=np.array([0]),
        )

    paths = scaled(tmp_path / "a.onnx", 1, 5), scaled(tmp_path / "b.onnx", 2, 6)
    answer = graft("verify", *paths, "--json", code=0)
    assert [text.split(", and")[0] for text in answer.json["unreached"]] == [
        "the weights 'c' differ in 4 of 8 elements"
    ]


def branches(path, then_weight, threshold):
    def branch(name, weight):
        node = helper.make_node("MatMul", ["x", weight], [f"{name}_out"], name=name)
        return subgraph([node], [], [(f"{name}_out", None)])

    return network(
        path,
        [
            ("ReduceMax", "x", "m", {"keepdims": 0}),
            ("Greater", "m threshold", "c"),
            ("If", "c", "y", {"then_branch": branch("then", "wt"), "else_branch": branch("else", "we")}),
        ],
        [("x", F32, ["N", 4])],
        [("y", F32, ["N", 4])],
        threshold=np.float32(threshold),
        wt=then_weight,
        we=WEIGHT[:4],
    )


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_a_branch_that_no_run_executed_is_named(graft, tmp_path, layers):
    paths = branches(tmp_path / "a.onnx", WEIGHT[:4], 100), branches(tmp_path / "b.onnx", 0 * WEIGHT[:4], 100)
    assert differ(paths, x=np.full((2, 4), 200, np.float32))
    answer = graft("verify", *paths, *layers, "--json", code=0)
    assert answer.json["unreached"] == [
        "the weights 'wt' differ in 16 of 16 elements, and no output shows this difference: the inputs may not reach these weights",
        "no run executed then_branch of node 'If_2' (If), so nothing in it was compared",
    ]
    # Inputs that reach the weight show the difference.
    assert graft("verify", *paths, *layers, "--range", "x=90..300").code == 1


def test_branches_that_were_executed_are_not_named(graft, tmp_path):
    """In twenty runs, the largest of eight values is above and below the threshold, so both branches run."""
    path = branches(tmp_path / "a.onnx", WEIGHT[:4], 1.4)
    assert graft("verify", path, path, "--seeds", "20", "--json").json["unreached"] == []


def test_a_branch_of_the_candidate_alone_is_named(graft, tmp_path):
    plain = network(
        tmp_path / "a.onnx",
        [("MatMul", "input we", "y")],
        [("input", F32, ["N", 4])],
        [("y", F32, ["N", 4])],
        we=WEIGHT[:4],
    )
    candidate = branches(tmp_path / "b.onnx", 0 * WEIGHT[:4], 100)
    x = np.full((2, 4), 200, np.float32)
    run = [session_of(path).run(None, {name: x})[0] for path, name in ((plain, "input"), (candidate, "x"))]
    assert not np.array_equal(*run)
    answer = graft("verify", plain, candidate, "--json", code=0)
    assert answer.json["unreached"] == [
        "no run executed then_branch of node 'If_2' (If) of the candidate, so nothing in it was compared"
    ]


def test_a_branch_inside_a_function_is_named(graft, tmp_path):
    def branch(name, op):
        node = helper.make_node(op, ["x"], [f"{name}_out"], name=name)
        return subgraph([node], [], [(f"{name}_out", None)])

    def choosing(name, then):
        nodes = [
            helper.make_node("Constant", [], ["threshold"], value_float=100.0),
            helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
            helper.make_node("Greater", ["m", "threshold"], ["c"]),
            helper.make_node(
                "If", ["c"], ["y"], name="choose", then_branch=branch("t", then), else_branch=branch("e", "Neg")
            ),
        ]
        function = helper.make_function("local", "Choose", ["x"], ["y"], nodes, [helper.make_opsetid("", 17)])
        call = helper.make_node("Choose", ["a"], ["b"], name="call", domain="local")
        return save(
            tmp_path / name, [call], [("a", ["N", 4])], [("b", ["N", 4])], functions=[function], domains=["local"]
        )

    paths = choosing("a.onnx", "Abs"), choosing("b.onnx", "Neg")
    assert differ(paths, a=np.full((2, 4), 200, np.float32))
    (sentence,) = graft("verify", *paths, "--json", code=0).json["unreached"]
    assert sentence.startswith("no run executed then_branch of node ") and "(If)" in sentence


def test_a_loop_that_never_runs_is_named(graft, tmp_path):
    body = subgraph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["v", "f"], ["w"])],
        [("i", I64, []), ("go", TensorProto.BOOL, []), ("v", None)],
        [("on", TensorProto.BOOL, []), ("w", None)],
    )

    def loop(name, factor):
        return network(
            tmp_path / name,
            [
                ("ReduceMax", "x", "m", {"keepdims": 0}),
                ("Sub", "m hundred", "d"),
                ("Relu", "d", "p"),
                ("Cast", "p", "n", {"to": I64}),
                ("Loop", "n yes x", "y", {"body": body}),
            ],
            [("x", F32, ["N", 4])],
            [("y", F32, ["N", 4])],
            hundred=np.float32(100),
            yes=np.array(True),
            f=np.float32(factor),
        )

    paths = loop("a.onnx", 2), loop("b.onnx", 3)
    assert differ(paths, x=np.full((2, 4), 102, np.float32))
    answer = graft("verify", *paths, "--json", code=0)
    assert answer.json["unreached"][1:] == [
        "no run executed the body of node 'Loop_4' (Loop), so nothing in it was compared"
    ]


def if_inside(name, then_op, else_op):
    """Returns the nodes that compute y = then_op(v, f) if the largest number of x exceeds 100, otherwise else_op(v, f),
    for a branch or body of a network that has m and hundred."""
    branches = {
        key: subgraph([helper.make_node(op, ["v", "f"], [f"{name}_{key}"])], [], [(f"{name}_{key}", None)])
        for key, op in {"then_branch": then_op, "else_branch": else_op}.items()
    }
    return [
        helper.make_node("Greater", ["m", "hundred"], [f"{name}_large"]),
        helper.make_node("If", [f"{name}_large"], [f"{name}_y"], name=name, **branches),
    ]


def if_in_if(then_op):
    """The outer condition is true in all runs."""
    outer = {
        "then_branch": subgraph(if_inside("inner", then_op, "Sub"), [], [("inner_y", None)]),
        "else_branch": subgraph(if_inside("other", "Add", "Sub"), [], [("other_y", None)]),
    }
    return [("Identity", "x", "v"), ("Less", "m million", "c"), ("If", "c", "y", outer)]


def if_in_loop(then_op):
    body = subgraph(
        [helper.make_node("Identity", ["go"], ["on"]), *if_inside("inner", then_op, "Sub")],
        [("i", I64, []), ("go", TensorProto.BOOL, []), ("v", None)],
        [("on", TensorProto.BOOL, []), ("inner_y", None)],
    )
    return [("Loop", "three yes x", "y", {"body": body})]


def if_in_scan(then_op):
    body = subgraph(if_inside("inner", then_op, "Sub"), [("v", [4])], [("inner_y", [4])])
    attributes = {"body": body, "num_scan_inputs": 1, "scan_output_axes": [0], "scan_output_directions": [1]}
    return [("Scan", "x", "y", attributes)]


def if_in_loop_in_if(then_op):
    """The outer condition is true in all runs."""
    [(_, _, _, attributes)] = if_in_loop(then_op)
    loop = helper.make_node("Loop", ["three", "yes", "x"], ["looped"], name="loop", **attributes)
    nothing = helper.make_node("Identity", ["x"], ["same"])
    outer = {
        "then_branch": subgraph([loop], [], [("looped", None)]),
        "else_branch": subgraph([nothing], [], [("same", None)]),
    }
    return [("Less", "m million", "c"), ("If", "c", "y", outer)]


def nested(path, make, then_op):
    return network(
        path,
        [("ReduceMax", "x", "m", {"keepdims": 0}), *make(then_op)],
        [("x", F32, ["N", 4])],
        [("y", F32, None)],
        hundred=np.float32(100),
        million=np.float32(1e6),
        f=np.float32(2),
        three=np.array(3),
        yes=np.array(True),
    )


INNER = "no run executed then_branch of node 'inner' (If)"


@pytest.mark.parametrize(
    ("make", "outer"),
    [
        (if_in_if, ["no run executed else_branch of node 'If_3' (If)"]),
        (if_in_loop, []),
        (if_in_scan, []),
        (if_in_loop_in_if, ["no run executed else_branch of node 'If_2' (If)"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_branch_inside_a_branch_or_body_is_named(graft, tmp_path, make, outer):
    """The branches inside a branch that is named are not named."""
    paths = nested(tmp_path / "a.onnx", make, "Mul"), nested(tmp_path / "b.onnx", make, "Add")
    assert differ(paths, x=np.full((2, 4), 200, np.float32))
    answer = graft("verify", *paths, "--json", code=0)
    assert [text.split(", so")[0] for text in answer.json["unreached"]] == [*outer, INNER]
    # With inputs that reach the branch, only the other one is left.
    answer = graft("verify", paths[0], paths[0], "--range", "x=101..300", "--json")
    other = INNER.replace("then", "else")
    assert [text.split(", so")[0] for text in answer.json["unreached"]] == [*outer, other]


def test_a_branch_inside_a_branch_of_the_candidate_is_named(graft, tmp_path):
    plain = network(
        tmp_path / "a.onnx",
        [("Sub", "x f", "y")],
        [("x", F32, ["N", 4])],
        [("y", F32, None)],
        f=np.float32(2),
    )
    candidate = nested(tmp_path / "b.onnx", if_in_if, "Add")
    assert differ((plain, candidate), x=np.full((2, 4), 200, np.float32))
    answer = graft("verify", plain, candidate, "--json", code=0)
    assert f"{INNER} of the candidate, so nothing in it was compared" in answer.json["unreached"]


@pytest.mark.parametrize("name", ["choose", "other"])
def test_a_branch_is_named_where_another_node_has_the_name_of_the_one_around_it(graft, tmp_path, name):
    """Sibling branches have nodes of one name, as ONNX allows. The then_branch of one never runs, and that of the other
    holds the branch to name."""

    def choice(condition, output, node_name, then, otherwise):
        branches = {"then_branch": then, "else_branch": otherwise}
        graphs = {key: subgraph(nodes, [], [(nodes[-1].output[0], None)]) for key, nodes in branches.items()}
        return helper.make_node("If", [condition], [output], name=node_name, **graphs)

    def one(op, output):
        return [helper.make_node(op, ["x"], [output])]

    deep = [choice("yes", "s", "deep", one("Exp", "d"), one("Sqrt", "e"))]
    left = [choice("no", "r", "choose", one("Neg", "a"), one("Abs", "b"))]
    right = [choice("yes", "q", name, deep, one("Sin", "h"))]
    outer = {
        "then_branch": subgraph(left, [], [("r", None)]),
        "else_branch": subgraph(right, [], [("q", None)]),
    }
    path = network(
        tmp_path / "a.onnx",
        [
            ("ReduceSum", "x", "sum", {"keepdims": 0}),
            ("Abs", "sum", "size"),
            ("Less", "size big", "yes"),
            ("Greater", "size big", "no"),
            ("Greater", "sum zero", "c"),
            ("If", "c", "y", outer),
        ],
        [("x", F32, [4])],
        [("y", F32, [4])],
        big=np.float32(1e9),
        zero=np.float32(0),
    )
    session_of(path)
    answer = graft("verify", path, path, "--seeds", "20", "--json", code=0)
    assert "no run executed else_branch of node 'deep' (If), so nothing in it was compared" in answer.json["unreached"]


def test_branches_inside_a_loop_that_were_executed_are_not_named(graft, tmp_path):
    """The first iteration executes one branch, and the other iterations the other."""
    branch = {
        key: subgraph([helper.make_node(op, ["v", "f"], [key])], [], [(key, None)])
        for key, op in {"then_branch": "Mul", "else_branch": "Add"}.items()
    }
    body = subgraph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Greater", ["i", "zero"], ["later"]),
            helper.make_node("If", ["later"], ["w"], name="inner", **branch),
        ],
        [("i", I64, []), ("go", TensorProto.BOOL, []), ("v", None)],
        [("on", TensorProto.BOOL, []), ("w", None)],
    )
    path = network(
        tmp_path / "a.onnx",
        [("Loop", "three yes x", "y", {"body": body})],
        [("x", F32, ["N", 4])],
        [("y", F32, None)],
        f=np.float32(2),
        zero=np.array(0),
        three=np.array(3),
        yes=np.array(True),
    )
    assert graft("verify", path, path, "--json").json["unreached"] == []


def one_hot(path, weight):
    return network(
        path,
        [("OneHot", "ids depth values", "hot"), ("MatMul", "hot w", "y")],
        [("ids", I64, ["N", 6])],
        [("y", F32, ["N", 6, 4])],
        depth=np.array(10),
        values=np.array([0, 1], np.float32),
        w=weight,
    )


def table(path, weight, nodes, **constants):
    return network(path, nodes, [("ids", I64, ["N", 6])], [("y", F32, None)], w=weight, **constants)


def shifted_table(path, weight):
    return table(
        path, weight, [("Sub", "ids c", "i"), ("Cast", "i", "j", {"to": I32}), ("Gather", "w j", "y")], c=np.array(50)
    )


def clipped_table(path, weight):
    nodes = [("Clip", "ids low high", "i"), ("Gather", "w i", "y")]
    return table(path, weight, nodes, low=np.array(0), high=np.array(9))


def table_of_tuples(path, weight):
    return network(path, [("GatherND", "w ids", "y")], [("ids", I64, ["N", 6, 1])], [("y", F32, ["N", 6, 4])], w=weight)


def table_by_elements(path, weight):
    nodes = [("Transpose", "ids", "i", {"perm": [1, 0]}), ("GatherElements", "w i", "y", {"axis": 0})]
    return table(path, weight, nodes)


def compared(path, weight):
    """Saves a network that compares every id with 0 to 9, another form of OneHot."""
    return network(
        path,
        [
            ("Unsqueeze", "ids last", "i"),
            ("Equal", "i all", "e"),
            ("Cast", "e", "f", {"to": F32}),
            ("MatMul", "f w", "y"),
        ],
        [("ids", I64, ["N", 6])],
        [("y", F32, None)],
        last=np.array([-1]),
        all=np.arange(10),
        w=weight,
    )


@pytest.mark.parametrize(
    "make",
    [one_hot, shifted_table, clipped_table, table_of_tuples, table_by_elements, compared],
    ids=lambda f: f.__name__,
)
def test_integers_reach_all_rows_of_a_table(graft, tmp_path, make):
    changed = WEIGHT.copy()
    changed[4:] = 0
    paths = make(tmp_path / "a.onnx", WEIGHT), make(tmp_path / "b.onnx", changed)
    assert graft("verify", paths[0], paths[0]).code == 0
    answer = graft("verify", *paths, "--json")
    assert answer.code == 1, answer.json["ranges"]
    assert answer.json["verdict"] == "not the same"


def wrapped(path, type, before=()):
    """Saves a step of a random number generator, with and without a node before it."""
    numpy_type = {I32: np.int32, I64: np.int64}[type]
    name = "b" if before else "a"
    return network(
        path,
        [*before, ("Mul", f"{name} m", "p"), ("Mod", "p d", "r")],
        [("a", type, ["N"])],
        [("p", type, ["N"]), ("r", type, ["N"])],
        m=np.array(1103515245, numpy_type),
        d=np.array(7, numpy_type),
        low=np.array(-100, numpy_type),
        high=np.array(100, numpy_type),
    )


@pytest.mark.parametrize("layers", [[], ["--layers"]])
@pytest.mark.parametrize(
    ("type", "before"), [(I64, ("Clip", "a low high", "b")), (I32, ("Abs", "a", "b"))], ids=["clip", "abs"]
)
def test_later_runs_have_large_and_negative_integers(graft, tmp_path, type, before, layers):
    paths = wrapped(tmp_path / "a.onnx", type), wrapped(tmp_path / "b.onnx", type, [before])
    small = np.arange(4, dtype={I32: np.int32, I64: np.int64}[type])
    assert not differ(paths, a=small)
    answers = [graft("verify", *paths, *layers, "--json") for _ in range(2)]
    assert answers[0].code == 1
    assert answers[0].out == answers[1].out
    answer = graft("verify", paths[0], paths[0], *layers, "--json", code=0)
    assert answer.json["large_integers"] == ["a"]


def test_sizes_counts_and_numbers_stay_small(graft, tmp_path):
    """Integers from which sizes or real numbers are computed stay small; integers that are bounded first may be
    large."""
    path = network(
        tmp_path / "a.onnx",
        [
            ("ConstantOfShape", "size", "zeros"),
            ("Cast", "mask", "real", {"to": F32}),
            ("Exp", "real", "e"),
            ("Mod", "hash rows", "row"),
            ("Gather", "w row", "g"),
            ("Range", "start count one", "steps"),
        ],
        [("size", I64, [3]), ("mask", I64, ["N"]), ("hash", I64, ["N"]), ("count", I64, [])],
        [("zeros", F32, None), ("e", F32, None), ("g", F32, None), ("steps", I64, None)],
        rows=np.array(10),
        w=WEIGHT,
        start=np.array(0),
        one=np.array(1),
    )
    answer = graft("verify", path, path, "--json", code=0)
    assert answer.json["large_integers"] == ["hash"]


def test_a_network_that_refuses_large_integers_runs_with_small_ones(graft, tmp_path):
    """No rule covers the limit of this operator: ONNX Runtime refuses that many repetitions of a row."""
    path = network(
        tmp_path / "a.onnx",
        [("Abs", "n", "m"), ("Concat", "m one", "times", {"axis": 0}), ("Tile", "x times", "y")],
        [("n", I64, [1]), ("x", F32, [2, 2])],
        [("y", F32, None)],
        one=np.array([1]),
    )
    answer = graft("verify", path, path, "--json", code=0)
    assert answer.json["large_integers"] == []


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_input_that_becomes_a_shape_gets_sizes_that_fit(graft, tmp_path, rank):
    def reshape(name, shape):
        return network(
            tmp_path / name,
            [("Reshape", f"x {shape}", "r"), ("Relu", "r", "y")],
            [("x", F32, ["N", 12]), ("size", I64, [rank])],
            [("y", F32, None)],
            zeros=np.zeros(min(rank, 2), np.int64),
        )

    paths = reshape("a.onnx", "size"), reshape("b.onnx", "zeros")
    answer = graft("verify", paths[0], paths[0], "--json", code=0)
    assert answer.json["ranges"] == {}
    sizes = {1: "[24]", 2: "[12, 2]", 3: "[1, 12, 2]"}[rank]
    assert answer.json["why_sizes"] == f"synthetic 'size' is {sizes}, sizes that fit node 'Reshape_0' (Reshape)"
    if rank == 2:  # zeros keep the sizes of x
        assert graft("verify", *paths).code == 1


@pytest.mark.parametrize("op", ["Expand", "Resize"])
def test_sizes_of_other_operators_fit_too(graft, tmp_path, op):
    reads = "x size" if op == "Expand" else "x   size"
    node = helper.make_node(op, reads.split(" "), ["y"], name="node")
    path = save(tmp_path / "a.onnx", [node], [("x", ["N", 3, 8, 8]), ("size", I64, [4])], [("y", None)], opset=18)
    answer = graft("verify", path, path, "--json", code=0)
    assert answer.json["ranges"] == {}
    fitting = {"Expand": "[2, 3, 8, 8]", "Resize": "[2, 3, 16, 16]"}[op]
    assert fitting in answer.json["why_sizes"]


def test_narrowed_integers_say_what_was_tried(graft, tmp_path):
    path = network(
        tmp_path / "a.onnx",
        [("Tile", "x times", "t"), ("MatMul", "t w", "z"), ("Add", "z bias", "y")],
        [("x", F32, [2, 4]), ("times", I64, [2])],
        [("y", F32, None)],
        w=WEIGHT[:4],
        bias=WEIGHT[:2],
    )
    answer = graft("verify", path, path, code=0)
    assert (
        "synthetic input 'times' has values from 1 to 1, since the network did not run with 0 to 3, 0 to 1"
        in " ".join(answer.out.split())
    )


@pytest.mark.parametrize(
    ("reads", "example"),
    [("ids", "--range ids=0..1"), ("rows", "--range ids=0..9")],
)
def test_a_suggested_range_consists_of_numbers(graft, tmp_path, reads, example):
    """No number of elements fits the Reshape. Integers that index a table are known to be its rows."""
    path = network(
        tmp_path / "a.onnx",
        [("Gather", "table ids", "rows"), ("Reshape", f"{reads} sizes", "y")][reads == "ids" :],
        [("ids", I64, ["n"])],
        [("y", I64 if reads == "ids" else F32, None)],
        **({} if reads == "ids" else {"table": np.ones((10, 4), "float32")}),
        sizes=[3, 7919],
    )
    answer = graft("verify", path, path, code=2)
    assert answer.err.rstrip().endswith(f"or set the range of these integers, for example {example}")


def test_an_output_that_is_always_empty_needs_no_other_batch(graft, tmp_path):
    path = network(
        tmp_path / "a.onnx",
        [("Slice", "x from to axis", "e"), ("Relu", "e", "z"), ("Neg", "x", "y")],
        [("x", F32, ["N", 5])],
        [("y", F32, ["N", 5]), ("z", F32, None)],
        **{"from": np.array([3]), "to": np.array([3]), "axis": np.array([1])},
    )
    answer = graft("verify", path, path, "--json")
    assert answer.json["inputs"] == ["x: f32[2, 5]"]
    assert answer.json["why_sizes"] == ""


def test_openvino_says_that_it_computes_f64_in_f32(graft, tmp_path):
    """ONNX Runtime has no Erf of f64."""
    path = network(
        tmp_path / "a.onnx", [("Erf", "x", "y")], [("x", TensorProto.DOUBLE, [64])], [("y", TensorProto.DOUBLE, [64])]
    )
    np.save(tmp_path / "x.npy", np.linspace(0.1, 2, 64))
    said = f"computes the f64 tensors of {path} in f32, to about 7 digits"
    answer = graft("run", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz", "--json")
    assert any(said in line for line in answer.json["left_out"])
    expected = [math.erf(x) for x in np.linspace(0.1, 2, 64)]
    error = np.max(np.abs(np.load(tmp_path / "y.npz")["y"] / expected - 1))
    assert 1e-12 < error < 1e-6
    for engine in ([], ["--engine", "openvino"]):
        assert any(said in line for line in graft("verify", path, path, *engine, "--json").json["left_out"])


def test_a_dispute_names_the_engines(graft, tmp_path):
    """OpenVINO computes integers of 64 bits in 32."""
    path = network(
        tmp_path / "a.onnx",
        [("Mul", "a m", "p")],
        [("a", I64, ["N"])],
        [("p", I64, ["N"])],
        m=np.array(6364136223846793005),
    )
    difference = graft("verify", path, path, "--engine", "both", "--json").json["dispute"]["difference"]
    assert " in OpenVINO 2" in difference
    assert " in ONNX Runtime 1" in difference
    assert "reference" not in difference
    assert "candidate" not in difference


def loop_network(path, next_condition, limit):
    """A Loop that adds 1 until the condition that its body returns, or its limit, ends it."""
    scalar = [
        (name, kind, [])
        for name, kind in (("step", TensorProto.INT64), ("going", TensorProto.BOOL), ("state", TensorProto.FLOAT))
    ]
    made = [
        ("go_on", TensorProto.BOOL, []),
        ("more", []),
    ]
    one, bound = (numpy_helper.from_array(np.float32(value), name) for name, value in (("one", 1), ("bound", 5)))
    nodes = [helper.make_node("Add", ["state", "one"], ["more"]), next_condition]
    body = subgraph(nodes, scalar, made, [one, bound])
    loop = helper.make_node("Loop", ["limit" if limit else "", "c", "x"], ["y"], name="loop", body=body)
    inputs = [
        ("c", TensorProto.BOOL, []),
        ("x", []),
    ]
    constants = [numpy_helper.from_array(np.int64(limit), "limit")] if limit else []
    return save(path, [loop], inputs, [("y", [])], constants)


@pytest.mark.parametrize("unchanged", ["condition", "true"])
def test_a_loop_that_nothing_ends_is_not_run_on_synthetic_inputs(graft, tmp_path, unchanged):
    keep = helper.make_node("Identity", ["going"], ["go_on"])
    if unchanged == "true":
        keep = helper.make_node("Constant", [], ["go_on"], value=numpy_helper.from_array(np.array(True)))
    model = loop_network(tmp_path / "m.onnx", keep, limit=0)
    answer = graft("verify", model, model, code=2)
    assert "node 'loop' (Loop) never ends once it has begun" in answer.err


def test_the_largest_limit_of_a_loop_that_its_condition_ends_is_none(graft, tmp_path):
    ends = helper.make_node("Less", ["more", "bound"], ["go_on"])
    model = loop_network(tmp_path / "m.onnx", ends, limit=2**63 - 1)
    graft("verify", model, model, code=0)
