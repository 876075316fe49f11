# unroll_test.py - Tests that a Loop and a Scan with a known number of iterations become copies of their bodies, and
# that sequences become the tensors in them.
"""ONNX Runtime runs each network before and after, and TensorRT-RTX builds results that it refused before."""

import sys
from pathlib import Path

import graft
import numpy as np
import onnx
import onnx.parser
import pytest
from conversions import convert, reasons, run, types_of

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SEEDS = range(12)
BATCH = 3
TYPES = {"float": np.float32, "float16": np.float16}
# The text form of a model stores f16 numbers as bits.
HALF = {"float": "0.5", "float16": str(0x3800)}


def model(inputs, outputs, nodes, constants="", opset=17):
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => ({outputs}) <{constants}> {{\n{nodes}\n}}'
    network = onnx.parser.parse_model(text)
    onnx.checker.check_model(network)
    return network


def same(before, after, feeds):
    for one, other in zip(run(before, feeds), run(after, feeds), strict=True):
        assert other.dtype == one.dtype
        np.testing.assert_array_equal(other, one)


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


# ---- Networks, each from a seed


def loop(rng):
    """A Loop that grows a tensor, adds up another, and returns a row of each iteration."""
    kind, opset = pick(rng, "float", "float16"), pick(rng, 17, 18, 21)
    count = int(rng.integers(1, 5))
    number = pick(rng, "int64 i", "int64[1] i")
    condition = pick(rng, "", "true")
    goes_on = pick(rng, "goes_on = Identity (goes)", "goes_on = Constant <value = bool {1}> ()")
    rows = bool(rng.integers(2))
    body = f"""{goes_on}
      number = Cast <to: int = {1 if kind == "float" else 10}> (i)
      more = Add (sum, number)
      part = Mul (more, half)
      wide = Concat <axis: int = 1> (grown, part)
      {"row = Neg (part)" if rows else ""}"""
    return model(
        f"{kind}[B,4] x",
        f"{kind}[B,W] grown_after, {kind}[B,4] sum_after" + (f", {kind}[K,B,4] all" if rows else ""),
        f"""grown_after, sum_after{", all" if rows else ""} = Loop (count, {condition or '""'}, x, x) <body: graph = b
          ({number}, bool goes, {kind}[B,W] grown, {kind}[B,4] sum) =>
          (bool goes_on, {kind}[B,W1] wide, {kind}[B,4] more{f", {kind}[B,4] row" if rows else ""}) {{ {body} }}>""",
        f"int64 count = {{{count}}}, bool true = {{1}}, {kind} half = {{{HALF[kind]}}}",
        opset,
    ), {"x": rng.integers(-8, 8, (BATCH, 4)).astype(TYPES[kind])}


def nested_loops(rng):
    """A Loop in the branch of an If in a Loop; the branch depends on the iteration."""
    outer, inner, limit = (int(n) for n in rng.integers(1, 4, 3))
    turn = "again = Identity (on)\nnext = Add (state, x)"
    then = f"""a = Loop (inner, true, h) <body: graph = t (int64 j, bool on, float[B,4] state) =>
      (bool again, float[B,4] next) {{ {turn} }}>"""
    body = f"""goes_on = Identity (goes)
      early = Less (i, limit)
      next_h = If (early) <then_branch: graph = y () => (float[B,4] a) {{ {then} }},
                           else_branch: graph = n () => (float[B,4] c) {{ c = Neg (h) }}>"""
    return model(
        "float[B,4] x",
        "float[B,4] y",
        f"""y = Loop (outer, true, x) <body: graph = b (int64 i, bool goes, float[B,4] h) =>
          (bool goes_on, float[B,4] next_h) {{ {body} }}>""",
        f"int64 outer = {{{outer}}}, int64 inner = {{{inner}}}, int64 limit = {{{limit}}}, bool true = {{1}}",
    ), {"x": rng.integers(-8, 8, (BATCH, 4)).astype(np.float32)}


def scan(rng):
    """A Scan with 0 to 2 states, inputs along any axis and in both directions, and joined results."""
    kind, opset = pick(rng, "float", "float16"), pick(rng, 17, 19, 21)
    states, length = int(rng.integers(3)), int(rng.integers(1, 5))
    axes = [int(rng.integers(-3, 3)) for _ in range(3)]
    directions = [int(rng.integers(2)) for _ in range(3)]
    shapes = []
    for axis in axes[:2]:
        shape = ["B", "4"]
        shape.insert(axis % 3, str(length))
        shapes.append(f"{kind}[{','.join(shape)}]")
    state = [f"{kind}[B,4] s{i}" for i in range(states)]
    after = [f"{kind}[B,4] t{i}" for i in range(states)]
    body = "sum = Add (u, w)\ndouble = Add (sum, u)\n"
    body += "\n".join(f"t{i} = Add (s{i}, double)" for i in range(states))
    if states == 2:
        body += "\njoined = Max (t0, t1)"
    else:
        body += "\njoined = Neg (double)"
    names = ", ".join([*(f"o{i}" for i in range(states)), "y", "z"])
    ends = ", ".join([*(f"{kind}[B,4] o{i}" for i in range(states)), f"{kind}[p,q,r] y", f"{kind}[s,t,v] z"])
    starts = "".join("x0, " for _ in range(states))
    network = model(
        f"{kind}[B,4] x0, {shapes[0]} x1, {shapes[1]} x2",
        ends,
        f"""used = Neg (x0)
        {names} = Scan <num_scan_inputs: int = 2, scan_input_axes: ints = [{axes[0]}, {axes[1]}],
          scan_input_directions: ints = [{directions[0]}, {directions[1]}],
          scan_output_axes: ints = [{axes[2]}, 0], scan_output_directions: ints = [{directions[2]}, 0],
          body: graph = b ({", ".join([*state, f"{kind}[B,4] u", f"{kind}[B,4] w"])}) =>
          ({", ".join([*after, f"{kind}[B,4] joined", f"{kind}[B,4] sum"])}) {{ {body} }}> ({starts}x1, x2)""",
        opset=opset,
    )
    feeds = {"x0": rng.integers(-8, 8, (BATCH, 4)).astype(TYPES[kind])}
    for name, axis in zip(("x1", "x2"), axes, strict=False):
        shape = [BATCH, 4]
        shape.insert(axis % 3, length)
        feeds[name] = rng.integers(-8, 8, shape).astype(TYPES[kind])
    return network, feeds


def sequence(rng):
    """A sequence that is created in any way, changed at positions from either end, and read."""
    kind, opset = pick(rng, "float", "float16"), pick(rng, 17, 18, 21)
    base = pick(rng, "empty", "construct", "ones", "columns", "chunks", "lengths")
    dtype = 1 if kind == "float" else 10
    constants, lines = ["int64 two = {2}, int64[2] lengths = {2, 4}, int64[1] last = {-1}"], []
    lines.append({
        "empty": f"s0 = SequenceEmpty <dtype: int = {dtype}> ()",
        "construct": "s0 = SequenceConstruct (a, x)",
        "ones": "s0 = SplitToSequence <axis: int = 1> (x)",
        "columns": "s0 = SplitToSequence <axis: int = -1, keepdims: int = 0> (x)",
        "chunks": "s0 = SplitToSequence <axis: int = -1, keepdims: int = 0> (x, two)",
        "lengths": "s0 = SplitToSequence <axis: int = 1> (x, lengths)",
    }[base])  # fmt: skip
    length = {"empty": 0, "construct": 2, "ones": 6, "columns": 6, "chunks": 3, "lengths": 2}[base]
    added = "c" if base == "columns" else "b"
    for i in range(1, int(rng.integers(2, 6))):
        erases = length > 1 and rng.integers(3) == 0
        most = length - 1 if erases else length
        place = pick(rng, None, int(rng.integers(-length, most + 1)))
        if place is not None:
            constants.append(f"{pick(rng, 'int64', 'int32')} p{i} = {{{place}}}")
        where = "" if place is None else f", p{i}"
        if erases:
            lines.append(f"s{i} = SequenceErase (s{i - 1}{where})")
        else:
            lines.append(f"s{i} = SequenceInsert (s{i - 1}, {added}{where})")
        length += -1 if erases else 1
        final = f"s{i}"
    constants.append(f"int64 which = {{{int(rng.integers(-length, length))}}}")
    joins = "<axis: int = 1, new_axis: int = 1>" if base == "columns" else "<axis: int = -1>"
    lines += [
        f"y = SequenceAt ({final}, which)",
        f"z = ConcatFromSequence {joins} ({final})",
        f"n = SequenceLength ({final})",
    ]
    network = model(
        f"{kind}[B,6] x",
        f"{kind}{'[B]' if base == 'columns' else '[B,w]'} y, {kind}[B,v] z, int64 n",
        "a = Neg (x)\nb = Abs (x)\nc = ReduceMax <keepdims: int = 0"
        + (", axes: ints = [1]> (x)" if opset < 18 else "> (x, last)")
        + "\n"
        + "\n".join(lines),
        ", ".join(constants),
        opset,
    )
    return network, {"x": rng.integers(-8, 8, (BATCH, 6)).astype(TYPES[kind])}


def sequence_in_loop(rng):
    """A Loop that inserts a tensor into a sequence in each iteration, and reads one of its tensors."""
    count = int(rng.integers(1, 5))
    place = pick(rng, "", ", first", ", before_last", ", i")
    body = f"""goes_on = Identity (goes)
      number = Cast <to: int = 1> (i)
      part = Mul (x, number)
      filled = SequenceInsert (old, part{place})
      one = SequenceAt (filled, last)
      row = Add (one, part)"""
    return model(
        "float[B,4] x",
        "float[B,w] y, float[k,B,4] rows, int64 n",
        f"""start = SequenceConstruct (x)
        after, rows = Loop (count, true, start) <body: graph = b (int64 i, bool goes, seq(float[B,4]) old) =>
          (bool goes_on, seq(float[B,4]) filled, float[B,4] row) {{ {body} }}>
        y = ConcatFromSequence <axis: int = 1> (after)
        n = SequenceLength (after)""",
        f"int64 count = {{{count}}}, bool true = {{1}}, int64 first = {{0}}, int64 before_last = {{-1}}, "
        f"int64 last = {{-1}}",
    ), {"x": rng.integers(-8, 8, (BATCH, 4)).astype(np.float32)}


FAMILIES = {f.__name__: f for f in (loop, nested_loops, scan, sequence, sequence_in_loop)}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Returns the name of a network -> its model, its input, its converted model and the report."""
    folder = tmp_path_factory.mktemp("unrolled")
    made = {}
    for name, make in FAMILIES.items():
        for seed in SEEDS:
            network, feeds = make(np.random.default_rng([seed, *name.encode()]))
            made[f"{name}_{seed}"] = (network, feeds, *convert(network, folder))
    return made


@pytest.mark.parametrize("name", [f"{name}_{seed}" for name in FAMILIES for seed in SEEDS])
def test_copies_and_resolved_sequences_compute_the_same(converted, name):
    before, feeds, after, _ = converted[name]
    left = [kind for kind in types_of(after) if kind in ("Loop", "Scan", "If") or "Sequence" in kind]
    assert not left
    same(before, after, feeds)


def test_tensorrt_builds_the_results(converted, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import what_tensorrt_builds  # noqa: PLC0415

    paths = []
    for name, (_, feeds, after, _) in converted.items():
        if not name.endswith(("_0", "_1")):
            continue
        for info in after.graph.input:
            for dim, size in zip(info.type.tensor_type.shape.dim, feeds[info.name].shape, strict=True):
                dim.dim_value = size
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(after, paths[-1])
    assert [path.stem for path, is_built in what_tensorrt_builds(paths).items() if not is_built] == []


# ---- What is not unrolled, and why


def counted(count="count", condition="true", goes_on="goes_on = Identity (goes)", inputs="float[2,3] x", more=""):
    """A Loop that halves a tensor."""
    return model(
        inputs,
        "float[2,3] y",
        f"""y = Loop ({count}, {condition}, x) <body: graph = b (int64 i, bool goes, float[2,3] h) =>
          (bool goes_on, float[2,3] next) {{ next = Mul (h, half)\n{goes_on} }}>""",
        f"int64 count = {{3}}, bool true = {{1}}, float half = {{0.5}}{more}",
    )


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("network", "options", "feeds", "words"),
    [
        (counted("n", inputs="float[2,3] x, int64 n"), {}, {"n": np.array(2)}, "its number of iterations, 'n', is not"),
        (counted(condition="c", inputs="float[2,3] x, bool c"), {}, {"c": np.array(True)}, "whether it begins depends"),
        (counted(), {"unroll": 0}, {}, "unrolling is disabled (unroll)"),
        (counted(), {"unroll": 5}, {}, "its 3 iterations of 2 nodes are more than 5 nodes; set unroll to a larger"),
        (
            counted(goes_on="sum = ReduceSum <keepdims: int = 0> (next)\ngoes_on = Greater (sum, half)"),
            {}, {}, "whether it continues, 'goes_on', depends on data",
        ),
    ],
    ids=["count_of_an_input", "condition_of_an_input", "disabled", "above_the_limit", "computed_condition"],
)  # fmt: skip
def test_other_loops_stay_and_the_report_says_why(network, options, feeds, words, tmp_path):
    after, report = convert(network, tmp_path, **options)
    assert "Loop" in types_of(after)
    assert any(words in reason for reason in reasons(report)), reasons(report)
    same(network, after, {"x": X, **feeds})


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("number", ["int64 i", "int64[1] i"])
def test_an_absent_condition_becomes_true(count, number, tmp_path):
    network = model(
        "float[4,3] x, int64 n",
        "float[4,3] y, float[k,r,3] rows",
        f"""start = Neg (x)
        y, rows = Loop (n, "", start) <body: graph = b ({number}, bool goes, float[4,3] h) =>
          (bool goes_on, float[4,3] next, float[r,3] row) {{
            next = Mul (h, half)
            place = Reshape (i, one)
            row = Gather (h, place)
            goes_on = Identity (goes) }}>""",
        "float half = {0.5}, int64[1] one = {1}",
    )
    after, report = convert(network, tmp_path)
    (kept,) = [node for node in after.graph.node if node.op_type == "Loop"]
    assert kept.input[1]
    assert any("its number of iterations, 'n', is not a constant" in reason for reason in reasons(report))
    same(network, after, {"x": np.arange(12, dtype=np.float32).reshape(4, 3), "n": np.array(count)})


def test_an_iteration_number_loses_its_axis_where_a_condition_is_given(tmp_path):
    network = model(
        "float[2,3] x, bool c",
        "float[2,3] y",
        """y = Loop (count, c, x) <body: graph = b (int64[1] i, bool goes, float[2,3] h) =>
          (bool goes_on, float[2,3] next) {
            number = Cast <to: int = 1> (i) next = Add (h, number) goes_on = Identity (goes) }>""",
        "int64 count = {3}",
    )
    after, report = convert(network, tmp_path)
    (made,) = report.rewrites
    assert made.replacement == "the same Loop with an iteration number without axes"
    same(network, after, {"x": X, "c": np.array(True)})


@pytest.mark.parametrize("lengths", ["7, -5", "9223372036854775807, 9223372036854775807"])
def test_impossible_lengths_of_a_split_stay(lengths, tmp_path):
    network = model(
        "float[2,3] x",
        "float[a,b] y",
        "s = SplitToSequence <axis: int = 0> (x, lengths)\ny = SequenceAt (s, one)",
        f"int64[2] lengths = {{{lengths}}}, int64 one = {{1}}",
    )
    after, report = convert(network, tmp_path)
    assert "SplitToSequence" in types_of(after)
    assert any("lengths are negative or too large" in reason for reason in reasons(report)), reasons(report)


def test_no_iterations_leave_the_start_and_empty_results(tmp_path):
    network = model(
        "float[2,3] x",
        "float[2,3] y, float[k,2,3] rows",
        """y, rows = Loop (none, true, x) <body: graph = b (int64 i, bool goes, float[2,3] h) =>
          (bool goes_on, float[2,3] next, float[2,3] row) {
            next = Neg (h) row = Abs (h) goes_on = Identity (goes) }>""",
        "int64 none = {0}, bool true = {1}",
    )
    after, _ = convert(network, tmp_path)
    assert "Loop" not in types_of(after)
    same(network, after, {"x": X})


def test_a_scan_of_dynamic_length_gets_a_state(tmp_path):
    network = model(
        "float[n,3] q, float[S,3,5] k",
        "float[S,n,5] y",
        """used = Neg (q)
        y = Scan <num_scan_inputs: int = 1, body: graph = b (float[3,5] one) => (float[n,5] product) {
          product = MatMul (used, one) }> (k)""",
    )
    after, report = convert(network, tmp_path)
    (kept,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert len(kept.output) == 2
    assert any("length of the tensors that it scans is dynamic" in reason for reason in reasons(report))
    generator = np.random.default_rng(0)
    feeds = {"q": generator.standard_normal((2, 3)), "k": generator.standard_normal((4, 3, 5))}
    same(network, after, {name: array.astype(np.float32) for name, array in feeds.items()})
    assert not convert(after, tmp_path)[1].rewrites


@pytest.mark.parametrize(
    ("goes_on", "copies"),
    [
        ("goes_on = Less (i, one)", 2),
        ("step = Add (i, one)\nearly = Less (step, two)\ngoes_on = And (early, goes)", 2),
        ("late = Greater (i, two)\ngoes_on = Not (late)", 4),
        ("goes_on = Constant <value = bool {0}> ()", 1),
    ],
)
@pytest.mark.parametrize("count", ["many", '""'])
def test_conditions_on_counters_are_computed(goes_on, copies, count, tmp_path):
    network = counted(
        count, goes_on=goes_on, more=", int64 one = {1}, int64 two = {2}, int64 many = {9223372036854775807}"
    )
    after, report = convert(network, tmp_path)
    assert "Loop" not in types_of(after)
    assert any(rewrite.replacement.startswith(f"{copies} cop") for rewrite in report.rewrites)
    same(network, after, {"x": X})


def test_a_carried_counter_ends_a_loop(tmp_path):
    network = model(
        "float[2,3] x",
        "float[2,3] y, int32 n",
        """n, y = Loop ("", true, start, x) <body: graph = b (int64 i, bool goes, int32 left, float[2,3] h) =>
          (bool goes_on, int32 fewer, float[2,3] next) {
            next = Neg (h) fewer = Sub (left, one) goes_on = Greater (fewer, zero) }>""",
        "bool true = {1}, int32 start = {3}, int32 one = {1}, int32 zero = {0}",
    )
    after, _ = convert(network, tmp_path)
    assert "Loop" not in types_of(after)
    same(network, after, {"x": X})


def test_the_report_names_the_copies(tmp_path):
    _, report = convert(counted(), tmp_path)
    (made,) = [rewrite for rewrite in report.rewrites if rewrite.nodes and rewrite.nodes[0].op == "Loop"]
    assert made.replacement == "3 copies of its body, 6 nodes"
    assert {"Mul", "Identity"} <= {node.op for node in made.nodes}
    assert not reasons(report)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("y = SequenceAt (s, three)", "position 3 is outside its sequence, which has 2 tensors"),
        ("t = SequenceErase (s, three)\ny = ConcatFromSequence <axis: int = 0> (t)", "position 3 is outside"),
        ("t = SequenceInsert (s, x, three)\ny = SequenceAt (t, zero)", "position 3 is outside"),
    ],
)
def test_a_position_outside_a_sequence_is_an_error(nodes, words, tmp_path):
    network = model(
        "float[2,3] x", "float[a,b] y", f"s = SequenceConstruct (x, x)\n{nodes}", "int64 three = {3}, int64 zero = {0}"
    )
    with pytest.raises(graft.Error, match=words):
        convert(network, tmp_path)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("s = SequenceConstruct (x, x)\ny = SequenceAt (s, p)", "its position is not a constant"),
        ("s = SplitToSequence <axis: int = 0> (x, p)\ny = ConcatFromSequence <axis: int = 1> (s)", "are not known"),
        (
            "s = SequenceConstruct (x, x)\nt = SequenceInsert (s, x, p)\ny = SequenceAt (t, one)",
            "the position 'p' at which node 't' (SequenceInsert) inserts a tensor is not a constant",
        ),
    ],
)
def test_a_sequence_that_depends_on_data_stays(nodes, words, tmp_path):
    network = model("float[2,3] x, int64 p", "float[a,b] y", nodes, "int64 one = {1}")
    after, report = convert(network, tmp_path)
    assert any("Sequence" in kind for kind in types_of(after))
    assert any(words in reason for reason in reasons(report)), reasons(report)
    same(network, after, {"x": X, "p": np.array(1)})


# ---- Sizes from data inside of a Loop


@pytest.mark.parametrize(
    "nodes",
    [
        "found = NonZero (row)\nsizes = Shape (found)",
        """boxes = Unsqueeze (row, axis0)
        found = NonMaxSuppression (boxes, scores, limit, overlap)
        sizes = Shape (found)""",
    ],
    ids=["NonZero", "NonMaxSuppression"],
)
def test_nodes_with_sizes_from_data_leave_the_loop(nodes, tmp_path):
    network = model(
        "float[2,4,4] x",
        "float[2,2] y",
        f"""y = Loop (count, true) <body: graph = b (int64 i, bool goes) => (bool goes_on, float[2] out) {{
          row = Gather <axis: int = 0> (x, i)
          {nodes}
          out = Cast <to: int = 1> (sizes)
          goes_on = Identity (goes) }}>""",
        "int64 count = {2}, bool true = {1}, int64[1] axis0 = {0}, int64[1] limit = {3}, float[1] overlap = {0.5}, "
        "float[1,1,4] scores = {0.5, 0.25, 0.75, 0.125}",
    )
    after, _ = convert(network, tmp_path)
    assert "Loop" not in types_of(after)
    x = np.abs(np.random.default_rng(0).standard_normal((2, 4, 4))).astype(np.float32)
    x[..., 2:] += 4
    same(network, after, {"x": x})
    assert graft.inspect(tmp_path / "out.onnx", judge="rule").runs
