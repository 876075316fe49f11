# Tests the table's faults of OpenVINO with the table's seeded models.
import os
import pathlib
import re
import sys

import pytest

SOURCE = pathlib.Path(os.environ["GRAFT_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools"))
import seeded_nodes  # noqa: E402

TABLE = (SOURCE / "src" / "verify" / "judge" / "known_faults.inc").read_text()
ROW = r'\{"OpenVINO", "[^"]*", "(\w+)", "[^"]*",\s*"seeded_(\w+?)_(\d+)(\w*): '
EVIDENCE = re.findall(ROW, TABLE)


@pytest.mark.parametrize(("operator", "kind", "seed", "form"), EVIDENCE)
def test_is_not_right_in_openvino_and_right_in_onnxruntime(operator, kind, seed, form):
    base = seeded_nodes.seeded_case(kind, int(seed))
    forms = {case.name: case for case in (base, *seeded_nodes.forms_of(base))}
    case = seeded_nodes.plain(forms[base.name + form])
    assert seeded_nodes.blamed_node(case).op_type == operator
    # src/runtime/openvino refuses models that it does not pass to OpenVINO, and outputs of another shape.
    assert seeded_nodes.outcome("openvino", *case[1:5])[0] in (seeded_nodes.WRONG, seeded_nodes.REFUSED)
    assert seeded_nodes.outcome("onnxruntime", *case[1:5]) == (seeded_nodes.RIGHT, "")


def test_there_are_such():
    assert len(EVIDENCE) >= 2
