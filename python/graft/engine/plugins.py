"""The `plugins` and `probe` commands in a worker. `plugins` loads libraries into a real plugin registry; `probe`
reports the abilities of a TensorRT flavor."""

from __future__ import annotations

from typing import Any

from graft.engine.build import load_libraries
from graft.engine.events import EngineError, EventWriter
from graft.engine.flavors import cuda_devices, flavor_named, import_flavor, targets_of
from graft.engine.session import Session


def run_plugins(request: dict[str, Any], events: EventWriter) -> None:
    session = Session(flavor_named(request["flavor"]), events)
    events.result("plugins", tensorrt=session.identity(), plugin_libraries=load_libraries(session, request))


def run_probe(request: dict[str, Any], events: EventWriter) -> None:
    """Reports the abilities of a flavor, or the GPUs of the CUDA driver where the flavor is null."""
    if request["flavor"] is None:
        events.result("probe", cuda=cuda_devices())
        return
    flavor = flavor_named(request["flavor"])
    facts: dict[str, Any] = {"flavor": flavor.name, "module": flavor.module, "install": flavor.install}
    try:
        trt = import_flavor(flavor)
    except EngineError as error:
        events.result("probe", **facts, usable=False, reason=error.message)
        return
    facts["version"] = str(trt.__version__)
    facts["builder"] = hasattr(trt, "Builder")
    facts["parser"] = hasattr(trt, "OnnxParser")
    facts["plugin_registry"] = hasattr(trt, "get_plugin_registry")
    facts["targets"] = targets_of(trt) if facts["builder"] else []
    events.result("probe", **facts, usable=True, reason="")
