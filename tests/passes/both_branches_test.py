# both_branches_test.py - Tests that an If that TensorRT does not build becomes both branches and Where, that an If whose
# condition follows from shapes disappears, and that Attention in a body becomes products.
"""ONNX Runtime runs each network before and after with every condition, and TensorRT-RTX builds results that it refused
before, for a range of sizes."""

import itertools
import sys
from pathlib import Path

import graft
import numpy as np
import onnx
import onnx.parser
import pytest
from conversions import convert, reasons, run, types_of

SUPPORT = Path(__file__).resolve().parents[1] / "support"


def model(inputs, outputs, nodes, constants="", opset=17):
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => ({outputs}) <{constants}> {{\n{nodes}\n}}'
    network = onnx.parser.parse_model(text)
    onnx.checker.check_model(network)
    return network


def branches(condition, then, other, kind="float[B,5]"):
    return (
        f"If ({condition}) <then_branch: graph = t () => ({kind} {then[0]}) {{ {then[1]} }}, "
        f"else_branch: graph = e () => ({kind} {other[0]}) {{ {other[1]} }}>"
    )


def same(before, after, feeds, limit=0.0):
    conditions = [info.name for info in before.graph.input if info.type.tensor_type.elem_type == onnx.TensorProto.BOOL]
    for chosen in itertools.product([False, True], repeat=len(conditions)):
        given = {name: np.array(value) for name, value in zip(conditions, chosen, strict=True)} | feeds
        for one, other in zip(run(before, given), run(after, given), strict=True):
            assert other.dtype == one.dtype
            np.testing.assert_allclose(other, one, rtol=0, atol=limit)


INNER = branches("d", ("p", "p = Add (h, x)"), ("q", "q = Sub (h, w)"))
W = "float[5] w = {0.5, -1, 2, 0.25, 3}"


def nested():
    nodes = f"z = {branches('c', ('a', f'h = Mul (x, w) a = {INNER}'), ('b', 'b = Neg (x)'))}\ny = Relu (z)"
    return model("float[B,5] x, bool c, bool d", "float[B,5] y", nodes, W)


def nested_twice():
    inner = branches("e", ("i", "i = Exp (x)"), ("j", "j = Abs (x)"))
    middle = branches("d", ("p", f"p = {inner}"), ("q", "q = Sub (x, w)"))
    nodes = f"y = {branches('c', ('a', f'a = {middle}'), ('b', 'b = Neg (x)'))}"
    return model("float[B,5] x, bool c, bool d, bool e", "float[B,5] y", nodes, W)


def nested_with_two_results():
    inner = """p, q = If (d) <
      then_branch: graph = t () => (float[B,5] i, float[B,5] k) { i = Exp (x) k = Add (x, w) },
      else_branch: graph = e () => (float[B,5] j, float[B,5] l) { j = Abs (x) l = Identity (x) }> a = Mul (p, q)"""
    nodes = f"y = {branches('c', ('a', inner), ('b', 'b = Neg (x)'))}"
    return model("float[B,5] x, bool c, bool d", "float[B,5] y", nodes, W)


IMAGE = "float[B,1,H,W]"


def cubic(between="", read="s"):
    chosen = branches("c", ("a", "a = Add (x, one)"), ("b", "b = Mul (x, two)"), IMAGE)
    nodes = f's = {chosen}\n{between}\ny = Resize <mode: string = "cubic"> ({read}, , scales)'
    constants = "float one = {1}, float two = {2}, float[4] scales = {1, 1, 2, 1.5}"
    return model(f"{IMAGE} x, bool c", "float[B,1,H2,W2] y", nodes, constants)


def cubic_after_loop(mode):
    nodes = f"""s = Loop (n, true, x) <body: graph = b (int64 i, bool goes, {IMAGE} h) =>
      (bool on, {IMAGE} next) {{ on = Identity (goes) next = Mul (h, two) }}>
    y = Resize <mode: string = "cubic", coordinate_transformation_mode: string = "{mode}"> (s, , scales)"""
    constants = "bool true = {1}, float two = {2}, float[4] scales = {1, 1, 2, 1.5}"
    return model(f"{IMAGE} x, int64 n", "float[B,1,H2,W2] y", nodes, constants)


def attention_in_if():
    then = "a = Attention <is_causal: int = 1> (x, x, x)"
    nodes = f"y = {branches('c', ('a', then), ('b', 'b = Attention (x, x, x)'), 'float16[1,2,L,64]')}"
    return model("float16[1,2,L,64] x, bool c", "float16[1,2,L,64] y", nodes, opset=23)


def attention_in_loop():
    nodes = """y = Loop (n, true, x) <body: graph = b (int64 i, bool goes, float16[1,2,L,64] h) =>
      (bool on, float16[1,2,L,64] next) { on = Identity (goes) next = Attention (h, h, h) }>"""
    return model("float16[1,2,L,64] x, int64 n", "float16[1,2,L,64] y", nodes, "bool true = {1}", opset=23)


ROW = [[1, 5], [2, 5], [4, 5]]
PICTURE = [[1, 1, 4, 4], [1, 1, 8, 8], [2, 1, 16, 16]]
TOKENS = [[1, 2, 1, 64], [1, 2, 8, 64], [1, 2, 16, 64]]
# Name -> (network, the shapes of x, operators that disappear).
REFUSED = {
    "nested": (nested(), ROW, 1),
    "nested_twice": (nested_twice(), ROW, 2),
    "nested_with_two_results": (nested_with_two_results(), ROW, 1),
    "cubic": (cubic(), PICTURE, 1),
    "cubic_later": (cubic("o = Transpose <perm: ints = [0, 1, 3, 2]> (s)\np = Relu (o)", "p"), PICTURE, 1),
    "cubic_after_loop": (cubic_after_loop("half_pixel"), PICTURE, 0),
    "cubic_after_loop_to_corners": (cubic_after_loop("align_corners"), PICTURE, 0),
    "attention_in_if": (attention_in_if(), TOKENS, 0),
    "attention_in_loop": (attention_in_loop(), TOKENS, 0),
}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("branches")
    return {name: convert(network, folder) for name, (network, _, _) in REFUSED.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_the_results_stay(name, converted):
    before, shapes, replaced = REFUSED[name]
    after, report = converted[name]
    assert types_of(before).count("If") - types_of(after).count("If") == replaced
    assert "Attention" not in types_of(after)
    kind = np.float16 if "attention" in name else np.float32
    assert ("Resize" in types_of(after)) == ("cubic" in name and "loop" not in name)
    feeds = {"x": np.random.default_rng(0).standard_normal(shapes[2]).astype(kind)}
    if "loop" in name:
        feeds["n"] = np.array(2)
    same(before, after, feeds, 4e-3 if "attention" in name else 1e-5 if "cubic" in name else 0)
    if replaced:
        made = [rewrite.replacement for rewrite in report.rewrites if rewrite.replacement.startswith("both branches")]
        assert len(made) == replaced
        assert all(" operations" in text for text in made)  # the cost


def test_tensorrt_builds_what_it_refused(converted, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import ask_tensorrt  # noqa: PLC0415

    paths, shapes = {}, {}
    for name, (network, sizes, _) in REFUSED.items():
        for part, each in (("before", network), ("after", converted[name][0])):
            path = tmp_path / f"{part}_{name}.onnx"
            onnx.save(each, path)
            paths[part, name] = path
            shapes[path] = {"x": sizes}
    built = ask_tensorrt(paths.values(), shapes=shapes)
    assert [name for (part, name), path in paths.items() if built[path].built != (part == "after")] == []


@pytest.mark.parametrize("name", REFUSED)
def test_inspect_agrees(name, tmp_path):
    onnx.save(REFUSED[name][0], tmp_path / "in.onnx")
    report = graft.inspect(tmp_path / "in.onnx", judge="rule")
    assert [node.support for node in report.nodes if node.support in ("unsupported", "unknown")] == []
    assert any(node.support == "lowered" for node in report.nodes)


def refused(inner, more="", inputs="float[B,5] x, bool c, bool d"):
    """An If in a branch, whose own branch has these nodes."""
    chosen = branches("d", ("p", inner), ("q", "q = Sub (x, w)"))
    return model(inputs, "float[B,5] y", f"y = {branches('c', ('a', f'a = {chosen}'), ('b', 'b = Neg (x)'))}", W + more)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (refused("r = RandomNormalLike (x) p = Add (x, r)"), "is random"),
        (refused("i = Cast <to: int = 7> (x) p = GatherElements <axis: int = 1> (x, i)"), "computed positions"),
        (
            refused(
                "i = Cast <to: int = 7> (x) k = Div (five, i) p = Cast <to: int = 1> (k)", ", int64 five = {5}"
            ),
            "may divide by 0",
        ),
        (
            refused("""n = ReduceMax <keepdims: int = 0> (x) k = Cast <to: int = 7> (n)
              p = Loop (k, true, x) <body: graph = b (int64 i, bool goes, float[B,5] h) =>
              (bool on, float[B,5] next) { on = Identity (goes) next = Neg (h) }>""", ", bool true = {1}"),
            "has a body",
        ),
        (
            refused("p = Slice (x, zero, one)", ", int64[1] zero = {0}, int64[1] one = {1}"),
            "are not known to have one shape",
        ),
        (
            model(
                "float[B,5] x, bool c",
                "float[B,5] y",
                f"""s = Shape (x) n = Gather (s, zero) d = Equal (n, one)
                y = {branches('c', ('a', f"a = {branches('d', ('p', 'p = Exp (x)'), ('q', 'q = Abs (x)'))}"),
                              ('b', 'b = Neg (x)'))}""",
                "int64 zero = {0}, int64 one = {1}",
            ),
            "its condition depends on sizes",
        ),
    ],
)  # fmt: skip
def test_branches_that_must_not_both_run_stay(network, words, tmp_path):
    after, report = convert(network, tmp_path)
    assert types_of(after).count("If") == 2
    assert any(words in reason for reason in reasons(report)), reasons(report)


def test_a_large_branch_stays_and_the_reason_has_its_cost(tmp_path):
    inputs = "float[B,5] x, bool c, bool d, float[5,12000000] v, float[12000000,5] u"
    network = refused("m = MatMul (x, v) p = MatMul (m, u)", inputs=inputs)
    after, report = convert(network, tmp_path)
    assert types_of(after).count("If") == 2
    assert any("a branch has 2.4e+08 operations" in reason for reason in reasons(report)), reasons(report)


def test_an_if_that_tensorrt_builds_stays(tmp_path):
    network = model(
        "float[B,5] x, bool c", "float[B,5] y",
        f"y = {branches('c', ('a', 'a = Exp (x)'), ('b', 'b = Neg (x)'))}",
    )  # fmt: skip
    after, report = convert(network, tmp_path)
    assert sorted(types_of(after)) == sorted(types_of(network))
    assert not reasons(report)


@pytest.mark.parametrize(
    "condition",
    [
        "s = Shape (x) n = Gather (s, two) c = Equal (n, one)",
        "s = Shape (x) n = Slice (s, two_row, three_row) m = Squeeze (n) c = Less (m, two)",
        "s = Shape <start: int = 2, end: int = 3> (x) m = Squeeze (s) c = Equal (m, one)",
        "s = Shape (x) r = Size (s) c = Equal (r, four)",
        "s = Shape (x) n = Gather (s, two) k = Cast <to: int = 6> (n) d = Equal (k, one_i32) e = Not (d) c = Not (e)",
    ],
)
def test_a_condition_from_fixed_sizes_disappears(condition, tmp_path):
    network = model(
        "float[B,3,1,W] x",
        "float[B,3,W] y",
        f"""{condition}
        z = If (c) <then_branch: graph = t () => (float[B,3,W] a) {{ a = Squeeze (x, two_row) }},
                    else_branch: graph = e () => (float[B,3,q,W] b) {{ b = Identity (x) }}>
        y = Relu (z)""",
        "int64 two = {2}, int64 one = {1}, int64 four = {4}, int32 one_i32 = {1}, int64[1] two_row = {2}, "
        "int64[1] three_row = {3}",
    )
    after, _ = convert(network, tmp_path)
    assert [kind for kind in types_of(after) if kind not in ("Squeeze", "Reshape")] == ["Relu"]
    same(network, after, {"x": np.random.default_rng(0).standard_normal((2, 3, 1, 4)).astype(np.float32)})
