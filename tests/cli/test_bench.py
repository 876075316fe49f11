# graft bench: refused options, its result and its page. GPU benchmarks run where there is a GPU.
import json
import os
import pathlib
import signal
import sys

import pytest
from conftest import DIGITS, PROGRAM, SOURCE, interrupted_leaves_nothing, program_alone, run_command

FIGURES = {"us", "warm_us", "of_copy", "tflop_s"}


@pytest.fixture(scope="module")
def cpu_result(tmp_path_factory):
    """Returns the result of LeakyReLU's only case for the CPU, and its page."""
    report = tmp_path_factory.mktemp("bench") / "report.html"
    command = [PROGRAM, "bench", "--op", "LeakyReLU", "--device", "cpu", "--json", "--report", report]
    done = run_command(*command, code=0)
    return json.loads(done.stdout), json.loads(pathlib.Path(f"{report}.json").read_text())


def test_result_has_what_its_readme_lists(cpu_result):
    result, _ = cpu_result
    assert result["device"] == "cpu"
    assert result["copy_gb_s"] > 0
    assert result["wrong"] == result["left_out"] == []
    (row,) = result["results"]
    assert row["name"] == "LeakyReLU f32 1x64x56x56 alpha=0.1"
    assert row["bytes"] == 2 * 4 * 64 * 56 * 56
    assert row.keys() >= FIGURES
    assert row["us"] > 0
    assert row["misses"] == row["missed"] == []
    listed = set(
        (SOURCE / "python" / "graft" / "bench" / "README.md").read_text().replace("`", " ").replace(",", " ").split()
    )
    assert row.keys() <= listed | {"choose_variant"}
    assert result.keys() <= listed


def test_onnx_runtime_is_timed_beside_and_agrees(cpu_result):
    pytest.importorskip("onnxruntime")
    result, _ = cpu_result
    (row,) = result["results"]
    assert row["peers"]["onnxruntime"].keys() >= FIGURES
    assert row["difference"] < 1e-6


def test_report_has_charts_and_every_figure(cpu_result):
    result, report = cpu_result
    facts = [fact["text"] for fact in report["summary"]]
    for name in result["missing"]:
        assert f"{name} is not installed" in facts
    (row,) = result["results"]
    (bars,) = (section for section in report["sections"] if section["section"] == "bars")
    (table,) = (section for section in report["sections"] if section["section"] == "table")
    assert bars["rows"][0]["label"] == "f32 1x64x56x56"
    assert bars["rows"][0]["note"] == "alpha=0.1"
    assert bars["rows"][0]["values"][0] == row["us"]
    assert row["us"] in table["rows"][0]
    for peer in row["peers"].values():
        assert peer["us"] in table["rows"][0]


def test_all_small_cases_run_on_the_cpu(graft):
    answer = graft("bench", "--op", "all", "--device", "cpu", "--no-peers", "--json", "--time-limit", "60", code=0)
    assert {row["operator"] for row in answer.json["results"]} >= {"LeakyReLU", "L2Normalize"}
    assert not any("failed" in row for row in answer.json["results"])


def test_table_names_each_case(graft):
    answer = graft("bench", "--op", "L2Normalize", "--device", "cpu", "--no-peers", "--match", "1x128", code=0)
    assert "L2Normalize f32 1x128" in answer.out
    assert "reference" in answer.out


def test_time_limit_lists_what_is_left_out(graft):
    answer = graft("bench", "--op", "all", "--device", "cpu", "--no-peers", "--json", "--time-limit", "0.001", code=0)
    assert answer.json["results"] == []
    assert "LeakyReLU f32 1x64x56x56 alpha=0.1" in answer.json["left_out"]


def test_model_on_the_cpu(graft):
    result = graft("bench", DIGITS, "--input", "image:4x1x8x8", "--time-limit", "1", "--json", code=0).json
    assert result["inputs"] == {"image": [4, 1, 8, 8]}
    assert 0 < result["fastest_ms"] <= result["median_ms"] <= result["slowest_ms"]
    assert result["runs"] >= 3


def test_report_of_a_model_has_every_run(graft, tmp_path):
    page = tmp_path / "model.html"
    answer = graft("bench", DIGITS, "--time-limit", "1", "--json", "--report", page, code=0)
    report = json.loads((tmp_path / "model.html.json").read_text())
    histogram, runs = report["sections"]
    assert len(runs["rows"]) == answer.json["runs"] == sum(bin["count"] for bin in histogram["bins"])
    assert min(row[1] for row in runs["rows"]) == pytest.approx(answer.json["fastest_ms"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--op"),
        ([DIGITS, "--op", "all"], "--op"),
        (["--op", "LeakyRLU", "--device", "cpu"], "LeakyReLU"),
        (["--op", "LeakyReLU,", "--device", "cpu"], "--op"),
        (["--op", "all", "--device", "tpu"], "tpu"),
        (["--op", "all", "--time-limit", "-1"], "--time-limit"),
        (["--op", "all", "--device", "cpu", "--match", "no such case"], "no such case"),
        (["--op", "LeakyReLU", "--device", "cpu", "--report", "/no/such/folder/r.html"], "/no/such/folder"),
        ([DIGITS, "--device", "cuda"], "--device"),
        (["missing.onnx"], "missing.onnx"),
    ],
)
def test_wrong_use_is_named(graft, arguments, named):
    answer = graft("bench", *arguments, code=2)
    assert answer.out == ""
    assert named in answer.err


def has_gpu():
    return os.path.exists("/dev/nvidiactl")


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_a_missing_pytorch_or_gpu_is_said(graft, tmp_path):
    report = tmp_path / "report.html"
    answer = graft("bench", "--op", "all", "--report", report, "--json", code=3)
    assert answer.json["error"]["kind"] == "missing_tool"
    assert "pip install torch" in answer.err or "NVIDIA GPU" in answer.err or "make deps build" in answer.err
    assert "--device cpu" in answer.err
    assert not list(tmp_path.iterdir())


def test_report_that_was_there_stays_when_the_run_fails(graft, tmp_path):
    report = tmp_path / "report.html"
    report.write_text("old")
    assert graft("bench", "--op", "all", "--device", "cpu", "--match", "nothing", "--report", report).code == 2
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing(tmp_path, number):
    interrupted_leaves_nothing(
        tmp_path, number, "bench", "--op", "all", "--device", "cpu", "--report", tmp_path / "out" / "r.html"
    )


def test_library_that_was_not_built(tmp_path):
    command = [program_alone(tmp_path), "bench", "--op", "all", "--device", "cpu"]
    done = run_command(*command, code=3)
    assert "libgraft_plugins.so" in done.stderr
    assert "make build" in done.stderr


def test_front_by_itself(graft, tmp_path):
    """The Python front end also runs on a machine without `graft`: events on standard output, the result in a file."""
    libraries = pathlib.Path(PROGRAM).parent.parent / "lib"
    library = str(next(each for name in ("plugins", "c") if (each := libraries / f"libgraft_{name}.so").is_file()))
    command = [sys.executable, "-m", "graft.bench", "--library", library, "--device", "cpu", "--peers", "none"]
    command += ["--op", "LeakyReLU", "--json", str(tmp_path / "result.json")]
    done = run_command(*command, env={**os.environ, "PYTHONPATH": str(SOURCE / "python")})
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "result"
    assert json.loads((tmp_path / "result.json").read_text())["results"] == events[-1]["results"]
    assert done.returncode == 0
