"""Tests examples/use_from_code in the installed TensorRTs; tests of others are skipped with a message."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ["GRAFT_SOURCE_DIR"])
EXAMPLE = ROOT / "examples" / "use_from_code"
GRAFT = Path(os.environ["GRAFT_BIN"])
LIBRARY = Path(os.environ["GRAFT_PLUGIN_LIBRARY"])


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)


def needs(module: str) -> str:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"the Python module {module} is not installed")
    return module


EVERY_TENSORRT = pytest.mark.parametrize("module", ["tensorrt_rtx", "tensorrt_lean"])


@EVERY_TENSORRT
def test_the_example_registers_the_library(module: str, tmp_path: Path) -> None:
    done = run(sys.executable, EXAMPLE / "network.py", needs(module), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"libgraft_plugins.so in {module} " in done.stdout
    operators = re.findall(r"^GRAFT_OPERATOR\(\w+, [\w:]*?(\w+)\)", (ROOT / "src/ops/ops.inc").read_text(), re.M)
    assert sorted(done.stdout.split(":", 1)[1].split()) == sorted(operators)


def test_the_example_builds_an_engine_through_the_parser_of_rtx(tmp_path: Path) -> None:
    needs("tensorrt_rtx")
    # Without the folder of this build where the parser would find its library.
    command = ["env", "-u", "LD_LIBRARY_PATH", sys.executable, EXAMPLE / "network.py", "tensorrt_rtx", "network.engine"]
    done = run(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "through the ONNX parser" in done.stdout
    assert b"LeakyReLU" in (tmp_path / "network.engine").read_bytes()


@pytest.fixture(scope="module")
def includes() -> list[str]:
    headers = [*(ROOT / ".deps/venv").glob("lib/python*/site-packages/kernel_lens/include/tensorrt")]
    if os.environ.get("TENSORRT_ROOT"):
        headers.insert(0, Path(os.environ["TENSORRT_ROOT"]) / "include")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    cuda = [*Path(nvcc).resolve().parents[1].glob("include"), *(ROOT / ".deps/cuda").glob("include")]
    if not headers or not cuda:
        pytest.skip("no headers of TensorRT or of CUDA")
    return [f"-I{ROOT}/include", f"-I{ROOT}/src", "-isystem", str(headers[0]), "-isystem", str(cuda[0])]


@pytest.fixture(params=["g++", "clang++-14"])
def compiler(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]


def test_cpp_compiles_and_asks_for_nothing_of_graft(compiler: str, includes: list[str], tmp_path: Path) -> None:
    done = run(compiler, *FLAGS, *includes, "-c", EXAMPLE / "network.cpp", "-o", "network.o", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = run("nm", "-uC", "network.o", folder=tmp_path).stdout
    assert "createInferBuilder" in wanted
    assert not [line for line in wanted.splitlines() if "graft::" in line or "cuda" in line.lower()]


def test_cpp_adds_every_operator(compiler: str, includes: list[str], tmp_path: Path) -> None:
    operators = re.findall(r"^GRAFT_OPERATOR\((\w+), ([\w:]+)\)", (ROOT / "src/ops/ops.inc").read_text(), re.M)
    lines = ['#include "graft/tensorrt/add_layer.hpp"']
    lines += [f'#include "ops/{folder}/{folder}.hpp"' for folder, _ in operators]
    lines += ["void add(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor* x) {"]
    lines += [f"  graft::tensorrt::add_layer<{name}>(network, {{x}});" for _, name in operators]
    (tmp_path / "every.cpp").write_text("\n".join([*lines, "}", ""]))
    done = run(compiler, *FLAGS, *includes, "-c", "every.cpp", "-o", "every.o", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = run("nm", "-uC", "every.o", folder=tmp_path).stdout
    assert not [line for line in wanted.splitlines() if "graft::" in line or "cuda" in line.lower()]


@pytest.mark.parametrize("names", ["graft", "drop-in"])
def test_onnx_builds_with_the_library_alone(names: str, tmp_path: Path) -> None:
    needs("tensorrt_rtx")
    assert run(sys.executable, EXAMPLE / "write_onnx.py", names, "by_hand.onnx", folder=tmp_path).returncode == 0
    build = [GRAFT, "build", "by_hand.onnx", "-o", "by_hand.engine", "--target", "sm120"]
    assert run(*build, "--plugins", "never", folder=tmp_path).returncode == 1
    done = run(*build, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not found in plugin node" not in done.stderr, "attributes may be left to their defaults"
    engine = (tmp_path / "by_hand.engine").read_bytes()
    for name in (b"InstanceNorm", b"LeakyReLU"):  # an engine contains Graft's names for both files
        assert name in engine
    for name in (b"InstanceNormalization_TRT", b"LReLU_TRT"):
        assert name not in engine
