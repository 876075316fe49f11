# Written by tools/generate_stubs.py from the operators' definitions.
import os
import types
from collections.abc import Sequence
from typing import Literal, TypeVar

Array = TypeVar("Array")  # numpy.ndarray, torch.Tensor or cupy.ndarray; all of a call are of one kind

def load_operators(library: str | os.PathLike[str]) -> types.SimpleNamespace: ...
def leaky_relu(
    x: Array,
    *,
    alpha: float = 0.01,
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y = x >= 0 ? x : alpha * x, element by element.

    Tensors:
        x: of any rank (any)

    Attributes:
        alpha: the slope for negative x
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (as x): of the type of x

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8; x f8e4m3fn y f8e4m3fn

    Source: Maas et al. 2013, Rectifier Nonlinearities Improve Neural Network Acoustic Models; torch.nn.LeakyReLU
    """

def l2_normalize(
    x: Array,
    *,
    axes: Sequence[int] = (1,),
    epsilon: float = 1e-12,
    epsilon_mode: Literal["max", "norm", "add"] = "max",
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y = x / norm(x) with the Euclidean norm over `axes`; epsilon_mode selects how a division by zero is avoided: max: x * rsqrt(max(sum(x^2), epsilon)); norm: x / max(sqrt(sum(x^2)), epsilon); add: x / sqrt(sum(x^2) + epsilon).

    Tensors:
        x: the vectors to normalize (any of rank 1 to 8)

    Attributes:
        axes: the axes of the norm; negative axes count from the end
        epsilon: the value that avoids a division by zero, see epsilon_mode (at least 0 and finite)
        epsilon_mode: the place of epsilon in the formula (max, norm, add)
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (as x): same type as x

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8

    Source: tf.math.l2_normalize (max), torch.nn.functional.normalize (norm), Caffe NormalizeLayer (add)
    """

def l2norm_helper(
    x: Array,
    *,
    op_type: int,
    eps: float = 1e-12,
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """op_type 0: y = 1 / sqrt(x). op_type 1: y = max(x, eps). Deprecated: use L2Normalize.

    Tensors:
        x: of any rank (any)

    Attributes:
        op_type: the operation: 0 is rsqrt, 1 is max (at least 0 and at most 1)
        eps: the lower bound for op_type 1; op_type 0 ignores it
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (as x): of the type of x

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8; x f8e4m3fn y f8e4m3fn

    Source: the subgraph of tf.math.l2_normalize: Rsqrt and Maximum
    """

def instance_norm(
    x: Array,
    scale: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-05,
    activation: Literal["none", "relu", "leaky_relu"] = "none",
    alpha: float = 0.01,
    scales: Sequence[float] = (),
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y = activation((x - mean) / sqrt(variance + epsilon) * scale + bias), with the mean and the variance (divided by the count) over the spatial axes of each channel of each item. leaky_relu: y >= 0 ? y : alpha * y.

    Tensors:
        x: a tensor of rank 3 to 5 (N,C,spatial...)
        scale: the factor of each channel; if absent, the attribute scales (C)
        bias: the bias of each channel; if absent, the attribute bias (C)

    Attributes:
        epsilon: the value that is added to the variance (at least 0 and finite)
        activation: the activation that is applied after the normalization (none, relu, leaky_relu)
        alpha: the slope of leaky_relu for negative y (finite)
        scales: the factor of each channel, if the input scale is absent; if empty, 1
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (as x): same type as x

    Types: x f32 scale f32 bias f32 y f32; x f16 scale f32 bias f32 y f16; x bf16 scale f32 bias f32 y bf16; x i8 scale f32 bias f32 y i8

    Source: Ulyanov et al. 2016, Instance Normalization: The Missing Ingredient for Fast Stylization; ONNX InstanceNormalization; torch.nn.functional.instance_norm
    """

def convolution(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    scale: Array | None = None,
    *,
    num_output: int = 0,
    kernel: Sequence[int] = (),
    stride: Sequence[int] = (),
    pad: Sequence[int] = (),
    dilation: Sequence[int] = (),
    group: int = 1,
    activation: Literal["none", "relu", "relu6", "leaky_relu"] = "none",
    alpha: float = 0.01,
    kernel_weights: Sequence[float] = (),
    bias_weights: Sequence[float] = (),
    allow_tf32: int = 0,
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    weight_scale: Sequence[float] = (),
    out: Array | None = None,
) -> Array:
    """y = activation(sum(weight * x) + bias), the sum over a window of the zero-padded x and the channels of a group. Sums are accumulated in f32, and sums of i8 exactly in 32-bit integers; i8 weights have a scale for each channel of y.

    Tensors:
        x: the tensor to convolve (N,C,spatial with 1 to 3 spatial axes)
        weight: the weights; if absent, kernel_weights, which are quantized with weight_scale for i8 (K,C/group,window)
        bias: the bias; if absent, bias_weights (K)
        scale: for i8, the scales of the weights; if absent, weight_scale (K)

    Attributes:
        num_output: the number of channels of y; with 0, it follows from the input weight (at least 0)
        kernel: the size of the window along each spatial axis; if empty, it follows from the input weight (at least 1)
        stride: the stride of the window along each spatial axis; if empty, 1 (at least 1)
        pad: the number of zeros added before each spatial axis, followed by the number added after each, or one value per axis for both sides; if empty, 0 (at least 0)
        dilation: the distance between elements of the window along each spatial axis; if empty, 1 (at least 1)
        group: the number of groups of channels, which are convolved separately (at least 1)
        activation: the activation that is applied to the sums (none, relu, relu6, leaky_relu)
        alpha: the slope of leaky_relu for negative values
        kernel_weights: the weights, row-major (num_output, channels / group, window), if the input weight is absent
        bias_weights: the bias of each channel of y, if the input bias is absent; if empty, 0
        allow_tf32: whether f32 is multiplied in TF32, which has 10 bits of fraction (at least 0 and at most 1)
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)
        weight_scale: for i8, the real value of one step of weight, for each channel of y or one for all, if the input scale is absent; if empty, 1 (more than 0 and finite)

    Returns y (N,K,spatial): same type as x

    Types: x f32 weight f32 bias f32 scale f32 y f32; x f16 weight f16 bias f32 scale f32 y f16; x bf16 weight bf16 bias f32 scale f32 y bf16; x i8 weight i8 bias f32 scale f32 y i8

    Source: ONNX Conv; torch.nn.functional.conv1d, conv2d, conv3d; Caffe ConvolutionLayer
    """

def upsampling(
    x: Array,
    *,
    mode: Literal["nearest", "linear", "cubic"] = "nearest",
    scales: Sequence[float] = (),
    sizes: Sequence[int] = (),
    coordinate_mode: Literal["half_pixel", "align_corners", "asymmetric"] = "half_pixel",
    nearest_mode: Literal["floor", "round_prefer_floor", "round_prefer_ceil", "ceil"] = "round_prefer_floor",
    cubic_a: float = -0.75,
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y[i] = x at (i + 0.5) / scale - 0.5 (half_pixel), i * (in - 1) / (out - 1) (align_corners) or i / scale (asymmetric) along every spatial axis: the nearest element, linear interpolation of two neighbors, or Keys' cubic convolution of four. Sizes are floor(in * scale), or the attribute sizes.

    Tensors:
        x: the tensor to resample (N,C,spatial of rank 3 to 5)

    Attributes:
        mode: the method by which values between elements are interpolated (nearest, linear, cubic)
        scales: the output size divided by the input size, one value for all spatial axes or one for each (more than 0 and finite)
        sizes: the output sizes of the spatial axes, instead of scales (at least 1 and at most 1.07374e+09)
        coordinate_mode: the formula for the position of an output element in the input (half_pixel, align_corners, asymmetric)
        nearest_mode: for the mode nearest, the rounding that selects the neighbor (floor, round_prefer_floor, round_prefer_ceil, ceil)
        cubic_a: for the mode cubic, the slope of the kernel at distance 1 (finite)
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (N,C and the new spatial sizes): same type as x

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8; x f8e4m3fn y f8e4m3fn

    Source: torch.nn.functional.interpolate, ONNX Resize; cubic: Keys 1981, Cubic Convolution Interpolation for Digital Image Processing
    """

def padding(
    x: Array,
    *,
    pads: Sequence[int],
    mode: Literal["constant", "reflect", "symmetric", "edge", "wrap"] = "constant",
    value: float = 0.0,
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y[i] = x[i - begin], where x is continued outside its axes: by `value` (constant), mirrored at its outermost elements without repeating them (reflect) or with them (symmetric), by its outermost elements (edge), or from its other end (wrap). Mirrors and wraps repeat where pads are larger than the axis. Negative pads crop.

    Tensors:
        x: a tensor of any rank up to 8 (any)

    Attributes:
        pads: the number of elements to add before each axis, followed by the number to add after each axis; negative values crop (at least -2.14748e+09 and at most 2.14748e+09)
        mode: the rule by which x continues outside its axes (constant, reflect, symmetric, edge, wrap)
        value: the value outside x in the mode constant
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (x + pads): same type as x

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8; x f8e4m3fn y f8e4m3fn

    Source: numpy.pad, torch.nn.functional.pad, tf.pad; ONNX Pad
    """

def spatial_pyramid_pooling(
    x: Array,
    *,
    levels: Sequence[int] = (4, 2, 1),
    mode: Literal["max", "average"] = "max",
    binning: Literal["adaptive", "window", "caffe"] = "adaptive",
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """For each level n, C x H x W is pooled to C x n x n and flattened; the levels are concatenated to N x C*sum(n^2) for every H and W. Bin i of n covers, with `binning` adaptive, floor(i*H/n) to ceil((i+1)*H/n); with window, ceil(H/n) from i*floor(H/n) on; with caffe, kernel = ceil(H/n) from i*kernel - pad on, pad = floor((kernel*n - H + 1)/2), where an average divides by kernel^2. A bin with a NaN is NaN.

    Tensors:
        x: images or feature maps (N,C,H,W)

    Attributes:
        levels: the number of bins along each side, level by level (at least 1 and at most 1024)
        mode: the pooling of a bin: its maximum or its average (max, average)
        binning: the rule that determines the elements of each bin (adaptive, window, caffe)
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (N,C*sum(n^2)): same type as x; C x n x n level by level

    Types: x f32 y f32; x f16 y f16; x bf16 y bf16; x i8 y i8

    Source: He et al. 2015, Spatial Pyramid Pooling in Deep Convolutional Networks for Visual Recognition (window); torch.nn.AdaptiveMaxPool2d, AdaptiveAvgPool2d (adaptive); Caffe SPPLayer (caffe)
    """

def normalize(
    x: Array,
    scale: Array | None = None,
    *,
    across_spatial: int = 0,
    channel_shared: int = 0,
    epsilon: float = 1e-10,
    weights: Sequence[float] = (),
    x_scale: float = 1.0,
    y_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """y = x / sqrt(sum(x^2) + epsilon) * scale, the sum over the channels of each pixel, or with across_spatial over all but the first axis; scale is one factor for each channel, or with channel_shared one for all.

    Tensors:
        x: a tensor of rank 2 to 8 (N,C,spatial...)
        scale: the factors; if absent, the attribute weights (C or 1)

    Attributes:
        across_spatial: 1 computes one norm for each item, 0 one for each pixel (at least 0 and at most 1)
        channel_shared: 1 means one factor for all channels, 0 one for each channel (at least 0 and at most 1)
        epsilon: the value that is added to the sum of squares (at least 0 and finite)
        weights: the factors, if the input scale is absent; if empty, 1
        x_scale: i8 and f8e4m3fn only: the real value of 1 in x (more than 0 and finite)
        y_scale: i8 and f8e4m3fn only: the real value of 1 in y (more than 0 and finite)

    Returns y (as x): same type as x

    Types: x f32 scale f32 y f32; x f16 scale f32 y f16; x bf16 scale f32 y bf16; x i8 scale f32 y i8

    Source: Liu et al. 2016, SSD: Single Shot MultiBox Detector; NormalizeLayer of its branch of Caffe; Liu et al. 2015, ParseNet: Looking Wider to See Better
    """

def non_zero(
    x: Array,
    *,
    out: Array | None = None,
) -> tuple[Array, Array]:
    """y[:, i] = the index of the i-th element of x that is not zero, in row-major order. NaN counts as not zero, -0 as zero.

    Tensors:
        x: a tensor of 1 to 8 dimensions (any)

    Attributes:

    Returns y (rank,count): the indices of the elements that are not zero, one column each, count (scalar): the number of results

    The other arrays are allocated for the largest count: their valid elements come first.

    Types: x f32 y i64 count i64; x f16 y i64 count i64; x bf16 y i64 count i64; x i32 y i64 count i64; x i64 y i64 count i64

    Source: ONNX NonZero; numpy.nonzero
    """

def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | int | None = None,
    iou_threshold: Array | float | None = None,
    score_threshold: Array | float | None = None,
    *,
    center_point_box: int = 0,
    out: Array | None = None,
) -> tuple[Array, Array]:
    """For each item and class, boxes are selected in the order of decreasing scores, of equal scores the first box first, up to max_output_boxes_per_class. A box is skipped if its score is not above score_threshold, or if its intersection with a selected box is more than iou_threshold of their union.

    Tensors:
        boxes: the boxes, in the format of center_point_box (N,boxes,4)
        scores: the scores of each class (N,classes,boxes)
        max_output_boxes_per_class: the maximum number of boxes per class; if absent, the attribute of this name (scalar)
        iou_threshold: the largest allowed overlap of two selected boxes; if absent, the attribute of this name (scalar)
        score_threshold: the score above which boxes are candidates; if absent, the attribute of this name (scalar)

    Attributes:
        center_point_box: the format of boxes: 0 is y1, x1, y2, x2 of two opposite corners; 1 is x, y of the center, width, height (at least 0 and at most 1)

    Returns selected_indices (count,3): the item, class and box of each selected box, sorted by item, class and decreasing score, count (scalar): the number of results

    The other arrays are allocated for the largest count: their valid elements come first.

    Types: boxes f32 scores f32 max_output_boxes_per_class i64 iou_threshold f32 score_threshold f32 selected_indices i64 count i64; boxes f16 scores f16 max_output_boxes_per_class i64 iou_threshold f32 score_threshold f32 selected_indices i64 count i64

    Source: ONNX NonMaxSuppression 11
    """

def combined_non_max_suppression(
    boxes: Array,
    scores: Array,
    anchors: Array | None = None,
    *,
    score_threshold: float = 0.5,
    iou_threshold: float = 0.5,
    max_output_boxes: int = 100,
    max_output_boxes_per_class: int = -1,
    pad_per_class: int = 0,
    top_k: int = 4096,
    top_k_per_class: int = 0,
    background_class: int = -1,
    class_agnostic: int = 0,
    score_activation: int = 0,
    box_coding: int = 0,
    pixel_boxes: int = 0,
    clip_boxes: int = 0,
    empty_class: int = 0,
    out: Array | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """The detections with the highest scores among the boxes and classes of each item, without those that overlap a better detection. A candidate is a class of a box with a score of at least score_threshold. Candidates of an item are visited in the order of decreasing scores, and become detections. A candidate is skipped if its intersection with a detection of the same class is more than iou_threshold of their union; with class_agnostic, with any detection. Only the top_k candidates with the highest scores are visited. Of equal scores, the first box comes first, and then its first class; with top_k_per_class, the first class, and then its first box. The item ends after max_output_boxes detections; the places after the last detection are 0. A NaN is not a candidate.

    Tensors:
        boxes: the boxes in the format of box_coding, for all classes (also N,boxes,1,4) or for each class; with anchors, their encoded offsets (N,boxes,4 or N,boxes,classes,4)
        scores: the scores of each class of each box (also N,boxes,classes,1) (N,boxes,classes)
        anchors: boxes that `boxes` refines. Corners are sums of both inputs, each with its lower corner first. A center is box * anchor size + anchor center, and a size is anchor size * exp(box) (N,boxes,4 or 1,boxes,4)

    Attributes:
        score_threshold: the lowest score of a candidate
        iou_threshold: the largest allowed overlap of two detections of a class
        max_output_boxes: the maximum number of detections of an item (at least 1 and at most 2.14748e+09)
        max_output_boxes_per_class: the maximum number of detections of a class; without a limit if it is -1 or 0 (at least -1 and at most 2.14748e+09)
        pad_per_class: 1 reduces max_output_boxes to the product of max_output_boxes_per_class and the number of classes, if the product is smaller (at least 0 and at most 1)
        top_k: the maximum number of candidates that are visited; without a limit if it is -1 or 0 (at least -1 and at most 2.14748e+09)
        top_k_per_class: 0 means that top_k limits the candidates of an item, 1 that it limits those of each class (at least 0 and at most 1)
        background_class: the class that is ignored; -1 if there is none (at least -1 and at most 2.14748e+09)
        class_agnostic: 1 compares the boxes of all classes with each other (at least 0 and at most 1)
        score_activation: 1 means that scores are logits: a score is 1 / (1 + exp(-x)) of its input (at least 0 and at most 1)
        box_coding: the format of boxes and anchors: 0 is x1, y1, x2, y2 of two opposite corners; 1 is x, y of the center, width, height. Both axes may be exchanged (at least 0 and at most 1)
        pixel_boxes: 1 means that boxes include the pixels of both corners, so a width is x2 - x1 + 1 (at least 0 and at most 1)
        clip_boxes: 1 clips the coordinates of detections to the range from 0 to 1 (at least 0 and at most 1)
        empty_class: the class and the index in the places after the last detection: 0 or -1 (at least -1 and at most 0)

    Returns num_detections (N,1): the number of detections of each item, detection_boxes (N,detections,4): the corners x1, y1, x2, y2 of the detections, detection_scores (N,detections): the scores of the detections, detection_classes (N,detections): the classes of the detections, detection_indices (N,detections): the index of each detection's box among the boxes of its item; class * boxes + box if each class has its own boxes

    Types: boxes f32 scores f32 anchors f32 num_detections i32 detection_boxes f32 detection_scores f32 detection_classes i32 detection_indices i32; boxes f16 scores f16 anchors f16 num_detections i32 detection_boxes f16 detection_scores f16 detection_classes i32 detection_indices i32

    Source: TensorFlow CombinedNonMaxSuppression; NVIDIA's descriptions of EfficientNMS_TRT and BatchedNMS_TRT
    """

def region_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel",
    mode: Literal["avg", "max"] = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    out: Array | None = None,
) -> Array:
    """A region, multiplied by spatial_scale to be in pixels of x, is divided into output_height x output_width bins, and a bin into equal cells. The sample at the center of a cell is interpolated bilinearly from the four pixels around it; more than a pixel outside the map it is 0. y is the mean of a bin's samples (avg), or the largest product of a pixel and its weight in a sample, as in ONNX (max). A pixel of weight 0 does not change a mean, even if it is NaN; NaN is the largest value. A region of an item that x does not have is 0.

    Tensors:
        x: the feature maps (N,C,H,W)
        rois: the corners x1, y1, x2, y2 of each region (R,4)
        batch_indices: the index of the item of x for each region (R)

    Attributes:
        coordinate_transformation_mode: half_pixel subtracts half a pixel from coordinates; output_half_pixel does not, and regions are at least a pixel wide and high (half_pixel, output_half_pixel)
        mode: the way in which the samples of a bin are combined (avg, max)
        output_height: the number of rows of bins (at least 1 and at most 32768)
        output_width: the number of columns of bins (at least 1 and at most 32768)
        sampling_ratio: the number of samples along each side of a bin; 0 means the length of the side in pixels, rounded up (at least 0 and at most 32768)
        spatial_scale: the size of the map divided by the size of the image to which regions refer (more than 0 and finite)

    Returns y (R,C,output_height,output_width): the pooled map of each region

    Types: x f32 rois f32 batch_indices i64 y f32; x f16 rois f16 batch_indices i64 y f16; x bf16 rois bf16 batch_indices i64 y bf16

    Source: He et al. 2017, Mask R-CNN; ONNX RoiAlign 16; torchvision.ops.roi_align
    """

def scatter_reduce_nd(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    reduction: Literal["add", "mul", "min", "max"],
    deterministic: int = 1,
    out: Array | None = None,
) -> Array:
    """y = data; then, for each update i in order, y[indices[i]] = y[indices[i]] + updates[i], or *, min, max. Indices may repeat. Negative indices count from the end; an update whose index is out of range is ignored. f16 and bf16 are reduced in f32 and rounded once; integers wrap around; min and max with NaN return the update, so that NaN remains only if it comes last, as in ONNX Runtime.

    Tensors:
        data: a tensor of 1 to 8 dimensions (any)
        indices: the indices into the first `depth` dimensions of data (...,depth)
        updates: the slice for each index (...,rest)

    Attributes:
        reduction: the operation that combines updates with data; without a reduction, use TensorRT's own layer (add, mul, min, max)
        deterministic: 1 sorts updates by their index and reduces them in order, so that every run computes the same bits; 0 allows floating-point values to be added in any order, and in their own type (at least 0 and at most 1)

    Returns y (as data): the data after the updates

    Types: data f32 indices i64 updates f32 y f32; data f32 indices i32 updates f32 y f32; data f16 indices i64 updates f16 y f16; data f16 indices i32 updates f16 y f16; data bf16 indices i64 updates bf16 y bf16; data bf16 indices i32 updates bf16 y bf16; data i32 indices i64 updates i32 y i32; data i32 indices i32 updates i32 y i32; data i64 indices i64 updates i64 y i64; data i64 indices i32 updates i64 y i64

    Source: ONNX ScatterND 18; torch.Tensor.index_put_ with accumulate
    """

def scatter_reduce_elements(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    reduction: Literal["add", "mul", "min", "max"],
    axis: int = 0,
    deterministic: int = 1,
    out: Array | None = None,
) -> Array:
    """y = data; then, for each element of updates in order, the element of y at the same position, but at indices[position] along the axis, is combined with the update by +, *, min or max. Indices may repeat. Negative indices count from the end; an update whose index is out of range is ignored. f16 and bf16 are reduced in f32 and rounded once; integers wrap around; min and max with NaN return the update, so that NaN remains only if it comes last, as in ONNX Runtime.

    Tensors:
        data: a tensor of 1 to 8 dimensions (any)
        indices: the indices along the axis, with the rank of data and not larger than data except along the axis (any)
        updates: the update for each index (as indices)

    Attributes:
        reduction: the operation that combines updates with data; without a reduction, use TensorRT's own layer (add, mul, min, max)
        axis: the axis of the indices; negative axes count from the last one
        deterministic: 1 sorts updates by their target and reduces them in order, so that every run computes the same bits; 0 allows floating-point values to be added in any order, and in their own type (at least 0 and at most 1)

    Returns y (as data): the data after the updates

    Types: data f32 indices i64 updates f32 y f32; data f32 indices i32 updates f32 y f32; data f16 indices i64 updates f16 y f16; data f16 indices i32 updates f16 y f16; data bf16 indices i64 updates bf16 y bf16; data bf16 indices i32 updates bf16 y bf16; data i32 indices i64 updates i32 y i32; data i32 indices i32 updates i32 y i32; data i64 indices i64 updates i64 y i64; data i64 indices i32 updates i64 y i64

    Source: ONNX ScatterElements 18; torch.Tensor.scatter_reduce_
    """

def largest_k(
    x: Array,
    *,
    k: int = 1,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
    out: Array | None = None,
) -> tuple[Array, Array]:
    """values = the k largest elements of x along an axis, or the k smallest; of equal elements the first comes first. indices = their positions along the axis. NaN is larger than every number; 0 and -0 are equal.

    Tensors:
        x: a tensor of 1 to 8 dimensions (any)

    Attributes:
        k: the number of elements, at most the length of the axis (at least 0)
        axis: the axis; negative axes count from the last one
        largest: 1 selects the largest elements, 0 the smallest (at least 0 and at most 1)
        sorted: whether the results must be sorted; the operator also sorts them with 0 (at least 0 and at most 1)

    Returns values (as x, k along the axis): the selected elements, the largest or the smallest first, indices (as values): the positions of the values along the axis

    Types: x f32 values f32 indices i64; x f16 values f16 indices i64; x bf16 values bf16 indices i64; x i32 values i32 indices i64; x i64 values i64 indices i64

    Source: ONNX TopK 11; torch.topk
    """

def causal_conv_with_state(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    *,
    activation: Literal["none", "silu", "swish"] = "none",
    in_place: int = 0,
    out: Array | None = None,
) -> tuple[Array, Array]:
    """y[n,c,l] = activation(sum over k of weight[c,0,k] * s[n,c,l+k] + bias[c]), where s is past_state followed by x. present_state is the last K-1 elements of s: a sequence can be computed in chunks, each with the present_state of the chunk before it. Sums are accumulated in f32. silu and swish are z / (1 + exp(-z)).

    Tensors:
        x: the sequence or, if it is computed in chunks, its next chunk (N,C,L)
        weight: the factors of each channel; the last factor is for the newest element (C,1,K)
        bias: the bias that is added to the sums; 0 if the input is absent or empty (C)
        past_state: the elements before x; 0 if the input is absent (N,C,K-1)

    Attributes:
        activation: the activation that is applied to the sums (none, silu, swish)
        in_place: with 1, TensorRT stores present_state in the memory of past_state, which is then required (at least 0 and at most 1)

    Returns y (N,C,L): the results, with the length of x, present_state (N,C,K-1): the state after x, which is the past_state of the next chunk

    Types: x f32 weight f32 bias f32 past_state f32 y f32 present_state f32; x f16 weight f16 bias f16 past_state f16 y f16 present_state f16; x bf16 weight bf16 bias bf16 past_state bf16 y bf16 present_state bf16

    Source: ONNX CausalConvWithState 27; Gu and Dao 2023, Mamba; torch.nn.functional.conv1d
    """

def multi_scale_deformable_attention(
    value: Array,
    spatial_shapes: Array,
    sampling_locations: Array,
    attention_weights: Array,
    *,
    points: Sequence[int] = (),
    out: Array | None = None,
) -> Array:
    """value holds the pixels of L feature maps, one map after the other and each row by row, in M heads of D channels. A query has T points in each head, the first points[0] of them in map 0, the next points[1] in map 1 and so on; a point is x, y as fractions of the map's width and height. y is the sum over the points of the attention weight times the bilinear sample at x * width - 0.5, y * height - 0.5. A pixel outside its map or outside value adds 0, even if its weight is infinite or NaN. Positions and sums are computed in f32.

    Tensors:
        value: the pixels of all maps (B,S,M,D)
        spatial_shapes: the height and width of each map (L,2)
        sampling_locations: the points; T may be split into several axes, such as L,P (B,Q,M,T,2)
        attention_weights: the weights of the points; T is split as in the points (B,Q,M,T)

    Attributes:
        points: the number of points per query and head in each map; if empty, sampling_locations has axes L,P for P points in each of L maps (at least 1 and at most 32768)

    Returns y (B,Q,M,D): the sum for each query and head

    Types: value f32 spatial_shapes i64 sampling_locations f32 attention_weights f32 y f32; value f32 spatial_shapes i32 sampling_locations f32 attention_weights f32 y f32; value f16 spatial_shapes i64 sampling_locations f16 attention_weights f16 y f16; value f16 spatial_shapes i32 sampling_locations f16 attention_weights f16 y f16; value bf16 spatial_shapes i64 sampling_locations bf16 attention_weights bf16 y bf16; value bf16 spatial_shapes i32 sampling_locations bf16 attention_weights bf16 y bf16

    Source: Zhu et al. 2020, Deformable DETR: Deformable Transformers for End-to-End Object Detection
    """

def deformable_convolution(
    x: Array,
    weight: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    offset_group: int = 1,
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
    out: Array | None = None,
) -> Array:
    """y = sum(weight * mask * x at the window's elements, each moved by its offset) + bias. x is interpolated bilinearly from the four pixels around a position; pixels outside the image are 0, and a NaN position is outside. The channels of an offset group share offsets and mask. Positions are computed and sums are accumulated in f32. Kernels on tensor cores round f16 and bf16 samples to that type before they are multiplied, and compute each f32 product from three TF32 products.

    Tensors:
        x: the image (N,C,H,W)
        weight: the filters (K,C/group,kernel_shape)
        offset: the vertical and then the horizontal offset of each element of the window, for each pixel of y (N,offset_group*window*2,OH,OW)
        bias: the bias that is added to the sums; 0 if the input is absent or empty (K or 0)
        mask: the factors of the samples; 1 if the input is absent or empty (N,offset_group*window,OH,OW or 0)

    Attributes:
        dilations: the vertical and the horizontal distance between elements of the window; if empty, 1 (at least 1 and at most 1.07374e+09)
        group: the number of groups of channels, which are convolved separately (at least 1 and at most 1.07374e+09)
        kernel_shape: the height and width of the window; if empty, they follow from weight (at least 1 and at most 1.07374e+09)
        offset_group: the number of groups of channels that share offsets (at least 1 and at most 1.07374e+09)
        pads: the number of rows and columns of zeros added above, left of, below and right of the image; if empty, 0 (at least 0 and at most 1.07374e+09)
        strides: the vertical and the horizontal stride of the window; if empty, 1 (at least 1 and at most 1.07374e+09)

    Returns y (N,K,OH,OW): same type as x

    Types: x f32 weight f32 offset f32 bias f32 mask f32 y f32; x f16 weight f16 offset f16 bias f16 mask f16 y f16; x bf16 weight bf16 offset bf16 bias bf16 mask bf16 y bf16

    Source: Dai et al. 2017, Deformable Convolutional Networks; Zhu et al. 2018, Deformable ConvNets v2; ONNX DeformConv 19; torchvision.ops.deform_conv2d
    """
