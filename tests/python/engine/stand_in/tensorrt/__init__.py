# A stand-in for the full TensorRT's Python module: enough of the documented interface to see how the driver calls it.
"""STAND_IN_VERSION chooses what differs between 10.x and 11.x; STAND_IN_RECORD is a file that gets one line per call."""

from __future__ import annotations

import enum
import os
import pathlib
import time

__version__ = os.environ.get("STAND_IN_VERSION", "10.13.0")
IS_TEN = __version__.startswith("10.")


def record(text: str) -> None:
    if "STAND_IN_RECORD" in os.environ:
        with pathlib.Path(os.environ["STAND_IN_RECORD"]).open("a") as file:
            file.write(text + "\n")


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


class MemoryPoolType(enum.Enum):
    WORKSPACE = 0


class ProfilingVerbosity(enum.Enum):
    DETAILED = 0


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

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.dtype = name, shape, DataType.HALF

    def get_dimension_name(self, axis: int) -> str:
        return ""


class Registry:
    all_creators: list[object] = []


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


class Config:
    progress_monitor: IProgressMonitor | None = None
    cache: TimingCache

    def set_memory_pool_limit(self, pool: MemoryPoolType, size: int) -> None:
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

    def create_network(self, flags: int) -> Network:
        record(f"network flags {flags}")
        return Network()

    def create_builder_config(self) -> Config:
        return Config()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes:
        config.progress_monitor.phase_start("Building engine", None, 2)
        record(f"building in {os.getpid()}")
        time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
        config.progress_monitor.step_complete("Building engine", 1)
        config.progress_monitor.phase_finish("Building engine")
        return b"engine"


def get_plugin_registry() -> Registry:
    return Registry()


def init_libnvinfer_plugins(logger: ILogger, namespace: str) -> bool:
    record("standard plugins")
    return True
