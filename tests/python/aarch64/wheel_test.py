"""Installs the wheel for 64-bit ARM in a root of Debian 12 that has Python and nothing else, and runs the examples there, in
qemu. ONNX Runtime on this machine is the reference. `make test-aarch64` runs the test; it takes minutes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import numpy as np
import onnx
import onnxruntime
import pytest
from symbol_versions import newer_imports

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEPS = ROOT / ".deps" / "aarch64"
DIGITS = ROOT / "examples" / "digits"
WHEELS = [*(ROOT / "dist").glob("graft_tensorrt-*_aarch64.whl")]
AARCH64 = 183  # the machine in the header of an ELF file
SHAPES = "image=1x1x8x8..8x1x8x8..64x1x8x8"

if not WHEELS or not (DEPS / "root-clean").is_dir():
    pytest.skip("needs `make wheel-aarch64`", allow_module_level=True)


class Machine:
    """A folder that is the root of programs for 64-bit ARM."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.work = root / "root"

    def run(self, command: str, code: int = 0) -> str:
        """Runs a command of a shell in the home folder and returns what it prints."""
        words = [ROOT / "tools" / "in_aarch64", self.root, "sh", "-ec", f"cd; {command}"]
        # ctest names the programs of this machine's build in GRAFT_*, which tools/in_aarch64 passes on.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAFT_")}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Returns a machine on which the wheel was installed with pip, and TensorRT-RTX, which is an extra."""
    made = Machine(tmp_path_factory.mktemp("aarch64") / "machine")
    shutil.copytree(DEPS / "root-clean", made.root, symlinks=True)
    for file in [*(DEPS / "wheels").glob("*.whl"), *WHEELS]:
        shutil.copy(file, made.work)
    for file in DIGITS.iterdir():
        if file.is_file():
            shutil.copy(file, made.work)
    made.run("python3 -m venv /usr/local")
    # pip decides whether the wheel fits this machine and its Python.
    made.run("pip install --no-index --find-links . graft-tensorrt[rtx]")
    return made


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.load(DIGITS / "digits_test.npz")["images"].astype(np.float32)


@pytest.fixture(scope="module")
def logits(images: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(DIGITS / "digits.onnx").run(["logits"], {"image": images})[0]


def test_its_binaries_are_of_this_machine_and_run_on_ubuntu_22_04(tmp_path: pathlib.Path) -> None:
    (wheel,) = WHEELS
    assert wheel.name.endswith("-cp310-abi3-manylinux_2_35_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    binaries = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert {"graft", "graft_engine_worker", "libgraft.so.0.1", "_toolkit.abi3.so", "_operators.abi3.so"} <= {
        path.name for path in binaries
    }
    assert {int.from_bytes(path.read_bytes()[18:20], "little") for path in binaries} == {AARCH64}
    assert {path.name: newer_imports(path) for path in binaries if newer_imports(path)} == {}


def test_the_program_and_the_module_start(machine: Machine) -> None:
    version = machine.run("graft --version")
    assert version.startswith("graft ") and machine.run("python3 -m graft --version") == version
    # The exit status is 1 for a wheel without kernels, which lacks the plugin library.
    doctor = json.loads(machine.run("graft doctor --json || true"))
    findings = {entry["name"]: entry for entry in doctor["findings"]}
    assert doctor["complete"] is findings["plugin library"]["found"]
    for name in ("CPU engine", "Python", "TensorRT-RTX"):
        assert findings[name]["found"], findings[name]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("onnx", "digits.onnx"),
        ("tensorflow", "digits.pb"),
        ("caffe", "digits.prototxt digits.caffemodel"),
    ],
)
def test_networks_of_all_formats_are_converted_and_verified(
    machine: Machine, images: np.ndarray, logits: np.ndarray, name: str, files: str
) -> None:
    shapes = "--input image:?x1x8x8" if name == "caffe" else ""
    machine.run(f"graft convert {files} -o {name}.onnx {shapes}")
    printed = json.loads(machine.run(f"graft verify {files} {name}.onnx --data image=digits_test.npz:images --json"))
    assert printed["equal"] is True
    session = onnxruntime.InferenceSession(machine.work / f"{name}.onnx")
    (port,) = session.get_inputs()
    given = images if port.shape[1] == 1 else np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    outputs = session.run(None, {port.name: given})
    assert any(np.allclose(values, logits, atol=1e-3) for values in outputs if values.shape == logits.shape)


def test_values_are_those_of_onnx_runtime_on_this_machine(
    machine: Machine, images: np.ndarray, logits: np.ndarray
) -> None:
    np.save(machine.work / "image.npy", images[:8])
    machine.run("graft run digits.onnx -i image=image.npy -o out.npz")
    with np.load(machine.work / "out.npz") as out:
        np.testing.assert_allclose(out["logits"], logits[:8], atol=1e-4)


def test_int8_keeps_the_digits(machine: Machine, images: np.ndarray, logits: np.ndarray) -> None:
    command = (
        "graft quantize digits.onnx -o int8.onnx --precision int8 --data image=digits_test.npz:images --samples 64"
    )
    machine.run(command)
    model = onnx.load(machine.work / "int8.onnx")
    assert "QuantizeLinear" in {node.op_type for node in model.graph.node}
    (quantized,) = onnxruntime.InferenceSession(machine.work / "int8.onnx").run(["logits"], {"image": images})
    assert (quantized.argmax(1) == logits.argmax(1)).mean() > 0.97


def test_python_has_the_toolkit_and_the_operators(machine: Machine, images: np.ndarray, logits: np.ndarray) -> None:
    (machine.work / "toolkit.py").write_text("""
import graft
import numpy as np
images = np.load("digits_test.npz")["images"].astype(np.float32)[:4]
network = graft.load("digits.onnx")
converted = graft.convert(network)
assert graft.verify(network, converted.model).same
np.savez("python.npz", logits=graft.Session(converted.model).run(images)["logits"],
         positive=graft.ops.leaky_relu(images - 8, alpha=0.5))
""")
    machine.run("python3 toolkit.py")
    with np.load(machine.work / "python.npz") as out:
        np.testing.assert_allclose(out["logits"], logits[:4], atol=1e-4)
        shifted = images[:4] - 8
        np.testing.assert_array_equal(out["positive"], np.where(shifted < 0, shifted / 2, shifted))


def test_one_command_builds_an_engine(machine: Machine) -> None:
    """TensorRT-RTX builds without a GPU. Its engine is not run."""
    printed = machine.run(f"graft auto digits.onnx -o digits.engine --target sm121 --shapes {SHAPES} --plugins never")
    assert re.search(r"graft build ", printed), printed
    assert (machine.work / "digits.engine").stat().st_size > 10_000
