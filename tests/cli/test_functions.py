# Tests ONNX functions of operators that are not Graft's: loading a library reports a fault in a function, and a function
# that runs although a kernel or plugin was meant. onnx's own checker judges what ONNX accepts.
import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import save, subgraph

LIBRARIES = Path(os.environ["GRAFT_BUILD_DIR"]) / "tests" / "operators"
WRONG = LIBRARIES / "libwrong_functions.so"  # its second operator has the function in GRAFT_TEST_FUNCTION
LIBRARY = LIBRARIES / "libmy_operators.so"
PLUGINS = LIBRARIES / "libmy_plugins.so"


def checked(graft, function="", code=None, **more):
    return graft("ops", "--operators", WRONG, "--json", env={"GRAFT_TEST_FUNCTION": function} | more, code=code)


# A line of a function, and its error message: it is line 2 of a function whose line 1 is valid.
WRONG_LINES = {
    "y = HardSigmoid<alpha=0.2, betta=0.5>(a)": "HardSigmoid has no attribute `betta` (did you mean `beta`?); its attributes "
    "are alpha, beta",
    "y = Sigmoid<alpha=0.2>(a)": "Sigmoid has no attribute `alpha`; it has no attributes",
    "y = HardSigmoid{alpha=0.2}(a)": "attributes are written in <> before the inputs, as in LeakyRelu<alpha=0.1>(x); braces are for "
    "patterns",
    "y = HardSigmoid(a){alpha=0.2}": "attributes are written in <> before the inputs, as in LeakyRelu<alpha=0.1>(x); braces are for "
    "patterns",
    "y = Div(a, 6)": "a number, 6, cannot be an input: define it in a line above, as in c = Constant<value_float=6.0>()",
    "y = Div(a, -1e3)": "a number, -1e3, cannot be an input: define it in a line above, as in c = Constant<value_float=-1e3>()",
    "y = Mul(a, @beta)": "an attribute, @beta, cannot be an input: define it in a line above, as in beta = "
    "Constant<value_float=@beta>()",
    "y = Tile(a, @times)": "an attribute, @times, cannot be an input: define it in a line above, as in times = "
    "Constant<value_int=@times>()",
    "y = Sigmoid(Neg(a))": "a line has only one node: write Neg in a separate line above, and its output's name here",
    "y = Sigmoid(Elu<alpha=1.0>(a))": "a line has only one node: write Elu in a separate line above, and its output's name here",
    "y = Elu<alpha=@slope>(a)": "the operator has no attribute `slope`; its attributes are beta, times",
    "y = Elu<alpha=@betta>(a)": "the operator has no attribute `betta` (did you mean `beta`?); its attributes are beta, times",
    "y = Sigmod(a)": "ONNX has no operator Sigmod; did you mean Sigmoid?",
    "y = Gelu(a)": "operator set 17 does not have Gelu, which appears in operator set 20",
    "y = Upsample(a, a)": "operator set 17 no longer has Upsample, which was removed in operator set 10",
    "y = com.microsoft::Gelu(a)": "com.microsoft::Gelu: a function consists of ONNX's own operators, which have no domain",
    "y = Sigmoid(a, a)": "Sigmoid takes 1 input, but the node has 2",
    "y = Add(a)": "Add takes 2 inputs, but the node has 1",
    "y = Clip()": "Clip takes 1 to 3 inputs, but the node has 0",
    "y = Concat<axis=0>()": "Concat takes 1 or more inputs, but the node has 0",
    "y = Add(a, _)": "input 1 of Add cannot be left out",
    "y, z = Neg(a)": "Neg has 1 output, but the node has 2",
    "y = Neg(b)": "no line above defines the input b",
    "y = Concat(a, a)": "Concat needs the attribute `axis`, an integer, such as 1",
    "y = Elu<alpha=1>(a)": "attribute `alpha` of Elu is a real number, such as 1.0; found an integer, such as 1",
    "y = Elu<alpha=@times>(a)": "attribute `alpha` of Elu is a real number, such as 1.0; found an integer, such as 1",
    "y = Resize<antialias=1>(a, _, a)": "Resize has no attribute `antialias` in operator set 17",
    "y = ReduceSum<axes=[1]>(a)": "ReduceSum has no attribute `axes`; its attributes are keepdims, noop_with_empty_axes",
    "y = ReduceMean(a, a)": "ReduceMean takes 1 input, but the node has 2",
    "y = Constant()": "Constant has one attribute, its value",
}


@pytest.mark.parametrize("line", WRONG_LINES)
def test_a_wrong_function_is_refused_when_its_library_is_loaded(graft, line):
    answer = checked(graft, "a = Relu(x)\n" + line, code=2)
    error = answer.json["error"]
    assert error["kind"] == "bad_input"
    message = error["message"]
    place = f"library of operators {WRONG.resolve()}: operator FunctionUnderTest: function FunctionUnderTest, line 2, column "
    assert message.startswith(place), message
    assert WRONG_LINES[line] in message
    assert message.endswith(f"\nThe line is `{line}`"), message
    assert message.count("FunctionUnderTest") == 2 and "defect" not in message, message


def check_by_onnx(line):
    """Raises where ONNX's own parser or checker refuses the line in a model."""
    line = re.sub(r"\b_\b", '""', line)
    text = f'<ir_version: 8, opset_import: ["" : 17]> agraph (float[N] x) => (float[N] y) {{ a = Relu(x)\n {line} }}'
    onnx.checker.check_model(onnx.parser.parse_model(text), full_check=True)


@pytest.mark.parametrize("line", [line for line in WRONG_LINES if "{" not in line and "@" not in line])
def test_onnx_refuses_them_too(line):
    """ONNX's parser or checker refuses each line that its text form can express."""
    with pytest.raises((onnx.parser.ParseError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        check_by_onnx(line)


def test_onnx_takes_a_right_line():
    """Shows that the test above can fail: ONNX accepts a valid line."""
    check_by_onnx("y = Clip(a, _, a)")
    check_by_onnx("y = Elu<alpha=0.5>(a)")


@pytest.mark.parametrize(
    "line",
    [
        "y = HardSigmoid<alpha=0.2, beta=0.5>(a)",
        "y = Elu<alpha=@beta>(a)",
        "y = Clip(a, _, a)",
        "y = Concat<axis=0>(a, a, a)",
        "y = ReduceMean<axes=[1], keepdims=@times>(a)",  # an input from operator set 18 on
        "s = Shape(a)\ny = Reshape<allowzero=1>(a, s)",
        "p, q = Split<axis=0>(a)\ny = Concat<axis=0>(p, q)",  # needs num_outputs from operator set 18 on
        "c = Constant<value=f16(1)>()\ny = CastLike(c, a)",
    ],
)
def test_a_right_function_is_accepted(graft, line):
    checked(graft, "a = Relu(x)\n" + line, code=0)


def test_a_function_has_to_make_the_outputs(graft):
    answer = checked(graft, "z = Relu(x)", code=2)
    assert "operator FunctionUnderTest: function FunctionUnderTest: no line defines the output 'y'" in answer.err


def test_a_name_has_one_body(graft):
    answer = checked(graft, "y = Relu(x)", GRAFT_TEST_SECOND_FUNCTION="y = Neg(x)", code=2)
    assert "function FunctionUnderTest has two different bodies; rename one of the two functions" in answer.err
    assert "y = Relu(x)" in answer.err and "y = Neg(x)" in answer.err


# A function that is invalid in f16 and bf16, and its error message for the first of these.
WRONG_TYPES = {
    "k = Constant<value_float=2.0>()\ny = Mul(k, x)": "line 2, column 5: in f16: Mul reads f32 'k' and f16 'x', which must have the "
    "same type: cast one in a line above, as in k_cast = CastLike(k, x), and pass the result to Mul",
    "k = Constant<value_float=@beta>()\ny = Mul(x, k)": "line 2, column 5: in f16: Mul reads f16 'x' and f32 'k', which must have the "
    "same type: cast one in a line above, as in k_cast = CastLike(k, x), and pass the result to Mul",
    "w = Cast<to=f32>(x)\ns = Sigmoid(w)\ny = Mul(s, x)": "line 3, column 5: in f16: Mul reads f32 's' and f16 'x', which must have",
    "k = Constant<value=f16(2)>()\ny = Mul(k, x)": "line 2, column 5: in f32: Mul reads f16 'k' and f32 'x', which must have",
    "y = Cast<to=f32>(x)": "in f16: its output 'y' is f32, and the operator's types require f16: cast it in its last "
    "line, as in y = Cast<to=f16>(y_before)",
    "y = Where(x, x, x)": "line 1, column 5: in f32: input 0 of Where, 'x', is f32; it must be bool, like the result of a comparison",
    "z = Relu(x)\nn = Shape(z)\ny = Add(z, n)": "line 3, column 5: in f32: Add reads f32 'z' and i64 'n', which must have",
    "c = Greater(x, x)\ny = Add(x, c)": "line 2, column 5: in f32: Add reads f32 'x' and bool 'c', which must have",
    "y = Celu(x)": "line 1, column 5: in f16: input 0 of Celu, 'x', is f16, but ONNX allows only f32 there; cast "
    "the input in a line above, as in x_f32 = Cast<to=f32>(x), and cast the result of Celu back",
    "q, s, z = DynamicQuantizeLinear(x)\ny = DequantizeLinear(q, s, z)": "line 1, column 11: in f16: input 0 of "
    "DynamicQuantizeLinear, 'x', is f16, but ONNX allows only f32 there",
    "i = IsInf(x)\ny = CastLike(i, x)": "line 1, column 5: in f16: input 0 of IsInf, 'x', is f16, but ONNX allows only",
    "s = ReduceMax<keepdims=0>(x)\nr = Range(s, s, s)\ny = CastLike(r, x)": "line 2, column 5: in f16: input 0 of Range, 's'",
    # bf16 is checked in the operator set to which networks in bf16 are converted.
    "n = Constant<value_ints=[1]>()\nv, i = TopK<axis=0>(x, n)\ny = Relu(v)": "line 2, column 8: in bf16: input 0 of TopK, 'x', is bf16, but ONNX allows "
    "only f32, u8, i8, u16, i16, i32, i64, f16, f64, u32, u64 there in operator set 22",
    # A network in f32 is not converted to a newer operator set because of types inside a function.
    "h = Cast<to=bf16>(x)\nz = Softsign(h)\ny = CastLike(z, x)": "line 2, column 5: in f32: input 0 of Softsign, 'h', is bf16, "
    "but ONNX allows only f32, f16, f64 there",
    "h = Cast<to=f8e4m3fn>(x)\ny = CastLike(h, x)": "line 1, column 5: in f32: Cast computes f8e4m3fn 'h', a type that ONNX has only in "
    "operator set 19 and later, but a model may use operator set 17",
    # A newer operator set may accept fewer types.
    "n = Shape(x)\nr = ReduceLogSum(n)\ny = CastLike(r, x)": "line 2, column 5: in f32: input 0 of ReduceLogSum, 'n', is i64, "
    "but ONNX allows only f32, f16, f64, bf16 there in operator set 28",
    "n = Shape(x)\ni = Cast<to=i32>(n)\no = Constant<value_float=1.0>()\nq = QuantizeLinear(i, o)\ny = CastLike(q, x)": "line 4, "
    "column 5: in f32: QuantizeLinear reads i32 'i' and f32 'o', which must have the same type in operator set 19",
    "b = And(x, x)\ny = Where(b, x, x)": "line 1, column 5: in f32: input 0 of And, 'x', is f32; it must be bool",
    # Faults in sizes, which only constants have here.
    "a = Constant<value_floats=[1.0, 2.0]>()\nb = Constant<value_floats=[1.0, 2.0, 3.0]>()\nc = Add(a, b)\nd = CastLike(c, x)\n"
    "y = Add(x, d)": "line 3, column 5: in f32: node 'c' (Add): ",
}


@pytest.mark.parametrize("body", WRONG_TYPES)
def test_the_types_of_a_function_are_followed_in_every_row(graft, body):
    answer = checked(graft, body, code=2)
    message = answer.json["error"]["message"]
    place = f"library of operators {WRONG.resolve()}: operator FunctionUnderTest: function FunctionUnderTest"
    assert message.startswith(place) and WRONG_TYPES[body] in message, message


def test_a_native_form_is_followed_too(graft):
    answer = checked(graft, GRAFT_TEST_NATIVE_FORM="y = Cast<to=f32>(x)", code=2)
    assert "native form: in f16: its output 'y' is f32" in answer.err


@pytest.mark.parametrize(
    "body",
    [
        "k32 = Constant<value_float=2.0>()\nk = CastLike(k32, x)\ny = Mul(k, x)",
        "x32 = Cast<to=f32>(x)\nk = Constant<value_float=@beta>()\ny32 = Mul(k, x32)\ny = CastLike(y32, x)",
        "k = Constant<value_floats=[2.0]>()\nk_cast = CastLike(k, x)\nc = Less(x, k_cast)\ny = Where(c, x, k_cast)",
        "two = Constant<value_float=2.0>()\ny = Pow(x, two)",  # the exponent has a type of its own
        "x32 = Cast<to=f32>(x)\nq, s, z = DynamicQuantizeLinear(x32)\ny32 = DequantizeLinear(q, s, z)\ny = CastLike(y32, x)",
    ],
)
def test_a_function_that_holds_in_every_row_is_accepted(graft, body):
    checked(graft, body, code=0)


def onnx_takes(op, element_type, opset):
    outputs = [f"y{i}" for i in range(onnx.defs.get_schema(op, opset, "").min_output)]
    graph = subgraph(
        [helper.make_node(op, ["x"], outputs)],
        [("x", element_type, None)],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        # A refusal of a node inside onnx's own function of the operator does not count.
        return str(error).count("(op_type:") > 1
    return True


def test_the_types_that_a_line_may_have_are_those_that_onnx_takes(graft):
    """Tests all operators that read one tensor. The error names the first row whose operator set refuses the type."""
    rows = {"f32": (TensorProto.FLOAT, 17), "f16": (TensorProto.FLOAT16, 17), "bf16": (TensorProto.BFLOAT16, 22)}
    verdicts = {}
    for name in sorted({schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}):
        try:
            schema = onnx.defs.get_schema(name, 17, "")
        except onnx.defs.SchemaError:
            continue
        if schema.deprecated or schema.min_input != 1 or any(a.required for a in schema.attributes.values()):
            continue
        wanted = None
        for row, (element_type, first) in rows.items():
            if wanted is None and not all(onnx_takes(name, element_type, opset) for opset in range(first, 29)):
                wanted = row
        outputs = ", ".join(["z", *(f"z{place}" for place in range(1, schema.min_output))])
        answer = checked(graft, f"{outputs} = {name}(x)\ny = CastLike(z, x)")
        assert (answer.code != 0) == (wanted is not None), (name, wanted, answer.err)
        assert wanted is None or f": in {wanted}: input 0 of {name}, 'x', is {wanted}" in answer.err, answer.err
        verdicts.setdefault(wanted, []).append(name)
    assert min(len(names) for names in verdicts.values()) > 1 and set(verdicts) == {None, *rows}, verdicts


def test_the_functions_of_the_guide_hold_in_every_row(graft):
    guide = (Path(os.environ["GRAFT_SOURCE_DIR"]) / "docs" / "guide" / "rules.md").read_text()
    bodies = re.findall(r"<!-- function -->\n```text\n(.*?)```", guide, re.DOTALL)
    assert len(bodies) == 2
    for body in bodies:
        checked(graft, body, code=0)


def test_a_type_that_an_operator_does_not_take_names_its_library(graft, tmp_path):
    node = helper.make_node("FunctionUnderTest", ["x"], ["y"], "it", domain="my")
    x, y = (("x", TensorProto.INT32, [2]), ("y", TensorProto.INT32, [2]))
    model = save(tmp_path / "m.onnx", [node], [x], [y], domains=["my"])
    answer = graft("inspect", model, "--operators", WRONG, code=1)
    words = " ".join(answer.out.split())
    assert "'x' is i32; FunctionUnderTest of libwrong_functions.so accepts f32, f16, bf16 what to do:" in words, words
    assert "or add i32 to the operator's types()" in words and "Graft's FunctionUnderTest" not in words, words
    answer = graft("convert", model, "-o", tmp_path / "o.onnx", "--operators", WRONG, code=1)
    words = " ".join(answer.out.split())
    assert "FunctionUnderTest of libwrong_functions.so accepts f32, f16, bf16" in words, words
    assert "TensorRT now runs" not in words and "plugin node 'it'" not in words, words


def test_lists_of_texts_and_empty_ones(graft):
    lstm = "y, _, _ = LSTM<hidden_size=1, activations={}, activation_alpha={}>(x, x, x)"
    for activations, alpha in (('["Sigmoid", "Tanh", "Relu"]', "[]"), ("[]", "[1.0]")):
        answer = checked(graft, lstm.format(activations, alpha), code=0)
    answer = checked(graft, "a = Relu(x)\n" + lstm.format("[1]", "[]"), code=2)
    message = 'attribute `activations` of LSTM is a list of strings, such as ["Tanh", "Relu"]; found a list of integers'
    assert message in answer.json["error"]["message"]
    answer = checked(graft, lstm.format('["Tanh", 1]', "[]"))
    assert answer.code == 2 and "a string is missing; found `1`" in answer.err
    assert (
        checked(graft, "k = Constant<value_floats=[]>()\nk_cast = CastLike(k, x)\ny = Concat<axis=0>(x, k_cast)").code
        == 0
    )


def test_a_function_has_a_name(graft):
    answer = checked(graft, GRAFT_TEST_WITHOUT_NAME="1", code=2)
    assert (
        "FunctionUnderTest: its `function` returns a Function without a name: set its `name` to the operator's `name`"
        in answer.err
    )


def test_bodies_of_one_name_are_compared_as_they_are_understood(graft):
    checked(graft, "y = Clip(x,_,x)", GRAFT_TEST_SECOND_FUNCTION="# the same\ny=Clip( x, _, x ) ; ", code=0)


def test_an_exception_of_a_definition_names_operator_and_library(graft):
    place = f"library of operators {WRONG.resolve()}: operator FunctionUnderTest: its "
    answer = checked(graft, "throw an exception", code=2)
    assert answer.json["error"]["message"] == place + "`function` throws an exception: no such rank"
    answer = checked(graft, "throw a number", code=2)
    assert answer.json["error"]["message"] == place + "`function` throws an exception, which is no std::exception"
    answer = checked(graft, GRAFT_TEST_NATIVE_FORM="throw an exception", code=2)
    assert answer.json["error"]["message"] == place + "`native_form` throws an exception: no such rank"


def test_native_forms_are_read_too(graft):
    assert checked(graft, GRAFT_TEST_NATIVE_FORM="y = Elu<alpha=@beta>(x)").code == 0
    answer = checked(graft, GRAFT_TEST_NATIVE_FORM="y = Elu<aplha=@beta>(x)", code=2)
    assert "operator FunctionUnderTest: native form, line 1, column 5: Elu has no attribute `aplha`" in answer.err


def test_every_command_refuses_the_library(graft, tmp_path):
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2, 3])], [("y", [2, 3])])
    for command in (["inspect", model], ["convert", model, "-o", tmp_path / "o.onnx"], ["verify", model, model]):
        answer = graft(*command, "--operators", WRONG, env={"GRAFT_TEST_FUNCTION": "y = Elu<aplha=1.0>(x)"}, code=2)
        assert answer.err.startswith(
            f"error: library of operators {WRONG.resolve()}: operator FunctionUnderTest: function "
        )
    assert not (tmp_path / "o.onnx").exists()


# ---- Without --operators the file has the function alone


@pytest.fixture
def models(graft, tmp_path):
    """Returns a network of standard operators, and the converted one: a node of Snake, with its function."""
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Sin", ["a"], ["sine"]),
        helper.make_node("Mul", ["sine", "sine"], ["square"]),
        helper.make_node("Add", ["a", "square"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    reference = save(tmp_path / "reference.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])])
    nodes[1:4] = [helper.make_node("Snake", ["a"], ["b"], "it", domain="my", alpha=1.0)]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])], domains=["my"])
    converted = tmp_path / "converted.onnx"
    answer = graft("convert", model, "-o", converted, "--operators", LIBRARY, code=0)
    assert [function.name for function in onnx.load(converted).functions] == ["Snake"]
    return reference, converted, answer


@pytest.mark.parametrize("more", [[], ["--layers"], ["--engine", "openvino"]])
def test_verify_does_not_take_the_function_for_the_kernel(graft, models, more):
    reference, converted, _ = models
    answer = graft("verify", reference, converted, "--kernels", "own", *more, code=2)
    assert answer.err.startswith(
        f"error: {converted}: node 'it' (graft::Snake): no loaded library has the operator Snake, so there is no "
        "kernel for it, only the function in the file"
    )
    assert "Load its library with --operators LIB, or leave out --kernels own" in " ".join(answer.err.split())
    assert graft("verify", reference, converted, *more).code == 0
    answer = graft("verify", reference, converted, "--kernels", "own", "--operators", LIBRARY, *more, code=0)


def test_a_function_of_somebody_elses_is_no_operator(graft, tmp_path):
    """A function in another domain than Graft's never had a kernel."""
    relu = helper.make_function(
        "my", "F", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    nodes = [helper.make_node("F", ["x"], ["y"], "it", domain="my")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])], functions=[relu], domains=["my"])
    graft("verify", model, model, "--kernels", "own", code=0)


def test_run_does_not_take_the_function_for_the_kernel(graft, models, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones([2, 3], np.float32))
    command = ["run", models[1], "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz"]
    answer = graft(*command, "--kernels", "own")
    assert answer.code == 2 and "no loaded library has the operator Snake" in answer.err, answer.err
    assert not (tmp_path / "out.npz").exists()
    assert graft(*command).code == 0


def test_inspect_says_that_the_library_makes_it_a_plugin(graft, models):
    (node,) = [each for each in graft("inspect", models[1], "--json").json["nodes"] if each["node"] == "it"]
    assert node["verdict"] == "native"
    assert (
        "no loaded library has the operator; load its library with --operators LIB to run the node as a plugin"
        in node["reason"]
    )


def test_convert_names_the_build_that_makes_plugins(graft, models, tmp_path):
    _, converted, answer = models
    # This library was built without CUDA: `graft build` refuses it, and builds the operator from its function.
    command = f"graft build {converted} -o {tmp_path / 'converted'}.engine"
    assert f"next  {command}\n" in answer.out
    assert "builds Snake from its function: the library was built without CUDA, so it has no plugins" in answer.out
    assert graft(*command.replace("graft ", "", 1).split(), "--target", "sm120").code == 0
    if PLUGINS.is_file():
        with_plugins = graft("convert", tmp_path / "m.onnx", "-o", converted, "--operators", PLUGINS).out
        assert f"next  {command} --target sm120 --operators {PLUGINS.resolve()}\n" in with_plugins
        assert "without --operators, Snake would be built from its function" in with_plugins
    again = graft("convert", models[0], "-o", tmp_path / "again.onnx", "--operators", LIBRARY, "--passes=remove_dead")
    assert again.code == 0 and "--operators" not in again.out, again.out  # the model has no operator of the library

    def advised(library):
        (step,) = graft("inspect", models[0], "--operators", library, "--json").json["next"]
        return step["command"]

    native = f"graft build {models[0]} -o {models[0].with_suffix('')}.engine"
    assert advised(LIBRARY) == native
    if PLUGINS.is_file():
        assert advised(PLUGINS) == f"{native} --operators {PLUGINS.resolve()}"


def test_build_says_what_it_builds_from_functions(graft, models, tmp_path):
    engine = ["-o", tmp_path / "e", "--target", "sm120"]
    said = (
        "Snake is built from its function, as native layers, because no loaded library has this operator; load its "
        "library with --operators LIB to run the operator as a plugin"
    )
    answer = graft("build", models[1], *engine, code=0)
    assert answer.err.count(said) == 1 and "TensorRT: Snake" not in answer.err, answer.err
    for more in (["--plugins", "never"], *([["--operators", PLUGINS]] if PLUGINS.is_file() else [])):
        answer = graft("build", models[1], *engine, *more, code=0)
        assert "built from its function" not in answer.err, answer.err


def test_without_functions_build_names_both_kinds_of_libraries(graft, models, tmp_path):
    bare = onnx.load(models[1])
    del bare.functions[:]
    onnx.save(bare, tmp_path / "bare.onnx")
    answer = graft("build", tmp_path / "bare.onnx", "-o", tmp_path / "e", "--target", "sm120", code=1)
    assert "with --plugin-lib, a library of your own operators with --operators LIB" in " ".join(answer.err.split()), (
        answer.err
    )
    (node,) = [
        each
        for each in graft("inspect", tmp_path / "bare.onnx", "--json").json["nodes"]
        if each["verdict"] == "unsupported"
    ]
    assert "if it is your own operator, load its library: --operators LIB" in node["advice"]


@pytest.mark.parametrize("more", [[], ["--layers"]])
def test_verify_says_which_operators_of_onnx_it_does_not_run_by_kernels(graft, tmp_path, more):
    """The file has ONNX's operators; TensorRT-RTX has no layer for them, so `graft build` runs them as plugins."""
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Neg", ["n"], ["y"])]
    y = ("y", TensorProto.INT64, [2, None])
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [y])
    said = "--kernels own: NonZero of the candidate was computed as ONNX defines it, not by Graft's kernel, which"
    for kernels, named in (("own", ["NonZero"]), ("functions", [])):
        answer = graft("verify", model, model, "--kernels", kernels, *more, code=0)
        assert " ".join(answer.err.split()).count(said) == len(named), answer.err
        answer = graft("verify", model, model, "--kernels", kernels, "--json", *more)
        assert answer.json["without_own_kernels"] == named
    nodes.append(helper.make_node("TopK", ["z", "k"], ["largest", "places"]))
    results = [y, ("largest", [1, 3900])]
    two = save(tmp_path / "two.onnx", nodes, [("x", [2, 3]), ("z", [1, 4000])], results, {"k": np.array([3900])})
    said = "NonZero, TopK of the candidate were computed as ONNX defines them, not by Graft's kernels, which"
    assert said in " ".join(graft("verify", two, two, "--kernels", "own", *more).err.split())


def softsign(path, element_type):
    """Saves three nodes, of which the library's fusion replaces one: its kernel is correct in f32 and wrong in f16."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "before"),
        helper.make_node("Softsign", ["a"], ["b"], "it"),
        helper.make_node("Neg", ["b"], ["y"], "after"),
    ]
    return save(path, nodes, [("x", element_type, [2, 3])], [("y", element_type, [2, 3])])


SOFTSIGN = {"env": {"GRAFT_TEST_FUNCTION": "y = Softsign(x)"}}


def test_a_kernel_is_proven_in_the_type_that_it_will_run_in(graft, tmp_path):
    converted = tmp_path / "converted.onnx"
    command = ["-o", converted, "--operators", WRONG]
    answer = graft("convert", softsign(tmp_path / "f32.onnx", TensorProto.FLOAT), *command, **SOFTSIGN)
    assert answer.code == 0 and answer.err == "", answer.err
    assert [node.op_type for node in onnx.load(converted).graph.node] == ["Relu", "FunctionUnderTest", "Neg"]

    answer = graft("convert", softsign(tmp_path / "f16.onnx", TensorProto.FLOAT16), *command, **SOFTSIGN)
    assert answer.code == 0, answer.err
    assert [node.op_type for node in onnx.load(converted).graph.node] == ["Relu", "Softsign", "Neg"]
    assert re.match(
        r"warning: fuse_library_operators: the replacement of node 'it' \(Softsign\) by FunctionUnderTest<.*> "
        r"\(function_under_test/function_under_test_fusion\.yaml:2:\d+\) was not applied: output '\w+' with .* \(operators' own kernels\): ",
        answer.err,
    ), answer.err


@pytest.mark.parametrize(
    ("body", "opset"),
    [("y = Softsign(x)", 22), ("x32 = Cast<to=f32>(x)\ny32 = Softsign(x32)\ny = CastLike(y32, x)", 17)],
)
def test_a_network_in_bf16_is_in_an_operator_set_that_has_its_functions(graft, tmp_path, body, opset):
    """Relu and Neg have bf16 from operator set 13 on, Softsign from 22 on."""
    env = {"env": {"GRAFT_TEST_FUNCTION": body}}
    converted, quantized = tmp_path / "converted.onnx", tmp_path / "bf16.onnx"
    command = ["convert", softsign(tmp_path / "f32.onnx", TensorProto.FLOAT), "-o", converted, "--operators", WRONG]
    assert graft(*command, **env).code == 0
    answer = graft("quantize", converted, "-o", quantized, "--precision", "bf16", "--operators", WRONG, **env)
    assert answer.code == 0, answer.err
    model = onnx.load(quantized)
    (function,) = model.functions
    assert [each.version for each in function.opset_import if each.domain == ""] == [opset]
    (node,) = [each for each in model.graph.node if each.op_type == "FunctionUnderTest"]
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    assert types[node.output[0]] == TensorProto.BFLOAT16
    onnx.checker.check_model(model, full_check=True)


def test_convert_raises_a_network_that_is_in_bf16_to_what_its_functions_need(graft, tmp_path):
    converted = tmp_path / "converted.onnx"
    command = ["convert", softsign(tmp_path / "bf16.onnx", TensorProto.BFLOAT16), "-o", converted, "--operators", WRONG]
    graft(*command, env={"GRAFT_TEST_FUNCTION": "y = Softsign(x)"}, code=0)
    model = onnx.load(converted)
    assert [each.op_type for each in model.graph.node] == ["Relu", "FunctionUnderTest", "Neg"]
    onnx.checker.check_model(model, full_check=True)


def test_verify_runs_kernels_in_the_type_that_the_file_declares(graft, tmp_path):
    for element_type, code in ((TensorProto.FLOAT, 0), (TensorProto.FLOAT16, 1)):
        reference, converted = softsign(tmp_path / "m.onnx", element_type), tmp_path / "converted.onnx"
        command = ["convert", reference, "-o", converted, "--operators", WRONG, "--no-prove"]
        assert graft(*command, **SOFTSIGN).code == 0
        command = ["verify", reference, converted, "--operators", WRONG]
        assert graft(*command, **SOFTSIGN).code == 0
        for more in ([], ["--layers"]):
            answer = graft(*command, "--kernels", "own", *more, **SOFTSIGN)
            assert answer.code == code, answer.out + answer.err
        if code == 0:
            continue
        assert "FunctionUnderTest" in answer.out, "the layer at which the models part"
        # `run` shows the fault too: it is in the CPU kernel, with which the device's kernel would be compared.
        np.savez(tmp_path / "in.npz", x=np.ones([2, 3], np.float16))
        command = ["run", converted, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--operators", WRONG]
        assert graft(*command, "--kernels", "own", **SOFTSIGN).code == 0
        assert (np.load(tmp_path / "out.npz")["y"] == -1).all()


def chain(path, lines, shape, element_type=TensorProto.FLOAT16):
    """Saves nodes (operator, inputs, output, attributes) on x; a number among the inputs is a constant."""
    nodes, constants = [], {}
    for position, (op, inputs, output, attributes) in enumerate(lines):
        names = [each if isinstance(each, str) else f"constant_{position}_{place}" for place, each in enumerate(inputs)]
        for name, each in zip(names, inputs):
            if not isinstance(each, str):
                constants[name] = each
        nodes.append(helper.make_node(op, names, [output], output, **attributes))
    return save(path, nodes, [("x", element_type, shape)], [(lines[-1][2], element_type, shape)], constants)


L2_NORMALIZE = [
    ("Mul", ["x", "x"], "squares", {}),
    ("ReduceSum", ["squares", np.array([1])], "sum", {"keepdims": 1}),
    ("Add", ["sum", np.float16(1e-3)], "more", {}),
    ("Sqrt", ["more"], "root", {}),
    ("Div", ["x", "root"], "y", {}),
]


def test_verify_compares_kernels_in_f16_with_a_network_that_does_not_overflow_inside(graft, tmp_path):
    """The original would be infinite with rounding to f16 inside; the kernel avoids that."""
    model = chain(tmp_path / "m.onnx", L2_NORMALIZE, [1, 16, 8, 8])
    converted = tmp_path / "converted.onnx"
    assert graft("convert", model, "-o", converted, "--plugins", "always").code == 0
    assert [node.op_type for node in onnx.load(converted).graph.node] == ["L2Normalize_add"]
    graft("verify", model, converted, "--kernels", "own", "--range", "x=-1000..1000", code=0)


def test_verify_sees_where_a_kernel_in_f16_overflows_and_the_network_does_not(graft, tmp_path):
    model = chain(
        tmp_path / "m.onnx",
        [("LeakyRelu", ["x"], "a", {"alpha": 100.0}), ("Mul", ["a", np.float16(0.01)], "y", {})],
        [1, 8],
    )
    converted = tmp_path / "converted.onnx"
    assert graft("convert", model, "-o", converted, "--plugins", "always", "--no-prove").code == 0
    assert "LeakyReLU" in [node.op_type for node in onnx.load(converted).graph.node]
    np.savez(tmp_path / "in.npz", x=np.array([[-3000, 1, 2, 3, 4, 5, 6, 7]], np.float16))
    command = ["verify", model, converted, "--data", f"x={tmp_path / 'in.npz'}:x"]
    assert graft(*command).code == 0
    graft(*command, "--kernels", "own", code=1)


def of_nobody(path):
    """Saves a network with a node that ONNX Runtime does not know: only the library defines it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "before"),
        helper.make_node("FunctionUnderTest", ["a"], ["b"], "it", domain="acme"),
        helper.make_node("Neg", ["b"], ["y"], "after"),
    ]
    return save(path, nodes, [("x", [2, 3])], [("y", [2, 3])], domains=["acme"])


def comparisons(model, folder):
    """Returns the commands that compare a network with the network that `convert` or `quantize` makes of it."""
    converted = folder / "converted.onnx"
    return {
        "convert": ("convert", model, "-o", converted, "--for", "rtx-1.7"),
        "quantize": ("quantize", model, "-o", folder / "f16.onnx", "--precision", "f16"),
        "verify": ("verify", model, converted),
        "layers": ("verify", model, converted, "--layers"),
    }


def test_a_comparison_says_which_nodes_only_a_library_defines(graft, tmp_path):
    """Both networks compute the node with the library's function, so "the same" supposes that the function is right."""
    model = of_nobody(tmp_path / "m.onnx")
    condition = "the same, provided that libwrong_functions.so defines FunctionUnderTest correctly"
    for name, command in comparisons(model, tmp_path).items():
        answer = graft(*command, "--operators", WRONG, "--json", **SOFTSIGN, code=0)
        told = " ".join(graft(*command, "--operators", WRONG, **SOFTSIGN, code=0).out.split())
        assert (
            "1 node (FunctionUnderTest) has no independent definition: both networks compute it as libwrong_functions.so"
            in told
        )
        assert "its function and its CPU kernel compute the same; compare the results of `graft run`" in told, told
        assert name == "layers" or condition in told, told
        report = {"convert": "values", "quantize": "check"}.get(name)
        (found,) = (answer.json[report] if report else answer.json)["own_definitions"]
        wanted = {"operator": "FunctionUnderTest", "library": "libwrong_functions.so", "nodes": 1, "has_function": True}
        assert found == wanted | {"nodes_compared": 1, "kernel": "the same", "note": ""}, name


def test_a_comparison_fails_if_function_and_kernel_differ(graft, tmp_path):
    """The kernel computes Softsign, and the function Tanh: ONNX Runtime runs only the function, in both networks."""
    model = of_nobody(tmp_path / "m.onnx")
    wrong = {"env": {"GRAFT_TEST_FUNCTION": "y = Tanh(x)"}}
    for name, command in comparisons(model, tmp_path).items():
        answer = graft(*command, "--operators", WRONG, **wrong)
        assert answer.code == 1, (name, answer)
        told = " ".join((answer.out + answer.err).split())
        assert (
            "the function of FunctionUnderTest in libwrong_functions.so and its CPU kernel differ at node 'it'" in told
        )
        assert "the same, provided" not in told


def test_a_definition_in_the_file_is_not_counted(graft, tmp_path):
    """The converted file has the function, which ONNX Runtime runs without the library."""
    converted = tmp_path / "converted.onnx"
    graft("convert", of_nobody(tmp_path / "m.onnx"), "-o", converted, "--operators", WRONG, **SOFTSIGN, code=0)
    answer = graft("verify", converted, converted, "--operators", WRONG, "--json", **SOFTSIGN, code=0)
    assert answer.json["own_definitions"] == []
