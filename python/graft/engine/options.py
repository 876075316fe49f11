"""The options of TensorRT's builder (memory pools, formats, flags and DLA): parses them and sets them in TensorRT. An
option that the installed TensorRT does not support raises EngineError with the option's name and TensorRT's version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from graft.engine.events import EngineError
from graft.engine.names import named
from graft.engine.parsing import DTYPE_NAMES, aliased_layers, dtype_name
from graft.engine.session import Session

# TensorRT's memory pools by their names in Graft and in trtexec.
POOLS = {
    "workspace": "WORKSPACE",
    "tacticsharedmemory": "TACTIC_SHARED_MEMORY",
    "tacticsharedmem": "TACTIC_SHARED_MEMORY",
    "tacticdram": "TACTIC_DRAM",
    "dlasram": "DLA_MANAGED_SRAM",
    "dlalocaldram": "DLA_LOCAL_DRAM",
    "dlaglobaldram": "DLA_GLOBAL_DRAM",
}
POOL_NAMES = "workspace, tacticSharedMemory, tacticDRAM, dlaSRAM, dlaLocalDRAM, dlaGlobalDRAM"
UNITS = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MEMORY_SYNTAX = "Write for example workspace=2GiB,tacticSharedMemory=48KiB; the units are B, KiB, MiB and GiB"

FORMATS = {
    "linear": "LINEAR",
    "chw": "LINEAR",
    "chw2": "CHW2",
    "chw4": "CHW4",
    "chw16": "CHW16",
    "chw32": "CHW32",
    "hwc": "HWC",
    "hwc8": "HWC8",
    "hwc16": "HWC16",
    "dhwc": "DHWC",
    "dhwc8": "DHWC8",
    "cdhw32": "CDHW32",
    "dla_linear": "DLA_LINEAR",
    "dla_hwc4": "DLA_HWC4",
}
TYPES = {name: name for name in (*DTYPE_NAMES.values(), "bool", "fp8", "int4", "fp4")} | {
    "fp32": "f32",
    "fp16": "f16",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
}
FORMAT_SYNTAX = (
    "Write NAME=FORMAT, NAME=TYPE:FORMAT or several formats joined by +, for example x=f16:hwc8; the formats are "
    + ", ".join(FORMATS)
)
WRONG_FORMAT = re.compile(r"(\S+): has dataType \w+ unsupported by tensor's allowed TensorFormats")

# Options that set a single flag of the builder.
FLAGS = {
    "version_compatible": "VERSION_COMPATIBLE",
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
    "refit": "REFIT",
    "strip_weights": "STRIP_PLAN",
    "weight_streaming": "WEIGHT_STREAMING",
    "gpu_fallback": "GPU_FALLBACK",
}
# Options that need another option.
NEEDS = {"exclude_lean_runtime": "version_compatible", "gpu_fallback": "dla"}


def spelling(name: str) -> str:
    return named("--" + name.replace("_", "-"))


def parse_memory(texts: list[str]) -> dict[str, int]:
    """Returns the limit of each given memory pool in bytes. Raises EngineError for malformed text."""
    limits: dict[str, int] = {}
    for text in texts:
        for part in text.split(","):
            name, separator, size = part.partition("=" if "=" in part else ":")
            pool = POOLS.get(name.strip().lower().replace("_", ""))
            if not separator:
                raise EngineError(
                    "option", f"{named('--memory')} {part}: =SIZE is missing after the name of the pool", MEMORY_SYNTAX
                )
            if pool is None:
                raise EngineError(
                    "option", f"{named('--memory')} {part}: unknown pool; the pools are {POOL_NAMES}", MEMORY_SYNTAX
                )
            if pool in limits:
                raise EngineError(
                    "option", f"{named('--memory')} {part}: this pool is specified twice", "Specify each pool once"
                )
            limits[pool] = parse_size(size, part)
    return limits


def parse_size(text: str, whole: str) -> int:
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)([a-z]+)", text.strip().lower())
    if match is None or match.group(2) not in UNITS:
        raise EngineError("option", f"{named('--memory')} {whole}: {text!r} is not a size with a unit", MEMORY_SYNTAX)
    size = int(float(match.group(1)) * UNITS[match.group(2)])
    if not 0 < size < 2**62:
        raise EngineError(
            "option",
            f"{named('--memory')} {whole}: {size} bytes is out of range; a limit must be at least 1 byte and less than "
            "2^62 bytes",
            MEMORY_SYNTAX,
        )
    return size


@dataclass(frozen=True)
class TensorFormat:
    """The type and the memory layouts that an input or output may have. If no format has a
    name (`name` is None), the first format is for the first tensor, and so on."""

    option: str
    text: str
    name: str | None
    type: str | None
    formats: tuple[str, ...]  # members of TensorRT's enumeration TensorFormat


def parse_formats(option: str, texts: list[str]) -> list[TensorFormat]:
    found = []
    for text in texts:
        # Formats without names belong to tensors by position, as in trtexec: fp16:chw,fp32:chw+hwc8.
        for part in text.split(",") if "=" not in text else [text]:
            name, separator, value = part.rpartition("=")
            found.append(parse_format(option, part, name if separator else None, value.strip().lower()))
    names = [each.name for each in found]
    if len({name is None for name in names}) > 1:
        raise EngineError("option", f"{option}: some formats have a name and some do not", FORMAT_SYNTAX)
    for name in names:
        if name is not None and names.count(name) > 1:
            raise EngineError(
                "option", f"{option} {name}: this tensor is specified twice", "Join several formats of a tensor by +"
            )
    return found


def parse_format(option: str, text: str, name: str | None, value: str) -> TensorFormat:
    first, colon, rest = value.partition(":")
    if not colon and first in TYPES:
        first, rest = value, "linear"
    elif not colon:
        first, rest = "", value
    type_name = TYPES.get(first)
    formats = rest.split("+")
    wrong = next((each for each in formats if each not in FORMATS), None)
    if name == "" or (first and type_name is None) or wrong is not None:
        what = f"type {first!r}" if first and type_name is None else f"format {wrong!r}"
        raise EngineError("option", f"{option} {text}: unknown {what}", FORMAT_SYNTAX)
    return TensorFormat(option, text, name, type_name, tuple(FORMATS[each] for each in formats))


def is_given(value: Any) -> bool:
    """Returns whether an option has a value. 0 is a value: core 0 of the DLA, optimization level 0."""
    return value is not None and value is not False and value != [] and value != {}


def check_combinations(options: dict[str, Any]) -> None:
    """Raises EngineError for an option without the option that it needs."""
    for name, needed in NEEDS.items():
        if is_given(options[name]) and not is_given(options[needed]):
            raise EngineError(
                "option", f"{spelling(name)}: this option also needs {spelling(needed)}", f"Add {spelling(needed)}"
            )


def lacks(session: Session, option: str, what: str) -> EngineError:
    return EngineError(
        "option",
        f"{option}: {session.version} does not support this option (no {what})",
        f"Omit {option}, or build with a TensorRT release that supports it"
        + (f": {named('--tensorrt')} full" if session.flavor.name == "rtx" else ""),
    )


def member_of(session: Session, option: str, enumeration: str, name: str) -> Any:
    """Returns a member of one of TensorRT's enumerations. Raises EngineError where this TensorRT does not have it."""
    found = getattr(getattr(session.trt, enumeration, None), name, None)
    if found is None:
        raise lacks(session, option, f"{enumeration}.{name}")
    return found


def apply_options(session: Session, config: Any, options: dict[str, Any]) -> None:
    """Sets the options on the builder's configuration. Raises EngineError for an option that TensorRT refuses."""
    for name, flag in FLAGS.items():
        if options[name]:
            set_flag(session, config, spelling(name), flag)
    if options["strip_weights"] and not options["refit"]:
        # An engine with stripped weights needs a refit: with the same weights, or with other weights where --refit is
        # given.
        set_flag(session, config, named("--strip-weights"), "REFIT_IDENTICAL")
    if options["dla"] is not None:
        use_dla(session, config, options["dla"])
    for pool, size in options["memory"].items():
        option = f"{named('--memory')} {pool.lower()}={size}B"
        with session.refusing(option):
            config.set_memory_pool_limit(member_of(session, option, "MemoryPoolType", pool), size)
    level = options["optimization_level"]
    if level is not None:
        option = f"{named('--optimization-level')} {level}"
        if not hasattr(config, "builder_optimization_level"):
            raise lacks(session, option, "IBuilderConfig.builder_optimization_level")
        with session.refusing(option):
            config.builder_optimization_level = level
    if options["profiling_verbosity"] is not None:
        option = f"{named('--profiling-verbosity')} {options['profiling_verbosity']}"
        member = member_of(session, option, "ProfilingVerbosity", options["profiling_verbosity"].upper())
        with session.refusing(option):
            config.profiling_verbosity = member


def set_flag(session: Session, config: Any, option: str, flag: str) -> None:
    member = member_of(session, option, "BuilderFlag", flag)
    with session.refusing(option):
        config.set_flag(member)


def set_tf32(session: Session, config: Any, is_allowed: bool) -> bool:
    """Allows or forbids TF32 and returns whether it is allowed. TensorRT's default allows TF32, with which f32 layers
    compute with 10 bits of mantissa on tensor cores."""
    if is_allowed:
        set_flag(session, config, named("--tf32"), "TF32")
    elif hasattr(getattr(session.trt, "BuilderFlag", None), "TF32"):
        config.clear_flag(session.trt.BuilderFlag.TF32)
    return is_allowed


def use_dla(session: Session, config: Any, core: int) -> None:
    option = f"{named('--dla')} {core}"
    cores = getattr(session.owner, "num_DLA_cores", 0)
    device = member_of(session, option, "DeviceType", "DLA")
    if core >= cores:
        there = f"the cores 0 to {cores - 1}" if cores else "no DLA core"
        raise EngineError(
            "option",
            f"{option}: {session.version} finds {there} on this machine",
            f"Choose an existing core, or build for the GPU without {named('--dla')}",
        )
    with session.refusing(option):
        config.default_device_type = device
        config.DLA_core = core


def allow_aliased_ports(session: Session, config: Any, network: Any) -> None:
    """Sets the preview feature for plugins that update an input in place, where the network has any. Raises EngineError
    for TensorRT before 10.3, which does not have the feature."""
    layers = aliased_layers(session.trt, network)
    if not layers:
        return
    feature = getattr(getattr(session.trt, "PreviewFeature", None), "ALIASED_PLUGIN_IO_10_03", None)
    if feature is None:
        raise EngineError(
            "build",
            f"{session.version} does not support plugins that update an input in place, such as {', '.join(layers)}",
            "Build with TensorRT 10.3 or later, or set in_place = 0, so that the output has its own memory",
        )
    config.set_preview_feature(feature, True)


def embed_plugins(session: Session, config: Any, libraries: list[str]) -> None:
    option = named("--embed-plugins")
    if not hasattr(config, "plugins_to_serialize"):
        raise lacks(session, option, "IBuilderConfig.plugins_to_serialize")
    if not libraries:
        raise EngineError(
            "option",
            f"{option}: no plugin library is loaded, so there is nothing to embed",
            f"Load one with {named('--plugin-library')}",
        )
    with session.refusing(option):
        config.plugins_to_serialize = libraries


def apply_formats(session: Session, network: Any, inputs: list[TensorFormat], outputs: list[TensorFormat]) -> None:
    apply_to(session, [network.get_input(index) for index in range(network.num_inputs)], inputs, "input")
    apply_to(session, [network.get_output(index) for index in range(network.num_outputs)], outputs, "output")


def apply_to(session: Session, tensors: list[Any], given: list[TensorFormat], side: str) -> None:
    if not given:
        return
    by_name = {tensor.name: tensor for tensor in tensors}
    listed = ", ".join(by_name)
    if given[0].name is None:
        spread = given * len(tensors) if len(given) == 1 else given
        if len(spread) != len(tensors):
            raise EngineError(
                "option",
                f"{given[0].option}: {len(given)} formats for {len(tensors)} {side}s: {listed}",
                "Specify one format for each in this order, one for all, or use names: NAME=FORMAT",
            )
        pairs = list(zip(tensors, spread, strict=True))
    else:
        unknown = next((each for each in given if each.name not in by_name), None)
        if unknown is not None:
            raise EngineError(
                "option",
                f"{unknown.option} {unknown.text}: the model has no {side} {unknown.name!r}; it has: {listed}",
                FORMAT_SYNTAX,
            )
        pairs = [(by_name[each.name], each) for each in given if each.name is not None]
    for tensor, wanted in pairs:
        apply_format(session, tensor, wanted)


def apply_format(session: Session, tensor: Any, wanted: TensorFormat) -> None:
    there = dtype_name(tensor.dtype)
    option = f"{wanted.option} {wanted.text}"
    if wanted.type is not None and wanted.type != there:
        raise EngineError(
            "option",
            f"{option}: {tensor.name} is {there} in the model, and a strongly typed network has the types of the model",
            f"Change the type in the model: {named('`graft quantize MODEL -o OUT --precision f16 --typed-io`')} also "
            "changes the types of inputs and outputs",
        )
    mask = 0
    for name in wanted.formats:
        mask |= 1 << int(member_of(session, option, "TensorFormat", name))
    with session.refusing(option):
        tensor.allowed_formats = mask


def refused_format(complaints: list[str], given: list[TensorFormat]) -> EngineError | None:
    """Returns the error for a format that does not exist for the tensor's type, if one of the builder's messages
    `complaints` is about a format; otherwise None. `given` are the formats that the user set."""
    for complaint in complaints:
        match = WRONG_FORMAT.search(complaint)
        if match is None or not given:
            continue
        name = match.group(1).rpartition("(")[2]
        mine = next((each for each in given if each.name in (name, None)), given[0])
        return EngineError(
            "option",
            f"{mine.option} {mine.text}: TensorRT has no such format for the type of {name}: {complaint}",
            "linear supports every type; the packed formats are for f16, bf16 and int8",
        )
    return None
