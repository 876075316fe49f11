# The `build` and `parse` commands, as a worker runs them: ONNX in, TensorRT engine out.
"""One code path for tensorrt_rtx and tensorrt 10.x and 11.x."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import time
import warnings
from typing import Any

from graft.engine.events import EngineError, EventWriter
from graft.engine.flavours import cuda_devices, flavour_named
from graft.engine.layers import layers_of_engine
from graft.engine.parsing import check_model_file, describe_network, network_inputs, parse_model
from graft.engine.progress import make_monitor
from graft.engine.session import Session
from graft.engine.shapes import ShapeRange, dims_text, parse_shape_ranges, profile_ranges
from graft.engine.targets import apply_targets

# The build's share of the progress bar; loading and parsing come before, writing after.
PARSE_AT, BUILD_FROM, BUILD_TO = 0.02, 0.05, 0.98

# "Profile kMAX values are not self-consistent", a warning, and "kOPT values for profile 0 violate shape constraints".
UNUSABLE_PROFILE = re.compile(
    r"k(MIN|OPT|MAX) values (?:are not self-consistent|for profile \d+ violate shape constraints)"
)
PROFILE_ENDS = {"MIN": ("smallest", "minimum"), "OPT": ("usual", "optimum"), "MAX": ("largest", "maximum")}


def run_parse(request: dict[str, Any], events: EventWriter) -> None:
    check_model_file(request["model"])
    session = Session(flavour_named(request["flavour"]), events)
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
    given = parse_shape_ranges(request["shapes"])
    events.progress("load TensorRT", 0, 1, 0.0)
    session = Session(flavour_named(request["flavour"]), events)
    libraries = load_libraries(session, request)
    config = session.owner.create_builder_config()
    apply_targets(session.trt, config, request["targets"], has_gpu())

    events.progress("parse", 0, 1, PARSE_AT)
    network, _parser = parse_model(session, request["model"], request["plugin_override"])
    ranges = profile_ranges(network_inputs(network), given)
    if ranges:
        add_profile(session, config, network, ranges)
    configure(session, config, request)
    timing_cache = TimingCache(session, config, request["timing_cache_file"], request["timing_cache"])

    facts = describe_network(session.trt, network, request["network_info"])
    plan = build_with_profile(session, network, config, request["model"], ranges)
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
        profile={name: found.text() for name, found in ranges.items()},
        plugin_libraries=libraries,
        network=facts,
        timing_cache=timing_cache.save(),
        inspector=inspect_engine(session, plan) if request["network_info"] else None,
        engine_layers=layers_of_engine(session, plan) if request["layers"] else None,
        seconds=round(time.monotonic() - started, 3),
    )


def has_gpu() -> bool:
    return bool(cuda_devices()["devices"])


def load_libraries(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Loads each library once, under whatever names it is given."""
    loaded: dict[str, dict[str, Any]] = {}
    for path in request["plugin_libraries"]:
        real = os.path.realpath(path)
        if real not in loaded:
            loaded[real] = {"path": path, "sha256": file_digest(real), "creators": session.load_plugin_library(path)}
    return list(loaded.values())


def file_digest(path: str) -> str:
    """SHA-256, by which a plugin library is told from another build of it; "" for what cannot be read."""
    digest = hashlib.sha256()
    try:
        with pathlib.Path(path).open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


def configure(session: Session, config: Any, request: dict[str, Any]) -> None:
    trt = session.trt
    if request["workspace"] is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, request["workspace"])
    if (request["network_info"] or request["layers"]) and hasattr(config, "profiling_verbosity"):
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    monitor = make_monitor(trt, session.events, BUILD_FROM, BUILD_TO)
    if monitor is not None and hasattr(config, "progress_monitor"):
        config.progress_monitor = monitor


def add_profile(session: Session, config: Any, network: Any, ranges: dict[str, ShapeRange]) -> None:
    profile = session.owner.create_optimization_profile()
    tensors = {network.get_input(i).name: network.get_input(i) for i in range(network.num_inputs)}
    for name, found in ranges.items():
        is_values = bool(tensors[name].is_shape_tensor)
        setter = profile.set_shape_input if is_values else profile.set_shape
        try:
            setter(name, found.minimum, found.optimum, found.maximum)
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineError(
                "shapes", f"--shapes {name}={found.text()}: TensorRT refuses it: {error}", "Change the range"
            ) from error
    if config.add_optimization_profile(profile) < 0:
        described = " ".join(f"{name}={found.text()}" for name, found in ranges.items())
        raise EngineError(
            "shapes",
            f"--shapes {described}: TensorRT refuses the optimisation profile; its messages come before this one",
            "Change the ranges",
        )


def build_with_profile(session: Session, network: Any, config: Any, model: str, ranges: dict[str, ShapeRange]) -> Any:
    """The plan. A profile that TensorRT finds fault with is an error even where it builds an engine all the same."""
    before = len(session.complaints)
    try:
        return build_plan(session, network, config, model)
    finally:
        check_profile(session.complaints[before:], model, ranges)


def check_profile(complaints: list[str], model: str, ranges: dict[str, ShapeRange]) -> None:
    """Raises EngineError for the first complaint about a profile whose shapes do not go through the network."""
    for complaint in complaints:
        match = UNUSABLE_PROFILE.search(complaint)
        if match is None or not ranges:
            continue
        word, end = PROFILE_ENDS[match.group(1)]
        shapes = " ".join(f"{name}={dims_text(getattr(found, end))}" for name, found in ranges.items())
        raise EngineError(
            "shapes",
            f"{model}: the {word} shapes of the profile, {shapes}, do not go through the network: {complaint}",
            "The node that TensorRT names fixes a size that the input leaves open, as exporters do with the batch: "
            "export the model with that size dynamic, or give --shapes a range that the node takes",
            profile_end=end,
        )


def build_plan(session: Session, network: Any, config: Any, model: str) -> Any:
    plan = session.owner.build_serialized_network(network, config)
    if plan is None:
        raise EngineError(
            "build",
            f"{model}: {session.flavour.module} {session.trt.__version__} cannot build an engine from it; "
            "its messages come before this one",
            "Mend what its messages name; `graft inspect` says of each node how TensorRT runs it",
        )
    return plan


def write_engine(path: str, plan: Any) -> tuple[int, str]:
    """Size and SHA-256 of what was written."""
    data = memoryview(plan).cast("B")
    write_file(path, data)
    return data.nbytes, hashlib.sha256(data).hexdigest()


def write_file(path: str, data: memoryview | bytes) -> None:
    try:
        with pathlib.Path(path).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EngineError(
            "output",
            f"{path}: cannot write {len(data)} bytes: {error.strerror}",
            "Free some space, or choose another folder",
        ) from error


class TimingCache:
    """TensorRT's timing cache in a file; RTX has none, and says so in the result."""

    def __init__(self, session: Session, config: Any, temporary: str | None, path: str | None) -> None:
        self._session = session
        self._config = config
        self._temporary = temporary
        self._path = path
        self._state = "not asked for"
        if path is not None:
            self._state = self._load(pathlib.Path(path))

    def _load(self, path: pathlib.Path) -> str:
        try:
            previous = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise EngineError("input", f"timing cache {path}: {error.strerror}", "Name a readable file") from error
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            accepted = self._set(previous)
            if not accepted:
                self._set(b"")
        if any("no-op" in str(warning.message) for warning in caught):
            self._warn(f"{self._session.flavour.module} keeps no timing cache: --timing-cache has no effect")
            return "not supported"
        if not accepted:
            self._warn(f"timing cache {path} is damaged, or of another TensorRT or GPU: starting an empty one")
            return "replaced"
        return "extended" if previous else "new"

    def _set(self, data: bytes) -> bool:
        cache = self._config.create_timing_cache(data)
        return cache is not None and bool(self._config.set_timing_cache(cache, False))

    def _warn(self, message: str) -> None:
        self._session.events.log("warning", message)

    def save(self) -> dict[str, Any]:
        """Writes the cache to its temporary file; the supervisor renames it together with the engine."""
        if self._state in ("not asked for", "not supported") or self._temporary is None:
            return {"path": self._path, "state": self._state}
        data = memoryview(self._config.get_timing_cache().serialize()).cast("B")
        write_file(self._temporary, data)
        return {"path": self._path, "state": self._state, "bytes": data.nbytes}


def inspect_engine(session: Session, plan: Any) -> dict[str, Any]:
    """The engine's own account of its layers, which takes a GPU that can run the engine."""
    if not has_gpu():
        return {"layers": None, "reason": "the engine inspector needs a GPU; there is none"}
    engine = session.trt.Runtime(session.logger).deserialize_cuda_engine(plan)
    if engine is None:
        return {"layers": None, "reason": "the engine does not load on this machine's GPU"}
    text = engine.create_engine_inspector().get_engine_information(session.trt.LayerInformationFormat.JSON)
    return {"layers": json.loads(text), "reason": ""}
