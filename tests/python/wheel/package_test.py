"""Tests the installed package: its place, its imports, its command, its types."""

import ast
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from urllib.parse import unquote

import graft
import pytest
from conftest import DIGITS, ROOT
from symbol_versions import newer_imports

PACKAGE = pathlib.Path(graft.__file__).parent
GRAFT = pathlib.Path(sys.executable).parent / "graft"
PINS = tomllib.loads((ROOT / "deps.toml").read_text())["pypi"]


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


def test_it_is_the_installed_one() -> None:
    assert PACKAGE.is_relative_to(sys.prefix)
    assert importlib.metadata.version("graft-tensorrt") == graft.__version__
    assert not any(pathlib.Path(folder).resolve().is_relative_to(ROOT / "python") for folder in sys.path if folder)


def test_importing_it_brings_little() -> None:
    code = "import sys, graft; print([name for name in sys.modules if name.split('.')[0] in sys.argv[1:]])"
    heavy = ["numpy", "onnx", "openvino", "torch", "tensorrt", "tensorrt_rtx", "nanobind_backend"]
    assert run(sys.executable, "-c", code, *heavy).stdout.strip() == "[]"


def test_all_names_are_there_and_documented() -> None:
    for name in set(graft.__all__) - {"__version__"}:
        assert getattr(graft, name).__doc__, name
        assert name in dir(graft)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = graft.nothing


def test_stubs_and_typing_marker_lie_beside_the_extension() -> None:
    assert (PACKAGE / "py.typed").is_file()
    stub = ast.parse((PACKAGE / "_toolkit.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    for name in ("Model", "ConvertResult", "InspectResult", "VerifyResult", "QuantizeResult", "BuildResult"):
        assert ast.get_docstring(classes[name]), name
        methods = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        assert name == "Model" or {"to_json", "_repr_html_", "__repr__"} <= methods


def test_what_pip_knows() -> None:
    done = run(sys.executable, "-m", "pip", "show", "-f", "graft-tensorrt")
    assert "graft/bin/graft" in done.stdout and "graft/lib/libgraft_plugins.so" in done.stdout
    tags = importlib.metadata.distribution("graft-tensorrt").read_text("WHEEL")
    assert tags is not None and "Tag: cp310-abi3-manylinux_2_35_x86_64" in tags
    metadata = importlib.metadata.metadata("graft-tensorrt")
    assert {"cuda", "rtx", "torch", "notebook"} <= set(metadata.get_all("Provides-Extra") or [])
    assert metadata["Author"] == "The Graft authors" and metadata["Keywords"]
    assert {"Programming Language :: C++", "Environment :: GPU :: NVIDIA CUDA"} <= set(
        metadata.get_all("Classifier") or []
    )


def test_the_readme_of_the_index_has_no_relative_link() -> None:
    """The page of an index of packages has no other pages of Graft. It names pages of the wheel by their path."""
    text = importlib.metadata.metadata("graft-tensorrt").get_payload()
    assert text.startswith("# Graft") and "## Install it" in text
    assert re.findall(r"\]\((?!https?://).*?\)", text) == []
    assert "make demo" not in text and "## The code" not in text
    pages = set(re.findall(r"`((?:docs|examples)/[a-z0-9_/]+\.md)`", text, re.I))
    folder = pathlib.Path(sys.prefix) / "share" / "doc" / "graft"
    assert len(pages) > 20 and [page for page in pages if not (folder / page).is_file()] == []


def test_the_bill_of_materials_has_the_code_of_others() -> None:
    files = {path.name: path for path in importlib.metadata.files("graft-tensorrt") or []}
    bill = json.loads(files["graft.cdx.json"].read_text())
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert bill["metadata"]["component"]["name"] == "graft-tensorrt"
    assert bill["metadata"]["component"]["version"] == graft.__version__
    components = {component["name"]: component for component in bill["components"]}
    assert all(component["version"] in unquote(component["purl"]) for component in components.values())
    assert bill["dependencies"][0]["dependsOn"] == [component["bom-ref"] for component in bill["components"]]
    # Headers that have a license in the wheel, and the version of each pinned wheel.
    assert {path.stem for path in (PACKAGE / "licenses").glob("*-dev.txt")} <= set(components)
    pins = dict(pin.split("==") for pin in PINS["build"] + PINS["headers"] + PINS["cuda"])
    for name in set(components) & set(pins):
        assert components[name]["version"] == pins[name]
    # Each static library from outside that is on the command that links a library or a program of the wheel.
    owners = {
        "libcudart_static.a": {"cuda-toolkit", "nvidia-cuda-runtime"},
        "-static-libstdc++": {"libstdc++-12-dev"},
        "-static-libgcc": {"libgcc-12-dev"},
    }
    empty = "librt.a"  # the functions are in libc
    for linked in linked_statically() - {empty}:
        assert owners[linked] & set(components), linked


def linked_statically() -> set[str]:
    """Returns the archives outside the build, and the options that link a library of the compiler."""
    binaries = [*PACKAGE.glob("*.so"), *PACKAGE.glob("lib/*.so*"), *PACKAGE.glob("bin/*"), *PACKAGE.glob("libexec/*")]
    linked: set[str] = set()
    for command in (ROOT / "build" / "release" / "build.ninja").read_text().split("\nbuild "):
        output = command.partition(":")[0].split(" ")[0]
        if pathlib.Path(output).name in {path.name for path in binaries}:
            linked |= {pathlib.Path(file).name for file in re.findall(r" (/\S+\.a)\b", command)}
            linked |= set(re.findall(r"-static-lib\S+", command))
    return linked


def test_versions_are_those_of_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert f"project(graft VERSION {project['project']['version']} " in (ROOT / "CMakeLists.txt").read_text()
    assert set(project["build-system"]["requires"]) <= set(PINS["wheel"])
    for dependency in project["project"]["dependencies"]:  # libgraft.so is linked to one version of OpenVINO
        if "==" in dependency:
            assert dependency in PINS["build"]


def test_the_command_is_the_program(tmp_path: pathlib.Path) -> None:
    done = run(GRAFT, "convert", DIGITS / "digits.onnx", "-o", tmp_path / "out.onnx", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes_after"] > 0
    done = run(GRAFT, "inspect", tmp_path / "nothing.onnx")
    assert done.returncode == 2 and "nothing.onnx" in done.stderr


def test_the_module_is_the_program() -> None:
    for arguments, code in ((["--version"], 0), (["inspect", "nothing.onnx"], 2)):
        by_module = run(sys.executable, "-m", "graft", *arguments)
        by_command = run(GRAFT, *arguments)
        assert by_module.returncode == by_command.returncode == code
        assert (by_module.stdout, by_module.stderr) == (by_command.stdout, by_command.stderr)


def test_the_page_for_man_lies_where_man_looks() -> None:
    page = pathlib.Path(sys.prefix) / "share" / "man" / "man1" / "graft.1"
    assert page.read_text() == run(GRAFT, "help", "--man").stdout


def test_completions_lie_where_bash_looks_beside_the_command() -> None:
    completions = pathlib.Path(sys.prefix) / "share" / "bash-completion" / "completions" / "graft"
    assert completions.read_text() == run(GRAFT, "completions", "bash").stdout
    assert (pathlib.Path(sys.prefix) / "share" / "fish" / "vendor_completions.d" / "graft.fish").is_file()


def test_every_page_that_a_message_names_comes_along() -> None:
    sources = [*PACKAGE.rglob("*.py"), PACKAGE / "bin" / "graft", *(PACKAGE / "lib").glob("libgraft.so*")]
    named = {page for file in sources for page in re.findall(rb"docs/[a-z0-9_/]+\.md", file.read_bytes())}
    assert len(named) >= 5
    named |= {b"README.md", b"docs/ops/README.md"}
    folder = pathlib.Path(sys.prefix) / "share" / "doc" / "graft"
    assert [page for page in sorted(named) if not (folder / page.decode()).is_file()] == []


def test_doctor_finds_the_package_and_its_parts() -> None:
    findings = {finding["name"]: finding for finding in json.loads(run(GRAFT, "doctor", "--json").stdout)["findings"]}
    assert findings["CPU engine"]["found"]
    assert findings["plugin library"]["facts"]["path"] == str(PACKAGE / "lib" / "libgraft_plugins.so")
    assert findings["Python"]["facts"]["executable"] == sys.executable
    assert findings["Python package"]["found"]
    assert findings["Python package"]["facts"]["folder"] == str(PACKAGE)


def test_every_library_of_others_comes_with_its_license() -> None:
    # The name of OpenSSL's package differs from that of its library.
    own = {path.stem.replace("libssl", "libcrypto") for path in (PACKAGE / "licenses").glob("*.txt")}
    for library in (PACKAGE.parent / "graft_tensorrt.libs").iterdir():
        name = library.name.rsplit("-", 1)[0]
        assert any(license.startswith(name) for license in own), f"{library.name}: none of {sorted(own)}"


def test_libraries_need_no_more_than_the_wheel_and_the_platform() -> None:
    # Bundled libraries are in graft_tensorrt.libs, OpenVINO's in openvino; glibc, zlib and the compiler's are the
    # platform's.
    own = {path.name for path in (PACKAGE.parent / "graft_tensorrt.libs").iterdir()}
    platform = (
        "libc.so",
        "libm.so",
        "libgcc_s.so",
        "libstdc++.so",
        "libpthread.so",
        "libdl.so",
        "librt.so",
        "ld-linux",
        "libz.so",
    )
    for library in [*PACKAGE.glob("*.so"), *PACKAGE.glob("lib/*.so*"), PACKAGE / "bin" / "graft"]:
        for line in run("ldd", library).stdout.splitlines():
            name, _, where = line.strip().partition(" => ")
            assert "not found" not in where, f"{library}: {line}"
            if name.startswith(("linux-vdso", "/lib64/ld-linux", *platform)):
                continue
            path = pathlib.Path(where.split(" (")[0])
            in_wheels = path.name in own or path.is_relative_to(sys.prefix)
            assert in_wheels or path.name in {"libgraft.so.0.1"}, f"{library}: {line}"
    assert os.access(PACKAGE / "bin" / "graft", os.X_OK)


def test_binaries_run_on_ubuntu_22_04() -> None:
    files = [pathlib.Path(file.locate()) for file in importlib.metadata.files("graft-tensorrt") or []]
    binaries = [file for file in files if file.read_bytes()[:4] == b"\x7fELF"]
    assert {"graft", "graft_engine_worker", "libgraft.so.0.1", "_toolkit.abi3.so"} <= {file.name for file in binaries}
    assert {str(file): newer_imports(file) for file in binaries if newer_imports(file)} == {}


def test_newer_imports_are_found(tmp_path: pathlib.Path) -> None:
    source, library = tmp_path / "newer.cpp", tmp_path / "newer.so"
    source.write_text("#include <cstdlib>\nunsigned draw() { return arc4random(); }\n")
    assert run("g++", "-shared", "-fPIC", source, "-o", library).returncode == 0
    assert newer_imports(library) == ["arc4random@GLIBC_2.36"]
