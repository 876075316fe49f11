# Fixtures of the engine driver's tests: they run the driver, compile the fixture plugins and find Graft's own.
from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "python"), str(HERE), str(ROOT / "tests" / "support")]

from graft.engine.flavors import flavor_named  # noqa: E402
from graft.engine.supervisor import worker_environment  # noqa: E402


@dataclass
class Driven:
    """The output and the exit code of a run of the driver."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    def last(self, kind: str) -> dict[str, Any]:
        assert self.events, self.stderr
        assert self.events[-1]["event"] == kind, self.events[-5:]
        return self.events[-1]

    @property
    def result(self) -> dict[str, Any]:
        assert self.code == 0, self.events[-5:]
        return self.last("result")

    @property
    def error(self) -> dict[str, Any]:
        error = self.last("error")
        assert error["exit_code"] == self.code
        assert error["message"]
        assert error["next_step"]
        return error

    def logged(self, severity: str | None = None) -> str:
        return "\n".join(e["message"] for e in self.events if e["event"] == "log" and severity in (None, e["severity"]))


def driver_environment(*first_on_path: pathlib.Path) -> dict[str, str]:
    """Returns the environment without LD_LIBRARY_PATH: the driver must find TensorRT's libraries by itself."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (*first_on_path, ROOT / "python")))
    return environment


def driven(code: int, out: str, err: str, expected: int | None) -> Driven:
    events = [json.loads(line) for line in out.splitlines()]
    assert expected in (None, code), events[-5:] or err
    return Driven(code, events, err)


def drive(
    *arguments: object, environment: dict[str, str] | None = None, code: int | None = None, **options: Any
) -> Driven:
    """Runs the driver, and checks its exit code, if `code` is given."""
    done = subprocess.run(
        [sys.executable, "-m", "graft.engine", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment or driver_environment(),
        check=False,
        **options,
    )
    return driven(done.returncode, done.stdout, done.stderr, code)


@functools.cache
def forks() -> subprocess.Popen[str]:
    """Starts forks.py with TensorRT-RTX, once for all tests of a run."""
    flavor = flavor_named("rtx")
    links = pathlib.Path(tempfile.mkdtemp())
    process = subprocess.Popen(
        [sys.executable, str(HERE / "forks.py"), flavor.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=driver_environment() | worker_environment(flavor, links),
    )

    def end() -> None:
        process.communicate()
        shutil.rmtree(links)

    atexit.register(end)
    return process


def drive_forked(*arguments: object, code: int | None = None) -> Driven:
    """Returns the result of `drive` for TensorRT-RTX, with one start of Python and TensorRT for all tests. Not for
    tests of how the driver starts and of what it does with its environment."""
    process = forks()
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(list(map(str, arguments))) + "\n")
    process.stdin.flush()
    return driven(*json.loads(process.stdout.readline()), code)


@dataclass
class Answer:
    """The output and the exit code of a run of the program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def graft(*arguments: object, python: str | pathlib.Path = sys.executable, code: int | None = None) -> Answer:
    """Runs the program `graft`, with this Python as the one that has TensorRT, and checks its exit code, if `code` is
    given; skips where it was not built."""
    program = pathlib.Path(os.environ.get("GRAFT_BIN", ROOT / "build/bin/graft"))
    if not program.is_file():
        pytest.skip(f"{program} was not built")
    done = subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=driver_environment() | {"GRAFT_PYTHON": str(python)},
        check=False,
    )
    assert code in (None, done.returncode), done.stderr or done.stdout
    return Answer(done.returncode, done.stdout, done.stderr)


def has_gone(process: int) -> bool:
    """Waits until a process has ended; a zombie counts as ended. ctest terminates a test that waits forever."""
    while True:
        try:
            if pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)


# The entry point of a plugin library, without any creator.
ENTRY_POINT = 'extern "C" void* getCreators(int&) { return nullptr; }\n'


def needs_module(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"the Python module {name} is not installed")


@pytest.fixture
def rtx() -> None:
    needs_module("tensorrt_rtx")


@pytest.fixture
def lean() -> None:
    needs_module("tensorrt_lean")


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Compiles one C++ file to a shared library against the TensorRT headers, without a CUDA SDK."""
    headers = ROOT / ".deps/venv"
    found = [*headers.glob("lib/python*/site-packages/kernel_lens/include/tensorrt")]
    if os.environ.get("TENSORRT_ROOT"):
        found.insert(0, pathlib.Path(os.environ["TENSORRT_ROOT"]) / "include")
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler or not found:
        pytest.skip("no C++ compiler or no TensorRT headers")
    folder = tmp_path_factory.mktemp("libraries")
    stub = folder / "stub"
    stub.mkdir()
    (stub / "cuda_runtime_api.h").write_text(
        "#pragma once\ntypedef struct CUstream_st* cudaStream_t;\ntypedef struct CUevent_st* cudaEvent_t;\n"
    )

    def compile_one(source: pathlib.Path, name: str, *flags: str) -> pathlib.Path:
        library = folder / name
        command = [compiler, "-std=c++17", "-shared", "-fPIC", "-Wno-deprecated-declarations"]
        command += ["-isystem", str(stub), "-isystem", str(found[0]), str(source), "-o", str(library), *flags]
        subprocess.run(command, check=True)
        return library

    return compile_one


@pytest.fixture(scope="session")
def fixture_library(compile_library: Callable[..., pathlib.Path]) -> pathlib.Path:
    return compile_library(HERE / "fixture_plugins.cpp", "libfixture_plugins.so")


@pytest.fixture(scope="session")
def graft_library() -> pathlib.Path:
    """Returns Graft's own plugin library; skips the test where it was not built (no CUDA compiler)."""
    library = pathlib.Path(os.environ.get("GRAFT_PLUGIN_LIBRARY", ROOT / "build/lib/libgraft_plugins.so"))
    if not library.is_file():
        pytest.skip(f"{library} was not built")
    return library


@pytest.fixture(scope="session")
def stand_ins(graft_library: pathlib.Path) -> pathlib.Path:
    """Returns the library next to Graft's with the names of other libraries' plugins."""
    return graft_library.with_name("libgraft_stand_ins.so")


@pytest.fixture(scope="session")
def onnx_names(graft_library: pathlib.Path) -> pathlib.Path:
    """Returns the library next to Graft's with the names of standard ONNX operators."""
    return graft_library.with_name("libgraft_onnx.so")
