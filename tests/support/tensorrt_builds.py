# Determines which models a TensorRT-RTX parses and builds, in child processes that may crash.
from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A GRU with a batch took two minutes on a busy machine.
HANGS_AFTER_S = 900

# TensorRT itself writes to standard output, so the results go to a file.
WORKER = """
import json, sys
import tensorrt_rtx as trt


class Logger(trt.ILogger):
    errors = []

    def log(self, severity, message):
        if severity in (trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR):
            self.errors.append(message)


logger = Logger()
with open(sys.argv[1]) as questions, open(sys.argv[2], "w") as answers:
    for line in questions:
        question = json.loads(line)
        logger.errors.clear()
        builder = trt.Builder(logger)
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, logger)
        parsed = built = parser.parse_from_file(question["model"])
        if parsed:
            config = builder.create_builder_config()
            config.num_compute_capabilities = 1
            config.set_compute_capability(trt.ComputeCapability.SM89, 0)
            shape_inputs = [t for t in map(network.get_input, range(network.num_inputs)) if t.is_shape_tensor]
            has_values = shape_inputs and all(tensor.name in question["values"] for tensor in shape_inputs)
            if has_values or question["shapes"]:
                profile = builder.create_optimization_profile()
                for tensor in shape_inputs if has_values else []:
                    profile.set_shape_input(tensor.name, *[question["values"][tensor.name]] * 3)
                for name, shapes in question["shapes"].items():
                    profile.set_shape(name, *shapes)
                config.add_optimization_profile(profile)
            built = builder.build_serialized_network(network, config) is not None
        errors = [parser.get_error(i).desc() for i in range(parser.num_errors)] + logger.errors
        print(json.dumps({"parsed": parsed, "built": built, "errors": errors}), file=answers, flush=True)
"""


# Maps each model to its dynamic inputs, and each of these to its smallest, usual and largest shape.
Shapes = Mapping[pathlib.Path, Mapping[str, Sequence[Sequence[int]]]]


@dataclass
class Answer:
    parsed: bool
    built: bool
    errors: list[str]

    @property
    def needs_gpu(self) -> bool:
        """Returns whether the build failed for want of a GPU: TensorRT-RTX 1.4 needs one on the machine for 8-bit
        types."""
        return not self.built and any(
            "generateForCurrent" in error or "cannot be quantized by" in error for error in self.errors
        )


def ask_one_process(
    wanted: Sequence[pathlib.Path],
    values: Mapping[pathlib.Path, Mapping[str, list[int]]],
    shapes: Shapes,
    environment: dict[str, str],
) -> list[Answer]:
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as name:
        asked, said = pathlib.Path(name, "questions"), pathlib.Path(name, "answers")
        while len(answers) < len(wanted):
            left = wanted[len(answers) :]
            lines = [
                json.dumps({"model": str(model), "values": values.get(model, {}), "shapes": shapes.get(model, {})})
                + "\n"
                for model in left
            ]
            asked.write_text("".join(lines))
            said.write_text("")
            try:
                code = subprocess.run(
                    [sys.executable, "-c", WORKER, asked, said],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    check=False,
                    timeout=HANGS_AFTER_S,
                ).returncode
                ended = f"it ended the process with {code}"
            except subprocess.TimeoutExpired:
                ended = f"the process was stopped after {HANGS_AFTER_S} s"
            found = [Answer(**json.loads(line)) for line in said.read_text().splitlines()]
            answers += found
            if len(found) < len(left):
                answers.append(Answer(False, False, [ended]))
    return answers


def ask_tensorrt(
    models: Iterable[pathlib.Path],
    installed: pathlib.Path | None = None,
    values: Mapping[pathlib.Path, Mapping[str, list[int]]] | None = None,
    processes: int = 1,
    shapes: Shapes | None = None,
) -> dict[pathlib.Path, Answer]:
    """Returns the result for each model. installed: a folder of .deps/compat; None: the TensorRT-RTX of the
    environment. values: by model, the values of inputs that are read as sizes or axes. shapes: by model, the shapes
    of dynamic inputs. A model that crashed or blocked the process counts as not built."""
    wanted = list(models)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / ".deps" / "lib-rtx")}
    if installed is not None:
        environment |= {"LD_LIBRARY_PATH": str(installed / "lib"), "PYTHONPATH": str(installed)}
    parts = [wanted[i::processes] for i in range(processes)]
    answers: dict[pathlib.Path, Answer] = {}
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        asked = pool.map(lambda part: ask_one_process(part, values or {}, shapes or {}, environment), parts)
        for part, found in zip(parts, asked, strict=True):
            answers.update(zip(part, found, strict=True))
    return answers


def what_tensorrt_builds(models: Iterable[pathlib.Path]) -> dict[pathlib.Path, bool]:
    """Returns whether the TensorRT-RTX of the environment builds each model, without a profile."""
    return {model: answer.built for model, answer in ask_tensorrt(models).items()}
