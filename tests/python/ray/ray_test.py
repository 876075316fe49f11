"""Runs calibrations, comparisons and builds on a local cluster of four processes, and compares the results with those of
one process."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import graft
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

ROOT = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
GRAFT = pathlib.Path(os.environ["GRAFT_BIN"])
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
IMAGES = ROOT / "examples" / "digits" / "digits_test.npz"
SHAPES = "image=1x1x8x8..8x1x8x8..64x1x8x8"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Starts a cluster of four processes and returns its address."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_DISABLE_IMPORT_WARNING": "1"}
    ray = pytest.importorskip("ray", reason="Ray is not installed: tools/setup ray")
    for attempt in range(3):
        try:
            ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            break
        except Exception as error:  # noqa: BLE001 - Ray raises this class itself
            # On a busy machine the start takes longer than the 30 s that Ray waits.
            ray.shutdown()
            if attempt == 2 or "timed out during startup" not in str(error):
                raise
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Returns a folder with 48 samples, each in a file."""
    folder = tmp_path_factory.mktemp("samples")
    for i, image in enumerate(np.load(IMAGES)["images"][:48]):
        np.save(folder / f"{i:03}.npy", image[np.newaxis])
    return folder


def processes_that_run(task: str) -> list[int]:
    """Returns the processes of the cluster that run this task: Ray shows it in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[0].decode(errors="replace").strip() == f"ray::{task}":
                found.append(int(path.parent.name))
    return found


class KillsOne:
    """A progress function that kills one process in the middle of its task, after other parts have arrived."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.killed = 0

    def __call__(self, fraction: float, text: str) -> None:
        if self.killed or fraction == 0:
            return
        for process in processes_that_run(self.task):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                # A stopped process cannot end its task any more.
                self.killed = process if process in processes_that_run(self.task) else 0
                os.kill(process, signal.SIGKILL if self.killed else signal.SIGCONT)
            if self.killed:
                return


def bytes_of(result: graft.QuantizeResult) -> bytes:
    return result.model.serialize()


def test_a_calibration_has_the_bytes_of_one_process_although_a_process_is_killed(
    address: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"precision": "int8", "data": folder, "calibration": "entropy"}
    alone = graft.quantize(DIGITS, **arguments, progress=False)
    kills = KillsOne("_calibrate")
    spread = graft.ray.quantize(DIGITS, **arguments, part=1, progress=kills)
    assert kills.killed, "no process was killed, so this test proves nothing"
    assert bytes_of(spread) == bytes_of(alone)
    assert spread.to_json() == alone.to_json()
    # The killed process did lose a part: without a second run of the part the call fails.
    monkeypatch.setattr(graft.ray, "RETRIES", 0)
    kills = KillsOne("_calibrate")
    with pytest.raises(graft.Error, match="a process of the cluster died 1 times in the same part"):
        graft.ray.quantize(DIGITS, **arguments, part=1, progress=kills)
    assert kills.killed


def test_arrays_are_sent_and_improved_weights_are_calibrated(address: str) -> None:
    arguments = {"precision": "int8", "data": np.load(IMAGES)["images"][:40], "improve": ["equalize", "smooth"]}
    alone = graft.quantize(DIGITS, **arguments, progress=False)
    spread = graft.ray.quantize(DIGITS, **arguments, address=address, progress=False)
    assert bytes_of(spread) == bytes_of(alone)
    assert bytes_of(spread) != bytes_of(graft.quantize(DIGITS, **arguments | {"improve": []}, progress=False))


def outputs_of(model: graft.Model, samples: list[np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.serialize(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    runs = [session.run(None, {"image": sample}) for sample in samples]
    return {name: np.concatenate([run[i] for run in runs]).astype(np.float64) for i, name in enumerate(names)}


def test_a_comparison_has_the_bytes_of_one_process_although_a_process_is_killed(
    address: str, folder: pathlib.Path
) -> None:
    network = graft.load(DIGITS)
    narrow = graft.quantize(DIGITS, precision="int8", data=folder, progress=False).model
    samples = [np.load(file) for file in sorted(folder.iterdir())]
    for candidate, options in ((narrow, {}), (narrow, {"relative": 1e-6})):
        alone = graft.verify(network, candidate, data=folder, **options, progress=False)
        kills = KillsOne("_compare")
        spread = graft.ray.verify(network, candidate, data=folder, **options, part=1, progress=kills)
        assert kills.killed, "no process was killed, so this test proves nothing"
        assert spread.to_json() == alone.to_json()
        # Each page has the time at which it was written.
        pages = [re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "", report.to_page()) for report in (spread, alone)]
        assert pages[0] == pages[1]
        assert spread.runs == len(samples)
    # NumPy computes the figures of all runs from the outputs of ONNX Runtime.
    expected, found = outputs_of(network, samples), outputs_of(narrow, samples)
    for output in spread.outputs:
        want, have = expected[output.reference.name], found[output.candidate.name]
        assert output.largest_error == pytest.approx(np.abs(want - have).max(), rel=1e-5)
        assert output.snr_db == pytest.approx(10 * np.log10((want**2).sum() / ((want - have) ** 2).sum()), abs=1e-3)
        is_classifier = output.reference.name == "logits"
        assert output.rows == (len(samples) if is_classifier else 0)
        assert output.same_top == ((want.argmax(1) == have.argmax(1)).sum() if is_classifier else 0)
    assert not spread.same


def test_runs_of_a_fixed_batch_are_those_of_one_process(
    address: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has a relative path, and the processes of the cluster have another working directory."""
    images = np.load(IMAGES)["images"][:16]
    np.savez(tmp_path / "some.npz", images=images, others=images[::-1])
    monkeypatch.chdir(tmp_path)
    fixed = graft.load(DIGITS, shapes={"image": [2, 1, 8, 8]})
    narrow = graft.quantize(DIGITS, precision="int8", data=images, progress=False).model
    for data in (images, ["image=some.npz:others"]):
        alone = graft.verify(fixed, narrow, data=data, progress=False)
        spread = graft.ray.verify(fixed, narrow, data=data, part=3, progress=False)
        assert spread.runs == 8
        assert spread.to_json() == alone.to_json()


def graft_program(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(GRAFT), *map(str, words)], capture_output=True, text=True, check=False)


def test_the_program_gives_the_same_bytes_with_ray(address: str, folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    reports = []
    for name, options in (("alone", ()), ("spread", ("--ray", address))):
        file = tmp_path / name / "digits.int8.onnx"
        file.parent.mkdir()
        done = graft_program(
            "quantize", DIGITS, "-o", file, "--precision", "int8", "--data", folder, "--json", *options
        )
        assert done.returncode == 0, done.stderr
        reports.append([file.read_bytes(), done.stdout.replace(str(file.parent), "")])
        done = graft_program("verify", DIGITS, file, "--data", folder, "--samples", "32", "--json", *options)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["runs"] == 32
        reports[-1].append(done.stdout.replace(str(file.parent), ""))
    assert reports[0] == reports[1]


def broken_network(file: pathlib.Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([helper.make_node("NoSuchOperator", ["x"], ["y"])], "broken", [x], [y])
    file.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def test_a_folder_of_networks_becomes_engines(address: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed: tools/setup engine")
    networks = tmp_path / "networks"
    networks.mkdir()
    (networks / "digits.onnx").write_bytes(DIGITS.read_bytes())
    broken_network(networks / "broken.onnx")
    engines = tmp_path / "engines"
    options = ("--shapes", SHAPES, "--target", "sm120")
    done = graft_program("auto", networks, "-o", engines, *options, "--ray", address)
    assert done.returncode == 1, done.stderr
    assert "broken.onnx: " in done.stderr
    assert "NoSuchOperator" in done.stderr
    assert "1 of 2 networks built" in done.stderr + done.stdout
    (tmp_path / "alone").mkdir()
    done = graft_program("auto", networks / "digits.onnx", "-o", tmp_path / "alone" / "digits.engine", *options)
    assert done.returncode == 0, done.stderr
    results = [folder / "digits.graft" / "converted.onnx" for folder in (tmp_path / "alone", engines)]
    assert results[0].read_bytes() == results[1].read_bytes()
    assert (engines / "digits.engine").stat().st_size > 0


def test_errors_of_a_part_reach_the_caller(
    address: str, folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    # Values are read only by the part that has the sample.
    np.save(tmp_path / "030.npy", np.full((1, 1, 8, 8), np.nan, np.float32))
    with pytest.raises(graft.Error, match=r"030\.npy: the array for the input 'image' contains no finite value"):
        graft.ray.quantize(DIGITS, precision="int8", data=tmp_path, progress=False)
    network = graft.load(DIGITS)
    monkeypatch.setattr(graft.ray, "__version__", "0.0")
    with pytest.raises(graft.Error, match=r"a machine of the cluster has Graft .*, and the caller has 0\.0") as caught:
        graft.ray.verify(network, network, data=folder, progress=False)
    assert caught.value.kind == "missing_tool"


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises((graft.Error, TypeError)) as caught:
        call()
    return str(caught.value)


def test_calls_that_cannot_be_spread_are_refused(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = graft.load(DIGITS)
    assert "found f16; only int8 and f8 have a calibration" in refused(lambda: graft.ray.quantize(network))
    samples = iter([np.zeros((1, 1, 8, 8), np.float32)])
    assert "an iterable of samples is not sent" in refused(
        lambda: graft.ray.quantize(network, precision="int8", data=samples)
    )
    assert "an iterable of samples is not sent" in refused(lambda: graft.ray.verify(network, network, data=samples))
    assert "unexpected keyword argument 'precisoin'" in refused(lambda: graft.ray.verify(network, network, precisoin=1))
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refused(lambda: graft.ray.verify(network, network, data=folder)) == (
        "Ray is not installed\nInstall it with: pip install graft-tensorrt[ray]"
    )
