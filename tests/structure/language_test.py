# tools/check_language.py, with comments that it must find and comments that it must accept.
import importlib.util
import pathlib

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_language.py"
spec = importlib.util.spec_from_file_location("check_language", TOOL)
check_language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_language)


def findings(folder, name, text):
    (folder / name).write_text(text)
    return check_language.check_source(folder / name)


@pytest.mark.parametrize(
    "comment",
    [
        "Of a constant.",
        "What of an operator is refused.",
        "Those of the linked operators.",
        "The same with a limit.",
        "As in the original.",
        "In elements.",
        "Returns the nodes that were asked for.",
        "Quantises a tensor.",
    ],
)
def test_finds_comments_that_are_not_plain_sentences(tmp_path, comment):
    assert findings(tmp_path, "a.hpp", f"/// {comment}\nint f();\n")
    assert findings(tmp_path, "b.hpp", f"int x;  ///< {comment}\n")
    if "asked" not in comment and "Quant" not in comment:
        assert findings(tmp_path, "a.py", f'def f():\n    """{comment}"""\n')


@pytest.mark.parametrize("comment", ["Of two nodes the first is returned.", "As in NumPy, sides are rounded."])
def test_finds_fragments_that_document_nothing(tmp_path, comment):
    assert findings(tmp_path, "a.cpp", f"int x = 1;\n  // {comment}\nint y = 2;\n")
    assert findings(tmp_path, "a.py", f"x = 1\n# {comment}\ny = 2\n")
    assert not findings(tmp_path, "b.cpp", "// This line ends with the name\n// Of a person.\n")


@pytest.mark.parametrize(
    "comment",
    [
        "Returns the value of a constant input, or nothing if it is computed at run time.",
        "A region of the graph that is replaced as a whole.",
        "In a Loop, every iteration has a value of its own.",
        "Whether the pass runs in every round.",
    ],
)
def test_accepts_sentences_and_names_of_things(tmp_path, comment):
    assert not findings(tmp_path, "a.hpp", f"/// {comment}\nint f();\n")
    assert not findings(tmp_path, "a.py", f'def f():\n    """{comment}"""\n')


def test_finds_lines_of_a_guide_that_are_too_long_outside_of_code_and_tables(tmp_path):
    long = "word " * 30
    (tmp_path / "a.md").write_text(f"{long}\n\n| {long} |\n\n```\n{long}\n```\n")
    assert [line for line, _ in check_language.check_document(tmp_path / "a.md")] == [1]
