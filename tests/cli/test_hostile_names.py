# Tests names with control characters and bidirectional marks: no such character reaches a terminal, and JSON contains
# the exact names.
import os
import pty
import re
import subprocess

import onnx
import pytest
from conftest import DIGITS, PROGRAM
from onnx import helper
from onnx_models import save

HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\udc80-\udcff]")
# Graft's own control sequences: colors, the progress bar, line ends.
OURS = re.compile(r"\x1b\[(?:1|2|3[123]|0)m|\r\x1b\[K|\r(?=\n)")
CODES = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\u202egpj.exe\u2066\u200f\u200b\ufeff\r\x7f"


def named(text):
    return f"{text}{CODES}"


@pytest.fixture
def model(tmp_path):
    """Saves a model in which every name is harmful, and a node that neither TensorRT nor Graft runs."""
    nodes = [
        helper.make_node("Relu", [named("in")], [named("mid")], name=named("relu")),
        helper.make_node("Identity", [named("mid")], [named("same")], name=named("identity")),
        helper.make_node(named("Wobble"), [named("same")], [named("odd")], name=named("strange"), domain=named("acme")),
        helper.make_node("Add", [named("same"), named("odd")], [named("out")], name=named("add")),
    ]
    ends = [(named("in"), [named("N"), 4])], [(named("out"), [named("N"), 4])]
    return save(tmp_path / f"{named('m')}.onnx", nodes, *ends, domains=[named("acme")])


def commands(model, folder):
    rules = folder / "rules.yaml"
    rules.write_text('- rename: {"no\\e[31m\\u202ewhere": x}\n')
    return [
        ["inspect", model],
        ["inspect", model, "-v", "--input", named("in") + ":2x4"],
        ["convert", model, "-o", folder / f"{named('o')}.onnx", "--explain", "-v"],
        ["convert", DIGITS, "-o", folder / "o.onnx", "--rules", rules, "-v"],
        ["convert", DIGITS, "-o", folder / named("none") / "o.onnx"],
        ["verify", model, model],
        ["run", model, "-i", named("in") + "=" + named("none.npy"), "-o", folder / "o.npz", "-v"],
        ["run", DIGITS, "-i", named("image=x.npy"), "-o", folder / "o.npz"],
        ["quantize", model, "-o", folder / "q.onnx", "--precision", "f16", "--explain"],
        ["build", model, "-o", folder / "e", "--plugin-lib", named("lib")],
        [named("command")],
        ["inspect", named("--option")],
    ]


@pytest.mark.parametrize("number", range(12))
def test_no_harmful_character_is_printed(graft, model, tmp_path, number):
    command = commands(model, tmp_path)[number]
    answer = graft(*command, errors="surrogateescape")
    assert answer.out or answer.err
    for text in (answer.out, answer.err):
        assert not HARMFUL.search(text), ascii(HARMFUL.search(text))
    assert "\\u" in answer.out + answer.err


def test_a_terminal_gets_graft_s_own_codes_alone(model):
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    process = subprocess.Popen([PROGRAM, "inspect", model], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 65536):
            written += part
    except OSError:  # the other end is closed
        pass
    process.wait()
    os.close(ours)
    text = written.decode(errors="surrogateescape")
    assert "\x1b[1m" in text  # colors are on
    rest = OURS.sub("", text)
    assert not HARMFUL.search(rest), ascii(rest)


def test_json_has_the_names_exactly(graft, model):
    answer = graft("inspect", model, "--json")
    assert not HARMFUL.search(answer.out)
    names = {node["node"] for node in answer.json["nodes"]}
    assert {named("strange"), named("add")} <= names


def test_a_name_begins_no_line(graft, tmp_path):
    name = "a\nerror: everything is lost\nwrote /etc/passwd"
    node = helper.make_node("Wobble", ["x"], ["y"], name=name, domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("x", [4])], [("y", [4])], domains=["acme"])
    for arguments in (["inspect", model], ["convert", model, "-o", tmp_path / "o.onnx"], ["run", model]):
        answer = graft(*arguments)
        lines = (answer.out + answer.err).splitlines()
        assert not [line for line in lines if line.startswith(("error: everything", "wrote /etc"))]
    assert onnx.load(model).graph.node[0].name == name
