# make_onnxruntime_network.py - lets ONNX Runtime's optimizer fuse the nodes of a network.
"""Writes tests/golden/onnx/onnxruntime_encoder.onnx, which has operators of the domain com.microsoft, and
onnxruntime_encoder.npz. The network and its results are those of torch_opset17_encoder.

Made with (Python 3.11): onnxruntime==1.31.1 onnx==1.23.2
Run: python tests/golden/generators/make_onnxruntime_network.py [--out tests/golden/onnx]
"""

import argparse
import pathlib
import shutil

import onnx
import onnxruntime

SOURCE = "torch_opset17_encoder"


def main():
    parser = argparse.ArgumentParser()
    golden = pathlib.Path(__file__).resolve().parents[1] / "onnx"
    parser.add_argument("--out", type=pathlib.Path, default=golden)
    path = parser.parse_args().out / "onnxruntime_encoder.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(golden / f"{SOURCE}.onnx", options, providers=["CPUExecutionProvider"])
    shutil.copyfile(golden / f"{SOURCE}.npz", path.with_suffix(".npz"))
    fused = sorted({node.op_type for node in onnx.load(path).graph.node if node.domain})
    print(f"{path.stem}: {', '.join(fused)}")


if __name__ == "__main__":
    main()
