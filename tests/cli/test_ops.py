# Tests that graft ops lists the operators as their definitions declare them.
import onnx.defs
import pytest


@pytest.fixture
def operators(graft):
    return graft("ops", "--json").json["operators"]


def test_the_first_operators_and_their_drop_ins_are_there(operators):
    names = {op["name"]: {drop_in["name"] for drop_in in op["drop_ins"]} for op in operators}
    assert {"LReLU_TRT", "LeakyReluPlugin"} <= names["LeakyReLU"]
    assert "l2norm_helper" in {n for drop_ins in names.values() for n in drop_ins}
    assert "L2Normalize" in names


def test_no_operator_has_a_name_of_onnx(operators):
    """Only operators that compute the ONNX operator may have its name."""
    standard = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    computed = {op["onnx_name"] for op in operators if op["onnx_name"]}
    assert computed <= standard
    assert standard & {op["name"] for op in operators} <= computed


def test_every_operator_says_what_a_page_needs(operators):
    for op in operators:
        for text in ("doc", "source", "why_plugin"):
            assert op[text], (op["name"], text)
        assert op["ports"] and op["type_rows"]
        for attribute in op["attributes"]:
            assert attribute["doc"]


def test_one_operator_by_name_or_drop_in_in_any_case(graft):
    for name in ("LeakyReLU", "leakyrelu", "LReLU_TRT"):
        answer = graft("ops", name, code=0)
        assert answer.out.startswith("LeakyReLU 1\n")
        for part in ("alpha", "0.01", "LReLU_TRT 1", "negSlope", "Why a plugin", "f16 hwc8 -> f16 hwc8", "i8 chw32"):
            assert part in answer.out
    assert graft("ops", "LReLU_TRT", "--json").json["name"] == "LeakyReLU"


def test_the_list_is_short(graft, operators):
    assert len(graft("ops").out.splitlines()) <= 5 * len(operators) + 5


def test_an_unknown_one_may_be_of_ones_own(graft):
    answer = graft("ops", "BetaSwish", code=2)
    assert "To find an operator of your own, load its library with --operators LIB" in " ".join(answer.err.split()), (
        answer.err
    )


@pytest.mark.parametrize(("reader", "key", "name"), [("caffe", "layers", "type"), ("tensorflow", "operators", "name")])
def test_what_the_readers_support_has_the_published_schema(graft, reader, key, name):
    """`graft` validates the JSON against docs/schema."""
    listed = graft("ops", "--reads", reader, "--json").json[key]
    assert {"caffe": "Convolution", "tensorflow": "Conv2D"}[reader] in {each[name] for each in listed}
