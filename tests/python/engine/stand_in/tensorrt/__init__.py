# A stand-in for the full TensorRT's Python module, with the part of the documented interface that the driver calls.
"""STAND_IN_VERSION selects the behavior of 10.x or 11.x; STAND_IN_RECORD is a file that gets one line per call;
STAND_IN_LACKS names flags that this TensorRT does not have."""

from __future__ import annotations

import enum
import os
import pathlib
import subprocess
import time

__version__ = os.environ.get("STAND_IN_VERSION", "10.13.0")
IS_TEN = __version__.startswith("10.")


def record(text: str) -> None:
    if "STAND_IN_RECORD" in os.environ:
        with pathlib.Path(os.environ["STAND_IN_RECORD"]).open("a") as file:
            file.write(text + "\n")


def enumeration(name: str, members: str) -> enum.EnumMeta:
    lacking = os.environ.get("STAND_IN_LACKS", "").split()
    return enum.IntEnum(name, [member for member in members.split() if f"{name}.{member}" not in lacking], start=0)


class NetworkDefinitionCreationFlag(enum.IntEnum):
    EXPLICIT_BATCH = 0
    STRONGLY_TYPED = 1


if IS_TEN:

    class OnnxParserFlag(enum.IntEnum):
        NATIVE_INSTANCENORM = 0

else:

    class OnnxParserFlag(enum.IntEnum):
        NATIVE_INSTANCENORM = 0
        ENABLE_PLUGIN_OVERRIDE = 1


class LayerType(enum.Enum):
    ACTIVATION = 1
    PLUGIN_V2 = 2
    PLUGIN_V3 = 3


class DataType(enum.Enum):
    FLOAT = 0
    HALF = 1


BuilderFlag = enumeration(
    "BuilderFlag",
    "GPU_FALLBACK REFIT TF32 VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME STRIP_PLAN REFIT_IDENTICAL WEIGHT_STREAMING",
)
MemoryPoolType = enumeration(
    "MemoryPoolType",
    "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
)
TensorFormat = enumeration(
    "TensorFormat", "LINEAR CHW2 HWC8 CHW4 CHW16 CHW32 DHWC8 CDHW32 HWC DLA_LINEAR DLA_HWC4 HWC16"
)
ProfilingVerbosity = enumeration("ProfilingVerbosity", "LAYER_NAMES_ONLY DETAILED NONE")
DeviceType = enumeration("DeviceType", "GPU DLA")


class ILogger:
    class Severity(enum.Enum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4


class IProgressMonitor:
    pass


class Tensor:
    is_shape_tensor = False
    formats = 1

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.dtype = name, shape, DataType.HALF

    def get_dimension_name(self, axis: int) -> str:
        return ""

    @property
    def allowed_formats(self) -> int:
        return self.formats

    @allowed_formats.setter
    def allowed_formats(self, mask: int) -> None:
        record(f"formats of {self.name} {mask}")
        self.formats = mask


class Creator:
    """A creator of a plugin library, parsed from a line such as `graft::LeakyReLU 1`."""

    field_names: list[object] = []

    def __init__(self, line: str) -> None:
        identity, self.plugin_version = line.split()
        self.plugin_namespace, _, self.name = identity.rpartition("::")


class Registry:
    """A registry that refuses, as TensorRT's does, a whole library if one of its plugins is registered already.

    A library cannot be opened with the interface of another TensorRT, so the program STAND_IN_LISTER lists its
    creators.
    """

    all_creators: list[Creator] = []

    def load_library(self, path: str) -> object | None:
        listed = subprocess.run([os.environ["STAND_IN_LISTER"], path], capture_output=True, text=True, check=True)
        creators = [Creator(line) for line in listed.stdout.splitlines()]
        taken = {(c.plugin_namespace, c.name, c.plugin_version) for c in self.all_creators}
        record(f"load {pathlib.Path(path).name}")
        if any((c.plugin_namespace, c.name, c.plugin_version) in taken for c in creators) or not creators:
            return None
        self.all_creators.extend(creators)
        return object()


STANDARD_PLUGINS = ["InstanceNormalization_TRT 1", "InstanceNormalization_TRT 2", "InstanceNormalization_TRT 3"]
STANDARD_PLUGINS += ["ResizeNearest_TRT 1", *(["LReLU_TRT 1", "Normalize_TRT 1"] if IS_TEN else [])]


class Layer:
    name, type, metadata = "relu", LayerType.ACTIVATION, ""
    num_inputs = num_outputs = 0


class Network:
    num_inputs = num_outputs = num_layers = 1

    def get_input(self, index: int) -> Tensor:
        return Tensor("x", (-1, 3))

    def get_output(self, index: int) -> Tensor:
        return Tensor("y", (-1, 3))

    def get_layer(self, index: int) -> Layer:
        return Layer()


class OnnxParser:
    num_errors = 0

    def __init__(self, network: Network, logger: ILogger) -> None:
        pass

    def set_flag(self, flag: OnnxParserFlag) -> None:
        record(f"parser flag {flag.name}")

    def parse_from_file(self, path: str) -> bool:
        return True


class TimingCache:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def serialize(self) -> bytes:
        return self.data + b"+"

    def combine(self, other: TimingCache, ignore_mismatch: bool) -> bool:
        if other.data.startswith(b"foreign") and not ignore_mismatch:
            return False
        self.data += other.data
        return True


class Config:
    progress_monitor: IProgressMonitor | None = None
    cache: TimingCache
    logger: ILogger

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("progress_monitor", "cache", "logger"):
            record(f"{name} = {getattr(value, 'name', value)}")
        super().__setattr__(name, value)

    builder_optimization_level = 3
    profiling_verbosity = 0
    plugins_to_serialize: list[str] = []

    def set_flag(self, flag: enum.IntEnum) -> None:
        record(f"set {flag.name}")

    def clear_flag(self, flag: enum.IntEnum) -> None:
        record(f"clear {flag.name}")

    def set_memory_pool_limit(self, pool: enum.IntEnum, size: int) -> None:
        if pool.name.startswith("DLA") and size & (size - 1):
            # TensorRT's setters report errors only to the logger.
            self.logger.log(ILogger.Severity.ERROR, f"Parameter check failed, {size} is no power of two")
            return
        record(f"{pool.name} {size}")

    def create_timing_cache(self, data: bytes) -> TimingCache | None:
        return None if data.startswith(b"damaged") else TimingCache(data)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        self.cache = cache
        return not (cache.data.startswith(b"foreign") and not ignore_mismatch)

    def get_timing_cache(self) -> TimingCache:
        return self.cache

    def add_optimization_profile(self, profile: Profile) -> int:
        return 0


class Profile:
    def set_shape(self, name: str, *shapes: tuple[int, ...]) -> None:
        record(f"profile {name} {shapes}")


class Builder:
    def __init__(self, logger: ILogger) -> None:
        self.logger = logger

    @property
    def num_DLA_cores(self) -> int:  # noqa: N802
        return int(os.environ.get("STAND_IN_DLA_CORES", "0"))

    def create_network(self, flags: int) -> Network:
        record(f"network flags {flags}")
        return Network()

    def create_builder_config(self) -> Config:
        config = Config()
        config.logger = self.logger
        return config

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes:
        config.progress_monitor.phase_start("Building engine", None, 2)
        record(f"building in {os.getpid()}")
        time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
        while time.process_time() < float(os.environ.get("STAND_IN_COMPUTES", "0")):
            pass
        while "STAND_IN_WAITS_FOR" in os.environ and not pathlib.Path(os.environ["STAND_IN_WAITS_FOR"]).exists():
            time.sleep(0.01)
        config.progress_monitor.step_complete("Building engine", 1)
        config.progress_monitor.phase_finish("Building engine")
        return b"engine"


def get_plugin_registry() -> Registry:
    return Registry()


def init_libnvinfer_plugins(logger: ILogger, namespace: str) -> bool:
    record("standard plugins")
    Registry.all_creators = [Creator(line) for line in STANDARD_PLUGINS]
    return True
