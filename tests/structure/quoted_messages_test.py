# Tests that messages which the guides quote are in the sources of the program.
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
QUOTED = {
    "The graph has variables": ("from_tensorflow.md", "src/import/tensorflow/import.cpp"),
    "judged as if": ("plugin_not_found.md", "src/inspect/probe_verdicts.cpp"),
    "beyond the range of the type": ("accuracy_in_f16.md", "src/present/text/layers_text.cpp"),
    "no first divergence": ("wrong_in_tensorrt.md", "src/present/text/layers_text.cpp"),
    "refuses the network": ("wrong_in_tensorrt.md", "templates/canary/run_canary.py"),
}


@pytest.mark.parametrize("message", QUOTED)
def test_message_of_a_guide_is_in_the_sources(message):
    guide, source = QUOTED[message]
    assert message in (SOURCE / "docs" / "guide" / guide).read_text()
    assert message in (SOURCE / source).read_text()
