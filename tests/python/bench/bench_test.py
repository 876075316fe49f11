# Tests the evaluation of a benchmark's result: misses, and the document.
import copy
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from graft.bench.judge import judge, summary_of_random

ROOT = pathlib.Path(os.environ.get("GRAFT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
EMPTY_US = 3.5


def row(name="LeakyReLU f32 16x256x128x128", us=130.0, of_copy=0.97, dtype="f32", **more):
    return {
        "index": 0,
        "name": name,
        "operator": name.split()[0],
        "attributes": {"alpha": 0.1, "x_scale": 1.0},
        "inputs": [{"port": "x", "dtype": dtype, "layout": "linear", "shape": [16, 256, 128, 128]}],
        "outputs": [{"port": "y", "dtype": dtype, "layout": "linear", "shape": [16, 256, 128, 128]}],
        "to_reach": {"of_copy": 0.95, "of_eager": 0},
        "operations": 0,
        "dtype": dtype,
        "bytes": 1 << 29,
        "peers": {},
        "difference": None,
        "us": us,
        "warm_us": None,
        "of_copy": of_copy,
        "tflop_s": None,
        "variant": "vector16",
        "seconds": 0.1,
        **more,
    }


def judged(*rows):
    rows = copy.deepcopy(list(rows))
    judge(rows, EMPTY_US)
    return rows


def peer(us, warm_us=None, of_copy=0.5, tflop_s=None):
    return {"us": us, "warm_us": warm_us, "of_copy": of_copy, "tflop_s": tflop_s}


def missed(*rows):
    return judged(*rows)[0]["missed"]


def test_what_reaches_its_fraction_of_a_copy_misses_nothing():
    assert judged(row())[0]["misses"] == []
    assert missed(row(of_copy=0.949)) == ["of_copy"]


def test_torch_compile_is_to_be_beaten_on_any_case():
    assert missed(row(peers={"compiled": peer(129.0)})) == []  # within the variation between two runs
    assert missed(row(peers={"compiled": peer(120.0)})) == ["us"]
    assert missed(row(peers={"compiled": {"failed": "no compiler"}})) == []


def test_small_tensors_are_compared_with_a_warm_cache():
    small = row(bytes=1 << 20, us=9.0, warm_us=5.0, to_reach={"of_copy": 0, "of_eager": 0})
    assert missed(small | {"peers": {"compiled": peer(4.0, 5.0)}}) == []
    assert missed(small | {"peers": {"compiled": peer(9.5, 4.0)}}) == ["warm_us"]
    assert missed(small | {"warm_us": 1.6 * EMPTY_US}) == ["warm_us"]


def convolution(dtype, us, **more):
    name = f"Convolution {dtype} 8x256x56x56"
    return (
        row(name, us, dtype=dtype, operations=1e11, tflop_s=1e5 / us, to_reach={"of_copy": 0, "of_eager": 0.9}) | more
    )


def test_convolution_is_compared_with_cudnn():
    assert missed(convolution("f16", 105.0, peers={"eager": peer(100.0, tflop_s=1000)})) == []
    assert missed(convolution("f16", 120.0, peers={"eager": peer(100.0, tflop_s=1000)})) == ["tflop_s"]


def test_i8_convolution_has_to_beat_f16():
    assert missed(convolution("i8", 90.0), convolution("f16", 100.0)) == []
    assert missed(convolution("i8", 110.0), convolution("f16", 100.0)) == ["tflop_s"]


def test_another_result_than_pytorch_is_wrong():
    assert missed(row(difference=1e-7)) == []
    assert missed(row(difference=0.5)) == ["difference"]
    assert missed(row(difference=float("nan"))) == ["difference"]
    assert missed({"failed": "no variant", **row()}) == ["failed"]


def test_random_problems_are_summed_up_beside_the_fastest_peer():
    rows = [
        row("LeakyReLU f32 1", 100.0, peers={"eager": peer(400.0), "compiled": peer(200.0)}),
        row("LeakyReLU f32 2", 100.0, peers={"eager": peer(80.0), "compiled": {"failed": "why"}}),
        row("LeakyReLU f32 3", 100.0),  # not evaluated, as there is no peer
        convolution("f16", 100.0, peers={"eager": peer(95.0, tflop_s=1000)}),
    ]
    leaky_relu, convolved = summary_of_random(judged(*rows))
    assert leaky_relu["cases"] == 2
    assert leaky_relu["geometric_mean"] == pytest.approx((2.0 * 0.8) ** 0.5)
    assert (leaky_relu["worst"], leaky_relu["worst_case"]) == (0.8, "LeakyReLU f32 2")
    assert (leaky_relu["below"], leaky_relu["worst_peer"], leaky_relu["reaches"]) == (1, "eager", False)
    assert convolved["reaches"]  # 0.9 and 0.7 are enough where arithmetic sets the limit


def result(*rows, **more):
    return {
        "graft": "0.1.0",
        "device": "cuda",
        "name": "NVIDIA <Test>",
        "torch": "2.11.0",
        "copy_gb_s": 4200.0,
        "empty_kernel_us": EMPTY_US,
        "seconds": 12.0,
        "results": judged(*rows),
        "left_out": [],
        "wrong": [],
        **more,
    }


def sample():
    small = row(
        "LeakyReLU f32 1x64x56x56", 5.0, 0.05, bytes=1 << 20, warm_us=4.0, to_reach={"of_copy": 0, "of_eager": 0}
    )
    peers = {"eager": peer(100.0, tflop_s=1000.0), "compiled": {"failed": "why"}}
    return result(
        row(peers={"eager": peer(300.0, of_copy=0.4), "compiled": peer(131.0, of_copy=0.96)}),
        row('LeakyReLU f16 16x256x128x128 note="<a>"', 80.0, 0.9, dtype="f16"),
        small,
        convolution("f16", 120.0, peers=peers),
        {"failed": "no variant", **row("Padding f32 2x2")},
        left_out=["Upsampling f32 1x1"],
    )


def document(folder, data):
    (folder / "ops").mkdir()
    (folder / "result.json").write_text(json.dumps(data))
    command = [
        sys.executable,
        ROOT / "bench" / "document.py",
        folder / "result.json",
        "--commit",
        "abc",
        "--docs",
        folder,
    ]
    subprocess.run(command, check=True)
    return (folder / "performance.md").read_text()


def test_document_lists_every_miss_with_its_reason(tmp_path):
    long = row("L2Normalize i8 65536x512", 19.0, 0.8, dtype="i8")
    data = sample()
    data["results"] += judged(long)
    text = document(tmp_path, data)
    short = text.split("## What falls short, and why")[1]
    explained, unexplained = short.split("Not explained yet:")
    reason, case = explained.strip().split("\n\n- ", 1)
    assert reason and case.startswith("`L2Normalize i8 65536x512`")
    assert "`LeakyReLU f16 16x256x128x128" in unexplained
    assert "**0.90**" in text and "**0.97**" not in text
    assert "Upsampling f32 1x1" in text
    speed = json.loads((tmp_path / "ops" / "speed.json").read_text())
    assert {row["type"] for row in speed["LeakyReLU"]} == {"f32", "f16"}


def test_document_has_layers_beside_cudnn(tmp_path):
    def layer(dtype, layout, batch, us, **more):
        inputs = [{"dtype": dtype, "layout": layout, "shape": shape} for shape in ([batch, 64, 9, 9], [32, 64, 3, 3])]
        return convolution(dtype, us, inputs=inputs, **more)

    f16 = layer("f16", "hwc8", 8, 125.0, peers={"eager": peer(100.0, tflop_s=1000.0)})
    f16_alone = layer("f16", "hwc8", 32, 125.0, peers={"eager": {"failed": "why"}})
    text = document(tmp_path, result(f16, layer("i8", "chw32", 8, 100.0), f16_alone))
    lines = text.split("### Compared with cuDNN")[1].splitlines()
    assert "| input | weight | f16 / cuDNN, batch 8 | i8 / f16, batch 8 |" in lines
    assert "| 64x9x9 | 32x64x3x3 | **0.80** | 1.25 |" in lines


NCU = """==PROF== Connected
"ID","Kernel Name","gpu__time_duration.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed",\
"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
"","","ns","%","inst","inst"
"0","void empty_kernel()","1,200","0","0","0"
"1","void graft::rows<float>(x)","64,500","71.5","3","1"
"2","void empty_kernel()","1,200","0","0","0"
"""


def test_profiles_are_read_and_written_beside_their_case(tmp_path):
    sys.path.insert(0, str(ROOT / "bench"))
    from document import profile_text

    spec = importlib.util.spec_from_file_location("graft_profile", ROOT / "bench" / "profile_misses.py")
    profile = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(profile)
    parsed = profile.parse(NCU.replace("\\\n", ""), ["a", "b"])
    assert parsed["b"] == []
    assert parsed["a"][0]["us"] == 64.5
    assert parsed["a"][0]["stall"] == {"reason": "long scoreboard", "share": 0.75}
    text = profile_text(parsed["a"])
    assert "64.5 us" in text and "memory busy 72 %" in text and "long scoreboard, 75 %" in text


def test_every_note_is_about_a_case_that_is_timed():
    from graft.bench.library import Library

    program = pathlib.Path(os.environ.get("GRAFT_BIN", ROOT / "build" / "bin" / "graft"))
    library = program.parent.parent / "lib" / "libgraft_plugins.so"
    if not library.is_file():
        pytest.skip("the library was not built")
    sys.path.insert(0, str(ROOT / "bench"))
    import tomllib

    from document import matches

    loaded = Library(str(library))
    cases = loaded.timed_cases()
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names))
    for note in tomllib.loads((ROOT / "bench" / "notes.toml").read_text())["note"]:
        for pattern in note["cases"]:
            assert any(matches(name, pattern) for name in names), pattern
        named = set(re.findall("`([^`]+)`", note["text"]))
        if named and loaded.has_cuda:
            variants = {
                variant
                for case in cases
                if any(matches(case["name"], pattern) for pattern in note["cases"])
                for variant in loaded.call(case, [0] * len(case["inputs"]), [0] * len(case["outputs"])).cuda_variants()
            }
            assert named <= variants, note["text"]
