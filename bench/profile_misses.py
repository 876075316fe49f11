# profile_misses.py - profiles each case of a benchmark's result that misses its target with Nsight Compute.
"""Usage, on the machine with the GPU, with ncu on PATH:
  python bench/profile_misses.py RESULT.json --library build/lib/libgraft_plugins.so --output PROFILE.json

PROFILE.json has for each case's name its kernels, with their time, the utilization of memory and issue slots, the
occupancy, and the main reason for which warps wait. `bench/document.py --profile` shows these figures with the case.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from graft.bench.judge import judge  # noqa: E402

FIGURES = {
    "gpu__time_duration.sum": "us",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue",
}
TO_US = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
STALL = re.compile(r"issue_stalled_(\w+?)_per_(?:issue|warp)_active")
SEPARATOR = "empty_kernel"  # runs before each case


def run_cases(library_path: str, indices: list[tuple[int, str]]) -> None:
    """Runs each case once, after an empty kernel, in the process that ncu profiles."""
    import torch
    from graft.bench.cuda import random_tensor, storage_shape, stream
    from graft.bench.library import Library
    from graft.bench.peers import TYPES

    library = Library(library_path)
    cases = library.timed_cases()
    for index, variant in indices:
        case = cases[index]
        inputs = [random_tensor(desc) for desc in case["inputs"]]
        outputs = [torch.empty(storage_shape(d), dtype=TYPES[d["dtype"]], device="cuda") for d in case["outputs"]]
        call = library.call(case, [t.data_ptr() for t in inputs], [t.data_ptr() for t in outputs])
        workspace = torch.empty(max(call.workspace_bytes(), 1), dtype=torch.uint8, device="cuda")
        call.run_cuda(workspace.data_ptr(), stream(), variant)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        library.run_empty(stream())
        call.run_cuda(workspace.data_ptr(), stream(), variant)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


def number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def kernel_of(row: dict[str, str], units: dict[str, str]) -> dict[str, Any]:
    kernel: dict[str, Any] = {"kernel": row["Kernel Name"].split("<")[0].split("(")[0]}
    for metric, name in FIGURES.items():
        if metric in row:
            factor = TO_US.get(units.get(metric, ""), 1.0) if name == "us" else 1.0
            kernel[name] = round(number(row[metric]) * factor, 2)
    stalls: dict[str, float] = {}
    for column, value in row.items():
        found = STALL.search(column or "")
        if found and not found[1].endswith("not_issued") and found[1] != "selected":
            stalls[found[1]] = max(stalls.get(found[1], 0.0), number(value))
    total = sum(stalls.values())
    if total:
        worst = max(stalls, key=stalls.__getitem__)
        kernel["stall"] = {"reason": worst.replace("_", " "), "share": round(stalls[worst] / total, 2)}
    return kernel


def parse(text: str, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Parses ncu's `--csv --page raw`: a line of names, a line of units, then a line for each kernel."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    profiles: dict[str, list[dict[str, Any]]] = {}
    remaining = iter(names)
    current: list[dict[str, Any]] = []
    for row in rows[1:]:
        if SEPARATOR in row["Kernel Name"]:
            current = profiles.setdefault(next(remaining), [])
        else:
            current.append(kernel_of(row, rows[0]))
    return profiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--time-limit", type=float, default=600, help="seconds for ncu")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_cases(options.library, json.loads(options.run))
        return
    result = json.loads(options.result.read_text())
    rows = result["results"]
    judge(rows, result["empty_kernel_us"])
    short = [row for row in rows if row["misses"] and "failed" not in row]
    if shutil.which("ncu") is None:
        print("warning: ncu (Nsight Compute) is not on PATH: no profile", file=sys.stderr)
        options.output.write_text("{}\n")
        return
    command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--profile-from-start", "off"]
    command += ["--metrics", ",".join(FIGURES), "--section", "WarpStateStats"]
    command += [sys.executable, __file__, str(options.result), "--library", options.library]
    command += ["--run", json.dumps([(row["index"], row["variant"]) for row in short])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.time_limit, check=False)
        output, trouble = done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        output, trouble = (error.stdout or b"").decode(), "the time limit was reached"
    profiles = parse(output, [row["name"] for row in short])
    options.output.write_text(json.dumps(profiles, indent=1) + "\n")
    print(f"{len(profiles)} of {len(short)} cases profiled")
    if len(profiles) < len(short):
        print(output[-1500:], trouble[-1500:], file=sys.stderr)


if __name__ == "__main__":
    main()
