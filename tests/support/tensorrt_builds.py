# Which models the installed TensorRT-RTX parses and builds, in processes that may die.
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]

# TensorRT writes to standard output itself, so the answers go to a file.
WORKER = """
import json, sys
import tensorrt_rtx as trt
logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
with open(sys.argv[1]) as models, open(sys.argv[2], "w") as answers:
    for line in models:
        builder = trt.Builder(logger)
        network = builder.create_network(0)
        built = trt.OnnxParser(network, logger).parse_from_file(line.strip())
        if built:
            config = builder.create_builder_config()
            config.num_compute_capabilities = 1
            config.set_compute_capability(trt.ComputeCapability.SM89, 0)
            built = builder.build_serialized_network(network, config) is not None
        print(json.dumps(built), file=answers, flush=True)
"""


def what_tensorrt_builds(models: Iterable[pathlib.Path]) -> dict[pathlib.Path, bool]:
    """Of a model that ended the process, False."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / ".deps" / "lib-rtx")}
    wanted = list(models)
    answers: dict[pathlib.Path, bool] = {}
    with tempfile.TemporaryDirectory() as name:
        asked, said = pathlib.Path(name, "models"), pathlib.Path(name, "answers")
        while len(answers) < len(wanted):
            left = wanted[len(answers) :]
            asked.write_text("".join(f"{model}\n" for model in left))
            said.write_text("")
            subprocess.run(
                [sys.executable, "-c", WORKER, asked, said],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                check=False,
            )
            lines = said.read_text().splitlines()
            answers.update(zip(left, map(json.loads, lines), strict=False))
            if len(lines) < len(left):
                answers[left[len(lines)]] = False  # it ended the process
    return answers
