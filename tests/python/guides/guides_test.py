"""Runs the commands of the guides, and compares the code in the guides with the files that it comes from.

A block after `<!-- file: PATH -->` is that whole file. A block of `sh` is run, the blocks of one guide one after
another in one folder with a copy of `examples`; `<!-- not run: REASON -->` before a block excludes it.
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
PYTHON = Path(os.environ["GRAFT_PYTHON"])
GUIDES = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
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
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", BLOCK.sub("", page.read_text())):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@PAGES
def test_commands_name_programs_that_a_user_has(page: Path) -> None:
    """Guides use `graft` and `python3` of the active environment; GRAFT_PYTHON is for users with another
    interpreter."""
    for block in blocks(page):
        assert block["kind"] != "sh" or "$GRAFT_PYTHON" not in block["text"], f"{page.name}: {block['text']}"


def run_commands(folder: Path, *pages: Path) -> None:
    """Runs the commands of pages, one page after another in one folder."""
    all_blocks = [block for page in pages for block in blocks(page)]
    script = "".join(block["text"] for block in all_blocks if block["kind"] == "sh" and block["mark"] != "not run")
    if not script:
        pytest.skip("the page has no commands to run")
    shutil.copytree(ROOT / "examples", folder / "examples")
    # docs/guide/install.md puts `graft` and `python3` of the checkout on PATH.
    path = f"{GRAFT.parent}:{PYTHON.parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{pages[0].name}:\n{script}\n{result.stdout}\n{result.stderr}"


ADD_AN_OPERATOR = ROOT / "docs" / "guide" / "add_an_operator.md"
OPERATOR_DEFINITION = ROOT / "docs" / "guide" / "operator_definition.md"


@pytest.mark.parametrize(
    "page",
    [page for page in GUIDES if page not in (ADD_AN_OPERATOR, OPERATOR_DEFINITION)],
    ids=lambda page: page.stem,
)
def test_commands_work(page: Path, tmp_path: Path) -> None:
    run_commands(tmp_path, page)


def model_of(folder: Path, name: str, inputs: list[str], outputs: list[str], **attributes: object) -> Path:
    node = onnx.helper.make_node(name, inputs, outputs, "it", domain="my", **attributes)
    ends = {
        each: onnx.helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, [2, 3, 4, 6] if each in inputs else None)
        for each in [*inputs, *outputs]
    }
    graph = onnx.helper.make_graph([node], name, [ends[i] for i in inputs], [ends[o] for o in outputs])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("my", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{name}.onnx")
    return folder / f"{name}.onnx"


def graft(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GRAFT, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def guide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder in which all commands of the tutorial, and then of the reference, have been run."""
    folder = tmp_path_factory.mktemp("add_an_operator")
    run_commands(folder, ADD_AN_OPERATOR, OPERATOR_DEFINITION)
    return folder


def test_from_nothing_to_an_engine_in_ten_commands_and_sixty_lines(guide_folder: Path) -> None:
    start, second = [block["text"] for block in blocks(ADD_AN_OPERATOR) if block["text"].startswith("graft new ")]
    assert len(start.splitlines()) <= 10
    assert b"BetaSwish" in (guide_folder / "beta_swish.engine").read_bytes()
    project = guide_folder / "my_ops"
    network = project / "beta_swish" / "beta_swish_network.py"
    written = [path for path in [*(project / "beta_swish").iterdir(), project / "my_ops.inc"] if path != network]
    assert {path.suffix for path in written} == {".hpp", ".cpp", ".cu", ".yaml", ".inc"}
    lines = [line.strip() for path in written for line in path.read_text().splitlines()]
    assert "--operator GatedSwish" in second
    lines.remove("GRAFT_OPERATOR(gated_swish, my_ops::GatedSwish)")
    assert 40 < len([line for line in lines if line and not line.startswith(("//", "# "))]) <= 60


def test_operators_from_outside_work_in_engines_and_on_the_cpu(guide_folder: Path) -> None:
    tmp_path = guide_folder
    for model in [
        model_of(tmp_path, "Snake", ["x"], ["y"], alpha=2.0),
        model_of(tmp_path, "SplitSign", ["x"], ["positive", "negative"]),
        model_of(tmp_path, "PixelUnshuffle", ["x"], ["y"], factor=2),
    ]:
        # With a plugin library, TensorRT gets the file as it is; with a library of operators, the file may be converted
        # first.
        ways = [(model, "--plugin-lib"), (model, "--operators")]
        for build in ("my_build", "my_cpu_build"):
            library = f"{build}/libmy_plugins.so"
            converted = tmp_path / f"{model.stem}.{build}.onnx"
            done = graft(tmp_path, "convert", model, "-o", converted, "--operators", library)
            assert done.returncode == 0, done.stderr
            done = graft(tmp_path, "verify", model, converted, "--operators", library, "--kernels", "own")
            assert done.returncode == 0, done.stderr
            ways.append((converted, "--operators"))
        for file, option in ways:
            done = graft(
                *(tmp_path, "build", file, "-o", "out.engine", "--target", "sm120", "--json"),
                *(option, "my_build/libmy_plugins.so"),
            )
            assert done.returncode == 0, f"{file} {option}: {done.stderr}"
            plugins = json.loads(done.stdout)["network"]["plugins"]
            assert [plugin["name"] for plugin in plugins] == [model.stem], f"{file} {option}"
