"""Tests the wheel's C++ package: the commands that `graft new` prints build the project and an engine, and a program
compiles."""

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

# The environment variables of an activated environment.
ENVIRONMENT = os.environ | {
    "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
}
NVCC = os.environ["GRAFT_CUDA_COMPILER"]
DOCUMENTS = pathlib.Path(sys.prefix) / "share" / "doc" / "graft"
# The command of the guide.
PREFIX = """CMAKE_PREFIX_PATH="$(python3 -c 'import graft; print(graft.cmake_prefix())')" && export CMAKE_PREFIX_PATH"""


def run(folder: pathlib.Path, command: str, code: int = 0) -> str:
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_from_nothing_to_an_engine_by_the_commands_that_are_printed(tmp_path: pathlib.Path) -> None:
    told = json.loads(run(tmp_path, "graft new my_ops --json"))
    assert 1 + len(told["next"]) <= 10, "commands"
    definition = (tmp_path / "my_ops" / "beta_swish" / "beta_swish.hpp").read_text()
    assert len(definition.splitlines()) <= 60
    configure, *others = told["next"]
    assert configure == "cmake -S my_ops -B my_ops/build", "the environment is active"
    run(tmp_path, f"{configure} -DCMAKE_CUDA_COMPILER={NVCC}")
    printed = [run(tmp_path, f"{command} 2>&1") for command in others]
    assert "Checking the functions and fusions of my_ops" in printed[0]
    tests = next(text for text in printed if "tests passed" in text)
    assert "100% tests passed, 0 tests failed out of 3" in tests
    # The output names the tests that are skipped, and how to run them.
    program = tmp_path / "my_ops" / "build" / "my_ops_cases"
    if "my_ops_cases_gpu (Skipped)" in tests:
        assert "my_ops_cases_gpu will be skipped: " in tests
        assert f"copy {program} to a machine with an NVIDIA GPU" in tests
    else:
        assert re.search(r"my_ops_cases_gpu \.+ +Passed", tests), tests
    needed = {line.split()[0].split("/")[-1] for line in run(tmp_path, f"ldd {program}").splitlines()}
    assert {name for name in needed if not name.startswith(("linux-vdso", "ld-linux", "libc.so", "libm.so"))} == set()
    assert "graft canary beta_swish.graft.onnx" in printed[-1], "no kernel has run, which the engine does not show"
    nodes = onnx.load(tmp_path / "beta_swish.graft.onnx").graph.node
    assert "BetaSwish" in {node.op_type for node in nodes}
    assert (tmp_path / "beta_swish.engine").stat().st_size > 1000


def test_a_pattern_that_cannot_be_read_ends_the_build(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "graft new my_ops")
    fusion = tmp_path / "my_ops" / "beta_swish" / "beta_swish_fusion.yaml"
    fusion.write_text("- match: y = Mul(x, HardSigmoid<alpha=0.2>(x))\n  with: BetaSwish\n")
    # The active Python locates the package.
    build = "cmake -S my_ops -B build -DGRAFT_CUDA=OFF && cmake --build build 2>&1"
    told = run(tmp_path, build, code=2)
    assert "beta_swish/beta_swish_fusion.yaml:1:10: the pattern, line 1, column 23: " in told
    assert "write `HardSigmoid(x){alpha=0.2}`" in told
    run(tmp_path, build.replace("=OFF", "=OFF -DGRAFT_CHECK_LIBRARIES=OFF"))


def test_the_commands_of_the_guide_find_the_wheel(tmp_path: pathlib.Path) -> None:
    """Runs the guide's commands for a library of operators without CUDA, which takes seconds; tests/python/guides
    runs all commands."""
    guide = (DOCUMENTS / "docs" / "guide" / "operator_definition.md").read_text()
    blocks = [block for block in re.findall(r"^```sh\n(.*?)^```$", guide, re.M | re.S) if "my_cpu_build" in block]
    shutil.copytree(DOCUMENTS / "examples", tmp_path / "examples")
    blocks = [block for block in blocks if "-DGRAFT_CUDA=OFF" in block or block.startswith("graft ops")]
    assert len(blocks) == 2 and f"{PREFIX}\n" in guide
    assert "factor" in run(tmp_path, "\n".join([PREFIX, *blocks]))


# Examples that need no checkout and whose packages are installed.
@pytest.mark.parametrize(
    "name",
    ["from_caffe", "from_tensorflow", "from_pytorch", "python", "use_from_python", "cut_a_network", "sizes_from_data"],
)
def test_the_commands_of_a_guide_run_as_they_are_written(name: str, tmp_path: pathlib.Path) -> None:
    guide = (DOCUMENTS / "docs" / "guide" / f"{name}.md").read_text()
    blocks = re.findall(r"(<!-- not run: [^\n]*-->\n+)?^```sh\n(.*?)^```$", guide, re.M | re.S)
    shutil.copytree(DOCUMENTS / "examples", tmp_path / "examples")
    run(tmp_path, "".join(block for mark, block in blocks if not mark))


def test_a_program_calls_the_library(tmp_path: pathlib.Path) -> None:
    """Builds the guide's example from the wheel's documents."""
    shutil.copytree(DOCUMENTS / "examples" / "toolkit", tmp_path / "program")
    run(tmp_path, f"cmake -S program -B build -DCMAKE_PREFIX_PATH={graft.cmake_prefix()} && cmake --build build")
    told = run(tmp_path, f"build/to_engine {DIGITS / 'digits.pb'} {DIGITS / 'digits_test.npz'} digits.engine")
    assert re.search(r"\d+ rewrites, the same", told), told
    assert (tmp_path / "digits.engine").stat().st_size > 10_000


@pytest.mark.parametrize("folder", ["docs", "examples", "."])
def test_links_of_the_documents_lead_somewhere(folder: str) -> None:
    pages = [*(DOCUMENTS / folder).glob("*.md" if folder == "." else "**/*.md")]
    assert pages
    for page in pages:
        # A file's name has a dot and a folder's path a slash; a C++ lambda in a code block has neither.
        for target in re.findall(r"\[[^]\n]*\]\(([^)#\s]*[./][^)#\s]*)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.relative_to(DOCUMENTS)}: {target}"


def test_the_readme_is_about_what_is_installed() -> None:
    text = (DOCUMENTS / "README.md").read_text()
    assert text.rstrip().endswith("License: Apache-2.0.")
    assert "## Where to go" in text
    for of_the_checkout in ("`src/", "`tests`", "to change Graft"):
        assert of_the_checkout not in text


def test_the_tests_of_a_project_run_in_the_environment_of_the_wheel(tmp_path: pathlib.Path) -> None:
    """The tests also run where the environment is not active and `python3` has no NumPy: the printed commands name
    the package and the Python."""
    bare = ENVIRONMENT | {"PATH": "/usr/bin:/bin"}

    def run_bare(command: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", command], cwd=tmp_path, env=bare, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    programs = pathlib.Path(sys.executable).parent
    configure, build, test, write, convert, *_ = json.loads(run_bare(f"{programs}/graft new my_ops --json"))["next"]
    assert f"-DCMAKE_PREFIX_PATH={graft.cmake_prefix()}" in configure
    run_bare(f"{configure} -DGRAFT_CUDA=OFF")
    run_bare(build)
    told = run_bare(test)
    assert re.search(r"my_ops_commands \.+ +Passed", told), told
    run_bare(write)
    assert "BetaSwish" in run_bare(convert)
