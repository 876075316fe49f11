# graft verify of networks that amplify rounding: equal networks pass at each scale of the inputs, faults are found, and
# the noise floor is reported. Chains run in linear time, and a fixed batch takes many samples.
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import save, session_of, subgraph

SIZE = 24


class Style:
    """Reflection padding, convolutions and instance normalization in two spellings; a last layer of tanh."""

    def __init__(self, scale, is_one_node, last_channel=1.0):
        self.nodes, self.weights = [], []
        random = np.random.default_rng(0)
        x = self.add("Mul", "image", self.constant("scale", scale))
        x = self.add("Transpose", x, perm=[0, 3, 1, 2])
        x = self.add("Div", x, self.constant("range", 127.5))
        x = self.add("Sub", x, self.constant("one", 1.0))
        pads = numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads")
        self.weights.append(pads)
        channels = 3
        for layer, (count, stride) in enumerate([(8, 1), (16, 2), (16, 1)]):
            x = self.add("Pad", x, "pads", mode="reflect")
            weight = random.standard_normal((count, channels, 3, 3)) / np.sqrt(channels * 9)
            x = self.add("Conv", x, self.constant(f"w{layer}", weight), strides=[stride, stride])
            x = self.normalize(x, count, layer, is_one_node)
            x = self.add("Relu", x)
            channels = count
        weight = random.standard_normal((3, channels, 3, 3)) / np.sqrt(channels * 9)
        x = self.add("Conv", x, self.constant("last", weight), pads=[1] * 4)
        x = self.add("Tanh", x)
        factors = np.array([1.0, last_channel, 1.0]).reshape(1, 3, 1, 1)
        x = self.add("Mul", x, self.constant("factors", 127.5 * factors))
        x = self.add("Add", x, self.constant("half", 127.5))
        self.nodes.append(helper.make_node("Transpose", [x], ["out"], name="last", perm=[0, 2, 3, 1]))

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"n{len(self.nodes)}_{op}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def normalize(self, x, count, layer, is_one_node):
        epsilon = 1e-9
        if is_one_node:
            ones = self.constant(f"ones{layer}", np.ones(count))
            zeros = self.constant(f"zeros{layer}", np.zeros(count))
            return self.add("InstanceNormalization", x, ones, zeros, epsilon=epsilon)
        centered = self.add("Sub", x, self.add("ReduceMean", x, axes=[2, 3]))
        variance = self.add("ReduceMean", self.add("Mul", centered, centered), axes=[2, 3])
        bounded = self.add("Add", variance, self.constant(f"epsilon{layer}", epsilon))
        return self.add("Mul", centered, self.add("Reciprocal", self.add("Sqrt", bounded)))

    def save(self, path):
        return save(
            path, self.nodes, [("image", [1, SIZE, SIZE, 3])], [("out", [1, SIZE // 2, SIZE // 2, 3])], self.weights
        )


@pytest.mark.parametrize("exponent", range(-3, 4))
def test_a_style_network_is_the_same_at_each_scale_of_its_inputs(graft, tmp_path, exponent):
    scale = 10.0**exponent
    reference = Style(scale, True).save(tmp_path / "reference.onnx")
    candidates = [Style(scale, False).save(tmp_path / "candidate.onnx")]
    for plugins in ("never", "always"):
        candidates.append(tmp_path / f"{plugins}.onnx")
        graft("convert", reference, "-o", candidates[-1], "--plugins", plugins, code=0)
    for candidate in candidates:
        for more in ([], ["--layers"], ["--range", "image=0..255"]):
            answer = graft("verify", reference, candidate, "--json", *more)
            assert answer.code == 0, (candidate, more, answer.out, answer.err)


def test_the_noise_floor_is_said(graft, tmp_path):
    reference = Style(1e-3, True).save(tmp_path / "reference.onnx")
    candidate = Style(1e-3, False).save(tmp_path / "candidate.onnx")
    answer = graft("verify", reference, candidate, "--json", "--report", tmp_path / "page.html", code=0)
    output = answer.json["outputs"][0]
    floor = output["noise_floor"]
    assert floor["largest"] > 0 and floor["runs"] == 8
    assert output["within_noise"] > 0 and output["mismatched"] == 0
    assert "use real inputs with --data" in answer.err
    text = " ".join(graft("verify", reference, candidate).out.split())
    assert "the reference itself changes by up to" in text
    assert "the reference itself changes by up to" in (tmp_path / "page.html").read_text()
    # A tolerance on the command line is applied.
    assert graft("verify", reference, candidate, "--rtol", "1e-4").code == 1


def test_one_percent_of_one_channel_is_found_where_inputs_are_well_conditioned(graft, tmp_path):
    reference = Style(30.0, True).save(tmp_path / "reference.onnx")
    candidate = Style(30.0, False, last_channel=1.01).save(tmp_path / "candidate.onnx")
    answer = graft("verify", reference, candidate, "--layers", "--json", code=1)
    assert answer.json["first_divergence"] is not None


def network(path, nodes, shape=(1, 4), weights=()):
    return save(path, nodes, [("x", list(shape))], [("y", list(shape))], weights)


def test_ranges_are_inferred_given_and_refused(graft, tmp_path):
    scale = helper.make_node("Div", ["x", "range"], ["y"], name="scale")
    path = network(tmp_path / "a.onnx", [scale], (1, 64), {"range": np.float32(255)})
    answer = graft("verify", path, path, "--json", "--layers").json
    assert answer["ranges"]["x"]["highest"] == 255 and "scale" in answer["ranges"]["x"]["why"]
    assert 0.5 < answer["layers"][0]["reference_range"]["highest"] <= 1
    assert "synthetic input 'x' has values from 0 to 255, since node 'scale'" in graft("verify", path, path).out
    answer = graft("verify", path, path, "--json", "--layers", "--range", "x=510..765").json
    assert (
        2 <= answer["layers"][0]["reference_range"]["lowest"] <= answer["layers"][0]["reference_range"]["highest"] <= 3
    )
    for wrong in ("x", "x=3", "x=5..3", "x=a..b", "z=0..1"):
        refused = graft("verify", path, path, "--range", wrong)
        assert refused.code == 2 and "--range" in refused.err, wrong


def test_a_chain_of_five_thousand_nodes_is_verified(graft, tmp_path):
    # The command finishes, which it would not if its time grew with the square of the chain's length.
    nodes, last = [], "x"
    for i in range(5000):
        op = ("Relu", "Add", "Tanh", "Mul")[i % 4]
        output = "y" if i == 4999 else f"t{i}"
        nodes.append(helper.make_node(op, [last, "c"] if op in ("Add", "Mul") else [last], [output], name=f"n{i}"))
        last = output
    path = network(tmp_path / "chain.onnx", nodes, weights={"c": np.float32(1.01)})
    graft("verify", path, path, "--seeds", "1", code=0)


def test_a_long_chain_in_parts_gives_the_same_bits(graft, tmp_path):
    """A model of more than 2,000 nodes is compiled in parts; models of 500 nodes are not."""
    length, each = 3000, 500
    nodes = []
    for i in range(length):
        op = ("Relu", "Add", "Tanh", "Mul")[i % 4]
        inputs = [f"t{i}", "c"] if op in ("Add", "Mul") else [f"t{i}"]
        nodes.append(helper.make_node(op, inputs, [f"t{i + 1}"], name=f"n{i}"))

    def part(begin, end, *more):
        outputs = [(name, [2, 64]) for name in (f"t{end}", *more)]
        path = tmp_path / f"{begin}_{end}.onnx"
        return save(path, nodes[begin:end], [(f"t{begin}", [2, 64])], outputs, {"c": np.float32(1.01)})

    def run(path, begin, tensor):
        np.save(tmp_path / "in.npy", tensor)
        graft("run", path, "--input", f"t{begin}={tmp_path / 'in.npy'}", "-o", tmp_path / "out.npz", code=0)
        return dict(np.load(tmp_path / "out.npz"))

    x = np.random.default_rng(3).standard_normal((2, 64)).astype(np.float32)
    found = run(part(0, length, "t1000", "t2002"), 0, x)
    tensor, expected = x, {}
    for begin in range(0, length, each):
        inner = [name for name in ("t2002",) if begin < 2002 < begin + each]
        outputs = run(part(begin, begin + each, *inner), begin, tensor)
        expected |= outputs
        tensor = outputs[f"t{begin + each}"]
    for name in (f"t{length}", "t1000", "t2002"):
        assert found[name].tobytes() == expected[name].tobytes(), name


def test_many_samples_go_through_a_fixed_batch_one_by_one(graft, tmp_path):
    path = network(tmp_path / "a.onnx", [helper.make_node("Tanh", ["x"], ["y"])], (2, 4))
    samples = np.random.default_rng(1).standard_normal((16, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    for more in ([], ["--layers"]):
        answer = graft("verify", path, path, "--data", f"x={tmp_path}/x.npy", "--json", *more, code=0)
        assert answer.json["runs"] == 8
    # A fault in one of the nodes is found.
    model = onnx.load(path)
    model.graph.node[0].op_type = "Identity"
    onnx.save(model, tmp_path / "b.onnx")
    assert graft("verify", path, tmp_path / "b.onnx", "--data", f"x={tmp_path}/x.npy").code == 1
    np.save(tmp_path / "x.npy", samples[:15])
    refused = graft("verify", path, path, "--data", f"x={tmp_path}/x.npy")
    assert refused.code == 2 and "15 samples" in refused.err


def detector(path):
    """Saves a detector that computes boxes from the image and keeps the best of each class: sizes depend on data."""
    random = np.random.default_rng(5)
    weights = {
        "to_boxes": random.standard_normal((16 * 4, 24)).astype(np.float32) * 0.3,
        "to_scores": random.standard_normal((16, 24)).astype(np.float32),
        "boxes_shape": np.array([1, 16, 4]),
        "scores_shape": np.array([1, 1, 16]),
        "eight": np.array([8]),
        "at_most": np.array([16]),
        "overlap": np.float32(0.5),
        "least": np.float32(0.3),
        "two": np.array(2),
        "all": np.array([-1]),
        "zero": np.array([0]),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "to_boxes"], ["raw"], transB=1),
        helper.make_node("Reshape", ["raw", "boxes_shape"], ["boxes"]),
        helper.make_node("Gemm", ["x", "to_scores"], ["logits"], transB=1),
        helper.make_node("Sigmoid", ["logits"], ["probabilities"]),
        helper.make_node("Reshape", ["probabilities", "scores_shape"], ["scores"]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "at_most", "overlap", "least"], ["selected"]),
        helper.make_node("Gather", ["selected", "two"], ["kept"], axis=1),
        helper.make_node("Squeeze", ["boxes", "zero"], ["rows"]),
        helper.make_node("Gather", ["rows", "kept"], ["chosen"], axis=0),
        helper.make_node("Reshape", ["probabilities", "all"], ["flat"]),
        helper.make_node("Gather", ["flat", "kept"], ["chosen_scores"], axis=0),
        helper.make_node("Greater", ["chosen_scores", "least"], ["flags"]),
        helper.make_node("NonZero", ["flags"], ["places"]),
        helper.make_node("Reshape", ["places", "all"], ["order"]),
        helper.make_node("Gather", ["chosen", "order"], ["y"], axis=0),
        helper.make_node("TopK", ["flat", "eight"], ["best", "best_at"]),
    ]
    return save(
        path, nodes, [("x", [1, 24])], [("y", ["k", 4]), ("best", [8]), ("best_at", TensorProto.INT64, [8])], weights
    )


def test_layers_of_a_detector(graft, tmp_path):
    path = detector(tmp_path / "detector.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal((1, 24)).astype(np.float32))
    data = ["--data", f"x={tmp_path}/x.npy"]
    same = graft("verify", path, path, "--layers", "--json", *data, code=0)
    names = {layer["candidate"] for layer in same.json["layers"]}
    assert {"selected", "kept", "chosen", "order", "y", "best"} <= names
    # A fault before the selection of boxes is located at its node.
    model = onnx.load(path)
    model.graph.node[3].op_type = "HardSigmoid"
    onnx.save(model, tmp_path / "wrong.onnx")
    wrong = graft("verify", path, tmp_path / "wrong.onnx", "--layers", "--json", *data, code=1)
    assert wrong.json["first_divergence"]["candidate"] == "probabilities"


def test_errors_of_a_loop_do_not_all_go_the_same_way(graft, tmp_path):
    """A fault of a thousandth exceeds the rounding of a thousand squares and roots, where a step of one is rounded
    up as often as down."""
    body = subgraph(
        [
            helper.make_node("Identity", ["go_on"], ["goes_on"]),
            helper.make_node("Mul", ["state", "state"], ["square"], name="square"),
            helper.make_node("Sqrt", ["square"], ["next"], name="root"),
        ],
        [("turn", TensorProto.INT64, []), ("go_on", TensorProto.BOOL, []), ("state", [1, 64])],
        [("goes_on", TensorProto.BOOL, []), ("next", [1, 64])],
    )

    def looped(name, factor):
        weights = {"turns": np.array(1000), "start": np.array(True), "factor": np.float32(factor)}
        nodes = [
            helper.make_node("Loop", ["turns", "start", "x"], ["state_after"], name="loop", body=body),
            helper.make_node("Mul", ["state_after", "factor"], ["y"], name="last"),
        ]
        return network(tmp_path / name, nodes, (1, 64), weights)

    reference = looped("reference.onnx", 1.1)
    assert graft("verify", reference, looped("wrong.onnx", 1.1 * 1.001), "--json").json["outputs"][0]["mismatched"] > 0


def ill_conditioned(path, sign):
    """Saves an instance normalization of a nearly constant image, whose output is only rounding error."""
    random = np.random.default_rng(5)
    weights = {
        "w": random.standard_normal((8, 3, 3, 3)) * 1e-4,
        "b": np.full(8, 1000.0),
        "ones": np.ones(8),
        "zeros": np.zeros(8),
        "v": sign * random.standard_normal((4, 8, 3, 3)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("InstanceNormalization", ["c", "ones", "zeros"], ["n"], epsilon=1e-12),
        helper.make_node("Conv", ["n", "v"], ["y"], name="last"),
    ]
    tensors = {name: np.asarray(values, np.float32) for name, values in weights.items()}
    return save(path, nodes, [("x", [1, 3, SIZE, SIZE])], [("y", [1, 4, SIZE - 4, SIZE - 4])], tensors)


def test_what_noise_hides_whole_is_not_called_the_same(graft, tmp_path):
    reference = ill_conditioned(tmp_path / "a.onnx", 1)
    for layers in ([], ["--layers"]):
        negated = graft("verify", reference, ill_conditioned(tmp_path / "b.onnx", -1), "--json", *layers)
        assert (negated.code, negated.json["equal"]) == (1, False), negated.out
        assert "but rounding alone changes the reference as much" in negated.err
        assert graft("verify", reference, reference, *layers).code == 0


def random_numbers(path, nodes, factor=1.0, type=TensorProto.FLOAT, functions=()):
    """Saves a network whose output y depends on random numbers and whose z does not; the sizes are those of a random
    tensor."""
    nodes = [
        *nodes,
        helper.make_node("Mul", ["x", "f"], ["m"], name="scale"),
        helper.make_node("Add", ["m", "r"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=type),
        helper.make_node("Tanh", ["x"], ["z"]),
        helper.make_node("Shape", ["r"], ["sizes"]),
    ]
    outputs = [("y", type, [1, 64]), ("z", [1, 64]), ("sizes", TensorProto.INT64, [2])]
    weights = {"f": np.asarray(factor, np.float32), "truth": True}
    domains = ["own"] if functions else []
    return save(path, nodes, [("x", [1, 64])], outputs, weights, functions=functions, domains=domains)


def draw(name="noise", op="RandomNormalLike", output="r", **attributes):
    inputs = [] if op in ("RandomNormal", "RandomUniform") else ["x"]
    shape = {} if inputs else {"shape": [1, 64]}
    return helper.make_node(op, inputs, [output], name=name, **shape, **attributes)


def draw_in_branch():
    branches = [
        subgraph([node], [], [(node.output[0], None)])
        for node in (draw(output="inner"), helper.make_node("Identity", ["x"], ["other"]))
    ]
    return helper.make_node("If", ["truth"], ["r"], name="if", then_branch=branches[0], else_branch=branches[1])


def draw_in_function():
    body = [draw(output="out")]
    opset = [helper.make_opsetid("", 17)]
    return helper.make_function("own", "Noisy", ["x"], ["out"], body, opset)


RANDOM = {
    "normal": ([draw(op="RandomNormal")], "node 'noise' (RandomNormal)"),
    "uniform": ([draw(op="RandomUniform")], "node 'noise' (RandomUniform)"),
    "like": ([draw()], "node 'noise' (RandomNormalLike)"),
    "seeded": ([draw(op="RandomUniformLike", seed=3.0)], "node 'noise' (RandomUniformLike)"),
    "classes": (
        [
            helper.make_node("Multinomial", ["x"], ["drawn"], name="noise", sample_size=64),
            helper.make_node("Cast", ["drawn"], ["r"], to=TensorProto.FLOAT),
        ],
        "node 'noise' (Multinomial)",
    ),
    "branch": ([draw_in_branch()], "node 'noise' (RandomNormalLike)"),
    "function": ([helper.make_node("Noisy", ["x"], ["r"], domain="own")], "node 'noise' (RandomNormalLike)"),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_random_numbers_are_not_compared(graft, tmp_path, kind):
    """Two draws agree only by chance. Tensors that do not depend on random numbers are still compared."""
    nodes, source = RANDOM[kind]
    functions = [draw_in_function()] if kind == "function" else []
    a = random_numbers(tmp_path / "a.onnx", nodes, functions=functions)
    b = random_numbers(tmp_path / "b.onnx", nodes, 3.0, functions=functions)
    for reference, candidate in ((a, a), (a, b)):
        answer = graft("verify", reference, candidate, "--json")
        assert (answer.code, answer.json["verdict"], answer.json["equal"]) == (1, "not compared", False)
        outputs = {output["reference_name"]: output for output in answer.json["outputs"]}
        assert source in outputs["y"]["not_compared"]
        assert source in answer.err
        assert (outputs["y"]["verdict"], outputs["y"]["compared"]) == ("nothing compared", 0)
        assert outputs["z"]["verdict"] == outputs["sizes"]["verdict"] == "same"
        layers = graft("verify", reference, candidate, "--layers", "--json")
        assert (layers.code, layers.json["nothing_compared"]) == (1, True)
        tensors = {layer["candidate"]: layer for layer in layers.json["layers"]}
        assert source in tensors["y"]["not_compared"]
        assert tensors["z"]["equal"]
        # A fault next to the random numbers is still located.
        first = layers.json["first_divergence"]
        assert (first and first["candidate"]) == (None if candidate == a else "m")


def test_random_numbers_of_another_type_differ(graft, tmp_path):
    nodes, _ = RANDOM["like"]
    paths = [
        random_numbers(tmp_path / f"{type}.onnx", nodes, type=type) for type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    ]
    for layers in ([], ["--layers"]):
        answer = graft("verify", *paths, *layers, code=1)
        assert "differs" in answer.out


def test_dropout_without_training_is_compared(graft, tmp_path):
    """Dropout without training returns its input."""
    nodes = [helper.make_node("Dropout", ["x", "half", "training"], ["y"])]
    weights = {"half": np.float32(0.5), "training": False}
    path = save(tmp_path / "a.onnx", nodes, [("x", [1, 64])], [("y", [1, 64])], weights)
    assert graft("verify", path, path).code == 0


def test_rewrites_around_random_numbers_are_proven_without_them(graft, tmp_path):
    """Rewrites before and after the random numbers are proven separately; a rewrite that contains them never is. All
    runs agree."""
    nodes = [
        helper.make_node("Mul", ["x", "alpha"], ["scaled"]),
        helper.make_node("Max", ["x", "scaled"], ["leaky"]),
        helper.make_node("RandomNormalLike", ["leaky"], ["r"], name="noise"),
        helper.make_node("Add", ["leaky", "r"], ["s"]),
        helper.make_node("Mul", ["s", "alpha"], ["t"]),
        helper.make_node("Max", ["s", "t"], ["y"]),
    ]
    weights = {"alpha": np.float32(0.1)}
    model = save(tmp_path / "m.onnx", nodes, [("x", [1, 64])], [("y", [1, 64])], weights)
    reports = []
    for run in range(3):
        answer = graft("convert", model, "-o", tmp_path / f"{run}.onnx", "--json", code=0)
        reports.append([(rewrite["pass"], rewrite["proof"]) for rewrite in answer.json["rewrites"]])
        written = onnx.load(tmp_path / f"{run}.onnx").graph.node
        assert [node.op_type for node in written] == ["LeakyRelu", "RandomNormalLike", "Add", "LeakyRelu"]
    assert reports[0] == reports[1] == reports[2]
    assert graft("verify", model, tmp_path / "0.onnx").code == 1


def test_networks_without_outputs_are_not_compared(graft, tmp_path):
    paths = [
        save(tmp_path / f"{op}.onnx", [helper.make_node(op, ["x"], ["y"])], [("x", [1, 4])], [])
        for op in ("Relu", "Neg")
    ]
    answer = graft("verify", *paths, "--json")
    assert (answer.code, answer.json["equal"]) == (1, False)


@pytest.mark.parametrize("option", ["--rtol", "--atol", "--snr"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "many"])
def test_limits_that_are_no_numbers_are_refused(graft, tmp_path, option, value):
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [1, 4])], [("y", [1, 4])])
    answer = graft("verify", path, path, f"{option}={value}", code=2)
    assert f"{option}: found {value}; the value must be a number" in answer.err


def best_three(path, type, spread, largest=1):
    """Saves scores around 1 and the indices of the three largest; f16 distinguishes scores that differ by 1e-3."""
    scores = 1 + np.random.default_rng(0).standard_normal((8, 64)) * spread
    cast = [helper.make_node("Cast", ["s"], ["t"], to=type)] if type != TensorProto.FLOAT else []
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        *cast,
        helper.make_node("TopK", ["t" if cast else "s", "k"], ["best", "places"], axis=-1, largest=largest),
        helper.make_node("Reshape", ["places", "row"], ["y"]),
    ]
    weights = {"w": scores.astype(np.float32), "k": np.array([3]), "row": np.array([1, -1])}
    return save(path, nodes, [("x", [2, 8])], [("y", TensorProto.INT64, [1, 6])], weights)


def test_places_of_the_largest_are_judged_by_their_scores(graft, tmp_path):
    """A narrower candidate may choose another index only where its score is as good, as with ArgMax."""
    reference = best_three(tmp_path / "a.onnx", TensorProto.FLOAT, 1e-4)
    same = graft("verify", reference, best_three(tmp_path / "b.onnx", TensorProto.FLOAT16, 1e-4), "--seeds", "3")
    assert same.code == 0, same.out + same.err
    assert "those at its own indices" in " ".join(same.out.split())
    reference = best_three(tmp_path / "c.onnx", TensorProto.FLOAT, 0.3)
    wrong = best_three(tmp_path / "d.onnx", TensorProto.FLOAT16, 0.3, largest=0)
    assert graft("verify", reference, wrong, "--seeds", "3").code == 1


def chosen_class(path, op, type, *, spread=1e-4, axis=1, order=1, more=0, from_input=False):
    """Saves the index of the largest, the smallest or the three largest of 64 scores, in each of two rows; f16
    distinguishes scores that differ by 1e-3."""
    scores = 1 + np.random.default_rng(0).standard_normal((8, 64)) * spread
    first = helper.make_node("MatMul", ["x", "w"], ["scores"], name="scores")
    narrow = type != TensorProto.FLOAT
    chosen = "narrow" if narrow else "x" if from_input else "scores"
    if op == "TopK":
        choose = helper.make_node(op, [chosen, "k"], ["best", "places"], name="choose", axis=axis, largest=order)
    else:
        choose = helper.make_node(op, [chosen], ["places"], name="choose", axis=axis)
    nodes = [
        *([] if from_input else [first]),
        *([helper.make_node("Cast", ["x" if from_input else "scores"], ["narrow"], to=type)] if narrow else []),
        choose,
        *([helper.make_node("Add", ["places", "more"], ["moved"], name="move")] if more else []),
        helper.make_node("Cast", ["moved" if more else "places"], ["y"], name="last", to=TensorProto.INT32),
    ]
    weights = {"w": scores.astype(np.float32), "k": np.array([3]), "more": np.array(more)}
    return save(
        path, nodes, [("x", [2, 64 if from_input else 8])], [("y", TensorProto.INT32, ["rows", "columns"])], weights
    )


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin", "TopK"])
def test_layers_judge_places_by_their_scores(graft, tmp_path, op):
    """Any of the scores that f16 does not distinguish may be chosen without a divergence; faults are still located."""
    f32, f16 = TensorProto.FLOAT, TensorProto.FLOAT16
    reference = chosen_class(tmp_path / "a.onnx", op, f32)
    tied = chosen_class(tmp_path / "b.onnx", op, f16)
    same = graft("verify", reference, tied, "--layers", "--seeds", "3", "--json", code=0)
    assert same.json["first_divergence"] is None
    layers = {layer["candidate"]: layer for layer in same.json["layers"]}
    assert layers["places"]["within_noise"] > 0
    assert layers["places"]["diagnosis"].startswith(
        "indices: at the candidate's indices, the reference's scores differ by"
    )
    assert layers["y"]["equal"]
    # A tolerance on the command line replaces all others.
    assert graft("verify", reference, tied, "--layers", "--seeds", "3", "--atol", "0").code == 1
    # No difference is excused where both models compute in the same type.
    other = {"TopK": {"order": 0}, "ArgMax": {"axis": 0}, "ArgMin": {"axis": 0}}[op]
    assert graft("verify", reference, chosen_class(tmp_path / "c.onnx", op, f32, **other), "--layers").code == 1

    reference = chosen_class(tmp_path / "d.onnx", op, f32, spread=0.3)
    moved_reference = chosen_class(tmp_path / "e.onnx", op, f32, spread=0.3, more=1)
    faults = {
        "choose": chosen_class(tmp_path / "f.onnx", op, f16, spread=0.3, **other),
        "move": chosen_class(tmp_path / "g.onnx", op, f16, spread=0.3, more=2),
    }
    for node, wrong in faults.items():
        right = moved_reference if node == "move" else reference
        answer = graft("verify", right, wrong, "--layers", "--seeds", "3", "--json", code=1)
        # Along another axis the dimensions differ, so only the output is paired.
        assert node in answer.json["first_divergence"]["candidate_nodes"], answer.json["first_divergence"]


def test_layers_pin_an_index_that_is_off_by_one(graft, tmp_path):
    """A node after ArgMax adds one to the index: the neighbor's score differs widely, and the divergence is at that
    node."""
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, type in zip(paths, (TensorProto.FLOAT, TensorProto.FLOAT16), strict=True):
        chosen_class(path, "ArgMax", type, spread=0.3, more=0)
    model = onnx.load(paths[1])
    (choose,) = (node for node in model.graph.node if node.name == "choose")
    choose.output[0] = "neighbor"
    model.graph.initializer.append(numpy_helper.from_array(np.array(1), "one"))
    model.graph.node.insert(3, helper.make_node("Add", ["neighbor", "one"], ["places"], name="off"))
    onnx.save(model, paths[1])
    first = graft("verify", *paths, "--layers", "--seeds", "3", "--json").json["first_divergence"]
    assert first["candidate"] == "places"
    assert first["candidate_node"] == "off"


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_places_of_the_largest_of_an_input_are_judged_too(graft, tmp_path, layers):
    """The candidate rounds the input before it selects."""
    np.save(tmp_path / "x.npy", (1 + np.random.default_rng(0).standard_normal((2, 64)) * 1e-4).astype(np.float32))
    paths = [
        chosen_class(tmp_path / f"{type}.onnx", "ArgMax", type, from_input=True)
        for type in (TensorProto.FLOAT, TensorProto.FLOAT16)
    ]
    graft("verify", *paths, "--data", f"x={tmp_path / 'x.npy'}", *layers, code=0)


def offset_network(path, offset, twice_first=False, factor=1.0, narrow=False):
    """A network in f64 that returns 2x * factor, in f32 if `narrow`. The offset leaves its last bits."""
    terms = (
        [("Add", ["x", "x"]), ("Add", ["t0", "offset"])]
        if twice_first
        else [("Add", ["x", "offset"]), ("Add", ["t0", "x"])]
    )
    nodes = [
        helper.make_node(op, inputs, [f"t{i}"])
        for i, (op, inputs) in enumerate([*terms, ("Sub", ["t1", "offset"]), ("Mul", ["t2", "factor"])])
    ]
    output = ("t3", TensorProto.DOUBLE, [4, 16])
    if narrow:
        nodes.append(helper.make_node("Cast", ["t3"], ["y"], to=TensorProto.FLOAT))
        output = ("y", [4, 16])
    weights = {"offset": np.float64(offset), "factor": np.float64(factor)}
    return save(path, nodes, [("x", TensorProto.DOUBLE, [4, 16])], [output], weights)


@pytest.mark.parametrize("layers", [[], ["--layers"]])
def test_a_fault_in_a_network_of_large_f64_numbers_is_found(graft, tmp_path, layers):
    """The noise of f64 tensors is that of f64: with noise of f32, rounding alone would change the output by thousands."""
    reference = offset_network(tmp_path / "a.onnx", 1e10)
    candidate = offset_network(tmp_path / "b.onnx", 1e10, factor=1.01)
    answer = graft("verify", reference, candidate, *layers, "--json")
    assert (answer.code, answer.json["equal"]) == (1, False), answer.out
    output = answer.json["layers" if layers else "outputs"][-1]
    assert output["mismatched"] > 0, output
    assert 0 < output["noise_floor"]["largest"] < 1e-4, output


@pytest.mark.parametrize("narrow", [False, True])
def test_f64_sums_in_another_order_are_the_same(graft, tmp_path, narrow):
    """Numbers near 4e12 are 5e-4 apart, so the order of the sums changes the output by more than the tolerance."""
    paths = [offset_network(tmp_path / f"{first}.onnx", 4e12, first, narrow=narrow) for first in (False, True)]
    x = np.random.default_rng(0).normal(size=(4, 16))
    np.save(tmp_path / "x.npy", x)
    left, right = (session_of(path).run(None, {"x": x})[0] for path in paths)
    assert np.any(np.abs(left - right) > 2e-4 * (np.abs(left) + 1)), "the order changes nothing"
    answer = graft("verify", *paths, "--data", f"x={tmp_path / 'x.npy'}", "--json")
    assert (answer.code, answer.json["equal"]) == (0, True), answer.out


def narrowed_network(path, operator, factor):
    """Multiplies or divides by the factor in f64, rounds to f32, and enlarges the last bits of values near 1."""
    nodes = [
        helper.make_node(operator, ["x", "factor"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["narrow"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["narrow", "one"], ["bits"]),
        helper.make_node("Mul", ["bits", "million"], ["y"]),
    ]
    weights = {"factor": np.float64(factor), "one": np.float32(1), "million": np.float32(1e6)}
    return save(path, nodes, [("x", TensorProto.DOUBLE, [6])], [("y", [6])], weights)


def test_a_fault_behind_a_cast_from_f64_is_found(graft, tmp_path):
    """The cast rounds, but rounding changes none of its inputs by an epsilon of f32."""
    x = (1 + np.array([1e-6, 2e-6, 3e-6, -1e-6, -3e-6, 4e-6])) / 1.7
    np.save(tmp_path / "x.npy", x)
    data = ["--data", f"x={tmp_path / 'x.npy'}"]
    reference = narrowed_network(tmp_path / "a.onnx", "Mul", 1.7)
    honest = narrowed_network(tmp_path / "b.onnx", "Div", 1 / 1.7)
    wrong = narrowed_network(tmp_path / "c.onnx", "Mul", 1.7 * (1 + 3e-7))
    left, middle, right = (session_of(path).run(None, {"x": x})[0] for path in (reference, honest, wrong))
    assert np.array_equal(left, middle)
    assert np.all(np.abs(left - right) > 0.1)
    assert graft("verify", reference, honest, *data).code == 0
    answer = graft("verify", reference, wrong, *data, "--json")
    assert (answer.code, answer.json["verdict"], answer.json["outputs"][0]["mismatched"]) == (1, "not the same", 6)


def perceptron(path, first, second):
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Relu", ["a"], ["h"]),
        helper.make_node("MatMul", ["h", "second"], ["y"]),
    ]
    return save(path, nodes, [("x", [4, 32])], [("y", [4, 8])], {"first": first, "second": second})


def test_a_difference_within_the_tolerance_that_rounding_does_not_explain_is_reported(graft, tmp_path):
    random = np.random.default_rng(0)
    x, first, second = (random.normal(size=size).astype(np.float32) for size in ((4, 32), (32, 64), (64, 8)))
    np.save(tmp_path / "x.npy", x)
    data = ["--data", f"x={tmp_path / 'x.npy'}"]
    hidden = np.maximum(x.astype(np.float64) @ first, 0)
    y = hidden @ second
    allowed = 2.0**-13 * np.abs(y) + 2.0**-15 * np.abs(y).max()
    # The weight that is 1 % off is the one whose fault is as large as possible, but within the tolerance.
    excess = np.max(np.abs(0.01 * hidden[:, :, None] * second) / allowed[:, None, :], axis=0)
    row, column = np.unravel_index(np.argmax(np.where(excess < 0.9, excess, 0)), excess.shape)
    faulty = second.copy()
    faulty[row, column] *= np.float32(1.01)
    reference = perceptron(tmp_path / "a.onnx", first, second)
    candidate = perceptron(tmp_path / "b.onnx", first, faulty)
    answer = graft("verify", reference, candidate, *data, "--json")
    assert (answer.code, answer.json["verdict"]) == (0, "the same"), answer.out
    assert answer.json["outputs"][0]["beyond_rounding"] > 4
    assert "output 'y' is within the tolerance, but its largest difference" in answer.err
    assert graft("verify", reference, candidate, *data, "--rtol", "1e-6").code == 1

    # Hidden units in another order change the network by rounding alone.
    order = random.permutation(64)
    honest = perceptron(tmp_path / "c.onnx", first[:, order], second[order])
    left, right = (session_of(path).run(None, {"x": x})[0] for path in (reference, honest))
    assert np.any(left != right)
    answer = graft("verify", reference, honest, *data, "--json")
    assert (answer.code, answer.json["outputs"][0]["beyond_rounding"]) == (0, None), answer.out
    assert "within the tolerance, but" not in answer.err


@pytest.mark.parametrize("limit", [["--rtol", "1e-3"], ["--snr", "40"]])
def test_with_a_given_limit_rounding_is_not_measured(graft, tmp_path, limit):
    random = np.random.default_rng(0)
    first, second = (random.normal(size=size).astype(np.float32) for size in ((32, 64), (64, 8)))
    paths = [
        perceptron(tmp_path / "a.onnx", first, second),
        perceptron(tmp_path / "b.onnx", first, second * np.float32(1 + 2e-5)),
    ]
    assert graft("verify", *paths, "--json").json["outputs"][0]["beyond_rounding"] > 4
    answer = graft("verify", *paths, *limit, "--json")
    assert (answer.code, answer.json["outputs"][0]["beyond_rounding"]) == (0, None), answer.out


def f64_network(path, type, layers, size, change=1.0):
    """Layers of MatMul and Sin between an input and an output in f64. They compute in `type`."""
    random = np.random.default_rng(0)
    nodes, weights = [helper.make_node("Cast", ["x"], ["t0"], to=type)], {}
    for i in range(layers):
        weight = random.normal(size=(size, size)) * 1.5 / np.sqrt(size) * (change if i == 0 else 1)
        weights[f"w{i}"] = weight.astype(helper.tensor_dtype_to_np_dtype(type))
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Sin", [f"p{i}"], [f"t{i + 1}"]))
    nodes.append(helper.make_node("Cast", [f"t{layers}"], ["y"], to=TensorProto.DOUBLE))
    x, y = (("x", TensorProto.DOUBLE, [4, size]), ("y", TensorProto.DOUBLE, [4, size]))
    return save(path, nodes, [x], [y], weights)


def test_a_candidate_in_f32_of_an_f64_network_is_not_beyond_rounding(graft, tmp_path):
    """Measured with the rounding of f64, the difference would be 1e8 times as large as rounding."""
    paths = [
        f64_network(tmp_path / f"{type}.onnx", type, layers=6, size=64)
        for type in (TensorProto.DOUBLE, TensorProto.FLOAT)
    ]
    x = np.random.default_rng(1).normal(size=(4, 64))
    np.save(tmp_path / "x.npy", x)
    left, right = (session_of(path).run(None, {"x": x})[0] for path in paths)
    allowed = 2.0**-13 * np.abs(left) + 2.0**-15 * np.abs(left).max()
    assert np.max(np.abs(left - right) / allowed) > 0.01, "so small a difference is not measured"
    answer = graft("verify", *paths, "--data", f"x={tmp_path / 'x.npy'}", "--json")
    assert (answer.code, answer.json["verdict"]) == (0, "the same"), answer.out
    assert answer.json["outputs"][0]["beyond_rounding"] is None
    assert "within the tolerance, but" not in answer.err


def test_a_changed_weight_of_an_f64_network_is_beyond_rounding(graft, tmp_path):
    paths = [
        f64_network(tmp_path / f"{change}.onnx", TensorProto.DOUBLE, layers=1, size=32, change=change)
        for change in (1.0, 1 + 7e-6)
    ]
    answer = graft("verify", *paths, "--json")
    assert (answer.code, answer.json["verdict"]) == (0, "the same"), answer.out
    assert 4 < answer.json["outputs"][0]["beyond_rounding"] < 1e4
