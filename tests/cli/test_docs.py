# Tests that the generated pages are up to date, cover every operator and command, and have examples that run.
import re
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import PROGRAM, SOURCE, run_command
from onnx_models import session_of

LONGEST_PAGE = 160  # lines
PAGES = [page for page in sorted((SOURCE / "docs" / "ops").glob("*.md")) if "```python\n" in page.read_text()]


def code(page, before):
    """Returns the block of code after a line with these words."""
    return re.search(rf"{before}[^\n]*\n\n```\w*\n(.*?)\n```\n", page.read_text(), re.DOTALL).group(1)


def test_committed_pages_are_what_the_program_says():
    run_command(sys.executable, SOURCE / "tools" / "generate_docs.py", "--check", "--graft", PROGRAM, code=0)


def test_each_operator_has_a_page(graft):
    index = (SOURCE / "docs" / "ops" / "README.md").read_text()
    for op in graft("ops", "--json").json["operators"]:
        assert f"[{op['name']}](" in index


def test_operator_pages_are_short(graft):
    assert len(PAGES) == len(graft("ops", "--json").json["operators"])
    for page in PAGES:
        assert len(page.read_text().splitlines()) <= LONGEST_PAGE, page.name


def under_onnx_name(graft, model):
    """Replaces the only node of a model by ONNX's own operator."""
    (node,) = model.graph.node
    node.op_type, node.domain = graft("ops", node.op_type, "--json").json["onnx_name"], ""
    del model.opset_import[:]
    model.opset_import.append(onnx.helper.make_opsetid("", 22))
    return model


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_an_operator_page_are_one_model_that_runs(graft, page, tmp_path):
    subprocess.run([sys.executable, "-c", code(page, "In Python")], cwd=tmp_path, check=True)
    model = onnx.load(tmp_path / "example.onnx")
    onnx.checker.check_model(model)
    assert onnx.parser.parse_model(code(page, "In ONNX's text form")) == model

    random = np.random.default_rng(0)
    inputs = {
        value.name: random.random([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32).astype(
            onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        )
        for value in model.graph.input
    }
    np.savez(tmp_path / "inputs.npz", **inputs)
    graft("run", tmp_path / "example.onnx", "-i", tmp_path / "inputs.npz", "-o", tmp_path / "found.npz", code=0)
    graft("convert", tmp_path / "example.onnx", "-o", tmp_path / "converted.onnx", "--plugins", "always", code=0)
    found = np.load(tmp_path / "found.npz")["y"]
    stated = [d.dim_value or None for d in model.graph.output[0].type.tensor_type.shape.dim]
    written = onnx.load(tmp_path / "converted.onnx")
    runnable = written if written.functions else under_onnx_name(graft, model)
    (expected,) = session_of(runnable).run(["y"], inputs)
    assert len(found.shape) == len(stated)
    assert all(size in (None, is_size) for size, is_size in zip(stated, found.shape))  # None: the size depends on data
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
