"""The `build` and `parse` commands in a worker: they read an ONNX model, and `build` writes a TensorRT engine. A single
implementation serves tensorrt_rtx, tensorrt 10.x and tensorrt 11.x."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any

from graft.engine.events import EngineError, EventWriter
from graft.engine.files import file_digest, write_file
from graft.engine.flavors import cuda_devices, flavor_named
from graft.engine.layers import layers_of_engine
from graft.engine.names import named
from graft.engine.options import (
    allow_aliased_ports,
    apply_formats,
    apply_options,
    embed_plugins,
    is_given,
    parse_formats,
    refused_format,
    set_tf32,
)
from graft.engine.parsing import check_model_file, describe_network, network_inputs, parse_model
from graft.engine.profiles import add_profile, check_profiles
from graft.engine.progress import make_monitor
from graft.engine.session import Session
from graft.engine.shapes import ShapeRange, optimization_profiles
from graft.engine.sizes import output_types, tensor_sizes
from graft.engine.targets import apply_targets
from graft.engine.timing_cache import TimingCache

# Positions on the progress bar, 0 to 1: parsing starts at PARSE_AT, and the build runs from BUILD_FROM to BUILD_TO.
PARSE_AT, BUILD_FROM, BUILD_TO = 0.02, 0.05, 0.98


def run_parse(request: dict[str, Any], events: EventWriter) -> None:
    check_model_file(request["model"])
    session = Session(flavor_named(request["flavor"]), events)
    libraries = load_libraries(session, request)
    network, _parser = parse_model(session, request["model"], request["plugin_override"])
    events.result(
        "parse",
        model=request["model"],
        tensorrt=session.identity(),
        plugin_libraries=libraries,
        network=describe_network(session.trt, network, request["network_info"]),
    )


def run_build(request: dict[str, Any], events: EventWriter) -> None:
    """Writes the engine to request["engine_file"], a temporary file that the supervisor renames."""
    started = time.monotonic()
    check_model_file(request["model"])
    options = request["options"]
    events.progress("load TensorRT", 0, 1, 0.0)
    device = check_device(request["device"])
    session = Session(flavor_named(request["flavor"]), events)
    libraries = load_libraries(session, request)
    config = session.owner.create_builder_config()
    apply_targets(session.trt, config, request["targets"], has_gpu())
    apply_options(session, config, options)
    tf32 = set_tf32(session, config, options["tf32"])
    if options["embed_plugins"]:
        embed_plugins(session, config, [os.path.realpath(library["path"]) for library in libraries])
    set_profiling(session, config, request)

    events.progress("parse", 0, 1, PARSE_AT)
    network, _parser = parse_model(session, request["model"], request["plugin_override"])
    allow_aliased_ports(session, config, network)
    profiles = optimization_profiles(network_inputs(network), request["shapes"], request["profiles"])
    for ranges in profiles:
        add_profile(session, config, network, ranges)
    types = output_types(network)
    apply_formats(
        session,
        network,
        parse_formats(named("--input-format"), options["input_formats"]),
        parse_formats(named("--output-format"), options["output_formats"]),
    )
    monitor = make_monitor(session.trt, session.events, BUILD_FROM, BUILD_TO)
    if monitor is not None and hasattr(config, "progress_monitor"):
        config.progress_monitor = monitor
    timing_cache = TimingCache(session, config, request["timing_cache"], request["timing_cache_file"])

    facts = describe_network(session.trt, network, request["network_info"])
    plan = build_with_options(session, network, config, request, profiles)
    sizes = tensor_sizes(session, network, profiles)
    events.progress("write", 0, 1, BUILD_TO)
    size, digest = write_engine(request["engine_file"], plan)
    events.result(
        "build",
        model=request["model"],
        engine=request["output"],
        bytes=size,
        sha256=digest,
        tensorrt=session.identity(),
        targets=request["targets"],
        device=device,
        profiles=[{name: found.text() for name, found in ranges.items()} for ranges in profiles],
        options={name: value for name, value in options.items() if is_given(value)} | {"tf32": tf32},
        plugin_libraries=[library | {"embedded": options["embed_plugins"]} for library in libraries],
        network=facts,
        tensors={"types": types, "sizes": sizes},
        timing_cache=timing_cache.save(),
        inspector=inspect_engine(session, plan) if request["network_info"] else None,
        engine_layers=layers_of_engine(session, plan) if request["layers"] else None,
        seconds=round(time.monotonic() - started, 3),
    )


def check_device(number: int | None) -> dict[str, Any] | None:
    """Returns the GPU that --device selected, or None if `number` is None because the option is missing. Raises
    EngineError where there is no such GPU. The supervisor has made this GPU the only visible one."""
    if number is None:
        return None
    found = cuda_devices()
    if not found["devices"]:
        raise EngineError(
            "option",
            f"{named('--device')} {number}: there is no such GPU: {found['reason']}",
            f"`graft doctor` lists the GPUs; with {named('--target')} instead of {named('--device')}, TensorRT-RTX needs "
            "no GPU",
        )
    return {"number": number, **found["devices"][0]}


def has_gpu() -> bool:
    return bool(cuda_devices()["devices"])


def load_libraries(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Loads each library once, also where two paths lead to the same file, and returns path, digest and creators of
    each."""
    loaded: dict[str, dict[str, Any]] = {}
    for path in request["plugin_libraries"]:
        real = os.path.realpath(path)
        if real not in loaded:
            loaded[real] = {"path": path, "sha256": library_digest(real), "creators": session.load_plugin_library(path)}
    return list(loaded.values())


def library_digest(path: str) -> str:
    """Returns the SHA-256 that distinguishes builds of a plugin library, or "" for an unreadable file."""
    try:
        return file_digest(path)
    except OSError:
        return ""


def set_profiling(session: Session, config: Any, request: dict[str, Any]) -> None:
    """Sets the detailed profiling verbosity where layers are reported, unless --profiling-verbosity is given."""
    wants_account = request["network_info"] or request["layers"]
    given = request["options"]["profiling_verbosity"] is not None
    if wants_account and not given and hasattr(config, "profiling_verbosity"):
        config.profiling_verbosity = session.trt.ProfilingVerbosity.DETAILED


def build_with_options(
    session: Session, network: Any, config: Any, request: dict[str, Any], profiles: list[dict[str, ShapeRange]]
) -> Any:
    """Builds the engine and returns the plan. Raises EngineError if TensorRT builds no engine, or if
    TensorRT reports an error about an optimization profile, even if it builds an engine."""
    model, options = request["model"], request["options"]
    errors, warned = len(session.errors), len(session.warnings)
    plan = session.owner.build_serialized_network(network, config)
    complaints = session.errors[errors:]
    check_profiles(complaints, session.warnings[warned:], model, profiles)
    if plan is not None:
        return plan
    formats = parse_formats(named("--input-format"), options["input_formats"])
    formats += parse_formats(named("--output-format"), options["output_formats"])
    if refused := refused_format(complaints, formats):
        raise refused
    failure = build_failure(session, model)
    if options["version_compatible"] and any("nvinfer_lean" in complaint for complaint in complaints):
        failure.next_step = (
            "The installed TensorRT has no lean runtime to include in the engine: add "
            f"{named('--exclude-lean-runtime')}"
        )
    elif (options["refit"] or options["strip_weights"]) and session.flavor.name == "rtx" and not has_gpu():
        failure.next_step = "TensorRT-RTX builds a refittable engine only on a machine with a GPU"
    raise failure


def build_plan(session: Session, network: Any, config: Any, model: str) -> Any:
    plan = session.owner.build_serialized_network(network, config)
    if plan is None:
        raise build_failure(session, model)
    return plan


def build_failure(session: Session, model: str) -> EngineError:
    return EngineError(
        "build",
        f"{model}: {session.version} cannot build an engine from this model; see TensorRT's messages above",
        "Fix the node that TensorRT names above; `graft inspect` reports how TensorRT runs each node",
    )


def write_engine(path: str, plan: Any) -> tuple[int, str]:
    """Writes the plan to a new file and returns its size in bytes and its SHA-256."""
    data = memoryview(plan).cast("B")
    write_file(path, data)
    return data.nbytes, hashlib.sha256(data).hexdigest()


def inspect_engine(session: Session, plan: Any) -> dict[str, Any]:
    """Returns {"layers": the JSON of TensorRT's engine inspector, "reason": ""}, or {"layers": None, "reason": why it
    cannot be read}. The inspector needs a GPU that can run the engine."""
    if not has_gpu():
        return {"layers": None, "reason": "the engine inspector needs a GPU, and this machine has no GPU"}
    engine = session.trt.Runtime(session.logger).deserialize_cuda_engine(plan)
    if engine is None:
        return {"layers": None, "reason": "the engine does not load on this machine's GPU"}
    text = engine.create_engine_inspector().get_engine_information(session.trt.LayerInformationFormat.JSON)
    return {"layers": json.loads(text), "reason": ""}
