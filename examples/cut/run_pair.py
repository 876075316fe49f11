# run_pair.py CUT.json INPUTS.npz OUTPUTS.npz [ENGINE]: runs both halves of a network that `graft convert --cut` wrote.
"""The half for TensorRT runs in an engine of `graft build`, on the GPU, with PyTorch's memory; without an engine, in
ONNX Runtime. The host's half always runs in ONNX Runtime."""

import json
import pathlib
import sys

import numpy as np
import onnxruntime


def in_onnx_runtime(file, inputs):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {port.name: inputs[port.name] for port in session.get_inputs()})
    return dict(zip([port.name for port in session.get_outputs()], outputs, strict=True))


def in_tensorrt(file, inputs):
    import torch

    try:
        import tensorrt as trt
    except ImportError:
        import tensorrt_rtx as trt
    import graft.plugins

    logger = trt.Logger()
    graft.plugins.register()
    engine = trt.Runtime(logger).deserialize_cuda_engine(pathlib.Path(file).read_bytes())
    context = engine.create_execution_context()
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    taken = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    tensors = {name: torch.from_numpy(np.ascontiguousarray(inputs[name])).cuda() for name in taken}
    for name, tensor in tensors.items():
        context.set_input_shape(name, tuple(tensor.shape))
    for name in names:
        if name not in tensors:
            kind = getattr(torch, np.dtype(trt.nptype(engine.get_tensor_dtype(name))).name)
            tensors[name] = torch.empty(tuple(context.get_tensor_shape(name)), dtype=kind, device="cuda")
        context.set_tensor_address(name, tensors[name].data_ptr())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    context.execute_async_v3(stream.cuda_stream)
    stream.synchronize()
    return {name: tensors[name].cpu().numpy() for name in names if name not in taken}


cut_file = pathlib.Path(sys.argv[1])
cut = json.loads(cut_file.read_text())
known = dict(np.load(sys.argv[2]))
engine = sys.argv[4] if len(sys.argv) > 4 else None
for half in ["tensorrt", "host"] if cut["first"] == "tensorrt" else ["host", "tensorrt"]:
    if half == "tensorrt" and engine:
        known |= in_tensorrt(engine, known)
    else:
        known |= in_onnx_runtime(cut_file.parent / cut[half]["file"], known)
np.savez(sys.argv[3], **{name: known[name] for name in cut["outputs"]})
