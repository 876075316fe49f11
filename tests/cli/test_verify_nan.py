# graft verify and graft quantize report NaN, and the first node with NaN. ONNX Runtime determines which tensors have
# NaN.
import numpy as np
import pytest
from onnx_models import constant, node, save, session_of


def network(path, *nodes, **constants):
    weights = [constant(name, values) for name, values in constants.items()]
    return save(path, list(nodes), [("x", ["n", 8])], [(nodes[-1].output[0], None)], weights)


def run(path, x):
    return session_of(path).run(None, {"x": x})[0]


@pytest.fixture
def data(tmp_path):
    def write(values):
        x = np.zeros((1, 8), np.float32)
        x[0, : len(values)] = values
        np.save(tmp_path / "x.npy", x)
        return x, f"x={tmp_path / 'x.npy'}"

    return write


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_nan_that_ends_in_relu_is_not_the_same_as_zero(graft, data, tmp_path, layers):
    reference = network(tmp_path / "relu.onnx", node("Sqrt", "x", "r"), node("Relu", "r", "y"))
    candidate = network(
        tmp_path / "where.onnx",
        node("Sqrt", "x", "r"),
        node("Greater", "r zero", "truth"),
        node("Where", "truth r zero", "y"),
        zero=0,
    )
    x, argument = data([-1, 4, -9, 1])
    assert np.isnan(run(reference, x)).sum() == 2
    assert np.isnan(run(candidate, x)).sum() == 0
    answer = graft("verify", reference, candidate, "--data", argument, *layers, code=1)
    assert "NaN" in answer.out
    assert graft("verify", reference, reference, "--data", argument, *layers).code == 0


def test_the_same_nan_is_said(graft, data, tmp_path):
    path = network(tmp_path / "root.onnx", node("Sqrt", "x", "r"), node("Relu", "r", "y"))
    x, argument = data([-1, 4, -9, 1])
    answer = graft("verify", path, path, "--data", argument, code=0)
    assert f"{np.isnan(run(path, x)).sum()} of 8 elements are NaN on both sides" in answer.out


def test_nan_of_the_users_own_is_counted(graft, data, tmp_path):
    path = network(tmp_path / "m.onnx", node("Neg", "x", "y"))
    _, argument = data([1, np.nan, 3, np.nan])
    warning = "2 of 8 elements of input 'x' are NaN"
    for command in (
        ["verify", path, path, "--data", argument],
        ["verify", path, path, "--layers", "--data", argument],
        ["quantize", path, "-o", tmp_path / "q.onnx", "--precision", "f16", "--data", argument],
        ["run", path, "-o", tmp_path / "y.npz", "--input", argument],
    ):
        assert warning in graft(*command).err, command[0]
    _, argument = data([1, 2])
    assert graft("verify", path, path, "--data", argument).err == ""


def behind(first, last, **constants):
    """Returns the nodes, followed by a layer and an activation."""
    random = np.random.default_rng(5)
    return (
        [*first, node("MatMul", f"{last} w", "layer"), node("Relu", "layer", "y")],
        {"w": random.standard_normal((8, 8)), **constants},
    )


def test_a_node_on_the_edge_of_what_it_is_defined_for_is_the_first(graft, data, tmp_path):
    """The input of the root differs only by rounding, but the root of 0 is 0 and that of -1e-6 is NaN."""
    nodes, constants = behind([node("Abs", "x", "sizes"), node("Sqrt", "sizes", "roots")], "roots")
    reference = network(tmp_path / "reference.onnx", *nodes, **constants)
    nodes, constants = behind(
        [node("Abs", "x", "raw"), node("Sub", "raw little", "sizes"), node("Sqrt", "sizes", "roots")],
        "roots",
        little=1e-6,
    )
    candidate = network(tmp_path / "candidate.onnx", *nodes, **constants)
    x, argument = data([0, 1, 2, 3, 4, 5, 6, 7])
    assert np.isfinite(run(reference, x)).all()
    assert np.isnan(run(candidate, x)).all()
    answer = graft("verify", reference, candidate, "--layers", "--data", argument, "--json", code=1)
    assert answer.json["nan_begins"] == "roots"
    assert answer.json["first_divergence"]["candidate"] == "roots"
    assert "1 NaN where the reference has 0" in answer.json["first_divergence"]["why"]
    text = graft("verify", reference, candidate, "--layers", "--data", argument).out
    assert "NaN begins: 'roots', by node 'roots' (Sqrt)" in text
    assert "first divergence: 'roots', by node 'roots' (Sqrt)" in text
    small = tmp_path / "small.onnx"
    reduced = graft("verify", reference, candidate, "--data", argument, "--reduce", small, "--json").json["reduced"]
    assert graft(*reduced["command"].split()[1:]).code == 1


def test_zero_divided_by_zero_in_f16(graft, data, tmp_path):
    nodes, constants = behind([node("Neg", "x", "a"), node("Div", "a a", "ratios")], "ratios")
    path = network(tmp_path / "ratio.onnx", *nodes, **constants)
    _, argument = data([1e-9, 2, 3, 4, 5, 6, 7, 8])
    answer = graft("verify", path, "--emulate", "f16", "--data", argument, "--json", code=1)
    assert answer.json["nan_begins"] == "ratios"
    assert answer.json["first_divergence"]["candidate"] == "ratios"
    layer = next(layer for layer in answer.json["layers"] if layer["candidate"] == "y")
    assert layer["candidate_range"]["nan"] == 8


def test_quantize_counts_what_ends_in_relu(graft, data, tmp_path):
    """Infinite in f16, then infinity minus infinity, and an activation that must not hide the NaN."""
    path = network(
        tmp_path / "large.onnx",
        node("Mul", "x many", "a"),
        node("Mul", "a a", "squares"),
        node("Sub", "squares squares", "nothing"),
        node("Add", "nothing x", "sum"),
        node("Relu", "sum", "y"),
        many=300,
    )
    _, argument = data([1, 2, 3, 4, 0.1, 0.2, 0.3, 0.4])
    arguments = ["--precision", "f16", "--data", argument, "--json"]
    result = graft("quantize", path, "-o", tmp_path / "out.onnx", *arguments).json
    assert result["plain_outputs"][0]["not_finite"] == 4
    assert result["outputs"][0]["not_finite"] == 0


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_where_nothing_is_finite_nothing_is_called_the_same(graft, data, tmp_path, layers):
    roots = network(tmp_path / "roots.onnx", node("Sqrt", "x", "y"))
    logarithms = network(tmp_path / "logarithms.onnx", node("Log", "x", "y"))
    x, argument = data([-1, -4, -9, -1, -2, -3, -5, -6])
    assert np.isnan(run(roots, x)).all() and np.isnan(run(logarithms, x)).all()
    answer = graft("verify", roots, logarithms, "--data", argument, *layers, code=1)
    assert "nothing compared" in answer.out
    assert "output 'y' was not compared" in answer.err
    answer = graft("verify", roots, logarithms, "--data", argument, "--json", *layers).json
    assert not answer["equal"]
    if layers:
        assert answer["nothing_compared"]
        text = graft("verify", roots, logarithms, "--data", argument, *layers).out
        assert "no tensor differs on these inputs: 0 tensors compared, 1 tensor not compared" in text
    else:
        assert answer["verdict"] == "not compared"
        assert answer["outputs"][0]["verdict"] == "nothing compared"


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_a_declared_size_of_0_does_not_excuse_an_output_of_nan(graft, data, tmp_path, layers):
    """ONNX Runtime runs a model whose output has more elements than it declares."""

    def declared_empty(name, factor):
        nodes = [node("Mul", "x factor", "h"), node("Log", "h", "y")]
        return save(tmp_path / name, nodes, [("x", ["n", 8])], [("y", [0])], [constant("factor", factor)])

    paths = declared_empty("a.onnx", -1), declared_empty("b.onnx", -2)
    x, argument = data([1, 2, 3, 4, 5, 6, 7, 8])
    for path in paths:
        assert run(path, x).shape == (1, 8) and np.isnan(run(path, x)).all()
    answer = graft("verify", *paths, "--engine", "onnxruntime", "--data", argument, *layers, "--json")
    assert not answer.json["equal"] and answer.code == 1
    assert "so the exit code is 0" not in " ".join(answer.err.split())
    if layers:
        assert answer.json["nothing_compared"]
    else:
        assert answer.json["outputs"][0]["verdict"] == "nothing compared"


def above(path, bound, factor):
    """Saves a network that selects the scores above a bound."""
    return network(
        path,
        node("Mul", "x factor", "scores"),
        node("Greater", "scores bound", "passes"),
        node("NonZero", "passes", "found"),
        node("Transpose", "found", "places", perm=[1, 0]),
        node("GatherND", "scores places", "y"),
        bound=bound,
        factor=factor,
    )


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_two_empty_outputs_are_not_called_the_same(graft, data, tmp_path, layers):
    reference, candidate = above(tmp_path / "a.onnx", 100, 1), above(tmp_path / "b.onnx", 200, 3)
    x, argument = data([1, 2, 3, 4])
    assert run(reference, x).size == run(candidate, x).size == 0
    answer = graft("verify", reference, candidate, "--data", argument, *layers, code=1)
    assert "output 'y' was not compared: it is empty in all runs; use other data" in " ".join(answer.err.split())
    # One of the runs has elements to compare.
    np.save(tmp_path / "two.npy", np.array([[1] * 8, [300] * 8], np.float32))
    assert graft("verify", reference, reference, "--data", f"x={tmp_path}/two.npy", *layers).code == 0


def test_what_is_empty_on_synthetic_inputs_names_the_range(graft, tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [node("Cast", "x", "i", to=7), node("ReduceMax", "i", "m", axes=[0]), node("Expand", "one m", "y")],
        [("x", [3])],
        [("y", ["n"])],
        [constant("one", [1])],
    )
    answer = graft("verify", path, path, "--range", "x=0.1..0.9", code=1)
    assert run(path, np.full(3, 0.9, np.float32)).size == 0
    expected = "it is empty in all runs; use real inputs with --data, or other values, for example --range NAME=1..5"
    assert f"output 'y' was not compared: {expected}" in " ".join(answer.err.split())
    assert run(path, np.full(3, 1, np.float32)).size == 1
    assert graft("verify", path, path, "--range", "x=1..5").code == 0


def test_an_output_that_is_declared_empty_is_the_same(graft, tmp_path):
    nodes = [node("Slice", "x start end axis", "y"), node("Neg", "x", "z")]
    weights = {"start": np.array([0]), "end": np.array([0]), "axis": np.array([1])}
    path = save(tmp_path / "empty.onnx", nodes, [("x", [2, 8])], [("y", [2, 0]), ("z", [2, 8])], weights)
    assert graft("verify", path, path).code == 0
