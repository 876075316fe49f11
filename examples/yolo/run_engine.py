# run_engine.py ENGINE INPUTS.npz OUTPUTS.npz: runs an engine on the GPU of this machine, with PyTorch's memory.
"""An engine with Graft's plugins needs the plugin library, which graft.plugins.register() loads. Without the package
`graft`, trt.get_plugin_registry().load_library("libgraft_plugins.so") does the same."""

import pathlib
import sys

import graft.plugins
import numpy as np
import torch

try:
    import tensorrt_rtx as trt  # an engine belongs to the TensorRT that built it
except ImportError:
    import tensorrt as trt

graft.plugins.register()
engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(pathlib.Path(sys.argv[1]).read_bytes())
context = engine.create_execution_context()
names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
inputs = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
given = np.load(sys.argv[2])
tensors = {name: torch.from_numpy(np.ascontiguousarray(given[name])).cuda() for name in inputs}
for name, tensor in tensors.items():
    if not context.set_input_shape(name, tuple(tensor.shape)):
        sys.exit(f"{name}: the shape {tuple(tensor.shape)} is outside of the range that --shapes set")
for name in names:
    if name not in tensors:
        kind = getattr(torch, np.dtype(trt.nptype(engine.get_tensor_dtype(name))).name)
        tensors[name] = torch.empty(tuple(context.get_tensor_shape(name)), dtype=kind, device="cuda")
    context.set_tensor_address(name, tensors[name].data_ptr())
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
if not context.execute_async_v3(stream.cuda_stream):
    sys.exit("TensorRT did not run the engine; its log has the reason")
stream.synchronize()
np.savez(sys.argv[3], **{name: tensors[name].cpu().numpy() for name in names if name not in inputs})
