"""Runs what the guides tell people to type, and compares the code they show with the files it comes from.

A block after `<!-- file: PATH -->` is that file, whole. A block of `sh` is run, the blocks of one guide one after another
in one folder that holds a copy of `examples`; `<!-- not run: REASON -->` before a block leaves it out.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import onnx
import pytest

ROOT = Path(os.environ["GRAFT_SOURCE_DIR"])
GRAFT = Path(os.environ["GRAFT_BIN"])
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


def run_commands(page: Path, folder: Path) -> None:
    script = "".join(block["text"] for block in blocks(page) if block["kind"] == "sh" and block["mark"] != "not run")
    if not script:
        pytest.skip("the page has no commands to run")
    shutil.copytree(ROOT / "examples", folder / "examples")
    environment = os.environ | {"PATH": f"{GRAFT.parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{page.name}:\n{script}\n{result.stdout}\n{result.stderr}"


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if page.stem != "add_an_operator"], ids=lambda page: page.stem
)
def test_commands_work(page: Path, tmp_path: Path) -> None:
    run_commands(page, tmp_path)


def test_an_operator_from_outside_works_in_an_engine(tmp_path: Path) -> None:
    run_commands(ROOT / "docs" / "guide" / "add_an_operator.md", tmp_path)
    node = onnx.helper.make_node("Snake", ["x"], ["y"], domain="my", alpha=2.0)
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3, 4, 5]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "snake", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("my", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "snake.onnx")
    result = subprocess.run(
        [GRAFT, "build", "snake.onnx", "-o", "snake.engine", "--target", "sm89", "--json"]
        + ["--plugin-lib", "my_build/libmy_plugins.so"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "Snake" in json.dumps(json.loads(result.stdout)["network"]["plugins"])
