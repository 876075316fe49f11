# graft doctor: installed and missing parts, and the commands that install them.
import os
import re
import sys
import tomllib

import pytest
from conftest import PLUGIN_LIBRARY, SOURCE


def finding(answer, name):
    return next(f for f in answer.json["findings"] if f["name"] == name)


def test_everything_is_found_where_it_is_installed(graft):
    import tensorrt_rtx

    answer = graft("doctor", "--json")
    assert finding(answer, "TensorRT-RTX")["found"]
    assert finding(answer, "TensorRT-RTX")["facts"]["version"] == tensorrt_rtx.__version__
    assert finding(answer, "CPU engine")["found"]
    assert finding(answer, "plugin library")["found"] == PLUGIN_LIBRARY.is_file()
    assert answer.code == (0 if PLUGIN_LIBRARY.is_file() else 3)


def test_an_engine_whose_process_does_not_start(graft):
    """The worker cannot start, for example because OpenVINO's wheel was removed from the environment."""
    answer = graft("doctor", env={"GRAFT_ENGINE_WORKER": "/bin/false"}, code=3)
    assert "it ended with exit code 1; nothing can be proven or quantized" in " ".join(answer.out.split())
    assert "pip install openvino" in answer.out


def test_a_python_without_tensorrt(graft):
    answer = graft("doctor", env={"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}, code=3)
    assert "pip install tensorrt-rtx-cu13" in answer.out
    assert "missing" in answer.out


def test_no_python_at_all(graft):
    answer = graft("doctor", "--json", env={"GRAFT_PYTHON": "/nowhere/python"}, code=3)
    assert not finding(answer, "Python")["found"]
    assert "/nowhere/python" in finding(answer, "Python")["text"]
    assert "apt-get install" in finding(answer, "Python")["remedy"]


def fake_program(folder, name, text):
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)


NVCC = "Cuda compilation tools, release {}, V1"


@pytest.mark.parametrize(
    ("cmake", "nvcc", "eigen", "last"),
    [
        ("3.31.2", "13.0", True, "Everything is installed to build operators of your own (`graft new`), with plugins."),
        ("3.25.0", "99.0", False, "cannot be built; to build them: apt-get install libeigen3-dev"),
        ("3.9.7", "12.8", True, "cannot be built; to build them: apt-get install cmake"),
        (None, "12.8", False, "cannot be built; to build them: apt-get install cmake; apt-get install libeigen3-dev"),
    ],
)
def test_it_says_whether_a_project_of_ones_own_can_be_built(graft, tmp_path, cmake, nvcc, eigen, last):
    """PATH has only the fake programs, and Eigen is found through PATH where /usr has none."""
    programs = tmp_path / "bin"
    fake_program(programs, "g++", "g++ (Debian 12.2.0-14) 12.2.0")
    fake_program(programs, "nvcc", NVCC.format(nvcc))
    fake_program(programs, "make", "GNU Make 4.3")
    if cmake:
        fake_program(programs, "cmake", f"cmake version {cmake}")
    (tmp_path / "share" / "eigen3" / "cmake").mkdir(parents=True)
    if eigen:
        (tmp_path / "share" / "eigen3" / "cmake" / "Eigen3Config.cmake").touch()
    answer = graft("doctor", "--json", env={"PATH": str(programs), "GRAFT_PYTHON": sys.executable, "CUDACXX": ""})
    assert finding(answer, "C++ compiler")["facts"]["version"] == "12.2.0"
    assert finding(answer, "nvcc")["facts"]["path"] == str(programs / "nvcc")
    assert finding(answer, "CMake")["found"] == (cmake in ("3.31.2", "3.25.0"))
    if cmake == "3.9.7":
        assert f"{programs / 'cmake'} is 3.9.7, at least 3.25 is needed" in finding(answer, "CMake")["text"]
    if eigen:
        assert finding(answer, "Eigen")["facts"]["path"] == str(tmp_path / "share" / "eigen3" / "cmake")
    elif finding(answer, "Eigen")["found"]:
        assert finding(answer, "Eigen")["facts"]["path"].startswith("/usr/")
        last = last.replace("; apt-get install libeigen3-dev", "")
        if "libeigen3-dev" in last:
            last = "Everything is installed to build operators of your own"
    text = graft("doctor", env={"PATH": str(programs), "GRAFT_PYTHON": sys.executable, "CUDACXX": ""}).out
    assert last in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("programs", "environment", "last"),
    [
        ({"g++": "g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)", "make": "GNU Make 4.3"}, {}, "apt-get install g++, or "),
        ({"g++": "g++ (GCC) 10.2.1", "clang++": "Debian clang version 14.0.6", "make": "GNU Make 4.3"}, {}, "g++, or "),
        ({"c++": "Debian clang version 11.0.1-2", "make": "GNU Make 4.3"}, {}, "apt-get install g++, or "),
        ({"g++": "g++ (GCC) 11.4.0", "make": "GNU Make 4.3"}, {}, ""),
        ({"g++": "g++ (GCC) 8.5.0", "new": "clang version 18.1.3 (1)", "make": "GNU Make 4.3"}, {"CXX": "new"}, ""),
        (
            {"g++": "g++ (GCC) 8.5.0", "new": "g++ (GCC) 12.2.0", "make": "GNU Make 4.3"},
            {"CXX": "launcher new -m64"},
            "",
        ),
        ({"g++": "g++ (GCC) 12.2.0"}, {}, "apt-get install make"),
        ({"g++": "g++ (GCC) 12.2.0", "ninja": "1.11.1"}, {}, "apt-get install make"),
        ({"g++": "g++ (GCC) 12.2.0", "make": "GNU Make 4.3"}, {"CMAKE_GENERATOR": "Ninja"}, "install ninja-build"),
        ({"g++": "g++ (GCC) 12.2.0", "ninja": "1.11.1"}, {"CMAKE_GENERATOR": "Ninja"}, ""),
        ({"g++": "g++ (GCC) 12.2.0", "ninja-build": "1.11.1"}, {"CMAKE_GENERATOR": "Ninja"}, ""),
    ],
)
def test_it_looks_at_what_cmake_takes(graft, tmp_path, programs, environment, last):
    """doctor checks the compiler that CMake takes first, which may be too old, and the program of the generator."""
    folder = tmp_path / "bin"
    for name, version in (programs | {"cmake": "cmake version 3.31.2"}).items():
        fake_program(folder, name, version)
    (tmp_path / "share" / "eigen3" / "cmake").mkdir(parents=True)
    (tmp_path / "share" / "eigen3" / "cmake" / "Eigen3Config.cmake").touch()
    bare = {"PATH": str(folder), "GRAFT_PYTHON": sys.executable, "CUDACXX": "", "CXX": "", "CMAKE_GENERATOR": ""}
    said = graft("doctor", env=bare | environment).out.splitlines()[-1]
    assert ("cannot be built; to build them: " in said) == bool(last), said
    assert last in said


def test_a_compiler_that_is_neither_is_named(graft, tmp_path):
    """The compiler exists, so "not found" would be wrong; it is untested with Graft's operators."""
    fake_program(tmp_path, "icpx", "Intel(R) oneAPI DPC++/C++ Compiler 2024.1.0 (2024.1.0.20240308)")
    found = finding(graft("doctor", "--json", env={"CXX": str(tmp_path / "icpx")}), "C++ compiler")
    assert not found["found"] and f"{tmp_path / 'icpx'} is neither g++ nor clang" in found["text"]
    found = finding(graft("doctor", "--json", env={"CXX": str(tmp_path / "none")}), "C++ compiler")
    assert found["text"].startswith("not found; ")


def test_an_nvcc_that_is_too_old_is_passed_over(graft, tmp_path):
    fake_program(tmp_path / "bin", "nvcc", NVCC.format("12.4"))
    fake_program(tmp_path / "newer", "nvcc", NVCC.format("12.10"))
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    found = finding(graft("doctor", "--json", env={**path, "CUDACXX": str(tmp_path / "newer" / "nvcc")}), "nvcc")
    assert (found["facts"]["path"], found["facts"]["version"]) == (str(tmp_path / "newer" / "nvcc"), "12.10")
    found = finding(graft("doctor", "--json", env={**path, "CUDACXX": ""}), "nvcc")
    assert found["facts"].get("version") != "12.4" or "12.4, at least 12.8 is needed" in found["text"]


def test_what_is_new_enough_is_what_the_builds_ask_for():
    text = (SOURCE / "python" / "graft" / "engine" / "compilers.py").read_text()
    with open(SOURCE / "deps.toml", "rb") as file:
        assert f'NVCC_MINIMUM = "{tomllib.load(file)["cuda"]["minimum"]}"' in text
    project = (SOURCE / "templates" / "operators" / "common" / "CMakeLists.txt").read_text()
    minimum = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", project)[1]
    assert f'CMAKE_MINIMUM = "{minimum}"' in text
