# empty_checks_test.py - Tests the removal of an If that returns early on empty input, where a node in its other branch
# has a size that depends on data.
"""The networks are post-processing of detectors as torchvision's exports have it. ONNX Runtime runs each before and
after, with no boxes and with some, and TensorRT-RTX builds the result, which it refused before."""

import graft
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

PASS = "remove_empty_checks"

# torchvision's batched_nms: boxes of different labels are moved apart, so that they do not suppress each other.
SUPPRESS = """
  {largest}
  label_numbers = Cast <to: int = {type}> (labels)
  step = Add (largest, one)
  offsets = Mul (label_numbers, step)
  columns = Unsqueeze (offsets, axis1)
  moved = Add (boxes, columns)
  wide_boxes = Cast <to: int = 1> (moved)
  wide_scores = Cast <to: int = 1> (scores)
  box_batch = Unsqueeze (wide_boxes, axis0)
  score_batch = Unsqueeze (wide_scores, axis0)
  score_classes = Unsqueeze (score_batch, axis0)
  selected = NonMaxSuppression (box_batch, score_classes, limit, overlap)
  column = Gather <axis: int = 1> (selected, two)
  found = Squeeze (column, axis1)
"""
LARGEST = "largest = ReduceMax <keepdims: int = 0> (boxes)"
NUMEL = "sizes = Shape (boxes)\ncount = ReduceProd <keepdims: int = 0> (sizes)\n"
IS_EMPTY = NUMEL + "same = Equal (count, zero)\ncondition = Cast <to: int = 9> (same)\n"
NOTHING = "none = Constant <value: tensor = int64[0] {}> ()"
KEEP = "keep = If (condition) <then_branch: graph = t () => (int64[K] none) {{ {nothing} }}, \
else_branch: graph = e () => (int64[M] found) {{ {kept} }}>"
SWAPPED = "keep = If (condition) <then_branch: graph = e () => (int64[M] found) {{ {kept} }}, \
else_branch: graph = t () => (int64[K] none) {{ {nothing} }}>"
SELECT = """
  likely = Greater (all_scores, threshold)
  places = NonZero (likely)
  chosen = Squeeze (places, axis0)
  boxes = Gather (all_boxes, chosen)
  scores = Gather (all_scores, chosen)
  labels = Gather (all_labels, chosen)
"""
CONSTANTS = """int64 zero = {{0}}, int64 int_one = {{1}}, int64 int_two = {{2}}, int64[1] zeros = {{0}}, int64[1] ends = {{1}},
  int64[1] axis0 = {{0}}, int64[1] minus_1 = {{-1}}, int64[1] axis1 = {{1}}, int64[1] two = {{2}}, int64[2] both_axes = {{0, 1}}, int64 true = {{1}},
  int64[1] limit = {{9223372036854775807}}, float[1] overlap = {{0.5}}, {real} threshold = {{{half}}}, {real} one = {{{one}}}"""
TYPES = {"float": 1, "float16": 10}
# The text form of a model stores f16 values as bits.
NUMBERS = {"float": {"half": "0.5", "one": "1"}, "float16": {"half": 0x3800, "one": 0x3C00}}


def model(nodes, outputs="int64[K] keep, {real}[K,4] kept", opset=17, real="float", functions="", domains=""):
    text = f'<ir_version: 8, opset_import: ["" : {opset}{domains}]>\n'
    text += f"g ({real}[N,4] all_boxes, {real}[N] all_scores, int64[N] all_labels) => ({outputs.format(real=real)})\n"
    text += f"<{CONSTANTS.format(real=real, **NUMBERS[real])}> {{\n{nodes}\n}}\n{functions}"
    network = onnx.parser.parse_model(text)
    onnx.checker.check_model(network)
    return network


def tail(
    check=IS_EMPTY, largest=LARGEST, branches=KEEP, nothing=NOTHING, kept=SUPPRESS, real="float", opset=17, **more
):
    kept = kept.format(largest=largest, type=TYPES[real])
    nodes = SELECT + check + branches.format(nothing=nothing, kept=kept) + "\nkept = Gather (boxes, keep)"
    return model(nodes, real=real, opset=opset, **more)


def first_size_is(comparison):
    return f"sizes = Shape (boxes)\ncount = Gather (sizes, zero)\n{comparison}\n"


def numel_is(comparison):
    return f"{NUMEL}{comparison}\n"


def nested():
    """Returns a network in which a second If inside the first checks another tensor with the same number of rows."""
    kept = SUPPRESS.format(largest=LARGEST, type=1)
    inner = "more_sizes = Shape (scores)\nmore = Gather (more_sizes, zero)\nsecond = Equal (more, zero)\n"
    inner += (
        KEEP.format(nothing=NOTHING, kept=kept).replace("keep =", "found_inside =").replace("(condition)", "(second)")
    )
    inner = inner.replace("none", "nothing_inside")
    outer = KEEP.replace("(int64[M] found)", "(int64[M] found_inside)")
    return tail(branches=outer, kept=inner.replace("{", "{{").replace("}", "}}"))


def two_outputs():
    branches = """keep, of = If (condition) <
        then_branch: graph = t () => (int64[K] none, int64[K] nil) {{ {nothing} nil = Constant <value: tensor = int64[0] {{}}> () }},
        else_branch: graph = e () => (int64[M] found, int64[M] labels_found) {{ {kept} labels_found = Gather (labels, found) }}>"""
    return tail(branches=branches, outputs="int64[K] keep, {real}[K,4] kept, int64[K] of")


def two_checks_of_the_same_names():
    """Returns a network with two suppressions, the second on the result of the first; `column` and `moved` are names
    in both branches and in the graph."""
    again = "{first}\nboxes2 = Identity (kept1)\nscores2 = Gather (scores, keep1)\nlabels2 = Gather (labels, keep1)\n"
    kept = SUPPRESS.format(largest=LARGEST, type=1)
    first = KEEP.format(nothing=NOTHING, kept=kept).replace("keep =", "keep1 =")
    second = IS_EMPTY + KEEP.format(nothing=NOTHING, kept=kept)
    for name in ("boxes", "scores", "labels"):
        second = second.replace(f"({name}", f"({name}2")
    for name in ("sizes", "count", "same", "condition"):
        second = second.replace(name, f"{name}2")
    nodes = SELECT + IS_EMPTY + again.format(first=first + "\nkept1 = Gather (boxes, keep1)") + second
    nodes += "\nkept = Gather (boxes2, keep)\ncolumn = Neg (kept)\nmoved = Abs (column)"
    return model(nodes, "int64[K] keep, {real}[K,4] kept, {real}[K,4] moved")


def function_called_twice():
    constants = {"one": "value_float: float = 1.0", "zero": "value_int: int = 0", "axis0": "value_ints: ints = [0]"}
    constants |= {"axis1": "value_ints: ints = [1]", "two": "value_ints: ints = [2]"}
    constants |= {"limit": "value_ints: ints = [1000]", "overlap": "value_floats: floats = [0.5]"}
    made = "\n".join(f"{name} = Constant <{value}> ()" for name, value in constants.items())
    body = made + IS_EMPTY + KEEP.format(nothing=NOTHING, kept=SUPPRESS.format(largest=LARGEST, type=1))
    function = f'<domain: "my", opset_import: ["" : 17]>\nsuppress (boxes, scores, labels) => (keep) {{ {body} }}'
    nodes = (
        SELECT
        + """keep0 = my.suppress (boxes, scores, labels)
      kept0 = Gather (boxes, keep0)\nscores0 = Gather (scores, keep0)\nlabels0 = Gather (labels, keep0)
      keep = my.suppress (kept0, scores0, labels0)\nkept = Gather (kept0, keep)"""
    )
    return model(nodes, functions=function, domains=', "my" : 1')


REMOVED = {
    "numel": tail,
    "numel_f16": lambda: tail(real="float16"),
    "numel_opset_18": lambda: tail(opset=18),
    "numel_opset_21": lambda: tail(opset=21),
    "size": lambda: tail("count = Size (boxes)\ncondition = Equal (zero, count)\n"),
    "numel_above_0": lambda: tail(numel_is("condition = Greater (count, zero)"), branches=SWAPPED),
    "0_below_numel": lambda: tail(numel_is("condition = Less (zero, count)"), branches=SWAPPED),
    "numel_below_1": lambda: tail(numel_is("condition = Less (count, int_one)")),
    "not_numel_above_0": lambda: tail(numel_is("any = Greater (count, zero)\ncondition = Not (any)")),
    "numel_at_least_1": lambda: tail(numel_is("condition = GreaterOrEqual (count, int_one)"), branches=SWAPPED),
    "numel_at_most_0": lambda: tail(numel_is("condition = LessOrEqual (count, zero)")),
    "numel_as_condition": lambda: tail(numel_is("condition = Cast <to: int = 9> (count)"), branches=SWAPPED),
    "first_size": lambda: tail(first_size_is("condition = Equal (count, zero)")),
    "first_size_above_0": lambda: tail(first_size_is("condition = Greater (count, zero)"), branches=SWAPPED),
    "sliced_size": lambda: tail(
        "sizes = Shape (boxes)\ncount = Slice (sizes, zeros, ends)\nsame = Equal (count, zeros)\ncondition = Squeeze (same)\n"
    ),
    "first_size_of_shape": lambda: tail(
        "count1 = Shape <start: int = 0, end: int = 1> (boxes)\ncount = Squeeze (count1)\ncondition = Equal (count, zero)\n"
    ),
    "largest_over_listed_axes": lambda: tail(
        largest="largest = ReduceMax <axes: ints = [0, 1], keepdims: int = 0> (boxes)"
    ),
    "largest_over_given_axes": lambda: tail(
        largest="largest = ReduceMax <keepdims: int = 0> (boxes, both_axes)", opset=18
    ),
    "largest_of_each_column": lambda: tail(
        largest="columns4 = ReduceMax <axes: ints = [0], keepdims: int = 0> (boxes)\nlargest = ReduceMax <keepdims: int = 0> (columns4)"
    ),
    "smallest": lambda: tail(largest="least = ReduceMin <keepdims: int = 0> (boxes)\nlargest = Neg (least)"),
    "non_zero": lambda: tail(
        kept="high = Greater (scores, threshold)\nrows = NonZero (high)\nfound = Squeeze (rows, axis0)"
    ),
    "two_outputs": two_outputs,
    "nested": nested,
    "two_checks_of_the_same_names": two_checks_of_the_same_names,
    "function_called_twice": function_called_twice,
}


def in_loop():
    kept = SUPPRESS.format(largest=LARGEST, type=1)
    branches = KEEP.format(nothing=NOTHING, kept=kept).replace("keep =", "kept_here =")
    body = f"""{IS_EMPTY}{branches}
      chosen_here = Gather (scores, kept_here)
      total = ReduceSum <keepdims: int = 0> (chosen_here)
      goes_on = Equal (total, total)"""
    loop = f"totals = Loop (int_two, go) <body: graph = b (int64 i, bool goes) => (bool goes_on, float total) {{ {body} }}>"
    return model(SELECT + "go = Cast <to: int = 9> (true)\n" + loop, "float[T] totals")


LEFT = {
    "another_constant": lambda: model(
        SELECT + IS_EMPTY
        + KEEP.format(
            nothing="none = Constant <value: tensor = int64[1] {-1}> ()", kept=SUPPRESS.format(largest=LARGEST, type=1)
        ),
        "int64[K] keep",
    ),
    "another_shape": lambda: model(
        SELECT + IS_EMPTY
        + KEEP.replace("int64[K] none", "int64[K,4] none").replace("int64[M] found", "int64[M,4] rows").format(
            nothing="none = Constant <value: tensor = int64[0,3] {}> ()",
            kept=SUPPRESS.format(largest=LARGEST, type=1)
            + "column3 = Unsqueeze (found, axis1)\nrows = Concat <axis: int = 1> (column3, column3, column3, column3)",
        ),
        "int64[K,L] keep",
    ),
    "one_element": lambda: tail(numel_is("condition = Equal (count, int_one)")),
    "at_most_one_row": lambda: tail(first_size_is("condition = Less (count, int_two)")),
    "count_of_another_tensor": lambda: tail("count = Size (all_boxes)\ncondition = Equal (zero, count)\n"),
    "first_element": lambda: tail(largest="flat = Reshape (boxes, minus_1)\nlargest = Gather (flat, zero)"),
    "nothing_sized_by_data": lambda: tail(
        kept="{largest}\nlast, order = TopK <axis: int = 0> (scores, ends)\nfound = Add (order, zero)", branches=KEEP
    ),
    "in_loop": in_loop,
}  # fmt: skip


def run(network, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def feeds_of(network, count, likely):
    """Returns boxes of which some overlap; none has a high score, or most have."""
    generator = np.random.default_rng(count)
    real = np.float16 if network.graph.input[0].type.tensor_type.elem_type == TYPES["float16"] else np.float32
    corners = generator.uniform(0, 8, (count, 2))
    boxes = np.concatenate([corners, corners + generator.uniform(2, 6, (count, 2))], axis=1)
    scores = generator.uniform(0.4, 1, count) if likely else generator.uniform(0, 0.4, count)
    labels = generator.integers(0, 3, count)
    return {"all_boxes": boxes.astype(real), "all_scores": scores.astype(real), "all_labels": labels}


def ifs_of(graph):
    found = 0
    for node in graph.node:
        found += node.op_type == "If"
        found += sum(ifs_of(a.g) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)
    return found


def check_agrees(before, after):
    selected = set()
    for count, likely in ((0, True), (1, True), (7, False), (7, True), (40, True)):
        feeds = feeds_of(before, count, likely)
        wanted, found = run(before, feeds), run(after, feeds)
        for one, other in zip(wanted, found, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(other, one)
        selected.add(wanted[0].shape[0] if wanted[0].ndim else 0)
    return selected


def converted(network, folder, **options):
    path = folder / "network.onnx"
    onnx.save(network, path)
    return graft.convert(path, check=False, **options)


@pytest.mark.parametrize("name", REMOVED)
def test_the_check_is_removed(name, tmp_path):
    before = REMOVED[name]()
    result = converted(before, tmp_path)
    after = result.model.to_proto()
    assert ifs_of(before.graph) + sum(ifs_of(function) for function in before.functions) > 0
    assert ifs_of(after.graph) == 0
    onnx.checker.check_model(after)
    assert {0, 1} < check_agrees(before, after)
    proofs = [rewrite.proof for rewrite in result.rewrites if rewrite.rewrite_pass == PASS]
    assert all("has no elements in 1 of them" in proof for proof in proofs)
    assert proofs


@pytest.mark.parametrize("name", LEFT)
def test_any_other_if_is_left_alone(name, tmp_path):
    before = LEFT[name]()
    after = converted(before, tmp_path).model.to_proto()
    assert ifs_of(after.graph) == ifs_of(before.graph)
    check_agrees(before, after)


def test_a_proof_without_elements_is_made_or_the_check_stays(tmp_path):
    """OpenVINO, here the only engine, returns one element for an If whose branch returns none."""
    result = converted(tail(), tmp_path, engine="openvino")
    assert ifs_of(result.model.to_proto().graph) == 1
    (rejected,) = [rewrite for rewrite in result.rejected if rewrite.rewrite_pass == PASS]
    assert "boxes: [0, 4]" in rejected.proof


@pytest.mark.parametrize("name", ["numel", "numel_f16", "nested", "two_checks_of_the_same_names"])
def test_tensorrt_builds_what_it_refused(name, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    path = tmp_path / "network.onnx"
    onnx.save(REMOVED[name](), path)
    with_check = graft.convert(path, without=[PASS], check=False)
    with_check.model.save(tmp_path / "with_check.onnx")
    ends = {"all_boxes": [(n, 4) for n in (1, 50, 100)]}
    ends |= {name: [(n,) for n in (1, 50, 100)] for name in ("all_scores", "all_labels")}
    with pytest.raises(graft.Error, match="cannot build an engine"):
        graft.build(tmp_path / "with_check.onnx", tmp_path / "engine", targets=["sm120"], shapes=ends)
    assert graft.convert(path, targets=["sm120"], shapes=ends).runs
