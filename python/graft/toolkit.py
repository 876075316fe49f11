# The toolkit in Python: reading, inspecting, rewriting, comparing, quantizing and running networks, and building
# engines.
"""Every function takes a model as graft.load does: a graft.Model, a path, an onnx.ModelProto, or PyTorch's ONNXProgram.

Functions that may run for long have the arguments `progress` and `cancel`. `progress` is a function that is called in
the caller's thread with the completed share of the work, 0 to 1, and a description of the current step; None shows a
bar on a terminal and in a notebook where tqdm is installed, and False shows nothing. An exception of this function ends
the work and is raised by the call, as is Ctrl-C. `cancel` is a graft.CancelToken, whose use raises graft.Cancelled.

Errors are graft.Error: the text names file, node and attribute, and `kind` is the class of the error. A negative answer
is not an error: it is in `runs`, `same`, `met` and `failed_rules` of the results. Results have the output of the
command of the same name: `to_json()` returns the command's JSON, and `to_page()` its report, which notebooks show.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from graft import _toolkit, arrays
from graft import samples as data_forms
from graft.progress import Progress, shown

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import ArrayLike, NDArray

    from graft._toolkit import (
        AutoResult,
        BuildResult,
        CanaryResult,
        CancelToken,
        ConvertResult,
        CutNetwork,
        CutResult,
        InspectResult,
        LayersResult,
        Model,
        QuantizeResult,
        VerifyResult,
    )
    from graft.samples import Data

    Path = str | os.PathLike[str]

    class ExportedProgram(Protocol):
        """The result of torch.onnx.export(..., dynamo=True): a torch.onnx.ONNXProgram."""

        @property
        def model_proto(self) -> onnx.ModelProto: ...

    ModelLike = Model | Path | onnx.ModelProto | ExportedProgram
    Shapes = Mapping[str, Sequence[int]]
    # The smallest, the usual and the largest shape of each dynamic input, or a single shape for all three.
    ShapeRanges = Mapping[str, Sequence[int] | tuple[Sequence[int], Sequence[int], Sequence[int]]]
    Precision = Literal["f16", "fp16", "bf16", "int8", "f8", "fp8"]
    CpuEngine = Literal["auto", "openvino", "onnxruntime", "both"]

Result = TypeVar("Result")

# The interpreter in which the engine driver looks for TensorRT; GRAFT_PYTHON of the environment takes precedence.
_toolkit.set_python(sys.executable)

pass_names = _toolkit.pass_names
releases = _toolkit.releases


def load_operators(library: Path) -> list[str]:
    """Loads a library with operators of your own (`graft new` creates the project of one) and returns their names.

    After the call all functions treat these operators as Graft's own: CPU kernels, ONNX functions, fusions, int8; and
    graft.build loads the library's plugins into TensorRT. Call load_operators before the models that have these
    operators are loaded. The library's code runs in this process. A library that is already loaded is not loaded again.

    Raises graft.Error for a file that is not such a library or was built with the headers of another version of Graft,
    for an operator whose name is taken, and for an invalid fusion or ONNX function.
    """
    return _toolkit.load_operators(_path(library))


def load(
    model: ModelLike,
    *,
    weights: Path | None = None,
    shapes: Shapes | None = None,
    outputs: Sequence[str] = (),
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> Model:
    """Reads a network: a frozen TensorFlow graph (.pb, .pbtxt), a Caffe network (.prototxt), or ONNX.

    model: a path, an onnx.ModelProto with all weights inside, or the torch.onnx.ONNXProgram that PyTorch's exporter
        returns. A graft.Model is returned unchanged.
    weights: the .caffemodel of a Caffe network.
    shapes: shapes of inputs in place of the shapes in the file, -1 for a dynamic dimension: {"image": [-1, 1, 8, 8]}.
    outputs: tensors of a TensorFlow graph or a Caffe network that become the outputs; empty: all tensors that no node
        reads.

    Raises graft.Error naming file, node and attribute for a malformed file, an unknown operator and an unknown input;
    graft.Cancelled; TypeError for a value that is not a model, and for arguments that do not apply to this kind of
    model.
    """
    if isinstance(model, _toolkit.Model):
        if weights is not None or shapes or outputs:
            raise TypeError(
                "load: weights, shapes and outputs are allowed only for files; this model is already loaded"
            )
        return model
    sizes = {name: list(shape) for name, shape in (shapes or {}).items()}
    if isinstance(model, str | os.PathLike):
        with shown(progress, "load") as show:
            return _toolkit.load(
                os.fspath(model),
                weights=_path(weights),
                shapes=sizes,
                outputs=list(outputs),
                progress=show,
                cancel=cancel,
            )
    proto: Any = getattr(model, "model_proto", model)
    if not hasattr(proto, "SerializeToString"):
        kind = type(model).__name__
        # Results that have a model in an attribute, and the name of the attribute.
        attribute = {"CutResult": "network.tensorrt", "CutNetwork": "tensorrt"}.get(kind)
        attribute = attribute or ("model" if kind in ("ConvertResult", "QuantizeResult") else None)
        hint = f"; its attribute .{attribute} is a model" if attribute else ""
        if any(each.__module__.startswith("torch.nn.") for each in type(model).__mro__):
            hint = (
                "\nExport it with torch.onnx.export(module, inputs, dynamo=True), whose result is a model, or with "
                "graft.torch.export"
            )
        raise TypeError(f"expected a model (a graft.Model, a path or an onnx.ModelProto), found {kind}{hint}")
    if weights is not None or outputs:
        raise TypeError("load: weights and outputs are allowed only for files of formats other than ONNX")
    return _toolkit.parse(proto.SerializeToString(), name=proto.graph.name or "model", shapes=sizes)


def from_bytes(onnx: bytes, name: str) -> Model:
    """Returns the model of an ONNX file in memory; `name` stands for the file in messages."""
    return _toolkit.parse(onnx, name=name, shapes={})


def inspect(
    model: ModelLike,
    *,
    judge: Literal["auto", "rule", "parser", "builder"] = "auto",
    convert: bool = False,
    release: str = "",
    trial_seconds: float = 300,
    max_builds: int = 60,
    max_seconds: float = 120,
    shapes: ShapeRanges | None = None,
    targets: str | Sequence[str] = (),
    plugin_libraries: Sequence[Path] = (),
    tensorrt: Literal["auto", "rtx", "full"] = "auto",
    plugin_override: bool = False,
    reduce: Path | None = None,
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> InspectResult:
    """Determines how TensorRT will run each node: by running the installed TensorRT, or by Graft's rules.

    judge: `auto` parses and builds the model with the installed TensorRT, in a child process that may crash, for
        suggested shapes if `shapes` has none, and uses the rules if TensorRT is not installed or `release` is set;
        result.probe and result.not_asked show which of the two judged. `rule` does not run TensorRT. `parser` runs
        TensorRT's parser, and `builder` runs TensorRT's parser and builder.
    convert: whether to inspect the model that graft.convert writes, without proofs, instead of the given model.
    release: the release whose rules judge the nodes, one of graft.releases(); it need not be installed: "rtx-1.5",
        "tensorrt-10.13". Empty: the newest TensorRT-RTX that was measured.
    trial_seconds: seconds after which a parse or a build counts as hanging.
    max_builds: maximum number of builds.
    max_seconds: seconds after which no further parse or build starts, counted from the start of the call.
    shapes: the shapes of dynamic inputs for which the builder builds:
        {"image": ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}.
    targets, plugin_libraries, tensorrt, plugin_override: see graft.build.
    reduce: the ONNX file for the smallest part of the model that TensorRT does not run; None: no file is written.

    Raises graft.Error (missing_tool) where `parser` or `builder` finds no TensorRT; graft.Error (bad_input) for shapes
    that do not fit the model, an unknown release, and a release with the judges `parser` and `builder`;
    graft.Cancelled.
    """
    return _call(_toolkit.inspect, "inspect", locals(), shapes=_ranges(shapes))


def convert(
    model: ModelLike,
    *,
    plugins: Literal["auto", "always", "never"] = "auto",
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    release: str = "",
    rules: Path | None = None,
    unroll: int = 1000,
    quantized: Literal["exact", "symmetric"] = "exact",
    prove: bool = True,
    prove_each: bool = False,
    functions: bool = True,
    engine: CpuEngine = "auto",
    check: bool = True,
    max_seconds: float = 120,
    shapes: ShapeRanges | None = None,
    targets: str | Sequence[str] = (),
    plugin_libraries: Sequence[Path] = (),
    tensorrt: Literal["auto", "rtx", "full"] = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> ConvertResult:
    """Rewrites a copy of a model so that TensorRT can run it; runs on the CPU prove each rewrite.

    Inputs and outputs keep their names. Converting a converted model changes nothing.

    plugins: `auto` uses a plugin where no native layer is exact and as fast; `always` uses a plugin wherever one of
        Graft's operators can replace nodes; `never` uses standard operators only, where they can express the operator.
    only, without: names of the passes to run, or to skip (graft.pass_names()).
    release: the target release of TensorRT, one of graft.releases(): nodes that this release is known to compute
        wrongly are rewritten. Empty: no particular release.
    rules: a YAML file with your own rewrites (docs/guide/rules.md).
    unroll: maximum number of nodes that replace one Loop or Scan with a known number of iterations, whose body is
        copied for each iteration; 0: no Loop and no Scan is replaced.
    quantized: the rounding of values that the model rounds to u8, or to i8 with a zero point, which TensorRT does not
        support. `exact` computes the same rounding in f32; `symmetric` rounds to i8 with the zero point 0 and the same
        range, whose larger steps change the results.
    prove: False applies rewrites without proofs and without running a model.
    prove_each: whether to prove also rewrites that differ from a proven rewrite only in the values of weights.
    functions: False leaves out the ONNX functions of Graft's nodes, which TensorRT's own parser prefers to plugins;
        such a model needs the plugin library, and other runtimes cannot run it.
    engine: the CPU engine that runs the proofs: `openvino`; `onnxruntime`; `both`, where a rewrite on which the two
        engines disagree is not proven; `auto`, which repeats the proofs in openvino and checks a sample of them in
        onnxruntime.
    check: whether to compare the outputs of the result with those of the model, as graft.verify does, and to parse
        and build the result with the installed TensorRT, in a child process that may crash. result.verified is the
        verdict of the comparison; if nothing was compared (without prove, with rules, or where nothing was rewritten),
        result.not_verified is the reason. result.runs says whether TensorRT built the result, and result.check has
        TensorRT's messages. If TensorRT is not installed or `release` is set, the rules judge, and result.not_checked
        is the reason.
    max_seconds, shapes, targets, plugin_libraries, tensorrt: the arguments of graft.inspect, for the check.

    Raises graft.Error for an unknown pass or release, rules that cannot be read, and an inconsistent model;
    graft.Cancelled.
    """
    return _call(_toolkit.convert, "convert", locals(), shapes=_ranges(shapes))


def verify(
    reference: ModelLike,
    candidate: ModelLike,
    *,
    data: Data | None = None,
    recipe: Path | None = None,
    labels: Path | None = None,
    judge_outputs: str | Sequence[str] = (),
    samples: int = 0,
    seeds: int = 0,
    shapes: Shapes | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    relative: float | None = None,
    absolute: float | None = None,
    snr_db: float | None = None,
    own_kernels: bool = False,
    engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> VerifyResult:
    """Runs both models on the CPU on the same inputs and compares their outputs.

    The models may have different formats and types: inputs and outputs are paired by name, then by order, and
    transposed where the channels are on another axis.

    data: inputs by the names and in the layout of either model; the first axis counts samples. A dict of arrays; an
        array for the only input; the path of an .npy or .npz file, an image, or a folder of arrays or images; a list of
        such files as `--data` names them, ["image=x.npy"]; or an iterable of samples. Arrays are converted to the types
        of the inputs, and result.data_notes lists the conversions (docs/guide/data.md). None: synthetic inputs.
    recipe: a YAML file that describes how images are prepared (docs/guide/data.md).
    labels: the classes of the images of a folder: "folders", where the name of the folder of each image is its class, or
        a text or CSV file with a line NAME,CLASS for each image. result.accuracy is then the accuracy of both models.
    judge_outputs: names of the outputs with the scores of a classifier, for the accuracy and the top-1 agreement. Empty:
        see graft.quantize.
    samples: maximum number of files of a folder, evenly spread over it, or of samples of an iterable; 0: all.
    seeds: number of runs with synthetic inputs; 0: 3 runs.
    shapes: shapes of synthetic inputs, without a dynamic dimension.
    ranges: ranges of synthetic inputs: {"image": (0, 255)}.
    relative, absolute: tolerance of each element, in place of the tolerance for rounding errors.
    snr_db: minimum signal to noise ratio of each output in dB, in place of a tolerance.
    own_kernels: whether the candidate's Graft operators run by their own CPU kernels instead of their ONNX functions.
    engine: the CPU engine that runs both models: `openvino`; `onnxruntime`, which cannot run own kernels; `both`, where
        the verdict is `disputed` if the engines compute one of the models differently; `auto`, which is onnxruntime,
        and openvino for models that onnxruntime refuses or is known to compute wrongly. `ran_in` and `left_out` of the
        result name the engines and the reasons.

    Raises graft.Error where the reference does not run, and for data or shapes that fit neither model; graft.Cancelled.
    A candidate that differs raises nothing.
    """
    return verify_given(locals())


def verify_given(given: dict[str, Any], start_parts: Callable[..., Iterator[bytes]] | None = None) -> VerifyResult:
    """Verifies with the arguments of graft.verify by name. `start_parts` starts the runs in other processes."""
    models = {name: _loaded(given[name], given["cancel"]) for name in ("reference", "candidate")}
    shapes = _sizes(given["shapes"])
    return _call_with_data(_toolkit.verify, "verify", given | models, callers=4, parts=start_parts, shapes=shapes)


def verify_layers(
    reference: ModelLike,
    candidate: ModelLike | None = None,
    *,
    emulated: Precision | None = None,
    data: Data | None = None,
    recipe: Path | None = None,
    samples: int = 0,
    seeds: int = 0,
    shapes: Shapes | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    relative: float | None = None,
    absolute: float | None = None,
    snr_db: float | None = None,
    own_kernels: bool = False,
    engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> LayersResult:
    """Compares every tensor that both models have, also across rewrites and layouts, and finds the first node that
    differs.

    candidate: None, with `emulated`: the reference itself.
    emulated: compute the candidate on the CPU with the rounding of this type.
    seeds: number of runs with synthetic inputs; 0: 1 run, or 2 runs where int8 is emulated.
    data, recipe, samples, shapes, ranges, relative, absolute, snr_db, own_kernels, engine: see graft.verify.

    Raises the errors of graft.verify.
    """
    reference = _loaded(reference, cancel)
    candidate = reference if candidate is None else _loaded(candidate, cancel)
    return _call_with_data(_toolkit.verify_layers, "verify layers", locals(), shapes=_sizes(shapes))


def quantize(
    model: ModelLike,
    *,
    precision: Precision = "f16",
    data: Data | None = None,
    shapes: Shapes | None = None,
    keep: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    typed_io: bool = False,
    limit_db: float | None = None,
    recipe: Path | None = None,
    labels: Path | None = None,
    samples: int = 0,
    calibration: Literal["percentile", "entropy", "minmax", "mse"] | None = None,
    percentile: float | None = None,
    cache: Path | None = None,
    state: Path | None = None,
    improve: str | Sequence[str] = (),
    rest: Literal["f16", "fp16", "bf16"] | None = None,
    metric: Callable[[Model], float] | None = None,
    max_drop: float | None = None,
    judge_outputs: str | Sequence[str] = (),
    judged: int | None = None,
    engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> QuantizeResult:
    """Returns a typed copy of an f32 model in f16, bf16, int8 or f8; nodes that would lose too much stay in f32.

    data: typical inputs of the network in any of the forms of graft.verify. f16 and bf16 use synthetic inputs (of
        `shapes`) where there are none. Int8 and f8 need a hundred samples or more. The iterable of samples may be a
        generator; a sample has the inputs of one run, as a dict of arrays or as the array of the only input. At most
        `samples` samples are read from an iterable, one at a time, and stored as files in a temporary folder (TMPDIR)
        until the call ends, because calibration reads them more than once: the samples have to fit on the disk, not in
        memory.
    recipe: a YAML file that describes how images are prepared (docs/guide/data.md).
    shapes: shapes of synthetic inputs, without a dynamic dimension; f16 and bf16 only.
    keep: nodes that stay in f32: patterns with * and ? for names of nodes, tensors or operators.
    only: the only nodes that may leave f32: patterns as in `keep`.
    typed_io: whether inputs and outputs have the type `precision` too, instead of f32; f16 and bf16 only.
    limit_db: minimum signal to noise ratio of each output in dB; nodes stay in f32 until it is met. None: 40 dB in f16
        and 25 dB in bf16, where nodes stay in f32 to meet it, and 20 dB in int8 and f8, where none does.

    Only for int8 and f8:
    samples: maximum number of calibration samples, of a folder evenly spread over its files; 0: all.
    calibration: the method that chooses the thresholds at which int8 or f8 saturates; None: percentile in int8, minmax
        in f8. `entropy` is only for int8.
    percentile: the percentile of the method `percentile`, which it implies; above 0, at most 100; None: 99.99.
    cache: a calibration cache of TensorRT 7 to 10 whose scales are used; int8 only.
    state: a file for the state of the calibration, from which an interrupted calibration continues.
    improve: changes of weights and biases that reduce the quantization error: `equalize` (cross-layer equalization),
        `smooth` (SmoothQuant), `round` (AdaRound; int8 only), `bias` (bias correction).
    rest: the type of nodes that are not int8 or f8, where the limits are still met; None: f32.
    labels: the classes of the images of a folder, see graft.verify. The metric is then the accuracy, in percent of the
        samples that are judged.
    metric: returns the quality of a graft.Model; more is better. Called in this thread, once for the f32 network and
        once per candidate; an exception of the metric ends the work and is raised by this call. None: top-1 agreement
        with f32, in per cent of the rows of `judge_outputs`.
    max_drop: maximum decrease of the metric, in its own unit. The layers that lose most stay in f32 until it is met.
    judge_outputs: names of the outputs with the scores of a classifier, whose top-1 agreement or accuracy is the metric. Empty: the
        outputs next to a Softmax or ArgMax or with "logit" or "prob" in their names; without these, the outputs [batch,
        classes] of last layers.
    judged: maximum number of samples for which outputs are compared; None: 64.

    engine: the CPU engine that runs the model: `auto` measures in openvino, and checks the result as graft.verify does;
        a dispute raises graft.Error (answer_is_no).

    Raises graft.Error for int8 and f8 without data and cache, a pattern that matches nothing, data that do not fit the
    inputs, and options that the precision does not have; graft.Cancelled. A limit that is not met raises nothing: `met`
    of the result is False.
    """
    return quantize_given(locals())


def quantize_given(given: dict[str, Any], start_parts: Callable[..., Iterator[bytes]] | None = None) -> QuantizeResult:
    """Quantizes with the arguments of graft.quantize by name. `start_parts` starts the calibration in other processes."""
    title = f"quantize {given['precision']}"
    shapes = _sizes(given["shapes"])
    return _call_with_data(_toolkit.quantize, title, given, callers=4, parts=start_parts, shapes=shapes)


def write_calibration_cache(model: ModelLike, file: Path) -> int:
    """Writes the scales of an int8 model as a calibration cache of TensorRT 7 to 10, and returns the number of scales.

    Raises graft.Error naming the node for a scale that a cache cannot hold, and for a model without scales.
    """
    return _toolkit.write_calibration_cache(_loaded(model, None), os.fspath(file))


def build(
    model: ModelLike,
    engine: Path,
    *,
    targets: str | Sequence[str] = (),
    shapes: ShapeRanges | None = None,
    profiles: Sequence[ShapeRanges] = (),
    memory: Mapping[str, int] | None = None,
    optimization_level: int | None = None,
    formats: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    timing_cache: Path | None = None,
    tf32: bool = False,
    version_compatible: bool = False,
    exclude_lean_runtime: bool = False,
    embed_plugins: bool = False,
    refit: bool = False,
    strip_weights: bool = False,
    weight_streaming: bool = False,
    dla_core: int | None = None,
    gpu_fallback: bool = False,
    device: int | None = None,
    plugin_override: bool = False,
    verbosity: Literal["none", "layer_names_only", "detailed"] | None = None,
    time_limit: float | None = None,
    plugins: bool = True,
    plugin_libraries: Sequence[Path] = (),
    tensorrt: Literal["auto", "rtx", "full"] = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> BuildResult:
    """Builds an engine with the installed TensorRT; Graft's nodes run as plugins.

    TensorRT runs in a child process, with this interpreter or the one that GRAFT_PYTHON of the environment names: a
    crash of TensorRT raises graft.Error. TensorRT-RTX needs no GPU. The file is written completely or not at all.

    engine: the file to write.
    targets: GPUs: architectures such as "sm89", products such as "RTX 4090", or "current", the GPU of this machine.
        Empty: with TensorRT-RTX all from Ampere on, with TensorRT the GPU of this machine.
    shapes: the minimum, optimum and maximum shape of each dynamic input, or a single shape:
        {"image": ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}.
    profiles: further ranges, one dict as in `shapes` for each optimization profile.
    memory: the maximum size of each of the builder's memory pools, in bytes: {"workspace": 2 << 30}; also
        tactic_shared_memory, tactic_dram, dla_sram, dla_local_dram and dla_global_dram.
    formats: the type and the memory layouts that an input or output of the engine may have:
        {"image": ("f16", ["hwc8", "linear"])}; "" keeps the model's type.
    timing_cache: a file that is read and extended; several builds may share it. Not with TensorRT-RTX.
    plugins: whether Graft's nodes run as plugins. False: TensorRT builds them from native layers, using their ONNX
        functions.
    plugin_libraries: plugin libraries to load in addition to Graft's own.
    tensorrt: the TensorRT to build with: `auto`, `rtx` or `full`.
    time_limit: seconds without progress after which a build counts as hanging; None: 3600.
    docs/guide/build_options.md explains the other arguments.

    Raises graft.Error (missing_tool) where TensorRT is not installed; graft.Error (answer_is_no) with TensorRT's
    reasons where TensorRT refuses the model; graft.Error (bad_input) for options that the installed TensorRT does not
    support, naming them; graft.Cancelled.
    """
    return _call(
        _toolkit.build,
        "build",
        locals(),
        engine=os.fspath(engine),
        shapes=_ranges(shapes),
        profiles=[_ranges(profile) for profile in profiles],
        formats={name: (type_name, list(layouts)) for name, (type_name, layouts) in (formats or {}).items()},
    )


def auto(
    model: Path,
    engine: Path,
    *,
    weights: Path | None = None,
    input_shapes: Shapes | None = None,
    outputs: Sequence[str] = (),
    rules: Path | None = None,
    precision: Precision | None = None,
    data: Path | Sequence[Path] | Mapping[str, ArrayLike] | NDArray[np.generic] | None = None,
    recipe: Path | None = None,
    labels: Path | None = None,
    samples: int = 0,
    keep: str | Sequence[str] = (),
    limit_db: float | None = None,
    shapes: ShapeRanges | None = None,
    targets: str | Sequence[str] = (),
    plugins: bool = True,
    plugin_libraries: Sequence[Path] = (),
    tensorrt: Literal["auto", "rtx", "full"] = "auto",
    folder: Path | None = None,
    cpu_engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> AutoResult:
    """Builds an engine from the file of a network in one call: converts it, compares the result with the network,
    quantizes it if there is a precision, builds the engine and checks it.

    result.succeeded is True where the engine exists and every check passed. Otherwise result.steps has the step with
    the state `negative`, after which no other ran, or result.checks has the check that failed. Each step has the
    command that does the same, and result.convert, result.verify, result.quantize and result.build are the results of
    the functions.

    model: the path of an ONNX model, a TensorFlow graph or a Caffe network.
    engine: the file to write.
    weights, input_shapes, outputs: the arguments weights, shapes and outputs of graft.load.
    rules: see graft.convert; the results are then not compared.
    precision, samples, keep, limit_db: see graft.quantize; None: the network keeps its types.
    data, recipe: inputs for the comparison and the calibration in the forms of graft.verify, except iterables. The
        comparison reads at most 64 files of a folder. None: synthetic inputs, which int8 and f8 do not accept.
    labels: the classes of the images of a folder, for the accuracy of a classifier, see graft.verify.
    shapes, targets, plugins, plugin_libraries, tensorrt: see graft.build. Without targets: the GPU of this machine, or
        all that TensorRT-RTX builds for without a target; result.why_targets has the reason.
    folder: the folder for converted.onnx, quantized.onnx, data.npz, report.html and report.json. None: "digits.graft"
        for the engine "digits.engine".
    cpu_engine: the CPU engine, see graft.verify.

    Raises graft.Error (missing_tool) where TensorRT is not installed; graft.Error (bad_input) where a dynamic input has
    no range; the other errors of graft.convert, graft.verify, graft.quantize and graft.build; graft.Cancelled.
    """
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"auto: expected the path of a network, found {type(model).__name__}; Model.save writes a file")
    found = data_forms.files_or_arrays(data)
    if found is None:
        raise TypeError(
            f"auto: found data of type {type(data).__name__}; pass a dict of arrays, an array if the network has one "
            "input, or files"
        )
    tensors, files = found
    with shown(progress, "auto") as show:
        result = _toolkit.auto(
            os.fspath(model),
            os.fspath(engine),
            weights=_path(weights),
            input_shapes=_sizes(input_shapes),
            outputs=list(outputs),
            rules=_path(rules),
            precision=precision,
            data=tensors,
            data_files=files,
            recipe=_path(recipe),
            labels=_path(labels),
            samples=samples,
            keep=_listed(keep),
            limit_db=limit_db,
            shapes=_ranges(shapes),
            targets=_listed(targets),
            plugins=plugins,
            plugin_libraries=_paths(plugin_libraries),
            tensorrt=tensorrt,
            folder=_path(folder),
            cpu_engine=cpu_engine,
            progress=show,
            cancel=cancel,
        )
    _warn(result.data_notes, 2)
    return result


def cut(
    model: ModelLike,
    *,
    judge: Literal["auto", "rule", "parser", "builder"] = "auto",
    max_seconds: float = 120,
    shapes: ShapeRanges | None = None,
    targets: str | Sequence[str] = (),
    plugin_libraries: Sequence[Path] = (),
    tensorrt: Literal["auto", "rtx", "full"] = "auto",
    plugins: bool = True,
    verify: bool = True,
    engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> CutResult | None:
    """Cuts a network in two where neither TensorRT nor a plugin runs some of its nodes. Convert the network first.

    TensorRT gets the half with more arithmetic: either the nodes before those that TensorRT does not run, or the nodes
    after them; the other half is for ONNX Runtime on the host. `result.save("detector.onnx")` writes both halves.
    result.tails describes the post-processing of a detector: the tensors of boxes and scores, and the thresholds.

    judge, max_seconds, shapes, targets, plugin_libraries, tensorrt: see graft.inspect.
    plugins: whether nodes of ONNX operators that graft.build runs as Graft's plugins, for example NonZero in
        TensorRT-RTX, stay in the half for TensorRT. False: they run on the host.
    verify: whether to run both halves and the whole network and to compare the outputs; result.verified is the verdict.
    engine: the CPU engine of this comparison, see graft.verify.

    Returns None where no node is known to fail. Raises graft.Error (answer_is_no) where no half would compute anything
    in TensorRT, and the errors of graft.inspect and graft.verify.
    """
    return _call(_toolkit.cut, "cut", locals(), shapes=_ranges(shapes))


def canary(
    model: ModelLike,
    folder: Path,
    *,
    data: Data | None = None,
    recipe: Path | None = None,
    seeds: int = 1,
    shapes: Shapes | None = None,
    plugin_libraries: Sequence[Path] = (),
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> CanaryResult:
    """Writes a folder for a machine with a GPU, whose run_canary.py finds the first node that the TensorRT there
    computes wrongly.

    The folder has the model, inputs, the CPU's values of its tensors, the tolerance of each element, and run_canary.py,
    which needs Python with NumPy, TensorRT and PyTorch or cuda-python, but not Graft. The folder is written completely
    or not at all.

    data, recipe: inputs, see graft.verify. None: synthetic inputs.
    seeds: number of runs with synthetic inputs.
    shapes: shapes of synthetic inputs, without a dynamic dimension.
    plugin_libraries: plugin libraries that are copied into the folder and loaded there; the model then has plugin nodes
        in place of the functions of Graft's operators.

    result.left_out has the tensors that are not compared (tensors that depend on random numbers, and tensors whose
    size depends on data) and the reasons.

    Raises graft.Error for a folder that exists already, data and shapes that do not fit the model, a model that does
    not run on the CPU, and a model without an output that can be compared; graft.Cancelled.
    """
    return _call_with_data(_toolkit.canary, "canary", locals(), shapes=_sizes(shapes))


def load_cut(file: Path) -> CutNetwork:
    """Reads both halves of a network from the .cut.json file that names them; graft.load reads the same file as one
    network.

    Raises graft.Error naming the file and the key for a malformed file.
    """
    return _toolkit.load_cut(_path(file))


class Session:
    """A model that is compiled once and can run many times on the CPU, with other shapes where its inputs are dynamic.

    model: a model, or a graft.CutNetwork, whose halves run one after the other.
    threads: number of threads; 0: one for each core of the machine.
    own_kernels: whether Graft's operators run by their own CPU kernels instead of their ONNX functions.
    engine: the CPU engine that runs the model, see graft.verify; a dispute raises graft.Error (answer_is_no).

    progress, cancel: for reading and compiling the model; the token also cancels a run.

    Raises graft.Error naming the node that the CPU engine refuses; graft.Cancelled.
    """

    def __init__(
        self,
        model: ModelLike | CutNetwork,
        *,
        threads: int = 0,
        own_kernels: bool = False,
        engine: CpuEngine = "auto",
        progress: Progress | bool | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        self._model = model if isinstance(model, _toolkit.CutNetwork) else _loaded(model, cancel)
        with shown(progress, "compile") as show:
            self._session = _toolkit.Session(
                self._model, threads=threads, own_kernels=own_kernels, engine=engine, progress=show, cancel=cancel
            )
        self._noted: set[str] = set()

    @property
    def model(self) -> Model | CutNetwork:
        return self._model

    @property
    def ran_in(self) -> str:
        """The CPU engine that runs the model: 'ONNX Runtime 1.31.1'."""
        return self._session.ran_in

    @property
    def left_out(self) -> list[str]:
        """Why the first choice of engines does not run the model, known wrong results of the engine that runs it, and
        how this engine rewrote the model; mostly empty."""
        return self._session.left_out

    @property
    def data_notes(self) -> list[str]:
        """How the inputs of the last run were converted; mostly empty."""
        return self._session.data_notes

    def run(
        self,
        inputs: Path | Sequence[Path] | Mapping[str, ArrayLike] | NDArray[np.generic] | None = None,
        *,
        recipe: Path | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Runs the model on every input by name, or on an array for the only input, and returns every output by name.
        A model without inputs needs none.

        Arrays are bool, integers of 8 to 64 bits, float16, bfloat16 (of ml_dtypes), float32 or float64. An array whose
        type or first axis differs from the model's is converted by the rules of docs/guide/data.md; any other
        contiguous input is not copied. Each output owns its memory. f16 and bf16 are computed in f32 and rounded once.

        inputs: also files, in the forms of graft.verify. The model runs once for each batch of samples and each file of
            a folder, and the outputs are joined along their first axis.
        recipe: a YAML file that describes how images are prepared.

        Raises graft.Error naming the input that is missing, unknown, or does not fit; graft.Cancelled.
        """
        found = data_forms.files_or_arrays(inputs, "run")
        if found is None:
            raise TypeError("run: expected a dict of arrays, an array if the model has one input, or files")
        tensors, files = found
        outputs = self._session.run_files(files, _path(recipe)) if files else self._session.run(tensors)
        _warn((note for note in self.data_notes if note not in self._noted), 2)
        self._noted.update(self.data_notes)
        return arrays.unpack(outputs)

    def __repr__(self) -> str:
        return f"<graft.Session of {self._model!r}>"


def _call(function: Callable[..., Result], title: str, given: dict[str, Any], **converted: object) -> Result:
    """Calls `function` of the extension and shows a progress bar with this title. `given` has the arguments of the
    caller, as locals() returns them; they are converted by their names. The arguments in `converted` are passed
    unchanged."""
    arguments = given | converted
    with shown(given["progress"], title) as show:
        if "model" in given:
            arguments["model"] = _loaded(given["model"], given["cancel"])
        for name in given.keys() & _CONVERSIONS.keys() - converted.keys():
            arguments[name] = _CONVERSIONS[name](given[name])
        return function(**arguments | {"progress": show})


def _call_with_data(
    function: Callable[..., Result], title: str, given: dict[str, Any], *, callers: int = 3, **converted: Any
) -> Result:
    """Calls `function` as _call does, with the caller's `data` as tensors or files, and warns about conversions of the
    data. The warning names the user's line of code, which is `callers` calls above _warn. If `parts` is set, it also
    receives the data."""
    with data_forms.opened(given["data"], given.get("samples", 0)) as (tensors, files):
        if converted.get("parts") is not None:
            converted["parts"] = functools.partial(converted["parts"], data=tensors, data_files=files)
        result = _call(function, title, given, data=tensors, data_files=files, **converted)
    _warn(getattr(result, "data_notes", ()), callers)
    return result


def _warn(notes: Iterable[str], callers: int) -> None:
    """Warns with each note. The warning names the user's line of code, which is `callers` calls above this function."""
    for note in notes:
        warnings.warn(note, stacklevel=callers + 1)


def _loaded(model: ModelLike, cancel: CancelToken | None) -> Model:
    """Loads the model without a progress bar of its own, because the calling function shows one."""
    return load(model, progress=False, cancel=cancel)


def _sizes(shapes: Shapes | None) -> dict[str, list[int]]:
    return {name: list(shape) for name, shape in (shapes or {}).items()}


def _ranges(shapes: ShapeRanges | None) -> dict[str, tuple[list[int], list[int], list[int]]]:
    ranges = {}
    for name, given in (shapes or {}).items():
        found: list[Any] = list(given)
        if all(isinstance(size, int) for size in found):
            found = [found] * 3
        if len(found) != 3:
            raise TypeError(
                f"shapes[{name!r}]: found {given!r}; it must be one shape, or the minimum, optimum and maximum shape"
            )
        smallest, usual, largest = (list(shape) for shape in found)
        ranges[name] = (smallest, usual, largest)
    return ranges


def _path(path: Path | None) -> str:
    """Returns the path as a string. The toolkit expects an empty string for no path, which pathlib would turn into
    "."."""
    return "" if path is None else os.fspath(path)


def _paths(paths: Sequence[Path]) -> list[str | os.PathLike[str]]:
    return [os.fspath(path) for path in paths]


def _listed(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


# How the arguments of these names are handed to the extension; all other arguments are handed over as they are.
_CONVERSIONS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("keep", "only", "without", "targets", "improve", "judge_outputs"), _listed),
    **dict.fromkeys(("folder", "rules", "reduce", "recipe", "labels", "cache", "state", "timing_cache"), _path),
    **dict.fromkeys(("ranges", "memory"), lambda given: dict(given or {})),
    "plugin_libraries": _paths,
}
