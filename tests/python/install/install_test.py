"""The installation of `make install` works without the checkout and after it was moved.

The commands run in a mount namespace with an empty folder in place of the checkout. Where such a namespace is not
allowed, the test checks the loader's report instead.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from conftest import ENVIRONMENT, ROOT, without_checkout

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def expected(images: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(DIGITS).run(["logits"], {"image": images})[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a network and images for it."""
    shutil.copy(DIGITS, tmp_path / "digits.onnx")
    with np.load(DIGITS.with_name("digits_test.npz")) as data:
        np.save(tmp_path / "image.npy", data["images"][:4].astype(np.float32))
    return tmp_path


def test_run_computes_what_onnx_runtime_does(prefix: Path, folder: Path) -> None:
    done = without_checkout(
        folder, prefix / "bin" / "graft", "run", "digits.onnx", "-i", "image=image.npy", "-o", "out.npz"
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as out:
        np.testing.assert_allclose(out["logits"], expected(np.load(folder / "image.npy")), atol=1e-5)


def test_convert_proves_and_verify_compares(prefix: Path, folder: Path) -> None:
    graft = prefix / "bin" / "graft"
    done = without_checkout(folder, graft, "convert", "digits.onnx", "-o", "graft.onnx")
    assert done.returncode == 0, done.stderr
    done = without_checkout(folder, graft, "verify", "digits.onnx", "graft.onnx")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="the packages are Debian's")
def test_the_guide_names_the_debian_packages_of_the_libraries(prefix: Path) -> None:
    guide = (ROOT / "docs" / "guide" / "install.md").read_text()
    named = next(command.split() for command in re.findall(r"`apt-get install ([^`]+)`", guide) if "libfmt" in command)
    binaries = [prefix / "bin" / "graft", prefix / "libexec" / "graft_engine_worker"]
    packages = set()
    for binary in [*binaries, *(prefix / "lib").glob("libgraft*.so")]:
        header = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", header):
            # Exit code 1: OpenVINO's and Graft's own libraries belong to no package.
            search = ["dpkg-query", "--search", f"*x86_64-linux-gnu/{library}"]
            found = subprocess.run(search, capture_output=True, text=True, check=False).stdout
            packages |= {line.partition(":")[0] for line in found.splitlines()}
    assert "libfmt9" in packages
    assert packages - {"libc6", "libgcc-s1", "libstdc++6"} <= set(named)


def test_what_python_compiled_of_the_examples_stays_behind(prefix: Path) -> None:
    examples = prefix / "share" / "doc" / "graft" / "examples"
    assert (examples / "python" / "to_engine.py").is_file()
    assert [*examples.rglob("__pycache__")] == []


def test_the_guides_come_along(prefix: Path) -> None:
    """The guides are unchanged, except for links to files that only the checkout has, and README's line about
    changes of Graft."""
    folder = prefix / "share" / "doc" / "graft"
    picture = "docs/guide/pictures/report_after.png"
    assert (folder / picture).read_bytes() == (ROOT / picture).read_bytes()
    for page in ("README.md", "docs/guide/use_the_toolkit.md"):
        installed, own = (
            re.sub(r"\[([^]\n]+)\]\([^)\n]+\)", r"\1", (root / page).read_text()) for root in (folder, ROOT)
        )
        if page == "README.md":
            own = re.sub(r"\| to change Graft: .*\n", "", own)
        assert installed == own
    assert "](CONTRIBUTING.md)" in (ROOT / "README.md").read_text()
    assert "](CONTRIBUTING.md)" not in (folder / "README.md").read_text()


def test_python_has_the_whole_package(prefix: Path, folder: Path) -> None:
    """graft.toolkit, graft.ops and their libraries come from the installation; NumPy, onnx and nanobind-backend are the user's."""
    script = """
import pathlib
import sys
import graft
import numpy as np
images = np.load("image.npy")
network = graft.load("digits.onnx")
converted = graft.convert(network)
assert graft.verify(network, converted.model).same
np.save("logits.npy", graft.Session(network).run(images)["logits"])
np.save("positive.npy", graft.ops.leaky_relu(images - 8, alpha=0.5))
maps = pathlib.Path("/proc/self/maps").read_text().split()
print(*{word for word in maps if "graft" in pathlib.Path(word).name and ".so" in word or "libopenvino" in word})
"""
    done = subprocess.run(
        [os.environ["GRAFT_PYTHON"], "-c", script],
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONPATH": str(prefix / "share" / "graft" / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = [Path(path) for path in done.stdout.split()]
    assert {"libgraft.so", "libgraft_plugins.so"} <= {path.name.partition(".so")[0] + ".so" for path in loaded}
    assert all(path.is_relative_to(prefix) for path in loaded), loaded
    images = np.load(folder / "image.npy")
    np.testing.assert_allclose(np.load(folder / "logits.npy"), expected(images), atol=1e-5)
    np.testing.assert_array_equal(np.load(folder / "positive.npy"), np.where(images < 8, (images - 8) / 2, images - 8))
    for module in ("_toolkit", "_operators"):
        assert (prefix / "share" / "graft" / "python" / "graft" / f"{module}.pyi").is_file()


def test_the_module_is_the_program(prefix: Path, folder: Path) -> None:
    done = subprocess.run(
        [os.environ["GRAFT_PYTHON"], "-m", "graft", "--version"],
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONPATH": str(prefix / "share" / "graft" / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("graft ")


def test_doctor_finds_what_was_installed(prefix: Path, folder: Path) -> None:
    done = without_checkout(folder, prefix / "bin" / "graft", "doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert findings["CPU engine"]["found"]
    assert findings["plugin library"]["facts"]["path"] == str(prefix / "lib" / "libgraft_plugins.so")
    assert findings["Python"]["found"]
    # The user installs TensorRT, and doctor says how.
    missing = [finding for finding in findings.values() if finding["needed"] and not finding["found"]]
    assert done.returncode == (3 if missing else 0)
    assert all("install" in finding["remedy"] for finding in missing), missing


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", "bash-completion/completions/graft"),
        ("zsh", "zsh/site-functions/_graft"),
        ("fish", "fish/vendor_completions.d/graft.fish"),
    ],
)
def test_completions_lie_where_shells_look(prefix: Path, folder: Path, shell: str, file: str) -> None:
    done = without_checkout(folder, prefix / "bin" / "graft", "completions", shell)
    assert done.returncode == 0, done.stderr
    assert (prefix / "share" / file).read_text() == done.stdout


def test_the_page_for_man_lies_where_man_looks(prefix: Path, folder: Path) -> None:
    done = without_checkout(folder, prefix / "bin" / "graft", "help", "--man")
    assert done.returncode == 0, done.stderr
    assert (prefix / "share" / "man" / "man1" / "graft.1").read_text() == done.stdout


@pytest.mark.parametrize("example", ["use_from_code", "add_an_operator"])
def test_find_package_has_all_that_it_names(prefix: Path, folder: Path, example: str) -> None:
    shutil.copytree(ROOT / "examples" / example, folder / example)
    done = without_checkout(
        folder,
        *("cmake", "-G", "Ninja", "-S", example, "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"),
        *("-DGRAFT_CUDA_ARCHITECTURES=89-real", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
    )
    assert done.returncode == 0, done.stderr
    commands = (folder / "build" / "compile_commands.json").read_text()
    assert str(ROOT) not in commands
    if example == "use_from_code":  # the guides' test builds the other example
        done = without_checkout(folder, "cmake", "--build", "build")
        assert done.returncode == 0, done.stdout


def test_a_program_calls_the_toolkit(prefix: Path, folder: Path) -> None:
    """The example of docs/guide/use_the_toolkit.md has the same results as the program `graft`."""
    example = ROOT / "examples" / "toolkit"
    assert len((example / "to_engine.cpp").read_text().splitlines()) <= 40
    graph = DIGITS.with_name("digits.pb")
    images = DIGITS.with_name("digits_test.npz")
    environment = ENVIRONMENT | {
        "GRAFT_PYTHON": os.environ["GRAFT_PYTHON"],
        "LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"],
    }

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    for command in (["-S", example, "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"], ["--build", "build"]):
        done = run("cmake", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    done = run("build/to_engine", graph, images, "digits.engine")
    assert done.returncode == 0, done.stderr
    assert (folder / "digits.engine").stat().st_size > 0
    assert "100 % done" in done.stderr
    (folder / "digits.pb").write_bytes(graph.read_bytes())
    shortest = run("build/convert_and_build")
    assert re.search(r"digits.engine: \d+ layers, 1 plugins\n", shortest.stdout), shortest.stdout + shortest.stderr

    graft = prefix / "bin" / "graft"
    assert run(graft, "convert", graph, "-o", "converted.onnx").returncode == 0
    compared = run(graft, "verify", graph, "converted.onnx", "--json")
    assert json.loads(compared.stdout)["verdict"] == "the same"
    assert ", the same\n" in done.stdout


def test_search_paths_are_relative(prefix: Path) -> None:
    looked_at = 0
    for path in prefix.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
            for found in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
                assert all(part.startswith("$ORIGIN") for part in found.split(":")), f"{path}: {found}"
            looked_at += 1
    assert looked_at > 5


def test_no_library_of_the_checkout_is_loaded(prefix: Path, folder: Path) -> None:
    done = subprocess.run(
        [
            prefix / "bin" / "graft",
            "run",
            "digits.onnx",
            "-i",
            "image=image.npy",
            "-o",
            "out.npz",
            "--engine",
            "openvino",
        ],
        cwd=folder,
        env=ENVIRONMENT | {"LD_DEBUG": "libs"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    loaded = {Path(found) for found in re.findall(r"calling init: (\S+)", done.stderr)}
    assert any(path.name.startswith("libopenvino_intel_cpu_plugin") for path in loaded)
    assert [path for path in loaded if path.resolve().is_relative_to(ROOT)] == []
