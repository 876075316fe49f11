# Measures the time of `graft convert` with OpenVINO alone, with auto, and with both CPU engines.
"""Prints a table of medians, in wall time and in processor time of all processes. Networks are ONNX files, of export.py.

usage: judges.py GRAFT MODEL.onnx ... [--runs 3]
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ENGINES = ("openvino", "auto", "both")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def convert(graft, model, engine, output):
    """Returns wall time, processor time, and the number of proofs."""
    wall, processor = time.perf_counter(), processor_seconds()
    done = subprocess.run(
        [graft, "convert", model, "-o", output, "--engine", engine, "--json"], capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        sys.exit(f"{model} with --engine {engine}: {done.stderr}")
    report = json.loads(done.stdout)
    return time.perf_counter() - wall, processor_seconds() - processor, report["proofs_run"], len(report["undone"])


def row(graft, model, runs, folder):
    found = {engine: [] for engine in ENGINES}
    for _ in range(runs):  # in alternation, so that other load on the machine affects all of them
        for engine in ENGINES:
            found[engine].append(convert(graft, model, engine, pathlib.Path(folder) / "out.onnx"))
    middle = {e: [statistics.median(run[i] for run in found[e]) for i in range(2)] for e in ENGINES}
    cells = [model.stem, str(found["openvino"][0][2])]
    cells += [f"{middle[engine][0]:.1f} s ({middle[engine][1]:.1f} s)" for engine in ENGINES]
    cells += [f"{middle[engine][1] / middle['openvino'][1]:.2f}" for engine in ENGINES[1:]]
    cells.append(", ".join(str(found[engine][0][3]) for engine in ENGINES))
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graft")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print("| network | proofs | openvino | auto | both | auto / openvino | both / openvino | undone |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            print("| " + " | ".join(row(arguments.graft, model, arguments.runs, folder)) + " |", flush=True)


if __name__ == "__main__":
    main()
