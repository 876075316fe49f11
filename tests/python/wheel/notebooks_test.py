"""Tests the notebooks of examples/notebooks in the installed wheel: every cell runs, and its last value can be
displayed."""

import ast
import json
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
# Displays the value of a cell's last line like a notebook.
SHOW = "_shown = {value}\ngetattr(_shown, '_repr_html_', _shown.__repr__)()"


def script_of(notebook: pathlib.Path) -> str:
    lines = []
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"] and cell["execution_count"] is None, "a notebook is kept without what it showed"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body[-1:] = ast.parse(SHOW.format(value=ast.unparse(last.value))).body
        lines.append(ast.unparse(tree))
    return "\n".join(lines)


def test_there_are_five() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(ROOT / "examples" / "digits", tmp_path / "digits")
    (tmp_path / "notebooks").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script_of(notebook)],
        cwd=tmp_path / "notebooks",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
