# Tests --shapes: accepted forms, and that every error names the input and the value found.
from __future__ import annotations

import pytest
from graft.engine.events import EngineError
from graft.engine.shapes import NetworkInput, ShapeRange, parse_shape_range, parse_shape_ranges, profile_ranges

IMAGE = NetworkInput("x", (-1, 3, -1, -1), ("n", "", "h", "w"))
FIXED = NetworkInput("x", (1, 3, 8, 8), ("", "", "", ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1x3..2x3..4x3", ShapeRange("x", (1, 3), (2, 3), (4, 3))),
        ("x=7", ShapeRange("x", (7,), (7,), (7,))),
        ("a=b=1X2", ShapeRange("a=b", (1, 2), (1, 2), (1, 2))),
        ("serving/x:0:1x3", ShapeRange("serving/x:0", (1, 3), (1, 3), (1, 3))),
        ("serving/x:0=0x1..1x1..2x1", ShapeRange("serving/x:0", (0, 1), (1, 1), (2, 1))),
    ],
)
def test_accepts(text: str, expected: ShapeRange) -> None:
    assert parse_shape_range(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "x=", "=1x3", "x=1x3..2x3", "x=1..2..3..4", "x=1x", "x=-1x3", "x=1.5", "x=1x2147483648", "x=ax3"]
)
def test_refuses_text(text: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_shape_range(text)
    assert caught.value.kind == "shapes"
    assert text in caught.value.message
    assert "MIN..OPT..MAX" in caught.value.next_step


def test_refuses_the_same_input_twice() -> None:
    with pytest.raises(EngineError, match="'x' twice"):
        parse_shape_ranges(["x=1", "x=2"])


@pytest.mark.parametrize(
    ("network_input", "text", "words"),
    [
        (IMAGE, "x=1x3x8..1x3x8..1x3x8", ["3 dimensions", "4", "nx3xhxw"]),
        (IMAGE, "x=1x4x8x8", ["4 at dimension 1", "fixes at 3"]),
        (IMAGE, "x=2x3x8x8..1x3x8x8..4x3x8x8", ["dimension 0", "2, 1, 4"]),
        (IMAGE, "y=1x3x8x8", ["'y'", "its inputs are: x"]),
        (FIXED, "x=2x3x8x8", ["fixes at 1"]),
    ],
)
def test_refuses_what_contradicts_the_model(network_input: NetworkInput, text: str, words: list[str]) -> None:
    with pytest.raises(EngineError) as caught:
        profile_ranges([network_input], parse_shape_ranges([text]))
    for word in words:
        assert word in caught.value.message


def test_missing_range_names_the_input_and_gives_a_flag_that_works() -> None:
    with pytest.raises(EngineError) as caught:
        profile_ranges([IMAGE], {})
    assert "x is nx3xhxw" in caught.value.message
    flag = caught.value.next_step.splitlines()[0].split("--shapes ")[1]
    assert set(profile_ranges([IMAGE], parse_shape_ranges([flag]))) == {"x"}


def test_an_input_of_fixed_shape_needs_no_profile() -> None:
    assert profile_ranges([FIXED], {}) == {}
    assert profile_ranges([FIXED], parse_shape_ranges(["x=1x3x8x8"])) == {}


def test_a_shape_tensor_takes_values() -> None:
    sizes = NetworkInput("sizes", (2,), ("",), is_shape_tensor=True)
    assert profile_ranges([sizes], parse_shape_ranges(["sizes=8x8..16x16..32x32"]))["sizes"].optimum == (16, 16)
    with pytest.raises(EngineError, match="sizes") as caught:
        profile_ranges([sizes], {})
    # The message has no numbers, which would be a guess: a value may be a size, a count, an axis or a position.
    assert "--shapes sizes=MINxMIN..OPTxOPT..MAXxMAX" in caught.value.next_step
    assert "the command inspect tries" in caught.value.next_step
