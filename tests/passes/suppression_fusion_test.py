# suppression_fusion_test.py - Tests the fusion of NonMaxSuppression and the nodes around it into one suppression whose
# results have a fixed number of places.
"""Networks as exporters write them, and networks that differ in one detail and must stay as they are. ONNX Runtime runs
each before and after, without candidates, with few and with more than there are places, and with equal scores."""

import json
import pathlib

import graft
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

PASS = "fuse_combined_non_max_suppression"
TAILS = pathlib.Path(__file__).parents[1] / "golden" / "detectors"

MASK = "likely = Greater (all_scores, low)\n"
SELECT = """
  places = NonZero (likely)
  chosen = Transpose <perm: ints = [1, 0]> (places)
  boxes = GatherND (all_boxes, chosen)
  scores = GatherND (all_scores, chosen)
  labels = GatherND (all_labels, chosen)
"""
ALL = "boxes = Identity (all_boxes)\nscores = Identity (all_scores)\nlabels = Identity (all_labels)\n"
APART = """
  numbers = Cast <to: int = 1> (labels)
  steps = Mul (numbers, ten)
  columns = Unsqueeze (steps, axis1)
  compared = Add (boxes, columns)
"""
TOGETHER = "compared = Identity (boxes)\n"
SUPPRESS = """
  box_batch = Unsqueeze (compared, axis0)
  score_batch = Unsqueeze (scores, axes01)
  selected = NonMaxSuppression {center} (box_batch, score_batch, limit, overlap{threshold})
"""
COLUMN = "column = Gather <axis: int = 1> (selected, two)\nfound = Squeeze (column, axis1)\n"
FIRST = "keep = Slice (found, zero1, places6, axis0)\n"
GATHER = """
  kept_boxes = Gather (boxes, keep)
  kept_scores = Gather (scores, keep)
  score_column = Reshape (kept_scores, as_column)
  kept_labels = Gather (labels, keep)
  label_numbers = Cast <to: int = 1> (kept_labels)
  label_column = Unsqueeze (label_numbers, axis1)
  rows = Concat <axis: int = -1> (kept_boxes, score_column, label_column)
"""
PAD = """
  sizes = Shape (rows)
  size = Gather (sizes, zero)
  missing = Sub (six, size)
  missing1 = Unsqueeze (missing, axis0)
  pads = Concat <axis: int = 0> (zeros2, missing1, zero1)
  y = Pad (rows, pads)
"""
CONCAT = """
  sizes = Shape (keep)
  missing = Sub (places6, sizes)
  shape = Concat <axis: int = 0> (missing, width)
  fill = ConstantOfShape <value: tensor = float[1] {-1}> (shape)
  y = Concat <axis: int = 0> (rows, fill)
"""
CONSTANTS = """float low = {0.25}, float ten = {10}, int64[1] limit = {9223372036854775807}, float[1] overlap = {0.375},
  float[1] above = {0.5}, int64 zero = {0}, int64 six = {6}, int64[1] zero1 = {0},
  int64[1] places6 = {6}, int64[1] places5 = {5}, int64[1] two = {2}, int64[1] three = {3}, int64 column2 = {2},
  int64[1] axis0 = {0}, int64[1] axis1 = {1}, int64[2] axes01 = {0, 1}, int64[2] as_column = {-1, 1},
  int64[2] zeros2 = {0, 0}, int64[1] width = {6}, int64 five = {5}, int64 int1 = {1}, int64[1] minus1 = {-1}, int64[1] before = {-1000},
  float[1,6] zeros_of_y = {0, 0, 0, 0, 0, 0}"""


def network(nodes, outputs="float[P,W] y", count=40):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
g (float[{count},4] all_boxes, float[{count}] all_scores, int64[{count}] all_labels) => ({outputs})
<{CONSTANTS}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model


def tail(
    select=MASK + SELECT,
    apart=APART,
    column=COLUMN,
    first=FIRST,
    gather=GATHER,
    end=PAD,
    center="",
    threshold="",
    **more,
):
    suppress = SUPPRESS.format(center=center, threshold=threshold)
    return network(select + apart + suppress + column + first + gather + end, **more)


def limited(limit="places6", **more):
    """Returns a network whose suppression has the limit, instead of a Slice after it."""
    model = tail(first="keep = Identity (found)\n", **more)
    for node in model.graph.node:
        if node.op_type == "NonMaxSuppression":
            node.input[2] = limit
    return model


INDEX = "keep = Slice (found, zero1, places6, axis0)\n"
PAD_PLACES = """
  sizes = Shape (keep)
  missing = Sub (places6, sizes)
  pads = Concat <axis: int = 0> (zero1, missing)
  y = Pad (keep, pads)
"""
PAD_BY_RELU = """
  sizes = Shape (keep)
  missing = Sub (places6, sizes)
  real = Cast <to: int = 1> (missing)
  positive = Relu (real)
  whole = Cast <to: int = 7> (positive)
  pads = Concat <axis: int = 0> (zero1, whole)
  y = Pad (keep, pads)
"""
CENTER = "<center_point_box: int = 1>"

FUSED = {
    "mask": tail,
    "no_mask": lambda: tail(select=ALL),
    "together": lambda: tail(apart=TOGETHER),
    "dynamic_count": lambda: tail(count="N"),
    "fewer_boxes_than_places": lambda: tail(count=4),
    "gathered_by_index": lambda: tail(
        select=MASK
        + "places = NonZero (likely)\nchosen = Squeeze (places, axis0)\n"
        + "\n".join(f"{name} = Gather (all_{name}, chosen)" for name in ("boxes", "scores", "labels"))
    ),
    "compress": lambda: tail(
        select=MASK
        + "\n".join(f"{n} = Compress <axis: int = 0> (all_{n}, likely)" for n in ("boxes", "scores", "labels"))
    ),
    "at_least": lambda: tail(select="likely = GreaterOrEqual (all_scores, low)\n" + SELECT),
    "below": lambda: tail(select="likely = Less (low, all_scores)\n" + SELECT),
    "mask_of_labels": lambda: tail(select="likely = Equal (all_labels, int1)\n" + SELECT),
    "two_masks_in_one": lambda: tail(
        select="a = Greater (all_scores, low)\nb = Equal (all_labels, int1)\nlikely = And (a, b)\n" + SELECT
    ),
    "own_threshold": lambda: tail(threshold=", above"),
    "center": lambda: tail(apart=TOGETHER, center=CENTER),
    "sliced_column": lambda: tail(column="column = Slice (selected, two, three, axis1)\nfound = Squeeze (column, axis1)\n"),
    "scalar_column": lambda: tail(column="found = Gather <axis: int = 1> (selected, column2)\n"),
    "limit_of_suppression": limited,
    "lower_limit": lambda: limited("places5"),
    "one_box": lambda: limited("axis1"),
    "filled_by_concat": lambda: tail(end=CONCAT),
    "filled_by_value": lambda: tail(end=PAD.replace("(rows, pads)", "(rows, pads, low)")),
    "places": lambda: tail(select=ALL, first=INDEX, gather="", end=PAD_PLACES, outputs="int64[P] y"),
    "places_by_relu": lambda: tail(select=ALL, first=INDEX, gather="", end=PAD_BY_RELU, outputs="int64[P] y"),
    "count": lambda: tail(end=PAD + "n = Identity (size)", outputs="float[P,W] y, int64 n"),
    "rows_of_classes": lambda: tail(
        select=ALL, column=COLUMN + "classes = Gather <axis: int = 1> (selected, int1)\n",
        gather=GATHER.replace("(labels, keep)", "(labels, keep2)").replace(
            "kept_labels =", "class_part = Slice (classes, zero1, places6, axis0)\nkeep2 = Add (keep, class_part)\nkept_labels ="
        ),
    ),
}  # fmt: skip


def two_items():
    nodes = """
      selected = NonMaxSuppression (two_boxes, two_scores, places6, overlap)
      found = Gather <axis: int = 1> (selected, column2)
      sizes = Shape (found)
      missing = Sub (places6, sizes)
      pads = Concat <axis: int = 0> (zero1, missing)
      padded = Pad (found, pads)
      y = Slice (padded, zero1, places6)"""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
g (float[1,40,4] two_boxes, float[1,2,40] two_scores) => (int64[P] y) <{CONSTANTS}> {{ {nodes} }}"""
    return onnx.parser.parse_model(text.replace("places6, overlap", "three, overlap"))


def in_a_branch():
    nodes = MASK + SELECT + APART + SUPPRESS.format(center="", threshold="") + COLUMN + FIRST + GATHER + PAD
    branch = nodes.replace("y = Pad", "padded = Pad")
    return network(
        f"""condition_size = Size (all_boxes)
      condition = Greater (condition_size, five)
      y = If (condition) <then_branch: graph = t () => (float[P,W] padded) {{ {branch} }},
        else_branch: graph = e () => (float[P,W] nothing) {{ nothing = Sub (zeros_of_y, zeros_of_y) }}>""",
        count="N",
    )


# name: (network, words of the reason)
LEFT = {
    "no_padding": (lambda: tail(end="y = Identity (rows)"), "no result has a fixed size"),
    "rows_are_an_output": (
        lambda: tail(end=PAD + "more = Abs (rows)", outputs="float[P,W] y, float[K,W] more"),
        "which has a row for each selected box, is an output of the graph",
    ),
    "rows_are_summed": (
        lambda: tail(end=PAD + "total = ReduceSum <keepdims: int = 0> (rows, axis0)", outputs="float[P,W] y, float[W] total"),
        "reduces over the boxes",
    ),
    "padded_before": (
        lambda: tail(end=PAD.replace("(zeros2, missing1, zero1)", "(missing1, zero1, zeros2)")),
        "does not fill a fixed number of places after the boxes",
    ),
    "padded_by_one_more": (
        lambda: tail(end=PAD.replace("(zeros2, missing1, zero1)", "(zeros2, missing1, axis1)")),
        "does not fill",
    ),
    "padded_by_a_fixed_count": (
        lambda: tail(end=PAD.replace("(zeros2, missing1, zero1)", "(zeros2, places6, zero1)")), "does not fill"
    ),
    "other_mode": (
        lambda: tail(end=PAD.replace("Pad (rows", 'Pad <mode: string = "edge"> (rows')), "repeats boxes"
    ),
    "fewer_places_than_boxes": (
        lambda: tail(end=PAD.replace("(six, size)", "(five, size)")),
        "may select more boxes",
    ),
    "limit_from_data": (
        lambda: limited("most1", select=MASK + SELECT + "most = Shape (boxes)\nmost1 = Slice (most, zero1, axis1)\n"),
        "its limit or one of its thresholds is not a constant",
    ),
    "compared_with_each_other": (
        lambda: tail(apart="largest = ReduceMax <keepdims: int = 0> (boxes)\ncompared = Div (boxes, largest)\n"),
        "reduces over the boxes",
    ),
    "sorted_before": (
        lambda: tail(
            select=MASK + SELECT.replace("scores = GatherND", "unsorted = GatherND")
            + "scores = CumSum (unsorted, zero)\n",
        ),
        "does not compute each box alone",
    ),
    "two_masks": (
        lambda: tail(
            select="likely = Greater (all_scores, low)\nother = GreaterOrEqual (all_scores, low)\n" + SELECT
            + "places2 = NonZero (other)\nchosen2 = Transpose <perm: ints = [1, 0]> (places2)\n",
            apart="boxes2 = GatherND (all_boxes, chosen2)\ncompared = Add (boxes, boxes2)\n",
        ),
        "select different boxes",
    ),
    "numbers_of_candidates": (
        lambda: tail(first=INDEX, gather="", end=PAD_PLACES, outputs="int64[P] y"),
        "has the numbers of boxes, which count those",
    ),
    "gathered_from_all": (
        lambda: tail(gather=GATHER.replace("Gather (labels, keep)", "Gather (all_labels, keep)")),
        "which is not a tensor of the boxes that",
    ),
    "last_ones": (
        lambda: tail(first="back = Slice (found, minus1, before, axis0, minus1)\nkeep = Slice (back, zero1, places6, axis0)\n"),
        "cuts the list of boxes",
    ),
    "count_before_the_first_boxes_are_taken": (
        lambda: tail(end=PAD.replace("Shape (rows)", "Shape (found)")), "does not fill"
    ),
    "two_items": (two_items, "only the scores of one item and one class are fused"),
    "in_a_branch": (in_a_branch, None),
}  # fmt: skip


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def feeds_of(model, count, share, seed):
    """Returns boxes of which many overlap, with their corners in any order, and scores of which `share` are above the
    threshold and many are equal."""
    random = np.random.default_rng(seed)
    first = random.uniform(0, 8, (count, 2))
    boxes = np.concatenate([first, first + random.uniform(-6, 6, (count, 2))], axis=1)
    scores = np.where(random.uniform(size=count) < share, random.integers(4, 17, count), random.integers(0, 5, count))
    values = {"boxes": boxes.astype(np.float32), "scores": (scores / 16).astype(np.float32)}
    values["labels"] = random.integers(0, 3, count)
    names = {value.name for value in model.graph.input}
    return {f"all_{name}": value for name, value in values.items() if f"all_{name}" in names}


def check_agrees(before, after):
    sessions = session_of(before), session_of(after)
    size = before.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    for seed, (count, share) in enumerate(((1, 0), (1, 1), (40, 0), (40, 0.05), (40, 0.3), (40, 1), (40, 1))):
        feeds = feeds_of(before, size or count, share, seed)
        for one, other in zip(*(session.run(None, feeds) for session in sessions), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(other, one)


def operators(model):
    return [node.op_type.split("_")[0] for node in model.graph.node]


def converted(model, folder, **options):
    path = folder / "network.onnx"
    onnx.save(model, path)
    return graft.convert(path, check=False, **options)


@pytest.mark.parametrize("name", FUSED)
def test_a_tail_is_fused(name, tmp_path):
    before = FUSED[name]()
    result = converted(before, tmp_path)
    after = result.model.to_proto()
    assert operators(after).count("CombinedNonMaxSuppression") == 1
    assert not {"NonMaxSuppression", "NonZero", "Compress", "Pad"} & set(operators(after))
    onnx.checker.check_model(after)
    check_agrees(before, after)
    (rewrite,) = [rewrite for rewrite in result.rewrites if rewrite.rewrite_pass == PASS]
    assert "no difference" in rewrite.proof


@pytest.mark.parametrize("name", LEFT)
def test_any_other_network_is_left_alone(name, tmp_path):
    network, words = LEFT[name]
    before = network()
    result = converted(before, tmp_path)
    after = result.model.to_proto()
    assert "CombinedNonMaxSuppression" not in operators(after)
    if words:
        reasons = [near["reason"] for near in json.loads(result.to_json())["near_misses"] if near["pass"] == PASS]
        assert any(words in reason for reason in reasons), reasons


def test_without_plugins_the_nodes_stay(tmp_path):
    assert "NonMaxSuppression" in operators(converted(tail(), tmp_path, plugins="never").model.to_proto())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("torch_one_picture", 1),
        ("torch_two_pictures", 2),
        ("tf2onnx_padded", 1),
        ("tf2onnx_combined", 1),
        ("tf2onnx_combined_few", 1),
        ("tf2onnx_combined_per_class", 1),
    ],
)
def test_exports_are_fused(name, count):
    """The results are those of PyTorch and TensorFlow."""
    result = graft.convert(TAILS / f"{name}.onnx", check=False)
    after = result.model.to_proto()
    assert operators(after).count("CombinedNonMaxSuppression") == count
    assert not {"NonMaxSuppression", "NonZero", "Pad"} & set(operators(after))
    arrays = np.load(TAILS / f"{name}.npz")
    given = {key.removeprefix("in:"): array for key, array in arrays.items() if key.startswith("in:")}
    for output, found in zip(after.graph.output, session_of(after).run(None, given), strict=True):
        np.testing.assert_array_equal(found, arrays[f"out:{output.name}"])


def node_of(model, op_type):
    return next(node for node in model.graph.node if node.op_type == op_type)


def with_negative_threshold(model):
    name = node_of(model, "NonMaxSuppression").input[4]
    (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.array(-0.5, np.float32), name))


def with_rows_as_output(model):
    name = node_of(model, "GatherND").output[0]
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows"]))


def with_attribute(op_type, name, value):
    def change(model):
        attributes = node_of(model, op_type).attribute
        kept = [attribute for attribute in attributes if attribute.name != name]
        del attributes[:]
        attributes.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_negative_threshold, "score_threshold is -0.5; it must be at least 0"),
        (with_rows_as_output, "is an output of the graph"),
        (with_attribute("TopK", "largest", 0), "only the scores of one item and one class are fused"),
        (with_attribute("CumSum", "reverse", 1), "only the scores of one item and one class are fused"),
        (with_attribute("NonMaxSuppression", "center_point_box", 1), "boxes are centers and sizes"),
    ],
)
def test_other_networks_of_several_classes_are_left_alone(tmp_path, change, words):
    model = onnx.load(TAILS / "tf2onnx_combined.onnx")
    change(model)
    result = converted(model, tmp_path)
    assert "NonMaxSuppression" in operators(result.model.to_proto())
    reasons = [near["reason"] for near in json.loads(result.to_json())["near_misses"] if near["pass"] == PASS]
    assert any(words in reason for reason in reasons), reasons


@pytest.mark.parametrize("name", ["tf2onnx_combined", "tf2onnx_combined_few"])
def test_equal_scores_keep_their_order(name):
    """Many scores are equal, also those of several classes, and are at the threshold."""
    before = onnx.load(TAILS / f"{name}.onnx")
    after = graft.convert(TAILS / f"{name}.onnx", check=False).model.to_proto()
    sessions = session_of(before), session_of(after)
    for seed in range(6):
        random = np.random.default_rng(seed)
        items = seed % 3 + 1
        feeds = {
            "boxes": random.uniform(-0.3, 1.3, (items, 60, 4)),
            "scores": random.integers(0, 9, (items, 60, 3)) / 8,
        }
        feeds = {key: array.astype(np.float32) for key, array in feeds.items()}
        for one, other in zip(*(session.run(None, feeds) for session in sessions), strict=True):
            np.testing.assert_array_equal(other, one)
