"""Runs what the guides tell people to type, and compares the code they show with the files it comes from.

A block after `<!-- file: PATH -->` is that file, whole. A block of `sh` is run, the blocks of one guide one after another
in one folder that holds a copy of `examples`; `<!-- not run: REASON -->` before a block leaves it out.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(os.environ["GRAFT_SOURCE_DIR"])
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>file|not run): (?P<what>[^\n]*?) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
PAGES = pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)


def blocks(page: Path) -> list[re.Match[str]]:
    return list(BLOCK.finditer(page.read_text()))


@PAGES
def test_code_is_that_of_its_file(page: Path) -> None:
    for block in blocks(page):
        if block["mark"] == "file":
            assert block["text"] == (ROOT / block["what"]).read_text(), f"{page.name}: {block['what']} has changed"


@PAGES
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@PAGES
def test_commands_work(page: Path, tmp_path: Path) -> None:
    script = "".join(block["text"] for block in blocks(page) if block["kind"] == "sh" and block["mark"] != "not run")
    if not script:
        pytest.skip("the page has no commands to run")
    graft = Path(os.environ["GRAFT_BIN"])
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = os.environ | {
        "PATH": f"{graft.parent}:{os.environ['PATH']}",
        "GRAFT_BUILD_DIR": os.environ["GRAFT_BUILD_DIR"],
    }
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert result.returncode == 0, f"{page.name}:\n{script}\n{result.stdout}\n{result.stderr}"
