"""What the wheel has for C++: a project of `graft new` becomes an engine by the commands that it prints, and a program is compiled."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import graft
import onnx
import pytest
from conftest import DIGITS

# As in an environment that was activated.
ENVIRONMENT = os.environ | {
    "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    "CCACHE_BASEDIR": sys.prefix,
}
NVCC = os.environ["GRAFT_CUDA_COMPILER"]


def run(folder: pathlib.Path, command: str) -> str:
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_from_nothing_to_an_engine_by_the_commands_that_are_printed(tmp_path: pathlib.Path) -> None:
    told = json.loads(run(tmp_path, "graft new my_ops --json"))
    assert 1 + len(told["next"]) <= 10, "commands"
    definition = (tmp_path / "my_ops" / "beta_swish" / "beta_swish.hpp").read_text()
    assert len(definition.splitlines()) <= 60
    configure, *others = told["next"]
    assert f"-DCMAKE_PREFIX_PATH={graft.cmake_prefix()}" in configure
    run(tmp_path, f"{configure} -DCMAKE_CUDA_COMPILER={NVCC} -DGRAFT_CUDA_ARCHITECTURES=89-real")
    printed = [run(tmp_path, command) for command in others]
    tests = next(text for text in printed if "tests passed" in text)
    assert "100% tests passed, 0 tests failed out of 2" in tests
    nodes = onnx.load(tmp_path / "converted.onnx").graph.node
    assert "BetaSwish" in {node.op_type for node in nodes}
    assert (tmp_path / "network.engine").stat().st_size > 1000


def test_a_program_calls_the_library(tmp_path: pathlib.Path) -> None:
    """The example of the guide, as it comes with the wheel's documents."""
    shutil.copytree(pathlib.Path(sys.prefix) / "share" / "doc" / "graft" / "examples" / "toolkit", tmp_path / "program")
    run(tmp_path, f"cmake -S program -B build -DCMAKE_PREFIX_PATH={graft.cmake_prefix()} && cmake --build build")
    told = run(tmp_path, f"build/to_engine {DIGITS / 'digits.pb'} {DIGITS / 'digits_test.npz'} digits.engine")
    assert re.search(r"\d+ rewrites, the same", told), told
    assert (tmp_path / "digits.engine").stat().st_size > 10_000


@pytest.mark.parametrize("folder", ["docs", "examples", "."])
def test_links_of_the_documents_lead_somewhere(folder: str) -> None:
    documents = pathlib.Path(sys.prefix) / "share" / "doc" / "graft"
    pages = [*(documents / folder).glob("*.md" if folder == "." else "**/*.md")]
    assert pages
    for page in pages:
        # A file's name has a dot, a folder's path a slash; a lambda of C++ in a code block has neither.
        for target in re.findall(r"\[[^]\n]*\]\(([^)#\s]*[./][^)#\s]*)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.relative_to(documents)}: {target}"
