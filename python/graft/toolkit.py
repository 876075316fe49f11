# The toolkit in Python: reading, judging, rewriting, comparing, quantizing and running networks, and building engines.
"""Every function takes a model as graft.load does: a graft.Model, a path, an onnx.ModelProto, or PyTorch's ONNXProgram.

Those that may take long have `progress` and `cancel`. `progress` is a function that is called in this thread with the
part that is done, 0 to 1, and what is being done; without one, a bar is shown on a terminal and in a notebook where tqdm is
installed, and False shows nothing. What it raises ends the work, and so does Ctrl-C; `cancel` is a graft.CancelToken.

What goes wrong raises graft.Error, whose text names file, node and attribute, and whose `kind` says whose fault it is.
An answer is no error: look at `runs`, `same`, `met` and `failed_rules` of the results. Results show what the commands
print: `to_json()` is their JSON, `to_page()` their report, which notebooks show.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from graft import _toolkit, arrays, samples
from graft.progress import Progress, shown

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import ArrayLike, NDArray

    from graft._toolkit import (
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

    Path = str | os.PathLike[str]

    class ExportedProgram(Protocol):
        """What torch.onnx.export(..., dynamo=True) returns: a torch.onnx.ONNXProgram."""

        @property
        def model_proto(self) -> onnx.ModelProto: ...

    ModelLike = Model | Path | onnx.ModelProto | ExportedProgram
    Shapes = Mapping[str, Sequence[int]]
    # Of a dynamic input: the smallest, the usual and the largest shape.
    ShapeRanges = Mapping[str, Sequence[int] | tuple[Sequence[int], Sequence[int], Sequence[int]]]
    Precision = Literal["f16", "fp16", "bf16", "int8", "f8", "fp8"]
    CpuEngine = Literal["auto", "openvino", "onnxruntime", "both"]

# The interpreter that has TensorRT, if any has; the environment's GRAFT_PYTHON goes before it.
_toolkit.set_python(sys.executable)

pass_names = _toolkit.pass_names
releases = _toolkit.releases


def load_operators(library: Path) -> list[str]:
    """Loads a library with operators of your own, as `graft new` starts one, and returns their names.

    From then on all functions know them as they know Graft's: CPU kernels, ONNX functions, fusions, int8; and build loads
    the library's plugins into TensorRT. Call it before the models that have these operators are loaded. A library that
    is loaded already stays as it is; its code runs in this process.

    Raises graft.Error for a file that is no such library or was built with the headers of another Graft, for an operator
    whose name is taken, and for a fusion or a function that is wrong.
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
        returns. A graft.Model comes back as it is.
    weights: the .caffemodel of a Caffe network.
    shapes: of inputs, in place of the file's, -1 for a dimension that stays dynamic: {"image": [-1, 1, 8, 8]}.
    outputs: tensors of a TensorFlow graph or a Caffe network that become the outputs; none: all that no node reads.

    Raises graft.Error naming file, node and attribute for what is malformed, and for an operator or an input that is
    not known.
    """
    if isinstance(model, _toolkit.Model):
        if weights is not None or shapes or outputs:
            raise TypeError("load: weights, shapes and outputs are for files; the model has been read")
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
        # What holds models, and where.
        attribute = {"CutResult": "network.tensorrt", "CutNetwork": "tensorrt"}.get(kind)
        attribute = attribute or ("model" if kind in ("ConvertResult", "QuantizeResult") else None)
        hint = f"; its attribute .{attribute} is one" if attribute else ""
        if any(each.__module__.startswith("torch.nn.") for each in type(model).__mro__):
            hint = "\nExport it with torch.onnx.export(module, inputs, dynamo=True), whose result is one, or with graft.torch.export"
        raise TypeError(f"a model is a graft.Model, a path or an onnx.ModelProto, and this is {kind}{hint}")
    if weights is not None or outputs:
        raise TypeError("load: weights and outputs are for files of other formats than ONNX")
    return _toolkit.parse(proto.SerializeToString(), name=proto.graph.name or "model", shapes=sizes)


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
    """How TensorRT will run each node: by asking the TensorRT that is installed, or by Graft's rules.

    judge: `auto` parses and builds the model with the installed TensorRT, in a process that may die, for suggested shapes
        where none are given, and leaves it to the rules where there is none or a release is named; result.probe and
        result.not_asked say who judged. `rule` asks no TensorRT; `parser` and `builder` have to find one.
    convert: inspect what graft.convert makes of the model, with nothing proven.
    release: by the rules of this release, which need not be installed, as graft.releases() lists them: "rtx-1.5",
        "tensorrt-10.13". Empty: of the newest TensorRT-RTX that was measured.
    trial_seconds, max_builds, max_seconds: how long a single question, how many builds, and how long in all.
    shapes: of dynamic inputs, for the builder: {"image": ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}.
    targets, plugin_libraries, tensorrt, plugin_override: as graft.build.
    reduce: an ONNX file to write, for the smallest part of the model that TensorRT does not take.

    Raises graft.Error (missing_tool) where `parser` or `builder` finds no TensorRT, and (bad_input) for shapes that do not fit,
    for a release of which nothing is known, and for one with the judges `parser` and `builder`.
    """
    with shown(progress, "inspect") as show:
        return _toolkit.inspect(
            _loaded(model, cancel),
            judge=judge,
            convert=convert,
            release=release,
            trial_seconds=trial_seconds,
            max_builds=max_builds,
            max_seconds=max_seconds,
            shapes=_ranges(shapes),
            targets=_listed(targets),
            plugin_libraries=_paths(plugin_libraries),
            tensorrt=tensorrt,
            plugin_override=plugin_override,
            reduce=_path(reduce),
            progress=show,
            cancel=cancel,
        )


def convert(
    model: ModelLike,
    *,
    plugins: Literal["auto", "always", "never"] = "auto",
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    release: str = "",
    rules: Path | None = None,
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
    """Rewrites a copy of a model so that TensorRT can run it; each rewrite is proven by runs on the CPU.

    Inputs and outputs keep their names. Converting a converted model changes nothing.

    plugins: `auto` makes a plugin where no native layer is exact and as fast; `always`; `never`.
    only, without: passes to run, or to leave out (graft.pass_names()).
    release: the release of TensorRT that the model is for, as graft.releases() lists them: guards are put round what it is
        reported to compute wrongly. Empty: none in particular.
    rules: a file of your own changes, in YAML (docs/guide/rules.md).
    prove: False makes rewrites without running anything. prove_each: prove also those that differ from a proven one in
        the values of weights alone.
    functions: False leaves out the ONNX functions of Graft's nodes, which go before plugins in TensorRT's own parser;
        such a model needs the plugin library, and other runtimes cannot run it.
    engine: the CPU engine that runs the proofs: `openvino`; `onnxruntime`; `both`, and what they disagree on is not
        proven; `auto`: openvino, whose proofs are repeated, and a sample of them checked in onnxruntime.
    check: compare the values of the result with those of the model, as verify does (result.verified, or
        result.not_verified says why not: without prove, with rules, or where nothing was rewritten), and parse and build
        the result with the TensorRT that is installed, in a process that may die; result.runs is whether it built,
        result.check what TensorRT said. Where none is installed, or a release is given, result.not_checked says so and
        the rules judge. False leaves out both.
    max_seconds, shapes, targets, plugin_libraries, tensorrt: of the check, as inspect has them.

    Raises graft.Error for an unknown pass or release, rules that cannot be read, and a model that contradicts itself.
    """
    with shown(progress, "convert") as show:
        return _toolkit.convert(
            _loaded(model, cancel),
            plugins=plugins,
            only=list(only),
            without=list(without),
            release=release,
            rules=_path(rules),
            prove=prove,
            prove_each=prove_each,
            functions=functions,
            engine=engine,
            check=check,
            max_seconds=max_seconds,
            shapes=_ranges(shapes),
            targets=_listed(targets),
            plugin_libraries=_paths(plugin_libraries),
            tensorrt=tensorrt,
            progress=show,
            cancel=cancel,
        )


def verify(
    reference: ModelLike,
    candidate: ModelLike,
    *,
    data: samples.Data | None = None,
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

    They may be of different formats and types: inputs and outputs are paired by name, then by order, and transposed where
    the channels are in another place.

    data: inputs to run with, whose first axis counts samples, under the names and in the layout of either model: a dict
        of arrays, an array for the only input, or an .npz file. None: synthetic inputs.
    seeds: runs with synthetic inputs; 0: 3. shapes, ranges: theirs; {"image": (0, 255)}.
    relative, absolute: tolerance of each element, in place of what rounding explains. snr_db: least signal to noise ratio
        of each output, in place of a tolerance.
    own_kernels: compute the candidate's Graft operators by their own CPU kernels, not as their ONNX functions.
    engine: the CPU engine that runs both models: `openvino`; `onnxruntime`, which has no own kernels; `both`, and the
        verdict is `disputed` where they compute one of the models differently; `auto`: onnxruntime, and openvino for what
        onnxruntime refuses or is known to compute wrongly; `ran_in` and `left_out` of the result say so.

    Raises graft.Error where the reference does not run, and for data or shapes that fit neither model. A candidate that
    differs is no error.
    """
    reference, candidate = _loaded(reference, cancel), _loaded(candidate, cancel)
    with shown(progress, "verify") as show:
        return _toolkit.verify(
            reference,
            candidate,
            data=_packed(data, reference),
            seeds=seeds,
            shapes=_sizes(shapes),
            ranges=dict(ranges or {}),
            relative=relative,
            absolute=absolute,
            snr_db=snr_db,
            own_kernels=own_kernels,
            engine=engine,
            progress=show,
            cancel=cancel,
        )


def verify_layers(
    reference: ModelLike,
    candidate: ModelLike | None = None,
    *,
    emulated: Precision | None = None,
    data: samples.Data | None = None,
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
    """Compares every tensor that both models have, through rewrites and layouts, and finds the node where they part.

    candidate: None, with `emulated`: the reference itself.
    emulated: judge the candidate as it would compute in this type, without a device.
    seeds: runs with synthetic inputs; 0: 1, or 2 where int8 is emulated. The other options are those of graft.verify.

    Raises graft.Error as graft.verify does.
    """
    reference = _loaded(reference, cancel)
    candidate = reference if candidate is None else _loaded(candidate, cancel)
    with shown(progress, "verify layers") as show:
        return _toolkit.verify_layers(
            reference,
            candidate,
            emulated=emulated,
            data=_packed(data, reference),
            seeds=seeds,
            shapes=_sizes(shapes),
            ranges=dict(ranges or {}),
            relative=relative,
            absolute=absolute,
            snr_db=snr_db,
            own_kernels=own_kernels,
            engine=engine,
            progress=show,
            cancel=cancel,
        )


def quantize(
    model: ModelLike,
    *,
    precision: Precision = "f16",
    data: samples.Data | None = None,
    shapes: Shapes | None = None,
    keep: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    typed_io: bool = False,
    limit_db: float | None = None,
    recipe: Path | None = None,
    samples: int = 0,
    calibration: Literal["percentile", "entropy", "minmax", "mse"] | None = None,
    percentile: float = 99.99,
    cache: Path | None = None,
    state: Path | None = None,
    improve: str | Sequence[str] = (),
    rest: Literal["f16", "fp16", "bf16"] | None = None,
    metric: Callable[[Model], float] | None = None,
    max_drop: float | None = None,
    judged: int = 64,
    engine: CpuEngine = "auto",
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> QuantizeResult:
    """Makes a typed copy of an f32 model, in f16, bf16, int8 or f8, and keeps in f32 what would break.

    data: inputs as the network will see them, whose first axis counts samples: a dict of arrays, an array for the only
        input, or an .npz file. f16 and bf16 decide by synthetic inputs (of `shapes`) where there are none. Int8 and f8 need
        a hundred or more, and also take a folder of images with a `recipe`, a folder of .npz and .npy files, or any
        iterable, a generator too, of samples: each with what the model takes in one run, as a dict of arrays or as the
        array of the only input. These are taken one at a time, at most `samples` of them, and kept as files in a
        temporary folder (TMPDIR) until the call ends, since they are read more than once: they have to fit on the disk,
        not in memory.
    keep, only: what stays in f32, or what alone may leave it: names of nodes, tensors or operators, with * and ?.
    typed_io: inputs and outputs have the type too; f16 and bf16 only.
    limit_db: least signal to noise ratio of each output; nodes stay in f32 until it is met. None: 40 dB in f16, 25 dB in
        bf16, and none in int8 and f8.

    For int8 and f8 alone:
    samples: calibrate with so many at most; 0: with all.
    calibration, percentile: where they saturate; None: percentile in int8, minmax in f8. entropy is of int8.
    cache: a calibration cache of TensorRT 7 to 10, whose scales are used; of int8.
    state: a file that keeps counts, from which an interrupted calibration goes on.
    improve: `equalize`, `smooth`, `round` (of int8), `bias`: what is done so that less is lost.
    rest: what nodes that are not int8 or f8 compute in, where that breaks nothing; None: f32.
    metric: how good a model is; more is better. It gets a graft.Model, for the f32 network first, then for each that is
        tried, in this thread; what it raises ends the work and is raised here. None: per cent of the outputs' rows whose
        largest element is where f32 has it.
    max_drop: how much the metric may fall. Layers that lose most stay in f32 until that is met.
    judged: outputs are compared for so many samples at most.

    engine: the CPU engine that runs the model: `auto` measures in openvino, and checks the result as graft.verify does; a
        dispute is a graft.Error (answer_is_no).

    Raises graft.Error for int8 and f8 without data and cache, a pattern that matches nothing, data that do not fit the inputs,
    and options that the precision does not have. A limit that is not met is no error: `met` of the result says so.
    """
    network = _loaded(model, cancel)
    with tempfile.TemporaryDirectory(prefix="graft-data-") as folder, shown(progress, f"quantize {precision}") as show:
        tensors, path = _quantization_data(
            data, network, pathlib.Path(folder), precision in ("int8", "f8", "fp8"), samples
        )
        return _toolkit.quantize(
            network,
            precision=precision,
            data=tensors,
            data_path=path,
            shapes=_sizes(shapes),
            keep=_listed(keep),
            only=_listed(only),
            typed_io=typed_io,
            limit_db=limit_db,
            recipe=_path(recipe),
            samples=samples,
            calibration=calibration,
            percentile=percentile,
            cache=_path(cache),
            state=_path(state),
            improve=_listed(improve),
            rest=rest,
            metric=metric,
            max_drop=max_drop,
            judged=judged,
            engine=engine,
            progress=show,
            cancel=cancel,
        )


def write_calibration_cache(model: ModelLike, file: Path) -> int:
    """Writes the scales of an int8 model as a calibration cache of TensorRT 7 to 10, and returns how many there are.

    Raises graft.Error naming the node for a scale that a cache cannot hold, and for a model without any.
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
    """Builds a TensorRT engine with the TensorRT that is installed beside this package, with Graft's plugins in it.

    TensorRT runs in a process of its own, with this interpreter or the one that the environment's GRAFT_PYTHON names:
    a crash of TensorRT is a graft.Error. TensorRT-RTX needs no GPU. The file is written whole or not at all.

    engine: the file to write.
    targets: GPU generations, ["sm89"], or "current", the GPU of this machine. None: with TensorRT-RTX all from Ampere on, with
        TensorRT the GPU of this machine.
    shapes: the smallest, usual and largest shape of each dynamic input, or the only one:
        {"image": ([1, 1, 8, 8], [8, 1, 8, 8], [64, 1, 8, 8])}. profiles: more such dicts, each an optimization profile.
    memory: the most that the builder may use of each pool, in bytes: {"workspace": 2 << 30}; also tactic_shared_memory,
        tactic_dram, dla_sram, dla_local_dram and dla_global_dram.
    formats: how inputs and outputs may lie in memory, {"image": ("f16", ["hwc8", "linear"])}; "" keeps the model's type.
    timing_cache: a file to read and extend; several builds may share it. Not with TensorRT-RTX.
    plugins: False makes native layers of Graft's nodes, from their ONNX functions. plugin_libraries: beside Graft's own.
    tensorrt: which of those that are installed.
    time_limit: seconds of silence after which a build counts as hanging; None: 3600.
    The others are explained in docs/guide/build_options.md.

    Raises graft.Error (missing_tool) where TensorRT is not there, (answer_is_no) with TensorRT's reasons where it refuses
    the model, and (bad_input) naming options that it does not take.
    """
    with shown(progress, "build") as show:
        return _toolkit.build(
            _loaded(model, cancel),
            os.fspath(engine),
            targets=_listed(targets),
            shapes=_ranges(shapes),
            profiles=[_ranges(profile) for profile in profiles],
            memory=dict(memory or {}),
            optimization_level=optimization_level,
            formats={name: (type_name, list(layouts)) for name, (type_name, layouts) in (formats or {}).items()},
            timing_cache=_path(timing_cache),
            tf32=tf32,
            version_compatible=version_compatible,
            exclude_lean_runtime=exclude_lean_runtime,
            embed_plugins=embed_plugins,
            refit=refit,
            strip_weights=strip_weights,
            weight_streaming=weight_streaming,
            dla_core=dla_core,
            gpu_fallback=gpu_fallback,
            device=device,
            plugin_override=plugin_override,
            verbosity=verbosity,
            time_limit=time_limit,
            plugins=plugins,
            plugin_libraries=_paths(plugin_libraries),
            tensorrt=tensorrt,
            progress=show,
            cancel=cancel,
        )


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
    """Cuts a network in two where neither TensorRT nor a plugin runs a part of it: convert it first.

    TensorRT gets the half with most arithmetic, which is what comes before the nodes that it does not run, or what comes
    after them; the other one is for ONNX Runtime on the host. `result.save("detector.onnx")` writes both. A detector's
    end is told: result.tails has the tensors of boxes and scores, and the thresholds.

    judge, max_seconds, shapes, targets, plugin_libraries, tensorrt: as inspect has them.
    plugins: False sends ONNX's operators that run only because build makes Graft's plugins of them, as NonZero in
    TensorRT-RTX, to the host too.
    verify: run both halves beside the whole network, with `engine` as verify has it; result.verified is what that found.

    None where no node is known to fail. Raises graft.Error where a cut would leave TensorRT nothing to compute, and as
    inspect and verify do.
    """
    with shown(progress, "cut") as show:
        return _toolkit.cut(
            _loaded(model, cancel),
            judge=judge,
            max_seconds=max_seconds,
            shapes=_ranges(shapes),
            targets=_listed(targets),
            plugin_libraries=_paths(plugin_libraries),
            tensorrt=tensorrt,
            plugins=plugins,
            verify=verify,
            engine=engine,
            progress=show,
            cancel=cancel,
        )


def canary(
    model: ModelLike,
    folder: Path,
    *,
    data: samples.Data | None = None,
    seeds: int = 1,
    shapes: Shapes | None = None,
    plugin_libraries: Sequence[Path] = (),
    progress: Progress | bool | None = None,
    cancel: CancelToken | None = None,
) -> CanaryResult:
    """Writes a folder to take to a machine with a GPU, where its run_canary.py asks the TensorRT that is installed there
    which node of the model it computes wrongly.

    The folder has the model, inputs, what the CPU has for every tensor, what each element may be off by, and the script,
    which needs Python with NumPy, TensorRT and PyTorch or cuda-python, and no Graft. It is written whole or not at all.

    data: inputs to run with, as verify has them. None: synthetic inputs.
    seeds: runs with synthetic inputs. shapes: theirs, without a dynamic dimension.
    plugin_libraries: copied into the folder and loaded there; the model then has plugin nodes in place of the functions
        of Graft's operators.

    result.left_out has the tensors that are not compared (random ones, and those whose size depends on numbers), and why.

    Raises graft.Error for a folder that is there already, for data and shapes that do not fit the model, for a model that
    does not run on the CPU, and for one without an output that can be compared.
    """
    model = _loaded(model, cancel)
    with shown(progress, "canary") as show:
        return _toolkit.canary(
            model,
            _path(folder),
            data=_packed(data, model),
            seeds=seeds,
            shapes=_sizes(shapes),
            plugin_libraries=_paths(plugin_libraries),
            progress=show,
            cancel=cancel,
        )


def load_cut(file: Path) -> CutNetwork:
    """Reads both halves of a network from the .cut.json file that names them; graft.load reads the same file as one."""
    return _toolkit.load_cut(_path(file))


class Session:
    """A model that is compiled once and runs again and again on the CPU, with other shapes where its inputs are dynamic.

    model: or a graft.CutNetwork, whose halves run one after the other.
    threads: 0: as many as the machine has cores.
    own_kernels: compute Graft's operators by their own CPU kernels, not as their ONNX functions.
    engine: the CPU engine that runs it, as graft.verify has it; a dispute is a graft.Error (answer_is_no).

    progress, cancel: of reading and compiling it; the token is looked at before each run too.

    Raises graft.Error naming the node that the CPU engine refuses.
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

    @property
    def model(self) -> Model | CutNetwork:
        return self._model

    @property
    def ran_in(self) -> str:
        """The CPU engine that runs it: 'ONNX Runtime 1.31.1'."""
        return self._session.ran_in

    @property
    def left_out(self) -> list[str]:
        """Why it is not the engine that comes first, and what the engine is known to compute wrongly; mostly empty."""
        return self._session.left_out

    def run(self, inputs: Mapping[str, ArrayLike] | NDArray[np.generic]) -> dict[str, NDArray[Any]]:
        """Takes every input by name, or the only one as an array, and returns every output by name.

        Arrays are float32, float16, bfloat16 (of ml_dtypes), int8, uint8, int32, int64 or bool, of the model's types and
        fixed sizes. A contiguous input is not copied, and each output owns its memory. f16 and bf16 are computed in f32
        and rounded once.

        Raises graft.Error naming the input that is missing, unknown, or of another type, rank or size.
        """
        given = samples.arrays_of(inputs, self._model)
        if given is None:
            raise TypeError("run: inputs are a dict of arrays, or an array where the model has one input")
        return arrays.unpack(self._session.run(arrays.pack(given, "run")))

    def __repr__(self) -> str:
        return f"<graft.Session of {self._model!r}>"


def _loaded(model: ModelLike, cancel: CancelToken | None) -> Model:
    """Of a function whose own bar follows."""
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
                f"shapes[{name!r}]: found {given!r}; allowed are one shape, or the smallest, usual and largest one"
            )
        smallest, usual, largest = (list(shape) for shape in found)
        ranges[name] = (smallest, usual, largest)
    return ranges


def _path(path: Path | None) -> str:
    """The toolkit's word for none is an empty path, which pathlib would write as "."."""
    return "" if path is None else os.fspath(path)


def _paths(paths: Sequence[Path]) -> list[str | os.PathLike[str]]:
    return [os.fspath(path) for path in paths]


def _listed(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _packed(data: samples.Data | None, model: Model) -> arrays.Packed:
    given = samples.arrays_of(data, model)
    if given is None:
        raise TypeError("data: a dict of arrays, an array where the model has one input, or an .npz file")
    return arrays.pack(given, "data")


def _quantization_data(
    data: samples.Data | None, model: Model, folder: pathlib.Path, is_int8: bool, limit: int
) -> tuple[arrays.Packed, str]:
    """Arrays, or the path that calibration reads."""
    given = samples.arrays_of(data, model, is_file_allowed=not is_int8)
    if given is not None:
        return arrays.pack(given, "data"), ""
    if isinstance(data, str | os.PathLike):
        return {}, os.fspath(data)
    if not is_int8 or not isinstance(data, Iterable):
        raise TypeError("data: samples one by one are for int8; give a dict of arrays, or an array for the only input")
    samples.write_samples(data, folder, limit)
    return {}, str(folder)
