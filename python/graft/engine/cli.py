"""The command line of the engine driver: `python -m graft.engine COMMAND ...`. Every command writes newline-delimited
JSON events to standard output; see README.md in this folder."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import pathlib
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import graft
from graft.engine.events import EXIT_DONE, EngineError, EventWriter, open_files_error
from graft.engine.files import file_digest
from graft.engine.flavors import FLAVORS, Flavor, choose_flavor, flavor_named, gpu_seems_present, is_installed
from graft.engine.libraries import check_library
from graft.engine.names import named
from graft.engine.options import FLAGS, check_combinations, parse_formats, parse_memory
from graft.engine.shapes import parse_profile, parse_shape_ranges
from graft.engine.supervisor import CHILDREN, LOADING_LIMIT, QUIET_LIMITS, run_worker
from graft.engine.targets import parse_targets
from graft.engine.trials import serve_trials

EXAMPLES = """examples:
  python -m graft.engine probe
  python -m graft.engine build model.onnx --output model.engine --plugin-library build/lib/libgraft_plugins.so \\
      --target sm89,sm120 --shapes x=1x3x8x8..4x3x64x64..8x3x128x128
  python -m graft.engine plugins build/lib/libgraft_plugins.so
"""


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong use as an error event."""

    def error(self, message: str) -> NoReturn:
        # argparse composes the text with the driver's own option names.
        message = re.sub("--[a-z][a-z0-9-]*", lambda option: named(option[0]), message)
        raise EngineError("usage", message, f"{self.prog} --help shows the options")


def argument_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m graft.engine",
        description="Runs the installed TensorRT and writes JSON events.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("probe", help="report the installed TensorRT and its abilities")

    build = commands.add_parser("build", help="build an engine from an ONNX model")
    add_model_options(build)
    build.add_argument("--output", required=True, help="the engine file to write")
    add_target_option(build)
    build.add_argument("--shapes", action="append", default=[], help="NAME=MIN..OPT..MAX; repeatable")
    build.add_argument(
        "--profile", action="append", default=[], help="a further optimization profile: NAME=MIN..OPT..MAX,..."
    )
    build.add_argument("--timing-cache", help="file to read and extend (not with RTX, which has no timing cache)")
    build.add_argument("--layers", action="store_true", help="report the engine's kernels and their types")
    add_builder_options(build)
    add_time_limit(build, "build")

    choose = commands.add_parser("choose", help="report which TensorRT `build` would use")
    add_choice_option(choose)
    add_target_option(choose)

    parse = commands.add_parser("parse", help="run only TensorRT's parser, without building")
    add_model_options(parse)
    add_time_limit(parse, "parse")

    trials = commands.add_parser(
        "trials", help="parse and build many models; each request and each result is a line with a JSON object"
    )
    add_parser_options(trials)
    add_target_option(trials)

    plugins = commands.add_parser("plugins", help="list the creators in plugin libraries")
    plugins.add_argument("libraries", nargs="+", metavar="LIBRARY")
    plugins.add_argument("--tensorrt", choices=["auto", "rtx", "full", "lean"], default="auto")
    plugins.add_argument("--check", action="store_true", help="check that each creator follows TensorRT's contract")
    plugins.add_argument("--verbose", action="store_true")
    add_time_limit(plugins, "plugins")
    return parser


def add_builder_options(build: argparse.ArgumentParser) -> None:
    build.add_argument("--memory", action="append", default=[], help="workspace=2GiB,tacticSharedMemory=48KiB ...")
    build.add_argument("--optimization-level", type=natural_number, help="0 to 5: a higher level tries more kernels")
    for side in ("input", "output"):
        help_text = f"NAME=[TYPE:]FORMAT[+FORMAT]: type and formats of the {side}"
        build.add_argument(f"--{side}-format", action="append", default=[], help=help_text)
    build.add_argument("--tf32", action="store_true", help="allow f32 layers to compute in TF32")
    build.add_argument(
        "--version-compatible", action="store_true", help="build an engine that later versions of TensorRT can load"
    )
    build.add_argument("--exclude-lean-runtime", action="store_true", help="build the engine without the lean runtime")
    build.add_argument("--embed-plugins", action="store_true", help="embed the plugin libraries in the engine")
    build.add_argument("--refit", action="store_true", help="build an engine whose weights can be changed later")
    build.add_argument(
        "--strip-weights", action="store_true", help="build an engine without the weights that can be refitted later"
    )
    build.add_argument("--weight-streaming", action="store_true", help="allow weights to stay in host memory")
    build.add_argument("--dla", type=natural_number, metavar="CORE", help="run on this DLA core")
    build.add_argument(
        "--gpu-fallback", action="store_true", help="with --dla: run layers that DLA cannot run on the GPU"
    )
    build.add_argument("--device", type=natural_number, metavar="NUMBER", help="the GPU to build on")
    build.add_argument("--profiling-verbosity", choices=["none", "layer_names_only", "detailed"])


def add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="the ONNX model")
    parser.add_argument("--plugin-library", action="append", default=[], help="plugin library to load; repeatable")
    add_parser_options(parser)
    parser.add_argument("--network-info", action="store_true", help="report every layer")


def add_target_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", action="append", default=[], help="sm89,sm120 (RTX only) or current")


def add_choice_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tensorrt", choices=["auto", "rtx", "full"], default="auto")


def add_parser_options(parser: argparse.ArgumentParser) -> None:
    add_choice_option(parser)
    parser.add_argument(
        "--plugin-override",
        action="store_true",
        help="prefer plugins to functions and native operators of the same name",
    )
    parser.add_argument("--verbose", action="store_true", help="report all of TensorRT's messages")


def add_time_limit(parser: argparse.ArgumentParser, command: str) -> None:
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        help="seconds without progress after which TensorRT counts as hanging, "
        f"{QUIET_LIMITS[command]:g}; also the maximum time to open a plugin library, {LOADING_LIMIT:g}",
    )


def positive_number(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be a positive number")
    return value


def natural_number(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError("must be an integer of at least 0")
    return value


def model_request(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": arguments.command,
        "model": arguments.model,
        "plugin_libraries": arguments.plugin_library,
        "plugin_override": arguments.plugin_override,
        "network_info": arguments.network_info,
        "time_limit": arguments.time_limit,
    }


def check_libraries(paths: Sequence[str]) -> None:
    for path in paths:
        check_library(path)


def run_build(arguments: argparse.Namespace, events: EventWriter) -> None:
    check_libraries(arguments.plugin_library)
    targets = parse_targets(arguments.target)
    parse_shape_ranges(arguments.shapes)
    for profile in arguments.profile:
        parse_profile(profile)
    options = builder_options(arguments)
    flavor = choose_flavor(arguments.tensorrt, targets, not why_no_gpu())
    engine = WholeFile(arguments.output)
    timing_cache = WholeFile(arguments.timing_cache) if arguments.timing_cache else None
    request = model_request(arguments) | {
        "flavor": flavor.name,
        "output": arguments.output,
        "engine_file": str(engine.temporary),
        "targets": targets,
        "shapes": arguments.shapes,
        "profiles": arguments.profile,
        "options": options,
        "device": arguments.device,
        "timing_cache": arguments.timing_cache,
        "timing_cache_file": str(timing_cache.temporary) if timing_cache else None,
        "layers": arguments.layers,
    }
    try:
        result = run_worker(request, flavor, events.write, arguments.verbose)
        engine.check(result["bytes"], result["sha256"])
        engine.publish()
    finally:
        engine.discard()
        if timing_cache:
            timing_cache.discard()
    events.progress("done", 1, 1, 1.0)
    events.write(result)


def builder_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the builder's options by name, checked as far as possible without TensorRT. Raises EngineError for a
    malformed option, and for an option without another option that it needs."""
    parse_formats(named("--input-format"), arguments.input_format)
    parse_formats(named("--output-format"), arguments.output_format)
    names = (*FLAGS, "tf32", "embed_plugins", "optimization_level", "dla", "profiling_verbosity")
    options = {name: getattr(arguments, name) for name in names} | {
        "memory": parse_memory(arguments.memory),
        "input_formats": arguments.input_format,
        "output_formats": arguments.output_format,
    }
    check_combinations(options)
    return options


class WholeFile:
    """A file that appears under its name only when it is complete, however the worker ends. A symbolic link of that
    name is replaced and not followed: a link that came with files of another person could lead to any file of the
    user."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)
        folder = self.path.parent
        if not folder.is_dir():
            raise EngineError("output", f"{path}: the folder {folder} does not exist", f"Create it: mkdir -p {folder}")
        if self.path.is_dir():
            raise EngineError("output", f"{path} is a folder", "Choose a file to write")
        if self.path.exists() and not self.path.is_file():
            # A rename onto a device such as /dev/null would replace the device.
            raise EngineError("output", f"{path} is a device, a pipe or a socket", "Choose a file to write")
        if self.path.parent.resolve() == pathlib.Path("/dev") or self.path.parent.resolve().is_relative_to("/proc"):
            # If standard output is a file, /dev/stdout is a link of the system to a regular file.
            raise EngineError(
                "output",
                f"{path}: {self.path.parent.resolve()} is a system folder",
                "Choose a file in another folder",
            )
        self.temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            self.temporary.unlink(missing_ok=True)  # left by a process that was killed
            self.temporary.touch(exist_ok=False)
            self.temporary.unlink()
        except OSError as error:
            raise EngineError(
                "output", f"{path}: cannot write in {folder}: {error.strerror}", "Choose another folder"
            ) from error

    def check(self, size: int, sha256: str) -> None:
        """Raises EngineError unless the temporary file has the size and the SHA-256 that the worker reported."""
        try:
            is_whole = self.temporary.stat().st_size == size and file_digest(self.temporary) == sha256
        except OSError:
            is_whole = False
        if not is_whole:
            message = f"{self.path}: the file differs from the size or digest that the TensorRT process reported"
            raise EngineError("crash", message, "Check the plugin libraries: their code runs in that process")

    def publish(self) -> None:
        if not self.temporary.exists():
            return
        try:
            self.temporary.replace(self.path)
        except OSError as error:
            raise EngineError("output", f"{self.path}: {error.strerror}", "Choose another file") from error

    def discard(self) -> None:
        self.temporary.unlink(missing_ok=True)


def run_choose(arguments: argparse.Namespace, events: EventWriter) -> None:
    missing = why_no_gpu()
    flavor = choose_flavor(arguments.tensorrt, parse_targets(arguments.target), not missing)
    events.result("choose", flavor=flavor.name, gpu_present=not missing, why_no_gpu=missing)


def why_no_gpu() -> str:
    """Returns the reason why CUDA has no GPU on this machine, or an empty string if it has one. If there is a device
    file of a GPU, a separate process queries the driver, as the build does for the target `current`."""
    if not gpu_seems_present():
        return "this machine has no GPU"
    try:
        cuda = run_worker({"command": "probe", "flavor": None}, None, lambda event: None)["cuda"]
    except EngineError as error:
        return f"CUDA cannot use the GPU of this machine: {error.message}"
    return "" if cuda["devices"] else f"CUDA cannot use the GPU of this machine: {cuda['reason']}"


def run_parse(arguments: argparse.Namespace, events: EventWriter) -> None:
    check_libraries(arguments.plugin_library)
    flavor = choose_flavor(arguments.tensorrt, [], not why_no_gpu())
    request = model_request(arguments) | {"flavor": flavor.name}
    events.write(run_worker(request, flavor, events.write, arguments.verbose))


def run_trials(arguments: argparse.Namespace, events: EventWriter) -> None:
    targets = parse_targets(arguments.target)
    flavor = choose_flavor(arguments.tensorrt, targets, not why_no_gpu())
    request = {
        "command": "trials",
        "flavor": flavor.name,
        "plugin_override": arguments.plugin_override,
        "targets": targets,
    }
    serve_trials(request, flavor, events, arguments.verbose)


def run_plugins(arguments: argparse.Namespace, events: EventWriter) -> None:
    check_libraries(arguments.libraries)
    flavor = registry_flavor(arguments.tensorrt, arguments.check)
    request = {"command": "plugins", "flavor": flavor.name, "plugin_libraries": arguments.libraries}
    request["time_limit"] = arguments.time_limit
    if arguments.check:
        from graft.engine.conformance import check_libraries as check_conformance

        check_conformance(request | {"command": "check"}, flavor, events, arguments.verbose)
        return
    events.write(run_worker(request, flavor, events.write, arguments.verbose))


def registry_flavor(wanted: str, prefers_builder: bool) -> Flavor:
    """Returns the flavor whose plugin registry loads the libraries: the flavor named `wanted` or, for "auto", the first
    installed one. The full TensorRT and the lean runtime come before RTX, whose registry is a subset. With
    `prefers_builder` the lean runtime, which has no builder, comes last. Raises EngineError where no such flavor is
    installed."""
    if wanted != "auto":
        candidates: Sequence[Flavor] = [flavor_named(wanted)]
    else:
        names = ("full", "rtx", "lean") if prefers_builder else ("full", "lean", "rtx")
        candidates = [flavor_named(name) for name in names]
    for flavor in candidates:
        if is_installed(flavor):
            return flavor
    raise EngineError(
        "tensorrt_missing",
        "no TensorRT with a plugin registry is installed (searched for the Python modules "
        + ", ".join(f.module for f in candidates)
        + ")",
        f"Install one with: {flavor_named('rtx').install if wanted == 'auto' else candidates[0].install}",
    )


def run_probe(_arguments: argparse.Namespace, events: EventWriter) -> None:
    """Probes each flavor, and the CUDA driver, in a process of its own, so that a crash affects no other result."""

    def ask(flavor: Flavor | None) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if flavor is not None:
            facts = {"flavor": flavor.name, "module": flavor.module, "install": flavor.install}
            if not is_installed(flavor):
                return facts | {"usable": False, "reason": f"the Python module {flavor.module} is not installed"}
        try:
            answer = run_worker(
                {"command": "probe", "flavor": flavor.name if flavor else None}, flavor, lambda event: None
            )
        except EngineError as error:
            return facts | {"usable": False, "reason": error.message}
        return {k: v for k, v in answer.items() if k not in ("event", "command")}

    # Only `probe` needs these modules. Their import takes a third as long as all imports of the other commands.
    from concurrent.futures import ThreadPoolExecutor

    from graft.engine.compilers import compilers

    with ThreadPoolExecutor() as pool:
        *flavors, cuda = pool.map(ask, [*FLAVORS, None])
    python = {"executable": sys.executable, "version": ".".join(map(str, sys.version_info[:3]))}
    package = {
        "version": graft.__version__,
        "folder": str(pathlib.Path(graft.__file__).parent),
        "has_toolkit": importlib.util.find_spec("graft._toolkit") is not None,
    }
    events.result(
        "probe",
        package=package,
        flavors=flavors,
        cuda=cuda.get("cuda", {"devices": [], "reason": cuda.get("reason", "")}),
        python=python,
        compilers=compilers(),
    )


COMMANDS = {
    "probe": run_probe,
    "build": run_build,
    "choose": run_choose,
    "parse": run_parse,
    "trials": run_trials,
    "plugins": run_plugins,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    # SIGTERM unwinds the stack as Ctrl-C does, so that the worker is ended and temporary files are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    CHILDREN.adopt_orphans()
    events = EventWriter(sys.stdout.fileno())
    try:
        arguments = argument_parser().parse_args(argv)
        COMMANDS[arguments.command](arguments, events)
    except EngineError as error:
        events.write(error.event())
        return error.exit_code
    except BrokenPipeError:
        return 128 + signal.SIGPIPE  # the reader has closed the pipe
    except OSError as error:
        failure = open_files_error(error)
        events.write(failure.event())
        return failure.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return EXIT_DONE
