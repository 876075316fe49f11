# Tests that messages, help pages and headers name guides that exist, in one form: the title and the file, which users of
# a checkout, of a wheel and of the web pages all find.
import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
GUIDES = SOURCE / "docs" / "guide"
TABLE = SOURCE / "src" / "core" / "guide_pages.hpp"
CODE = sorted(
    path
    for folder in ("src", "include")
    for path in (SOURCE / folder).rglob("*")
    if path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".h"} and path != TABLE
)


def title_of(page):
    """Returns the first heading of a page, which may follow a comment."""
    return re.search(r"^# (.*)$", page.read_text(), re.M)[1]


def test_the_titles_are_those_of_the_pages():
    pages = re.findall(r'GuidePage\{"(\w+)", "([^"]+)"\}', TABLE.read_text())
    assert len(pages) > 5
    assert pages == [(name, title_of(GUIDES / f"{name}.md")) for name, _ in pages]


def test_messages_name_guides_of_the_table():
    listed = {name for name, _ in re.findall(r'GuidePage\{"(\w+)", "([^"]+)"\}', TABLE.read_text())}
    used = {name for path in CODE for name in re.findall(r'guide_page\("(\w+)"\)', path.read_text())}
    assert used == listed


@pytest.mark.parametrize("path", [path for path in CODE if "docs/guide" in path.read_text()], ids=str)
def test_texts_name_no_file_of_a_checkout(path):
    """Comments of sources may name files, because only a checkout has the sources; strings and headers may not."""
    lines = path.read_text().splitlines()
    shown = [
        line for line in lines if "docs/guide" in line and (path.is_relative_to(SOURCE / "include") or '"' in line)
    ]
    assert not [line for line in shown if not line.lstrip().startswith("//") or path.is_relative_to(SOURCE / "include")]


def test_headers_name_titles_that_exist():
    titles = {title_of(page) for page in GUIDES.glob("*.md")}
    named = [
        (str(path), title)
        for path in CODE
        if path.is_relative_to(SOURCE / "include")
        for title in re.findall(r'guide "([^"]+)"', re.sub(r"\n *(///?|\*) ?", " ", path.read_text()))
    ]
    assert len(named) > 5
    assert [each for each in named if each[1] not in titles] == []
