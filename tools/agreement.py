#!/usr/bin/env python3
"""Measures how often the verdicts of `inspect` and `convert` agree with the result of `build`.

For each model, compares the exit code of `graft inspect` with that of `graft build` of the model, or of the converted
model where `inspect` reports lowered nodes; and where `graft convert` exits with 0, runs `graft build` of its result.
All run through the Python package, which has the same results as the program; a model that none of the three can read
is left out. The models are ONNX's node tests, generated from the onnx package, and the named files.

    .deps/venv/bin/python tools/agreement.py --node-tests 0 bench/networks /path/of/more.onnx
    .deps/venv/bin/python tools/agreement.py --node-tests 200 --target sm120
"""

import argparse
import functools
import json
import multiprocessing
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build" / "python"))

import graft  # noqa: E402
import onnx  # noqa: E402

# The outcome for a network, as the report prints it.
Outcome = dict[str, object]


def node_tests() -> dict[str, bytes]:
    """Returns the models of ONNX's own tests of operators, by name."""
    from onnx.backend.test.case.node import collect_testcases

    return {case.name: case.model.SerializeToString() for case in collect_testcases(None)}


def files_in(places: list[pathlib.Path]) -> dict[str, pathlib.Path]:
    found = {}
    for place in places:
        for file in sorted(place.rglob("*.onnx")) if place.is_dir() else [place]:
            found[str(file)] = file
    return found


def ranges_of(texts: list[str]) -> dict[str, tuple[list[int], ...]]:
    """Converts NAME=MIN..OPT..MAX to the form of graft.build."""
    ranges = {}
    for text in texts:
        name, _, shapes = text.rpartition("=")
        ranges[name] = tuple([int(size) for size in shape.split("x")] for shape in shapes.split(".."))
    return ranges


def builds(model: object, target: str, shapes: list[str], folder: pathlib.Path) -> tuple[bool, str]:
    try:
        built = graft.build(model, folder / "out.engine", targets=target, shapes=ranges_of(shapes), **BUILD_OPTIONS)
    except graft.Error as error:
        return False, str(error).splitlines()[0]
    if built.computed_wrongly:
        return False, built.computed_wrongly[0].reason
    return True, ""


BUILD_OPTIONS: dict[str, object] = {}


def ask(source: object, target: str, folder: pathlib.Path) -> Outcome:
    try:
        model = graft.load(source)
    except (graft.Error, TypeError) as error:
        return {"unreadable": str(error)}
    inspected = graft.inspect(model, targets=target)
    shapes = list(inspected.probe.shapes) if inspected.probe else []
    outcome: Outcome = {"inspect": inspected.runs is True, "built": bool(inspected.probe and inspected.probe.built)}
    try:
        converted = graft.convert(model, targets=target, prove=False)
    except graft.Error as error:
        converted = None
        outcome["convert_error"] = str(error).splitlines()[0]
    outcome["convert"] = converted is not None and converted.runs is True
    if converted is not None and converted.runs:
        given = list(converted.check.shapes) if converted.check else []
        outcome["build_of_converted"], outcome["why_converted"] = builds(converted.model, target, given, folder)
    is_lowered = any(str(node.support) == "lowered" for node in inspected.nodes)
    if is_lowered or (inspected.probe and inspected.probe.of_converted):
        outcome["build"] = outcome.get("build_of_converted", False)
        outcome["why"] = outcome.get("why_converted", "")
    else:
        outcome["build"], outcome["why"] = builds(model, target, shapes, folder)
    return outcome


def ask_safely(source: object, target: str) -> Outcome:
    """Returns the outcome, or the first line of the error that ended the measurement."""
    if isinstance(source, bytes):
        source = onnx.ModelProto.FromString(source)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return ask(source, target, pathlib.Path(folder))
        except graft.Error as error:
            return {"error": str(error).splitlines()[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", type=pathlib.Path, help="ONNX files, or folders that are searched for them"
    )
    parser.add_argument("--node-tests", type=int, default=-1, help="how many of ONNX's node tests; -1: all, 0: none")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of node tests")
    parser.add_argument("--target", default="sm120")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file for every outcome")
    arguments = parser.parse_args()

    models: dict[str, object] = dict(files_in(arguments.models))
    tests = node_tests() if arguments.node_tests else {}
    names = sorted(tests)
    if 0 <= arguments.node_tests < len(names):
        names = sorted(random.Random(arguments.seed).sample(names, arguments.node_tests))
    models |= {name: tests[name] for name in names}

    started = time.monotonic()
    ask_one = functools.partial(ask_safely, target=arguments.target)
    # A worker is replaced after some models, so that the memory of TensorRT's builders stays within bounds.
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(arguments.jobs, maxtasksperchild=40) as pool:
        outcomes: dict[str, Outcome] = dict(zip(models, pool.imap(ask_one, models.values()), strict=True))
    asked = {name: each for name, each in outcomes.items() if "unreadable" not in each}
    wrong = {n: e for n, e in asked.items() if "error" in e or e["inspect"] != e["build"]}
    promised = {n: e for n, e in asked.items() if e.get("convert")}
    broken = {n: e for n, e in promised.items() if not e["build_of_converted"]}
    for title, found in (("inspect and build disagree", wrong), ("convert exits 0, and build fails", broken)):
        for name, outcome in found.items():
            print(f"{title}: {name}: {json.dumps(outcome)}")
    print(f"{len(outcomes) - len(asked)} models are not readable; {time.monotonic() - started:.0f} s")
    print(f"inspect agrees with build in {len(asked) - len(wrong)} of {len(asked)}")
    print(f"convert's exit code 0 leads to an engine in {len(promised) - len(broken)} of {len(promised)}")
    if arguments.out:
        arguments.out.write_text(json.dumps(outcomes, indent=1) + "\n")
    return 1 if wrong or broken else 0


if __name__ == "__main__":
    sys.exit(main())
