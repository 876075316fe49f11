# conversions.py - Converts networks of tests and runs them in ONNX Runtime.
import json

import graft
import onnx
import onnxruntime


def types_of(network, graph=None):
    """Returns the operators of a network, including those in bodies."""
    found = []
    for node in (graph or network.graph).node:
        found.append(node.op_type)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += types_of(network, attribute.g)
    return found


def convert(network, folder, **options):
    """Returns the converted network, and the report. The proofs are left out: the tests compare results themselves."""
    onnx.save(network, folder / "in.onnx")
    report = graft.convert(folder / "in.onnx", check=False, **options)
    report.model.save(folder / "out.onnx")
    converted = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(converted)
    return converted, report


def run(network, feeds):
    """Returns the outputs of a network."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # a declared size that changes is a warning
    data = network.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def reasons(report):
    """Returns why nodes were not replaced by native layers."""
    return [near["reason"] for near in json.loads(report.to_json())["near_misses"] if near["pass"] == "lower_to_native"]
