# Tests that the page of changes names what the public headers have.
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = SOURCE / "docs" / "changelog.md"
ROW = re.compile(r"^\| (?P<before>[^|]*) \| (?P<now>[^|]*) \|", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


def test_the_names_that_are_new_are_in_the_headers():
    headers = "\n".join(file.read_text() for file in sorted((SOURCE / "include").rglob("*.hpp")))
    words = set(re.findall(r"\w+", headers))
    rows = [row for row in ROW.finditer(PAGE.read_text()) if "`" in row["before"]]
    assert len(rows) >= 10
    named = {name for row in rows for quoted in QUOTED.findall(row["now"]) for name in re.findall(r"\w+", quoted)}
    assert named - words == set()


def test_the_guide_names_the_functions_of_results_with_their_parentheses():
    guide = (SOURCE / "docs" / "guide" / "use_the_toolkit.md").read_text()
    assert "`VerifyResult::verdict()`" in guide
    assert "](../changelog.md)" in guide
