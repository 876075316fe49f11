"""The command line of the benchmark: `python -m graft.bench`. It writes newline-delimited JSON events to standard
output, as the engine driver does; see README.md in this folder."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from graft.bench.judge import TINY_BYTES, is_wrong, judge, summary_of_random
from graft.bench.library import GraftError, Library
from graft.engine.cli import WholeFile
from graft.engine.events import EXIT_DONE, EngineError, EventWriter
from graft.engine.files import write_file

PEERS = {"cuda": ["eager", "compiled"], "cpu": ["eager", "compiled", "onnxruntime"]}


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong use as an error event."""

    def error(self, message: str) -> NoReturn:
        raise EngineError("usage", message, f"{self.prog} --help shows the options")


def argument_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m graft.bench", description="Time Graft's operators; write JSON events.")
    parser.add_argument(
        "--library", required=True, help="libgraft_plugins.so, or libgraft_c.so of a build without CUDA"
    )
    parser.add_argument("--operators", action="append", default=[], help="a library with operators of your own")
    parser.add_argument("--op", default="all", help="an operator, several joined by commas, or all")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--random", type=int, metavar="SEED", help="random problems in place of the listed ones")
    parser.add_argument("--cases", type=int, default=60, help="random problems of each operator")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--peers", help="implementations to compare with: eager, compiled, onnxruntime; or none")
    parser.add_argument("--time-limit", type=float, help="seconds after which no further case starts")
    parser.add_argument("--models", type=pathlib.Path, help="folder of ONNX models, for ONNX Runtime on the CPU")
    parser.add_argument("--json", help="file to write the result to, in addition to the event")
    return parser


def load_library(path: str, operators: Sequence[str]) -> Library:
    try:
        library = Library(path)
    except OSError as error:
        raise EngineError("tool_missing", f"{path}: cannot be loaded: {error}", "Build it with `make build`") from error
    try:
        for each in operators:
            library.load_operators(each)
    except GraftError as error:
        message, _, next_step = str(error).partition("\n")
        raise EngineError("usage", message, next_step) from error
    return library


def chosen_cases(library: Library, options: argparse.Namespace) -> list[dict[str, Any]]:
    listed = library.timed_cases() if options.random is None else library.random_cases(options.random, options.cases)
    cases = [{"index": index, **case} for index, case in enumerate(listed)]
    known = list(dict.fromkeys(case["operator"] for case in cases))
    wanted = known if options.op == "all" else options.op.split(",")
    for name in wanted:
        if name not in known:
            raise EngineError(
                "usage",
                f"--op {name}: this operator has no timed cases",
                f"Operators with timed cases: {', '.join(known)}, all; your own operators define them in `timings` of "
                "<op>_cases.hpp",
            )
    cases = [case for case in cases if case["operator"] in wanted and options.match in case["name"]]
    if not cases:
        raise EngineError(
            "usage", f"--match {options.match}: no case has this text in its name", "Omit --match to time all cases"
        )
    if options.random is not None:
        return cases
    # Cases with a figure to reach come first, then cases that should cost no more than their launch.
    return sorted(cases, key=importance)


def importance(case: dict[str, Any]) -> int:
    if any(case["to_reach"].values()) or case["operations"]:
        return 0
    elements = sum(product(desc["shape"]) for desc in case["inputs"] + case["outputs"])
    return 1 if 4 * elements <= TINY_BYTES else 2


def product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def chosen_peers(options: argparse.Namespace) -> list[str]:
    known = PEERS[options.device]
    if options.peers is None:
        return known
    wanted = [name for name in options.peers.split(",") if name != "none"]
    for name in wanted:
        if name not in known:
            raise EngineError(
                "usage",
                f"--peers {name}: this peer is not available with --device {options.device}",
                f"Available: {', '.join(known)}, none",
            )
    return wanted


def make_bench(library: Library, options: argparse.Namespace) -> Any:
    peers = chosen_peers(options)
    if options.device == "cpu":
        from graft.bench.cpu import CpuBench

        return CpuBench(library, peers, options.models)
    if not library.has_cuda:
        raise EngineError(
            "tool_missing",
            "this build of Graft has no CUDA kernels",
            "Build them with: make deps build; or time on the CPU: --device cpu",
        )
    try:
        from graft.bench.cuda import CudaBench
    except ImportError as error:
        raise EngineError(
            "tool_missing",
            f"timing on a GPU needs PyTorch, which {sys.executable} does not have: {error}",
            "Time on the CPU: --device cpu; or install it with: pip install torch, or select a Python that has it: "
            "GRAFT_PYTHON=...",
        ) from error
    try:
        return CudaBench(library, peers)
    except (RuntimeError, GraftError) as error:
        raise EngineError(
            "tool_missing",
            f"timing on a GPU: {error}",
            "Time on the CPU: --device cpu; or run it on a machine with an NVIDIA GPU",
        ) from error


def run(options: argparse.Namespace, events: EventWriter) -> dict[str, Any]:
    started = time.monotonic()
    if options.cases < 1 or (options.random is not None and options.random < 0):
        raise EngineError(
            "usage", "--random must be at least 0, and --cases at least 1", "Write for example --random 1 --cases 60"
        )
    file = WholeFile(options.json) if options.json else None
    library = load_library(options.library, options.operators)
    cases = chosen_cases(library, options)
    bench = make_bench(library, options)
    if options.device == "cpu":
        cases = [case for case in cases if bench.takes(case)]
    rows, left_out, slowest = [], [], 0.0
    for number, case in enumerate(cases):
        begun = time.monotonic()
        if options.time_limit is not None and begun - started + slowest / 2 > options.time_limit:
            left_out.append(case["name"])
            continue
        events.progress(case["name"], number, len(cases), number / len(cases))
        row = {**case, "dtype": case["inputs"][0]["dtype"], **bench.measure(case)}
        row["seconds"] = round(time.monotonic() - begun, 3)
        rows.append(row)
        slowest = max(slowest, row["seconds"]) if number else 0.0  # the first case also starts the compiler
        bench.tidy()
        events.log("info", summary(row))
    judge(rows, bench.empty_kernel_us)
    drawn = {}
    if options.random is not None:
        drawn = {"random": {"seed": options.random, "cases": options.cases, "operators": summary_of_random(rows)}}
    result = {
        "graft": library.version,
        "device": options.device,
        **bench.facts(),
        "seconds": round(time.monotonic() - started, 1),
        **drawn,
        "results": rows,
        "left_out": left_out,
        "wrong": [row["name"] for row in rows if is_wrong(row)],
    }
    if file:
        publish(file, json.dumps(result, indent=1) + "\n")
    return result


def publish(file: WholeFile, text: str) -> None:
    try:
        write_file(str(file.temporary), text.encode())
        file.publish()
    except OSError as error:
        raise EngineError("output", f"{error.filename}: {error.strerror}", "Choose another file for --json") from error
    finally:
        file.discard()


def summary(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['name']}: failed: {row['failed']}"
    text = f"{row['name']}: {row['variant']} {row['us']:.1f} us, {row['of_copy']:.2f} of copy"
    if row["tflop_s"]:
        text += f", {row['tflop_s']:.0f} TFLOP/s"
    for name, peer in row["peers"].items():
        text += f"; {name} " + (f"{peer['us']:.1f} us" if "us" in peer else f"failed: {peer['failed']}")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    events = EventWriter(sys.stdout.fileno())
    try:
        result = run(argument_parser().parse_args(arguments), events)
        events.progress("done", 1, 1, 1.0)
        events.result("bench", **result)
        return EXIT_DONE
    except EngineError as error:
        events.write(error.event())
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001
        failure = EngineError(
            "internal", f"{type(error).__name__}: {error}", "Please report it", traceback=traceback.format_exc()
        )
        events.write(failure.event())
        return failure.exit_code
