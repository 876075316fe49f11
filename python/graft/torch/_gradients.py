# Gradients of the operators, computed with PyTorch's own operators.
"""Each function of GRADIENTS takes the gradient of the result, the inputs by name, the attributes by name, and by input
name whether its gradient is needed; it returns gradients by input name. Sums are computed in f32, as in the operators.
The docstring of each function becomes the last paragraph of the operator's own docstring."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

Tensors = dict[str, Any]


def _leaky_relu(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradient of x."""
    return {"x": torch.where(inputs["x"] >= 0, grad, grad * a["alpha"])}


def _l2norm_helper(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradient of x."""
    x = inputs["x"]
    if a["op_type"] == 0:
        x32 = x.float()
        return {"x": (grad.float() * -0.5 * x32.rsqrt() / x32).to(x.dtype)}
    return {"x": torch.where(x < a["eps"], torch.zeros_like(grad), grad)}


def _of_norm(grad: torch.Tensor, x: torch.Tensor, axes: list[int], epsilon: float, mode: str) -> tuple[Any, Any]:
    """Returns the gradient with respect to x of x / norm(x), in f32, and 1 / norm(x). The norm is over `axes`; `mode`
    is the operator's epsilon_mode."""
    total = (x * x).sum(axes, keepdim=True)
    if mode == "max":
        inverse, moves = total.clamp(min=epsilon).rsqrt(), total > epsilon
    elif mode == "norm":
        inverse, moves = 1 / total.sqrt().clamp(min=epsilon), total.sqrt() > epsilon
    else:
        inverse, moves = (total + epsilon).rsqrt(), torch.ones_like(total, dtype=torch.bool)
    along = (grad * x).sum(axes, keepdim=True) * inverse**3
    return grad * inverse - x * torch.where(moves, along, torch.zeros_like(along)), inverse


def _l2_normalize(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradient of x."""
    x = inputs["x"]
    found, _ = _of_norm(grad.float(), x.float(), list(a["axes"]), a["epsilon"], a["epsilon_mode"])
    return {"x": found.to(x.dtype)}


def _per_channel(values: torch.Tensor | None, x: torch.Tensor) -> Any:
    return 1 if values is None else values.reshape(1, -1, *[1] * (x.dim() - 2))


def _normalize(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradients of x and scale. It raises NotImplementedError where the attribute
    `weights` holds the scale."""
    x, scale = inputs["x"], inputs["scale"]
    if a["weights"]:
        raise NotImplementedError("graft::normalize has no gradient with the attribute weights: use the input scale")
    x32, grad32 = x.float(), grad.float()
    axes = list(range(1, x.dim())) if a["across_spatial"] else [1]
    found, inverse = _of_norm(grad32 * _per_channel(scale, x), x32, axes, a["epsilon"], "add")
    result = {"x": found.to(x.dtype)}
    if needed["scale"] and scale is not None:
        product = grad32 * x32 * inverse
        result["scale"] = product.sum().reshape(1) if a["channel_shared"] else product.sum([0, *range(2, x.dim())])
    return result


def _instance_norm(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradients of x, scale and bias. It raises NotImplementedError where scale or bias
    is an attribute."""
    x, scale, bias = inputs["x"], inputs["scale"], inputs["bias"]
    if a["scales"]:
        raise NotImplementedError("graft::instance_norm has no gradient with the attribute scales: use the input scale")
    x32, grad32 = x.float(), grad.float()
    axes = list(range(2, x.dim()))
    variance, mean = torch.var_mean(x32, axes, correction=0, keepdim=True)
    inverse = (variance + a["epsilon"]).rsqrt()
    normal = (x32 - mean) * inverse
    if a["activation"] != "none":
        y = normal * _per_channel(scale, x) + (0 if bias is None else _per_channel(bias, x))
        slope = 0.0 if a["activation"] == "relu" else a["alpha"]
        grad32 = torch.where(y > 0, grad32, grad32 * slope)
    result: Tensors = {}
    others = [0, *axes]
    if needed["scale"] and scale is not None:
        result["scale"] = (grad32 * normal).sum(others)
    if needed["bias"] and bias is not None:
        result["bias"] = grad32.sum(others)
    inner = grad32 * _per_channel(scale, x)
    along = (inner * normal).mean(axes, keepdim=True)
    result["x"] = (inverse * (inner - inner.mean(axes, keepdim=True) - normal * along)).to(x.dtype)
    return result


def _convolution(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradients of the inputs x, weight and bias. It raises NotImplementedError where an
    attribute holds the weight or the bias."""
    x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
    if weight is None or a["bias_weights"]:
        raise NotImplementedError("graft::convolution has no gradient with weights in attributes: pass them as inputs")
    axes = x.dim() - 2
    pads = list(a["pad"]) or [0] * axes
    before, after = pads[:axes], pads[-axes:]
    stride, dilation = list(a["stride"]) or [1] * axes, list(a["dilation"]) or [1] * axes
    # PyTorch's convolution has no padding that differs between the two sides, so x is padded before it.
    outside = [0] * axes if before != after else before
    padded = x
    if before != after:
        padded = F.pad(x, [pad for axis in reversed(range(axes)) for pad in (before[axis], after[axis])])
    if a["activation"] != "none":
        convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]
        y = convolve(padded, weight, None if bias is None else bias.to(x.dtype), stride, outside, dilation, a["group"])
        passes = (y > 0) & (y < 6) if a["activation"] == "relu6" else y > 0
        grad = torch.where(passes, grad, grad * (a["alpha"] if a["activation"] == "leaky_relu" else 0.0))
    found_x, found_weight, _ = torch.ops.aten.convolution_backward(
        grad, padded, weight, None, stride, outside, dilation, False, [0] * axes, a["group"],
        [needed["x"], needed["weight"], False],
    )  # fmt: skip
    result: Tensors = {"x": found_x, "weight": found_weight}
    if before != after and found_x is not None:
        result["x"] = F.pad(found_x, [-pad for axis in reversed(range(axes)) for pad in (before[axis], after[axis])])
    if needed["bias"] and bias is not None:
        result["bias"] = grad.float().sum([0, *range(2, x.dim())])
    return result


def _upsampling(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradient of x."""
    x = inputs["x"]
    found = grad.float()
    values = {name: a[name] for name in ("mode", "coordinate_mode", "nearest_mode", "cubic_a")}
    for axis in range(2, x.dim()):
        # Upsampling multiplies each axis by a matrix. The result for a unit vector is a column of this matrix.
        size = x.shape[axis]
        one = torch.eye(size, dtype=torch.float32, device=x.device).unsqueeze(0)
        scales = [] if not a["scales"] else [a["scales"][0 if len(a["scales"]) == 1 else axis - 2]]
        sizes = [a["sizes"][axis - 2]] if a["sizes"] else []
        columns = torch.ops.graft.upsampling(one, scales=scales, sizes=sizes, **values)[0]
        found = torch.matmul(found.movedim(axis, -1), columns.t()).movedim(-1, axis)
    return {"x": found.to(x.dtype).contiguous()}


def _padding(grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]) -> Tensors:
    """The backward pass computes the gradient of x."""
    x = inputs["x"]
    rank = x.dim()
    begins, ends = list(a["pads"][:rank]), list(a["pads"][rank:])
    if a["mode"] == "constant":
        return {"x": F.pad(grad, [-pad for axis in reversed(range(rank)) for pad in (begins[axis], ends[axis])])}
    found = grad.float()
    for axis in range(rank):
        if begins[axis] == 0 and ends[axis] == 0:
            continue
        # Padding the indices gives the source of each element. f32 represents integers exactly up to 2^24.
        positions = torch.arange(x.shape[axis], dtype=torch.float32, device=x.device)
        source = torch.ops.graft.padding(positions, pads=[begins[axis], ends[axis]], mode=a["mode"]).long()
        shape = [*found.shape[:axis], x.shape[axis], *found.shape[axis + 1 :]]
        found = torch.zeros(shape, dtype=torch.float32, device=x.device).index_add(axis, source, found)
    return {"x": found.to(x.dtype)}


def _spatial_pyramid_pooling(
    grad: torch.Tensor, inputs: Tensors, a: dict[str, Any], needed: dict[str, bool]
) -> Tensors:
    """The backward pass computes the gradient of x with the binning `adaptive`. It raises NotImplementedError with the
    binnings `window` and `caffe`."""
    x = inputs["x"]
    if a["binning"] != "adaptive":
        raise NotImplementedError(
            f"graft::spatial_pyramid_pooling has no gradient with binning {a['binning']}: use binning adaptive"
        )
    x32 = x.float()
    found = torch.zeros_like(x32)
    begin = 0
    for level in a["levels"]:
        count = x.shape[1] * level * level
        part = grad[:, begin : begin + count].float().reshape(x.shape[0], x.shape[1], level, level)
        begin += count
        if a["mode"] == "max":
            _, places = torch.ops.aten.adaptive_max_pool2d(x32, [level, level])
            found = found + torch.ops.aten.adaptive_max_pool2d_backward(part, x32, places)
        else:
            found = found + torch.ops.aten._adaptive_avg_pool2d_backward(part, x32)
    return {"x": found.to(x.dtype)}


GRADIENTS = {
    "leaky_relu": _leaky_relu,
    "l2_normalize": _l2_normalize,
    "l2norm_helper": _l2norm_helper,
    "instance_norm": _instance_norm,
    "convolution": _convolution,
    "upsampling": _upsampling,
    "padding": _padding,
    "spatial_pyramid_pooling": _spatial_pyramid_pooling,
    "normalize": _normalize,
}
