# Builds the documentation site, if MkDocs is installed, and tests the pages that tools/site_pages.py generates.
import html.parser
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("site_pages", SOURCE / "tools" / "site_pages.py")
site_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site_pages)
MESSAGES = {message["name"]: message for message in site_pages.messages()}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_known_to_the_sources_and_has_known_causes(name):
    message = MESSAGES[name]
    source = (SOURCE / message["known_in"]).read_text()
    assert [text for text in message["text"] if text not in source] == []
    assert set(message.get("causes", [])) <= site_pages.causes().keys()
    assert all((SOURCE / "docs" / page).is_file() for page, _ in message["see"])
    page = site_pages.message_page(message)
    assert page.startswith(f"# {message['title']}\n")
    assert all(f"`{cause}`" in page for cause in message.get("causes", []))


def test_each_message_that_the_inspection_recognizes_has_a_page():
    source = (SOURCE / "src" / "inspect" / "plugin_causes.cpp").read_text()
    recognized = re.findall(r'contains\((?:words|message), "([^"]+)"\)', source)
    described = [text for message in MESSAGES.values() for text in message["text"]]
    assert len(recognized) > 4
    assert [text for text in recognized if text not in described] == []


def test_the_reference_describes_each_member_of_a_definition():
    header = (SOURCE / "include" / "graft" / "operator" / "define_operator.hpp").read_text()
    optional = re.findall(r"^GRAFT_OPTIONAL_MEMBER\((\w+)\)", header, re.MULTILINE)
    required = re.findall(r"^  (?:\{ )?(?:D::|definition\.)(\w+)", header, re.MULTILINE)
    assert len(optional) > 10 and len(required) > 7
    page = (SOURCE / "docs" / "guide" / "operator_definition.md").read_text()
    rows = re.findall(r"^\| `([^`]*)` \|", page, re.MULTILINE)
    described = {re.sub(r"\(.*", "", row).split()[-1] for row in rows}
    described |= {row.rpartition("(")[0].split()[-1] for row in rows if "(" in row}
    assert {*optional, *required} - described == set()


def test_each_command_has_a_page():
    listed = re.findall(r"^## graft (\w+)$", (SOURCE / "docs" / "guide" / "command_line.md").read_text(), re.MULTILINE)
    pages = site_pages.command_pages()
    assert list(pages) == [f"commands/{name}.md" for name in listed]
    assert "](../guide/int8.md)" in pages["commands/quantize.md"]


def test_each_function_and_struct_of_the_library_has_a_section():
    pages = site_pages.header_pages()
    for folder in ("toolkit", "report"):
        for path in (SOURCE / "include" / "graft" / folder).glob("*.hpp"):
            text = re.sub(r"^namespace detail \{.*?^\}", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
            names = re.findall(r"^(?:struct|class|enum class) (?:GRAFT_API )?(\w+)[^;\n]*\{", text, re.MULTILINE)
            names += re.findall(r"^(?:\[\[nodiscard\]\] )?GRAFT_API [^(=]*?(\w+)\(", text, re.MULTILINE)
            page = pages.get(f"cpp/{folder}/{path.stem}.md", "")
            assert [name for name in names if f"## {name}\n" not in page] == [], path


def test_a_member_of_a_report_has_the_description_of_its_key():
    page = site_pages.header_pages()["cpp/report/convert.md"]
    assert "\n- `prove`: The time of the proofs.\n" in page and "fields()" not in page


def test_a_notebook_page_has_stored_outputs():
    shown = {"output_type": "execute_result", "data": {"text/plain": ["<Model>"]}}
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "Text."]}]
    cells.append({"cell_type": "code", "source": ["network"], "outputs": [shown]})
    notebook = SOURCE / "examples" / "notebooks" / "title.ipynb"
    page = site_pages.notebook_page(json.dumps({"cells": cells}), notebook)
    assert page.startswith("# Title\n\n") and page.endswith("```python\nnetwork\n```\n\n```text\n<Model>\n```\n")


def test_links_in_code_are_no_links():
    text = "[a](one.md) `[b](two.md)`\n\n```cpp\nreturn x[i](three);\n```\n[`c`](four.md)"
    assert list(site_pages.links_of(text)) == ["one.md", "four.md"]


class Addresses(html.parser.HTMLParser):
    """Collects the addresses that a browser requests when it shows a page, and those of its links."""

    def __init__(self, page):
        super().__init__()
        self.requested = []
        self.links = []
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("href", "src", "srcset", "data", "poster"):
                self.requested.append(value or "")


@pytest.fixture(scope="module")
def built_site(tmp_path_factory):
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("MkDocs is not installed; `tools/setup site` installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_the_pages_of_docs_and_the_generated_ones(built_site):
    generated = (
        "reference/python",
        "decisions/index",
        "commands/convert",
        "cpp/report/convert",
        "notebooks/from_caffe",
    )
    for page in ("index", "guide/install", "ops/l2_normalize", *generated):
        assert (built_site / f"{page}.html").is_file(), page
    for name, message in MESSAGES.items():
        text = (built_site / "messages" / f"{name}.html").read_text()
        assert message["title"].split("...")[0].strip() in text.replace("&#x27;", "'").replace("&#39;", "'"), name


def test_no_page_requests_another_host_or_an_absolute_path(built_site):
    pages = list(built_site.rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        assert [each for each in Addresses(page).requested if re.match(r"\w+:|/", each)] == [], page
    for style in built_site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(https?:)?//|@import", style.read_text()), style


def test_links_lead_to_files_of_the_site(built_site):
    """Tests what MkDocs does not: links to files that are not pages, and links in the navigation."""
    for page in built_site.rglob("*.html"):
        paths = {re.split("[?#]", link)[0] for link in Addresses(page).links if not re.match(r"https?://", link)}
        missing = [path for path in paths if path and not (page.parent / path).is_file()]
        assert missing == [], page.relative_to(built_site)


def test_the_search_works_without_a_server(built_site):
    assert (built_site / "search" / "search_index.js").read_text().startswith("var __index = {")
    scripts = re.findall(r'<script src="([^"]+)"', (built_site / "index.html").read_text())
    assert scripts.index("site/search_from_files.js") < next(i for i, s in enumerate(scripts) if "bundle" in s)
