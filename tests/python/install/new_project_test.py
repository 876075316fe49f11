"""Projects of `graft new` pass their own tests with an installed Graft, and these see what is wrong."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ENVIRONMENT

SOURCE = Path(__file__).with_name("own_operators.cpp")

# Folder of the operator, by what it is like.
KINDS = {"elementwise": "beta_swish", "reduction": "rms_norm", "two_inputs": "gated_tanh", "data_sizes": "select_rows"}


def run(prefix: Path, folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """As a user does who has the installation on PATH, which is all that CMake finds it by."""
    environment = ENVIRONMENT | {
        "GRAFT_PYTHON": os.environ["GRAFT_PYTHON"],
        "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}",
        # The compiler's cache then knows the package's sources again in the next project.
        "CCACHE_BASEDIR": str(prefix.parents[1]),
    }
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def passes(prefix: Path, folder: Path, *command: object) -> str:
    done = run(prefix, folder, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=KINDS)
def project(request: pytest.FixtureRequest, prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without CUDA, built; its folder has the name of its kind."""
    folder = tmp_path_factory.mktemp("new")
    done = run(prefix, folder, "graft", "new", f"my_{request.param}", "--like", request.param)
    assert done.returncode == 0 and not done.stderr, done.stderr
    written = folder / f"my_{request.param}"
    passes(prefix, written, "cmake", "-S", ".", "-B", "build", "-DGRAFT_CUDA=OFF")
    passes(prefix, written, "cmake", "--build", "build")
    return written


def test_it_passes_its_own_tests(prefix: Path, project: Path) -> None:
    told = passes(prefix, project, "sh", "-c", "ctest --test-dir build --verbose 2>&1")
    assert "100% tests passed, 0 tests failed out of 3" in told
    assert re.search(rf"{project.name}_commands \.+ +Passed", told), "Python has no NumPy or onnx"
    tested = re.search(r"CPU: (\d+) cases, 0 failures", told)
    assert tested and int(tested[1]) > 30, told
    assert f"{project.name}_cases_gpu will be skipped: this build is without CUDA, so it has no CUDA kernels" in told
    assert f"{project.name}_cases_gpu (Skipped)" in told
    assert "Ran 5 tests" in told


@pytest.mark.parametrize("project", ["reduction"], indirect=True)
def test_an_application_loads_it(prefix: Path, project: Path) -> None:
    """What include/graft/toolkit/operators.hpp says, with the installed package alone."""
    folder = project.parent / "application"
    folder.mkdir()
    passes(prefix, folder, os.environ["GRAFT_PYTHON"], project / "tests" / "network.py", "network.onnx")
    (folder / "own_operators.cpp").write_text(SOURCE.read_text())
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(application LANGUAGES CXX)\n"
        "find_package(graft REQUIRED COMPONENTS toolkit)\n"
        "add_executable(own_operators own_operators.cpp)\n"
        "target_link_libraries(own_operators PRIVATE graft::toolkit)\n"
    )
    passes(prefix, folder, "cmake", "-S", ".", "-B", "build")
    passes(prefix, folder, "cmake", "--build", "build")
    library = project / "build" / "libmy_reduction.so"
    other = prefix / "lib" / "libgraft_plugins.so"
    told = passes(prefix, folder, "build/own_operators", library, "network.onnx", other).splitlines()
    assert told[:7] == [
        "rewrites before: 0",
        "loaded: RmsNorm",
        "loaded: RmsNorm",
        "rewrite: RmsNorm<epsilon=0.001>",
        "choice: RmsNorm",
        "verified: the same",
        "f16: 4 nodes",
    ]
    assert told[7] == f"refused: 1 library of operators {other}: operator LeakyReLU: an operator of Graft has that name"


@pytest.mark.parametrize("project", ["reduction"], indirect=True)
def test_a_network_of_tensorrts_api_takes_it(prefix: Path, project: Path) -> None:
    """graft/tensorrt/add_layer.hpp with an operator from outside: TensorRT's own interface is all that stays to be linked."""
    folder = project.parent / "network"
    folder.mkdir()
    (folder / "network.cpp").write_text(
        '#include "graft/tensorrt/add_layer.hpp"\n'
        '#include "rms_norm/rms_norm.hpp"\n'
        "nvinfer1::ITensor* add(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor* x) {\n"
        "  return graft::tensorrt::add_layer<my_reduction::RmsNorm>(network, {x}, {.epsilon = 1e-3F}).getOutput(0);\n"
        "}\n"
    )
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(network LANGUAGES CXX)\nfind_package(graft REQUIRED)\n"
        "add_library(network OBJECT network.cpp)\n"
        f'target_include_directories(network PRIVATE "{project}")\n'
        "target_link_libraries(network PRIVATE graft::definitions graft::tensorrt_headers)\n"
    )
    passes(prefix, folder, "cmake", "-S", ".", "-B", "build", "-DGRAFT_CUDA_ARCHITECTURES=89-real")
    passes(prefix, folder, "cmake", "--build", "build")
    wanted = passes(prefix, folder, "nm", "-uC", next(folder.rglob("network.cpp.o")))
    assert not [line for line in wanted.splitlines() if "graft::" in line or "my_reduction::" in line]


@pytest.mark.parametrize("project", ["reduction"], indirect=True)
def test_a_package_that_lacks_something_says_what(prefix: Path, project: Path) -> None:
    configure = ("cmake", "-S", ".", "-B", "other")
    done = run(prefix, project, *configure, "-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON")
    assert done.returncode != 0 and "apt-get install libeigen3-dev" in " ".join(done.stderr.split())


def seen(prefix: Path, project: Path, file: Path, old: str, new: str) -> str:
    """What the tests say of a change."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    try:
        passes(prefix, project, "cmake", "--build", "build")
        done = run(prefix, project, "ctest", "--test-dir", "build", "--output-on-failure")
        assert done.returncode != 0, done.stdout
        return done.stdout
    finally:
        file.write_text(text)


# What is tested of a converted network says nothing where the operator is not in it.
WITH_THE_OPERATOR = {"test_f16_stays_close"}


def failures(told: str) -> set[str]:
    return set(re.findall(r"^(?:FAIL|ERROR): (\w+)", told, re.M))


def test_its_tests_see_a_wrong_fusion(prefix: Path, project: Path) -> None:
    kind = project.name.removeprefix("my_")
    changes = {
        "elementwise": ('beta: "@beta"', 'beta: "@beta * 2"'),
        "reduction": ('epsilon: "@epsilon"', 'epsilon: "@epsilon * 1000"'),
        "two_inputs": ("[x, gate]", "[gate, x]"),
        "data_sizes": ('threshold: "@threshold"', 'threshold: "@threshold * 2"'),
    }
    fusion = project / KINDS[kind] / f"{KINDS[kind]}_fusion.yaml"
    told = seen(prefix, project, fusion, *changes[kind])
    assert "FAIL: test_convert_finds_the_operator" in told
    # What `graft convert` says of it, and nothing of the kernels, which are right.
    assert "warning: fuse_library_operators: not done at" in told
    assert failures(told) == {"test_convert_finds_the_operator", *WITH_THE_OPERATOR}
    assert re.search(rf"my_{kind}_cases \.+ +Passed", told), told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_pattern_that_matches_nothing(prefix: Path, project: Path) -> None:
    fusion = project / "gated_tanh" / "gated_tanh_fusion.yaml"
    told = seen(prefix, project, fusion, "Sigmoid(gate)", "Sigmoid(Neg(gate))")
    assert failures(told) == {"test_convert_finds_the_operator", *WITH_THE_OPERATOR}
    assert "makes Tanh, Sigmoid, Mul, Neg of tests/network.py, not GatedTanh, Neg:" in told
    assert re.search(r"gated_tanh/gated_tanh_fusion\.yaml:2:3 matches \d nodes: .*the pattern wants Neg", told), told
    assert told.count("AssertionError: nothing to test: `graft convert` finds no GatedTanh") == 1


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_reference_kernel(prefix: Path, project: Path) -> None:
    kernel = project / "gated_tanh" / "gated_tanh_cpu.cpp"
    told = seen(prefix, project, kernel, "std::tanh", "std::sin")
    assert re.search(
        r"the CPU kernel, gated_tanh/gated_tanh_cpu\.cpp, differs from `expected` in tests/network\.py at \d+ of 1600 "
        r"elements, first y\[0, 0, \d\]: expected -?0\.\d+, got -?0\.\d+",
        told,
    ), told
    # And the proof finds that it differs from what the pattern stands for.
    assert "(operators' own kernels)" in told
    assert failures(told) == {"test_kernel_computes_it", "test_convert_finds_the_operator", *WITH_THE_OPERATOR}


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_function(prefix: Path, project: Path) -> None:
    definition = project / "gated_tanh" / "gated_tanh.hpp"
    told = seen(prefix, project, definition, "Tanh(x)", "Sin(x)")
    assert "`function` in gated_tanh/gated_tanh.hpp differs from `expected`" in told
    assert failures(told) >= {"test_function_computes_it", "test_convert_finds_the_operator"}
    assert "test_kernel_computes_it" not in failures(told)


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_network(prefix: Path, project: Path) -> None:
    network = project / "tests" / "network.py"
    told = seen(prefix, project, network, "-np.tanh(x)", "-np.sin(x)")
    assert failures(told) == {"test_kernel_computes_it", "test_function_computes_it"}


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_cases_see_what_they_lack(prefix: Path, project: Path) -> None:
    cases = project / "gated_tanh" / "gated_tanh_cases.hpp"
    assert "no case of bf16" in seen(prefix, project, cases, ", graft::DType::bf16}", "}")
    told = seen(prefix, project, cases, "allowed is the shape of `x`", "another message")
    assert "FAILED GatedTanh f32_2x3_shapes on the CPU: refused with: GatedTanh: `gate` is 3x2" in told
