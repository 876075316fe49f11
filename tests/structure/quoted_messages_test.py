# Tests that messages and limits which the pages state are in the sources of the program.
import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
QUOTED = {
    "The graph has variables": ("from_tensorflow.md", "src/import/tensorflow/import.cpp"),
    "judged under the assumption that": ("plugin_not_found.md", "src/inspect/probe_verdicts.cpp"),
    "beyond the range of the type": ("accuracy_in_f16.md", "src/present/text/layers_text.cpp"),
    "no first divergence": ("wrong_in_tensorrt.md", "src/present/text/layers_text.cpp"),
    "refuses the network": ("wrong_in_tensorrt.md", "templates/canary/run_canary.py"),
}


@pytest.mark.parametrize("message", QUOTED)
def test_message_of_a_guide_is_in_the_sources(message):
    guide, source = QUOTED[message]
    assert message in (SOURCE / "docs" / "guide" / guide).read_text()
    assert message in (SOURCE / source).read_text()


def test_the_page_of_security_states_the_limits_of_the_engine_driver():
    page = " ".join((SOURCE / "docs" / "security.md").read_text().split())
    source = (SOURCE / "python" / "graft" / "engine" / "supervisor.py").read_text()
    loading = float(re.search(r"^LOADING_LIMIT = ([\d.]+)", source, re.MULTILINE)[1])
    quiet = dict(re.findall(r'"(parse|build)": ([\d.]+)', source))
    idle = int(re.search(r"^IDLE_LIMIT = (\d+)", source, re.MULTILINE)[1])
    assert f"a plugin library takes {loading:.0f} s to open" in page
    assert (
        f"a parse prints no message for {float(quiet['parse']):.0f} s, or a build for {float(quiet['build']):.0f} s"
        in page
    )
    assert f"no processor time for {idle} s" in page
