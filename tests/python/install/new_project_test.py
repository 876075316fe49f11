"""Projects of `graft new` pass their own tests with an installed Graft, and these tests detect faults."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import ENVIRONMENT
from onnx import TensorProto, helper, numpy_helper

SOURCE = Path(__file__).with_name("own_operators.cpp")

# Folder of the operator, by the kind of the template.
KINDS = {"elementwise": "beta_swish", "reduction": "rms_norm", "two_inputs": "gated_tanh", "data_sizes": "select_rows"}


def run(prefix: Path, folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Runs a command like a user who has the installation on PATH, which is sufficient for CMake."""
    environment = ENVIRONMENT | {
        "GRAFT_PYTHON": os.environ["GRAFT_PYTHON"],
        "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}",
    }
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def passes(prefix: Path, folder: Path, *command: object) -> str:
    done = run(prefix, folder, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def network_of(project: Path) -> Path:
    """Returns the network file of a project with the operator of the template."""
    folder = KINDS[project.name.removeprefix("my_")]
    return project / folder / f"{folder}_network.py"


def test_an_installation_in_a_folder_of_that_name_is_no_wheel(prefix: Path, tmp_path: Path) -> None:
    """A wheel's installation lies equally deep in an environment, whose `bin` has a `graft` too."""
    installation = tmp_path / "lib" / "python3" / "site-packages" / "graft"
    shutil.copytree(prefix, installation, symlinks=True, copy_function=os.link)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "graft").write_text("#!/bin/sh\n")
    program = installation / "bin" / "graft"
    done = subprocess.run(
        [program, "new", "my_ops", "--json"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    commands = json.loads(done.stdout)["next"]
    assert commands[0].endswith(f" -DCMAKE_PREFIX_PATH={installation}")
    assert commands[4].startswith(f"{program} convert ")


@pytest.fixture(scope="module", params=KINDS)
def project(request: pytest.FixtureRequest, prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a project without CUDA; its folder has the name of its kind."""
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
    assert "Ran 8 tests" in told


@pytest.mark.parametrize("project", ["reduction"], indirect=True)
def test_an_application_loads_it(prefix: Path, project: Path) -> None:
    """An application that uses only the installed package loads the library as include/graft/toolkit/operators.hpp
    describes."""
    folder = project.parent / "application"
    folder.mkdir()
    passes(prefix, folder, os.environ["GRAFT_PYTHON"], network_of(project), "network.onnx")
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
    assert (
        told[7]
        == f"refused: 1 library of operators {other}: operator LeakyReLU: an operator of Graft already has this name"
    )


@pytest.mark.parametrize("project", ["reduction"], indirect=True)
def test_a_network_of_tensorrts_api_takes_it(prefix: Path, project: Path) -> None:
    """graft/tensorrt/add_layer.hpp works with an operator of a library: only TensorRT's own interface remains to be
    linked."""
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
    """Applies a change and returns the output of the project's tests."""
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
    # The failure is in `graft convert`, not in the kernels, which are correct.
    assert "warning: fuse_library_operators: the replacement of " in told
    assert " was not applied: " in told
    assert failures(told) == {"test_convert_finds_the_operator"}
    assert re.search(rf"my_{kind}_cases \.+ +Passed", told), told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_pattern_that_matches_nothing(prefix: Path, project: Path) -> None:
    fusion = project / "gated_tanh" / "gated_tanh_fusion.yaml"
    told = seen(prefix, project, fusion, "Tanh(x)", "Sin(x)")
    assert failures(told) == {"test_convert_finds_the_operator"}
    assert "makes Tanh, Mul, Sigmoid, Mul, Neg of gated_tanh/gated_tanh_network.py, not GatedTanh, Neg:" in told
    assert re.search(r"gated_tanh/gated_tanh_fusion\.yaml:2:3 matches 2 of 4 nodes: .*the pattern needs Sin", told), (
        told
    )
    assert "skipped=2" in told, "what is tested of a converted network says nothing where the operator is not in it"


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_reference_kernel(prefix: Path, project: Path) -> None:
    kernel = project / "gated_tanh" / "gated_tanh_cpu.cpp"
    told = seen(prefix, project, kernel, "std::tanh", "std::sin")
    assert re.search(
        r"the CPU kernel, gated_tanh/gated_tanh_cpu\.cpp, differs from `expected` in gated_tanh/gated_tanh_network\.py at \d+ of 1600 "
        r"elements, first y\[0, 0, \d\]: expected -?0\.\d+, got -?0\.\d+",
        told,
    ), told
    # The proof finds that the kernel differs from the pattern.
    assert "(operators' own kernels)" in told
    assert failures(told) == {
        "test_kernel_computes_it",
        "test_function_computes_what_the_kernel_computes",
        "test_convert_finds_the_operator",
    }


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_function(prefix: Path, project: Path) -> None:
    definition = project / "gated_tanh" / "gated_tanh.hpp"
    told = seen(prefix, project, definition, "Tanh(x32)", "Sin(x32)")
    assert "`function` in gated_tanh/gated_tanh.hpp differs from `expected`" in told
    assert failures(told) >= {"test_function_computes_it", "test_convert_finds_the_operator"}
    assert "test_kernel_computes_it" not in failures(told)


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_a_wrong_network(prefix: Path, project: Path) -> None:
    network = network_of(project)
    told = seen(prefix, project, network, "-np.tanh(x)", "-np.sin(x)")
    assert failures(told) == {"test_kernel_computes_it", "test_function_computes_it"}


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_cases_see_what_they_lack(prefix: Path, project: Path) -> None:
    cases = project / "gated_tanh" / "gated_tanh_cases.hpp"
    assert "there is no case with an input of bf16" in seen(prefix, project, cases, ", graft::DType::bf16}", "}")
    told = seen(prefix, project, cases, "allowed is the shape of `x`", "another message")
    assert (
        "FAILED GatedTanh f32_2x3_shapes on the CPU: the operator refuses the case with: GatedTanh: `gate` is 3x2"
        in told
    )


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_tests_see_an_overflow(prefix: Path, project: Path) -> None:
    """The overflow is in the reference kernel; a kernel with the same fault would agree with it."""
    kernel = project / "gated_tanh" / "gated_tanh_cpu.cpp"
    e = "std::exp(2 * graft::ops::load(x[i], 1))"
    told = seen(prefix, project, kernel, "std::tanh(graft::ops::load(x[i], 1))", f"({e} - 1) / ({e} + 1)")
    assert (
        "FAILED GatedTanh f32_2x3x5x7_huge on the CPU: element 0 of 2x3x5x7: the reference kernel computes NaN from finite"
        in told
    ), told
    # The proof of the rewrite finds the overflow too.
    assert failures(told) == {"test_kernel_overflows_where_the_function_does", "test_convert_finds_the_operator"}
    assert "by the CPU kernel, gated_tanh/gated_tanh_cpu.cpp, and " in told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_cases_name_the_one_that_ends_them(prefix: Path, project: Path) -> None:
    kernel = project / "gated_tanh" / "gated_tanh_cpu.cpp"
    told = seen(
        prefix, project, kernel, "const double share = ", "if (i == 256) std::abort();\n        const double share = "
    )
    assert re.search(r"FAILED GatedTanh f32_257 on the CPU: the program crashed while the kernel ran", told), told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_its_cases_name_their_file(prefix: Path, project: Path) -> None:
    cases = project / "gated_tanh" / "gated_tanh_cases.hpp"
    told = seen(prefix, project, cases, '{{"steepness", 1.5F}}', '{{"shrap", 1.5}}')
    assert "FAILED: gated_tanh/gated_tanh_cases.hpp: GatedTanh has no attribute `shrap`" in told, told


@pytest.fixture
def with_second(prefix: Path, project: Path) -> Iterator[Path]:
    """Adds an elementwise operator to the project."""
    operators = (project / f"{project.name}.inc").read_text()
    passes(prefix, project.parent, "graft", "new", project.name, "--operator", "SecondOne")
    yield project
    (project / f"{project.name}.inc").write_text(operators)
    shutil.rmtree(project / "second_one")


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_second_operator_is_tested_as_the_first(prefix: Path, with_second: Path) -> None:
    passes(prefix, with_second, "cmake", "--build", "build")
    told = passes(prefix, with_second, "sh", "-c", "ctest --test-dir build --verbose 2>&1")
    assert "100% tests passed, 0 tests failed out of 3" in told
    assert "Ran 15 tests" in told
    folder = with_second / "second_one"
    wrong = seen(prefix, with_second, folder / "second_one.hpp", "Sigmoid(steep)", "Tanh(steep)")
    assert (
        "`function` in second_one/second_one.hpp differs from `expected` in second_one/second_one_network.py" in wrong
    )
    assert "test_function_computes_it (__main__.SecondOne" in wrong and "(__main__.GatedTanh" not in wrong
    wrong = seen(prefix, with_second, folder / "second_one_fusion.yaml", 'beta: "@beta"', 'beta: "@beta * 2"')
    assert "FAIL: test_convert_finds_the_operator (__main__.SecondOne" in wrong and "(__main__.GatedTanh" not in wrong

    # Without a network of its own, which ctest reports, and with the network of another operator.
    network = folder / "second_one_network.py"
    network.unlink()
    told = passes(prefix, with_second, "sh", "-c", "ctest --test-dir build --verbose 2>&1")
    assert "my_two_inputs_commands tests neither expected results nor a fusion of SecondOne: there is no " in told
    assert "Ran 9 tests" in told  # the function of SecondOne is compared with its kernel
    network.write_text((with_second / "gated_tanh" / "gated_tanh_network.py").read_text())
    done = run(prefix, with_second, "ctest", "--test-dir", "build", "--output-on-failure")
    assert done.returncode != 0
    assert (
        "second_one/second_one_network.py and gated_tanh/gated_tanh_network.py have a network of the same"
        in done.stdout
    )
    network.write_text(network.read_text().replace("GatedTanh", "NoneOfIts"))
    done = run(prefix, with_second, "ctest", "--test-dir", "build", "--output-on-failure")
    assert (
        "second_one/second_one_network.py has a node NoneOfIts, which is no operator of my_two_inputs.inc"
        in done.stdout
    )


@pytest.fixture
def with_blend(prefix: Path, project: Path) -> Iterator[Path]:
    """Adds the operator of a node of an unknown domain to the project, next to blend.onnx."""
    operators = (project / f"{project.name}.inc").read_text()
    node = helper.make_node(
        "Blend",
        ["left", "right"],
        ["y"],
        name="blend",
        domain="acme",
        alpha=0.75,
        steps=2,
        scales=[1, 3],
        mode="linear",
    )
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("left", "right", "y")]
    graph = helper.make_graph([node], "network", ports[:2], ports[2:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, str(project.parent / "blend.onnx"))
    passes(prefix, project.parent, "graft", "new", project.name, "--from", "blend.onnx", "--node", "blend")
    yield project
    (project / f"{project.name}.inc").write_text(operators)
    shutil.rmtree(project / "blend")


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_an_operator_of_a_node_is_compiled_and_waits_for_its_kernel(prefix: Path, with_blend: Path) -> None:
    passes(prefix, with_blend, "cmake", "--build", "build")
    done = run(prefix, with_blend, "ctest", "--test-dir", "build", "--output-on-failure")
    assert done.returncode != 0
    assert "Blend: its reference kernel is not written yet: blend/blend_cpu.cpp" in done.stdout
    assert "CPU: " in done.stdout and "no case" not in done.stdout

    kernel = with_blend / "blend" / "blend_cpu.cpp"
    text = kernel.read_text()
    stub = re.search(r"    return graft::unsupported\(\n?.*;\n", text)
    assert stub, text
    written = """    if (op.mode != BlendMode::linear || op.steps != 2 || op.scales != std::vector<std::int64_t>{1, 3}) {
      return graft::unsupported("other attributes");
    }
    for (std::int64_t i = 0; i < problem.inputs[0].extents.element_count(); ++i) {
      y[i] = graft::ops::store<Element>(
          op.alpha * graft::ops::load(left[i], 1) + (1 - op.alpha) * graft::ops::load(right[i], 1), 1);
    }
    return {};
"""
    kernel.write_text(text.replace(stub[0], written))
    passes(prefix, with_blend, "cmake", "--build", "build")
    told = passes(prefix, with_blend, "sh", "-c", "ctest --test-dir build --verbose 2>&1")
    assert "my_two_inputs_commands compares no function of Blend: the definition has none" in told

    # The node of the domain acme is the library's operator.
    left, right = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.full((2, 3), 8, np.float32)
    np.savez(with_blend.parent / "in.npz", left=left, right=right)
    library = ("--operators", with_blend / "build" / f"lib{with_blend.name}.so")
    command = ("graft", "run", "blend.onnx", "-i", "in.npz", "-o", "out.npz", "--kernels", "own", *library)
    passes(prefix, with_blend.parent, *command)
    with np.load(with_blend.parent / "out.npz") as out:
        np.testing.assert_allclose(out["y"], 0.75 * left + 0.25 * right, rtol=1e-6)


@pytest.fixture
def with_wave(prefix: Path, project: Path) -> Iterator[Path]:
    """Adds the operator of an elementwise node of an unknown domain, whose output has no type in the model."""
    operators = (project / f"{project.name}.inc").read_text()
    nodes = [
        helper.make_node("Abs", ["x"], ["h"]),
        helper.make_node("Wave", ["h", "alpha"], ["s"], name="wave", domain="acme", epsilon=0.5),
        helper.make_node("Neg", ["s"], ["out"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "out")]
    alpha = numpy_helper.from_array(np.array([0.5, 1, 1.5, 2], np.float32), "alpha")
    graph = helper.make_graph(nodes, "network", ports[:1], ports[1:], [alpha])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(project.parent / "wave.onnx"))
    passes(prefix, project.parent, "graft", "new", project.name, "--from", "wave.onnx", "--node", "wave")
    yield project
    (project / f"{project.name}.inc").write_text(operators)
    shutil.rmtree(project / "wave")


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_formula_is_written_once_and_a_wrong_function_fails(prefix: Path, with_wave: Path) -> None:
    """The formula is in the definition alone; the function, written with Cos instead of Sin, disagrees with it."""
    definition = with_wave / "wave" / "wave.hpp"
    text = definition.read_text()
    assert "GRAFT_HOST_DEVICE T apply(T h, T alpha) const {" in text
    text = text.replace("has_formula = false", "has_formula = true")
    text = text.replace(
        "static_cast<void>(alpha);\n    return h;", "using std::sin;\n    return h + sin(alpha * h) + T(epsilon);"
    )
    wrong = """  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name, "h32 = Cast<to=f32>(h)\\nalpha32 = Cast<to=f32>(alpha)\\nangle = Mul(alpha32, h32)\\n"
                                 "wave = Cos(angle)\\nsum = Add(h32, wave)\\nepsilon = Constant<value_float=@epsilon>()\\n"
                                 "s32 = Add(sum, epsilon)\\ns = CastLike(s32, h)"};
  }
};

graft::Status run("""
    definition.write_text(text.replace("};\n\ngraft::Status run(", wrong))
    passes(prefix, with_wave, "cmake", "--build", "build")
    done = run(prefix, with_wave, "ctest", "--test-dir", "build", "--output-on-failure")
    assert done.returncode != 0 and "2 tests passed" not in done.stdout
    assert "`function` of Wave and its reference kernel compute different results" in done.stdout
    assert "my_two_inputs_commands tests neither expected results nor a fusion of Wave" in done.stdout  # not on stderr

    # The commands compare the function with the kernel too.
    library = ("--operators", with_wave / "build" / f"lib{with_wave.name}.so")
    convert = ("graft", "convert", "wave.onnx", "-o", "wave.graft.onnx", "--no-check", *library)
    assert run(prefix, with_wave.parent, *convert).returncode == 0
    found = run(prefix, with_wave.parent, "graft", "verify", "wave.onnx", "wave.graft.onnx", *library)
    assert found.returncode == 1 and "the function of Wave in" in found.stdout, found.stdout

    definition.write_text(definition.read_text().replace("Cos(angle)", "Sin(angle)"))
    passes(prefix, with_wave, "cmake", "--build", "build")
    passes(prefix, with_wave, "ctest", "--test-dir", "build", "--output-on-failure")
    found = run(prefix, with_wave.parent, "graft", "convert", "wave.onnx", "-o", "wave.graft.onnx", *library)
    assert f"provided that lib{with_wave.name}.so defines Wave correctly" in found.stdout, found.stdout


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "GRAFT_OPERTOR(second_one, my_two_inputs::SecondOne)",
            "my_two_inputs.inc:3: found: GRAFT_OPERTOR(second_one,",
        ),
        ("GRAFT_OPERATOR()", "my_two_inputs.inc:3: found: GRAFT_OPERATOR() A line for each operator is allowed"),
        ("GRAFT_OPERATOR(second_one)", "my_two_inputs.inc:3: found: GRAFT_OPERATOR(second_one)"),
        ("GRAFT_OPERATOR(sekond, my_two_inputs::SecondOne)", "there is no sekond/sekond.hpp beside the list"),
        ("GRAFT_OPERATOR(gated_tanh, my_two_inputs::SecondOne)", "the folder gated_tanh is listed twice"),
        ("int a[2]; [", "my_two_inputs.inc:3: found: int a[2]; ["),
        (
            "GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne);",
            "found: GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne);",
        ),
        ("# GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne)", "and comments as in C++: GRAFT_OPERATOR("),
        ("/* open", "my_two_inputs.inc:3: found: /* open"),
        ("/* left out:\n * GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne) **/", None),
        ("/* one */ GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne) // http://two /* three", None),
        ("", "Add the line GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne), or add it as a comment"),
        ("// left out: GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne)", None),
        ("  GRAFT_OPERATOR( second_one , my_two_inputs::SecondOne )  // with a comment [1]; and more", None),
    ],
)
def test_a_wrong_line_of_the_list_is_named(prefix: Path, with_second: Path, line: str, message: str | None) -> None:
    operators = with_second / f"{with_second.name}.inc"
    *first, _ = operators.read_text().splitlines()
    operators.write_text("\n".join([*first, line]))
    done = run(prefix, with_second, "cmake", "-S", ".", "-B", "build")
    told = " ".join(done.stderr.split())
    assert message in told if message else not told
    assert (done.returncode == 0) == (message is None or line == "")


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_an_operator_whose_line_is_a_comment_is_left_out(prefix: Path, with_second: Path) -> None:
    """The tests leave the operator out too, and report it; the list may begin with a byte order mark."""
    operators = with_second / f"{with_second.name}.inc"
    text = operators.read_text()
    line = "GRAFT_OPERATOR(second_one, my_two_inputs::SecondOne)"
    operators.write_text("\ufeff" + text.replace(line, f"/* later\n{line} */"))
    passes(prefix, with_second, "cmake", "--build", "build")
    told = passes(prefix, with_second, "sh", "-c", "ctest --test-dir build --verbose 2>&1")
    assert "my_two_inputs_commands tests nothing of second_one: its line in my_two_inputs.inc is a comment" in told
    assert "Ran 8 tests" in told
    # Without a line, the network belongs to no operator, which may be a mistake.
    operators.write_text(text.replace(line, ""))
    done = run(prefix, with_second, "cmake", "--build", "build")
    assert done.returncode == 0, done.stderr
    told = run(prefix, with_second, "ctest", "--test-dir", "build", "--output-on-failure").stdout
    assert failures(told) == {"test_every_network_is_of_an_operator_of_the_library"}
    assert "or its line in my_two_inputs.inc, as a comment to leave the operator out" in told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_list_without_operators_is_refused(prefix: Path, with_second: Path) -> None:
    (with_second / f"{with_second.name}.inc").write_text("// none yet\n\n")
    done = run(prefix, with_second, "cmake", "-S", ".", "-B", "build")
    assert done.returncode != 0
    assert "my_two_inputs.inc: it lists no operator Write a line for each: GRAFT_OPERATOR(" in " ".join(
        done.stderr.split()
    )


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_class_that_is_not_there_is_an_error_in_the_list(prefix: Path, with_second: Path) -> None:
    operators = with_second / f"{with_second.name}.inc"
    operators.write_text(operators.read_text().replace("::SecondOne", "::SecondOnce"))
    done = run(prefix, with_second, "cmake", "--build", "build")
    assert done.returncode != 0
    errors = re.findall(r"^.*error: .*$", done.stderr, re.M)
    assert errors, done.stderr
    for error in errors:  # one error for each source that is generated from the list
        assert re.search(r"my_two_inputs\.inc:3:\d+: error: .SecondOnce. is not a member of .my_two_inputs.", error)


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_tests_that_python_cannot_run_say_why(prefix: Path, project: Path, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {os.environ["GRAFT_PYTHON"]} -S "$@"\n')
    python.chmod(0o755)
    passes(prefix, project, "env", f"GRAFT_PYTHON={python}", "cmake", "-S", ".", "-B", "build")
    try:
        told = passes(prefix, project, "sh", "-c", "ctest --test-dir build 2>&1")
    finally:
        passes(prefix, project, "cmake", "-S", ".", "-B", "build")
    assert "my_two_inputs_commands (Skipped)" in told
    assert re.search(r"^my_two_inputs_commands will be skipped: .*No module named 'numpy'$", told, re.M), told
    assert "Activate the environment that has NumPy and onnx" in told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_configuration_that_finds_no_graft_says_what_to_do(project: Path, tmp_path: Path) -> None:
    """Graft is neither on PATH nor in the active Python."""
    command = ["cmake", "-S", str(project), "-B", str(tmp_path / "build")]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    told = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert "(ModuleNotFoundError: No module named 'graft') Activate the environment that has its wheel" in told
    assert "-DCMAKE_PREFIX_PATH=DIR" in told


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_ctest_says_that_nothing_is_built(prefix: Path, project: Path) -> None:
    """A failed build may leave any of the files."""
    for missing in ("libmy_two_inputs.so", "my_two_inputs_cases"):
        path = project / "build" / missing
        path.rename(path.with_suffix(".away"))
        try:
            done = run(prefix, project, "sh", "-c", "ctest --test-dir build --output-on-failure 2>&1")
        finally:
            path.with_suffix(".away").rename(path)
        assert done.returncode != 0
        assert (
            f"my_two_inputs is not built, or its build has failed, so that its tests fail\nBuild it: cmake --build {project}/build\n"
            in done.stdout
        )
        if missing.startswith("lib"):
            assert f"{path}: not there, as no build has succeeded: cmake --build {project}/build\n" in done.stdout
            assert "Traceback" not in done.stdout


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_the_script_of_the_tests_says_how_it_is_run(prefix: Path, project: Path) -> None:
    done = run(prefix, project.parent, os.environ["GRAFT_PYTHON"], project / "tests" / "test_operators.py")
    assert done.returncode == 1
    assert done.stderr == (
        "ctest runs these tests: ctest --test-dir my_two_inputs/build -R my_two_inputs_commands --output-on-failure\n"
    )


@pytest.mark.parametrize("project", ["two_inputs"], indirect=True)
def test_a_network_says_what_its_inputs_may_be(prefix: Path, project: Path) -> None:
    """The gate is an integer index here. The tests cannot draw its values at random, so the network has to declare
    them in RANGES."""
    network = network_of(project)
    text = network.read_text()
    x, y = '"x", "gate", "y"))', 'nodes = [*nodes, helper.make_node("Neg"'
    changed = text.replace(
        x, '"x", "gate", "y"))\n    gate = helper.make_tensor_value_info("index", TensorProto.INT64, SHAPES["index"])'
    )
    changed = changed.replace(
        y, f'nodes = [helper.make_node("Cast", ["index"], ["gate"], to=1), {y.removeprefix("nodes = [")}'
    )
    changed = changed.replace('"gate": [2', '"index": [2')
    # The expected values are correct for the indices 0 and 1 only.
    changed = changed.replace(
        "-np.tanh(x) / (1 + np.exp(-STEEPNESS * gate))",
        "-np.tanh(x) * np.where(gate == 0, 0.5, 1 / (1 + np.exp(-STEEPNESS)))",
    )
    assert changed.count("index") == 4 and "np.where" in changed
    network.write_text(changed)
    try:
        told = run(prefix, project, "ctest", "--test-dir", "build", "--output-on-failure").stdout
        assert "gated_tanh/gated_tanh_network.py: index is of type int64: write what it may be, as in RANGES" in told
        network.write_text(changed.replace("STEEPNESS = ", 'RANGES = {"index": (0, 1)}\nSTEEPNESS = '))
        passes(prefix, project, "ctest", "--test-dir", "build", "--output-on-failure")
        network.write_text(changed.replace("STEEPNESS = ", 'RANGES = {"index": (2, 3)}\nSTEEPNESS = '))
        told = run(prefix, project, "ctest", "--test-dir", "build", "--output-on-failure").stdout
        assert failures(told) == {"test_kernel_computes_it", "test_function_computes_it"}
    finally:
        network.write_text(text)
