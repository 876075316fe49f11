"""Lists the kernels of a built engine, the types that they read and write, and the model's nodes that each kernel
computes. TensorRT-RTX lists the kernels in a verbose message of the build, one per line, and needs no GPU for it. Where
there is no such message, the kernels are read from the engine inspector, which needs a GPU."""

from __future__ import annotations

import json
import re
from typing import Any

from graft.engine.flavors import cuda_devices
from graft.engine.parsing import DTYPE_NAMES
from graft.engine.session import LAYERS_HEADING, Session

LINE = re.compile(
    r"Name: (?P<name>.*?), LayerType: (?P<kind>\w*), Inputs: \[(?P<inputs>.*?)\], (?:Constants: \[.*?\], )?"
    r"Outputs: \[(?P<outputs>.*?\}|)\], [A-Z]\w+: .*?(?:, Metadata: (?P<metadata>.*))?"
)
NODE_SEPARATORS = re.compile("[\x1e\x1f]")  # control characters between "[ONNX Layer: a]" and the next node
# The inspector of TensorRT 10 writes type and layout as one text: "Channel major FP16 format where channel % 8 == 0".
TYPES = DTYPE_NAMES | {"BFLOAT16": "bf16", "FP32": "f32", "FP16": "f16"}


def read_layers(account: str) -> list[dict[str, Any]]:
    """Returns the layers that `account`, a verbose message of TensorRT-RTX's build, lists: one per line, from
    LAYERS_HEADING to the next empty line."""
    lines = account.partition(LAYERS_HEADING + "\n")[2].partition("\n\n")[0].splitlines()
    return [layer for layer in map(read_layer, lines) if layer]


def read_layer(line: str) -> dict[str, Any] | None:
    found = LINE.fullmatch(line)
    if found is None:
        return None
    return {
        "name": found["name"],
        "kind": found["kind"],
        "inputs": tensors_in(found["inputs"]),
        "outputs": tensors_in(found["outputs"]),
        "nodes": nodes_in(found["metadata"] or ""),
    }


def nodes_in(metadata: str) -> list[str]:
    found = [re.fullmatch(r"\[ONNX Layer: (.*)\]\s*", part) for part in NODE_SEPARATORS.split(metadata)]
    return [match.group(1) for match in found if match]


def tensors_in(text: str) -> list[dict[str, str]]:
    found = re.findall(r"\{ Name: (.*?), Dimensions: .*?Datatype: ([^,}]*)", text)
    return [{"tensor": name, "type": type_in(words.strip())} for name, words in found]


def type_in(words: str) -> str:
    """Returns Graft's name, such as "f16", for the type in a text of TensorRT; the text itself if it contains no type
    that Graft has."""
    return next((TYPES[word] for word in words.upper().split() if word in TYPES), words)


def read_inspected(text: str) -> list[dict[str, Any]]:
    """Returns the layers in the engine inspector's JSON. The JSON of an engine that was built without the detailed
    profiling verbosity has only names, and no layer is returned for them."""
    layers = [layer for layer in json.loads(text).get("Layers", []) if isinstance(layer, dict)]
    return [
        {
            "name": layer.get("Name", ""),
            "kind": layer.get("LayerType", ""),
            "inputs": tensors_inspected(layer.get("Inputs", [])),
            "outputs": tensors_inspected(layer.get("Outputs", [])),
            "nodes": nodes_in(layer.get("Metadata", "")),
        }
        for layer in layers
    ]


def tensors_inspected(tensors: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {"tensor": tensor.get("Name", ""), "type": type_in(tensor.get("Format/Datatype") or tensor.get("Datatype", ""))}
        for tensor in tensors
    ]


def layers_of_engine(session: Session, plan: Any) -> dict[str, Any]:
    """Returns {"layers": the list of layers, "reason": ""}, or {"layers": None, "reason": why the layers are not
    known}."""
    layers = read_layers(session.layers_account)
    if layers:
        return {"layers": layers, "reason": ""}
    version = f"{session.flavor.module} {session.trt.__version__}"
    if not cuda_devices()["devices"]:
        reason = f"{version} does not report layers during the build, and its engine inspector needs a GPU"
        return {"layers": None, "reason": reason}
    engine = session.trt.Runtime(session.logger).deserialize_cuda_engine(plan)
    if engine is None:
        return {"layers": None, "reason": "the engine does not load on this machine's GPU"}
    text = engine.create_engine_inspector().get_engine_information(session.trt.LayerInformationFormat.JSON)
    layers = read_inspected(text)
    return {"layers": layers or None, "reason": "" if layers else f"the inspector of {version} reports no types"}
