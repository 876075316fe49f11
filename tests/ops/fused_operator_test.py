# Tests in a copy of the sources that a folder (tests/ops/swish) and a line in ops.inc add an operator with a fusion.
import json
import os
import pathlib
import shutil
import subprocess

import onnx
import pytest
from onnx import helper

SOURCE = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
COPIED = [
    "CMakeLists.txt",
    "CMakePresets.json",
    "LICENSE",
    "cmake",
    "deps.toml",
    "include",
    "python",
    "src",
    "templates",
    "tools",
]


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def tree(tmp_path):
    for name in COPIED:
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, tmp_path / name, copy_function=link_or_copy)
        else:
            link_or_copy(SOURCE / name, tmp_path / name)
    (tmp_path / ".deps").symlink_to((SOURCE / ".deps").resolve())
    yield tmp_path
    shutil.rmtree(tmp_path)


# Nearly all objects come from the compiler cache, which the tested build has filled; without a cache, this is a
# complete build.
@pytest.mark.skipif(shutil.which("ccache") is None, reason="needs ccache")
def test_an_operator_with_a_fusion_is_a_folder_and_a_line(tree):
    shutil.copytree(SOURCE / "tests" / "ops" / "swish", tree / "src" / "ops" / "swish")
    operators = tree / "src" / "ops" / "ops.inc"
    lines = operators.read_text()
    operators.unlink()  # a hard link: the original must not change
    operators.write_text(lines + "GRAFT_OPERATOR(swish, graft::ops::Swish)\n")

    switches = ["-DGRAFT_CUDA=OFF", "-DGRAFT_TESTS=OFF", "-DGRAFT_INSTALL=OFF"]
    subprocess.run(["bash", "tools/build", "release", *switches, "--", "graft_program"], cwd=tree, check=True)

    gate = helper.make_node("Sigmoid", ["x"], ["gate"])
    product = helper.make_node("Mul", ["x", "gate"], ["y"])
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy")
    network = helper.make_graph([gate, product], "network", [x], [y])
    model = helper.make_model(network, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tree / "network.onnx")
    converted = tree / "converted.onnx"
    graft = [
        str(tree / "build" / "bin" / "graft"),
        "convert",
        str(tree / "network.onnx"),
        "-o",
        str(converted),
        "--no-check",
        "--json",
    ]
    # The worker next to the program has the operator; that of the tested build does not.
    environment = {name: value for name, value in os.environ.items() if name != "GRAFT_ENGINE_WORKER"}
    report = json.loads(subprocess.run(graft, check=True, capture_output=True, env=environment).stdout)

    (rewrite,) = report["rewrites"]
    assert (rewrite["pass"], rewrite["replacement"]) == ("fuse_swish", "Swish<>")
    assert rewrite["proof_kind"] == "own" and report["proofs_run"] == 1 and report["undone"] == []
    (node,) = onnx.load(converted).graph.node
    assert (node.domain, node.op_type) == ("graft", "Swish")
    passes = [entry["pass"] for entry in report["passes"]]
    assert passes.index("fuse_leaky_relu") < passes.index("fuse_swish") < passes.index("choose_plugins")
