# graft ... --report: tests the page in a real browser, and the JSON.
import json
import pathlib
import shutil
from xml.etree import ElementTree

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import DIGITS, DIGITS_DATA, SOURCE
from onnx import TensorProto, helper, numpy_helper
from onnx_models import save, subgraph

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
try:
    import fastjsonschema
    from playwright import sync_api
except ImportError:
    sync_api = None
# Not importorskip: a file without any test is a failure for ctest.
pytestmark = pytest.mark.skipif(
    BROWSER is None or sync_api is None, reason="no Chromium or no driver of it; tools/setup browser installs both"
)

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
AA_TEXT, AA_GRAPHIC = 4.5, 3.0


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER)
        yield browser
        browser.close()


@pytest.fixture
def show(chromium):
    """Opens a page and waits until it is rendered. Errors of its script, and network requests, fail the test."""
    contexts, faults = [], []

    def run(path, scheme="light"):
        context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda request: faults.append(request.url) if request.url.split("#")[0] != path.as_uri() else None,
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-shown]", state="attached")
        return page

    yield run
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture(scope="module")
def schema():
    return fastjsonschema.compile(json.loads((SOURCE / "docs" / "schema" / "graft.report.schema.json").read_text()))


@pytest.fixture
def inspected(graft, tmp_path):
    """Returns the page of `graft inspect`."""

    def run(model, code=0):
        page = tmp_path / "page.html"
        answer = graft("inspect", model, "--report", page)
        assert answer.code == code, answer.err
        return page

    return run


def mixed_model(path):
    """Saves a model with one node of each verdict, one of them in a branch, and a name with HTML's special
    characters."""
    branch = subgraph([helper.make_node("Det", ["a"], ["d"], name="det")], [], [("d", None)])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="stem", kernel_shape=[1, 1]),
        helper.make_node("LReLU_TRT", ["c"], ["l"], name="act", negSlope=0.2),
        helper.make_node("Wobble", ["l"], ["a"], name=HOSTILE, domain="acme", note=HOSTILE),
        helper.make_node(
            "InstanceNormalization_TRT", ["a", "s", "s"], ["n"], name="norm", epsilon=1e-5, plugin_version="2"
        ),
        helper.make_node("ReduceMax", ["n"], ["m"], name="largest", keepdims=0),
        helper.make_node("Greater", ["m", "zero"], ["g"], name="test"),
        helper.make_node("If", ["g"], ["y"], name="choice", then_branch=branch, else_branch=branch),
    ]
    constants = [
        helper.make_tensor("w", TensorProto.FLOAT, [3, 3, 1, 1], [0.5] * 9),
        helper.make_tensor("s", TensorProto.FLOAT, [3], [1.0] * 3),
        helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
    ]
    return save(path, nodes, [("x", [1, 3, 8, 8])], [("y", None)], constants, domains=["acme"])


def drawn(page):
    return page.evaluate("active.graph.nodes.length")


def test_resnet_is_shown_whole_and_takes_less_than_three_megabytes(graft, show, schema, tmp_path):
    model = LIGHT / "light_resnet50.onnx"
    report = tmp_path / "resnet.html"
    assert graft("inspect", model, "--report", report).code == 0
    assert report.stat().st_size < 3e6
    page = show(report)

    original = onnx.load(model).graph
    tensors = {name for node in original.node for name in (*node.input, *node.output)}
    assert len(tensors) > 500
    # Every node, input and output is drawn; weights of this file are inputs with a default.
    constants = {tensor.name for tensor in original.initializer}
    ends = [value for value in original.input if value.name not in constants]
    assert drawn(page) == len(original.node) + len(ends) + len(original.output)
    written = json.loads((tmp_path / "resnet.html.json").read_text())
    schema(written)
    assert written["version"] == 1
    assert len(written["graphs"][0]["nodes"]) == drawn(page)


def test_two_thousand_nodes_can_be_read_searched_and_seen_whole(graft, show, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["t0"], name="n0")]
    for i in range(1, 2000):
        inputs = [f"t{i - 1}", f"t{i - 5}"] if i % 10 == 5 else [f"t{i - 1}"]
        nodes.append(helper.make_node("Add" if len(inputs) == 2 else "Relu", inputs, [f"t{i}"], name=f"n{i}"))
    model = save(tmp_path / "long.onnx", nodes, [("x", [1, 8])], [("t1999", [1, 8])])
    report = tmp_path / "long.html"
    assert graft("inspect", model, "--report", report).code == 0
    assert report.stat().st_size < 3e6
    page = show(report)
    assert drawn(page) == 2002
    # The visible part is large enough to read, and only a few of the nodes are in the document.
    assert page.evaluate("active.camera.scale") >= 0.75
    assert 5 < page.locator(".nodes .node").count() < 40
    page.fill("input[type=search]", "n1234")
    page.press("input[type=search]", "Enter")
    assert page.locator("aside h3").inner_text() == "Relu"
    assert page.locator(".nodes .node.chosen").is_visible()
    page.click("#whole")
    assert page.locator(".nodes .node").count() == 2002
    box = page.locator(".nodes").bounding_box()
    stage = page.locator(".pane > svg").bounding_box()
    assert box["height"] <= stage["height"] + 2


def test_nodes_have_color_mark_and_details(inspected, show, tmp_path):
    page = show(inspected(mixed_model(tmp_path / "m.onnx"), code=1))
    assert page.locator("h1").inner_text() == "m.onnx"
    legend = page.locator("#legend button").all_inner_texts()
    assert [text.split()[1:] for text in legend] == [
        ["native", "4"],
        ["lowered", "1"],
        ["plugin", "1"],
        ["unsupported", "1"],
    ]
    assert len({text[0] for text in legend}) == 4, "a mark of its own for each"

    node = page.locator(".nodes .node", has_text="LReLU_TRT")
    assert node.locator(".mark").text_content() == legend[1][0]
    node.click()
    details = page.locator("aside").inner_text()
    for text in ("LReLU_TRT", "lowered", "negSlope", "0.2", "graft convert", "f32[1, 3, 8, 8]"):
        assert text in details
    # Selects the node before it, whose weight is a constant.
    page.locator("aside .link", has_text="Conv").click()
    assert "f32[3, 3, 1, 1] constant" in page.locator("aside").inner_text()

    # The legend highlights nodes, and a second click removes the highlight.
    page.locator("#legend button", has_text="plugin").click()
    assert page.locator(".nodes .node.lit").count() == 1
    page.locator("#legend button", has_text="plugin").click()
    assert page.locator(".dimmed").count() == 0


@pytest.mark.parametrize("width", [1280, 400])
def test_what_the_marks_mean_is_read_without_a_mouse(graft, show, tmp_path, width):
    """The rules of a release promise less than a TensorRT that was run, and the installed one is not that release."""
    report = tmp_path / "page.html"
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("SomebodysOwnLayer", ["r"], ["y"], domain="acme", plugin_version="1"),
    ]
    model = save(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])], domains=["acme"])
    graft("inspect", model, "--for", "tensorrt-11.1", "--report", report)
    page = show(report)
    page.set_viewport_size({"width": width, "height": 860})
    marks = [text.rsplit(" ", 1)[0] for text in page.locator("#legend button").all_inner_texts()]
    meanings = page.locator("#meanings > div")
    assert meanings.locator("dt").all_inner_texts() == marks and len(marks) == 2
    assert "no rule refuses it; judged without TensorRT" in meanings.first.inner_text()
    assert (
        "unknown to the rules; inspect the model where TensorRT 11.1 is installed"
        in page.locator("#meanings").inner_text()
    )
    for i in range(meanings.count()):
        box = meanings.nth(i).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_problems_lead_on_into_branches(inspected, show, tmp_path):
    page = show(inspected(mixed_model(tmp_path / "m.onnx"), code=1))
    page.click("#next-problem")
    assert page.locator("aside h3").inner_text() == "acme::Wobble"
    assert "if a plugin library has it" in page.locator("aside").inner_text()
    page.click("#next-problem")
    assert page.locator("aside h3").inner_text() == "Det"
    assert "sub-graph" in page.locator("#graph-choice option:checked").inner_text()


def test_everything_works_with_the_keyboard(inspected, show):
    page = show(inspected(DIGITS))
    page.locator(".pane > svg").focus()
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "End", "Home"):
        page.keyboard.press(key)
        names.append(page.locator("aside h3").inner_text())
        chosen = page.get_attribute(".pane > svg", "aria-activedescendant")
        assert names[-1] in page.get_attribute(f'[id="{chosen}"]', "aria-label")
    assert names == ["input", "Conv", "LeakyRelu", "Conv", "output", "input"]
    before = page.evaluate("active.camera.scale")
    page.keyboard.press("+")
    assert page.evaluate("active.camera.scale") > before
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "ASIDE"
    page.keyboard.press("/")
    page.keyboard.type("pool")
    page.keyboard.press("Enter")
    assert page.locator("aside h3").inner_text() == "MaxPool"


def test_the_mouse_moves_and_zooms(inspected, show):
    page = show(inspected(DIGITS))
    page.locator(".stage").evaluate("(stage) => stage.scrollIntoView()")
    box = page.locator(".pane > svg").bounding_box()
    x, y = box["x"] + box["width"] - 60, box["y"] + box["height"] / 2
    start = page.evaluate("({...active.camera})")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y - 150, steps=4)
    page.mouse.up()
    moved = page.evaluate("({...active.camera})")
    assert moved["y"] == pytest.approx(start["y"] - 150, abs=2)
    assert page.locator(".chosen").count() == 0, "a drag is no click"
    page.keyboard.down("Control")
    page.mouse.wheel(0, 200)
    page.keyboard.up("Control")
    page.wait_for_function("scale => active.camera.scale < scale", arg=moved["scale"])


def test_tables_sort_and_filter(inspected, show, tmp_path):
    page = show(inspected(mixed_model(tmp_path / "m.onnx"), code=1))
    rows = page.locator("#sections tbody tr")
    operators = page.locator("#sections tbody td:nth-child(2)")
    original = operators.all_inner_texts()
    assert "Conv" in original

    head = page.locator("th", has_text="operator")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert operators.all_inner_texts() == sorted(original, key=str.lower)
    head.locator("button").click()
    assert operators.all_inner_texts() == sorted(original, key=str.lower, reverse=True)
    page.locator("th", has_text="verdict").locator("button").click()
    assert rows.first.inner_text().count("unsupported")

    page.fill("#sections input[type=search]", "unsupported det")
    assert set(operators.all_inner_texts()) == {"Det"}
    rows.first.locator(".link").click()
    assert page.locator("aside h3").inner_text() == "Det"


def test_names_in_a_model_stay_texts(inspected, show, tmp_path):
    report = inspected(mixed_model(tmp_path / "m.onnx"), code=1)
    page = show(report)
    page.click("#next-problem")
    assert page.locator("aside p").first.inner_text() == HOSTILE
    assert page.locator("aside dd", has_text="</script>").count() == 1
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.title() == "m.onnx - graft inspect"


def test_characters_that_cannot_be_seen_are_shown_as_the_terminal_shows_them(graft, inspected, show, tmp_path):
    """The name holds every character of these ranges except those that a file of ONNX or a test cannot carry."""
    ranges = [(0x01, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200B, 0x200F)]
    ranges += [(0x2028, 0x202E), (0x2060, 0x2069), (0xFEFF, 0xFEFF)]
    harmful = [chr(code) for first, last in ranges for code in range(first, last + 1)]
    name = "seen".join(harmful)
    shown = "seen".join(f"\\u{ord(character):04x}" for character in harmful)
    node = helper.make_node("Wobble", ["x"], ["y"], name=name, domain="acme")
    model = save(tmp_path / "m.onnx", [node], [("x", [2])], [("y", [2])], domains=["acme"])
    assert shown in graft("inspect", model).out.replace("\n", "").replace(" ", "")
    page = show(inspected(model, code=1))
    page.click("#next-problem")
    assert page.locator("aside p").first.inner_text() == shown
    visible = page.evaluate("document.querySelector('main').textContent")
    assert shown in visible
    assert not set(harmful) & set(visible)


def test_the_page_itself_refuses_the_network(inspected, chromium):
    page = chromium.new_page()
    page.goto(inspected(DIGITS).as_uri())
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.evaluate("fetch('https://example.com').then(() => 'answered', () => 'refused')") == "refused"
    assert not asked
    page.close()


def luminance(color):
    channels = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_are_told_apart_by_weak_eyes(inspected, show, tmp_path, scheme):
    """WCAG 2.1 AA demands a contrast of 4.5 to 1 for text, and of 3 to 1 for parts of a graphic."""
    page = show(inspected(mixed_model(tmp_path / "m.onnx"), code=1), scheme)
    style = "(element, [name, pseudo]) => getComputedStyle(element)[name]"

    def of(selector, name):
        return page.locator(selector).first.evaluate(style, [name, ""])

    paper, panel = of("body", "backgroundColor"), of(".pane > svg", "backgroundColor")
    for background in (paper, panel):
        assert contrast(of("body", "color"), background) >= AA_TEXT
        assert contrast(of(".faint", "color"), background) >= AA_TEXT
        assert contrast(of("#sections .link", "color"), background) >= AA_TEXT
    page.evaluate("active.showWhole()")
    for tone in ("plain", "violet", "green", "red"):
        fill = of(f".nodes .node.{tone} rect", "fill")
        for text in ("op", "name", "mark"):
            assert contrast(of(f".nodes .node.{tone} .{text}", "fill"), fill) >= AA_TEXT
        assert contrast(of(f".nodes .node.{tone} rect", "stroke"), panel) >= AA_GRAPHIC
    assert contrast(of(".edge", "stroke"), panel) >= AA_GRAPHIC


def test_convert_shows_what_was_rewritten_before_and_what_it_is_after(graft, show, schema, tmp_path):
    report = tmp_path / "convert.html"
    assert graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--report", report).code == 0
    schema(json.loads((tmp_path / "convert.html.json").read_text()))
    page = show(report)
    assert page.locator("#graph-choice option").all_inner_texts() == ["before", "after"]
    page.locator("#sections tr", has_text="fuse_l2_normalize").locator(".link").first.click()
    details = page.locator("aside").inner_text()
    assert "fuse_l2_normalize" in details
    assert "rewritten" in details
    page.select_option("#graph-choice select", label="after")
    page.fill("input[type=search]", "graft::L2Normalize")
    page.press("input[type=search]", "Enter")
    assert "plugin" in page.locator("aside").inner_text()


def test_convert_shows_which_half_each_node_is_in(graft, show, schema, tmp_path):
    """The page places each node in the half whose file contains it."""
    report = tmp_path / "cut.html"
    detector = SOURCE / "examples" / "cut" / "detector.onnx"
    assert (
        graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never", "--report", report).code
        == 0
    )
    written = json.loads((tmp_path / "cut.html.json").read_text())
    schema(written)
    *_, halves = written["graphs"]
    found = {node["name"]: node["kind"] for node in halves["nodes"] if node["kind"]}
    in_tensorrt, on_host = (
        {node.name or node.output[0] for node in onnx.load(tmp_path / file).graph.node}
        for file in ("out.onnx", "out.host.onnx")
    )
    assert {name for name, kind in found.items() if kind == "in_tensorrt"} == in_tensorrt - on_host
    assert {name for name, kind in found.items() if kind in ("on_host", "cause_of_cut")} == on_host - in_tensorrt
    assert [node["op"] for node in halves["nodes"] if node["kind"] == "cause_of_cut"] == ["NonMaxSuppression"]

    page = show(report)
    page.select_option("#graph-choice select", label="in two halves")
    page.locator("#sections tr", has_text="no implementation").last.locator(".link").first.click()
    assert "cause of the cut" in page.locator("aside").inner_text()
    facts = page.locator(".facts").inner_text()
    assert "both halves together equal the whole network" in facts and "Cut before 1 node" in facts
    between = page.locator("#sections tr", has_text="f32 1 x 64 x 4")
    between.locator(".link").click()
    assert page.locator("aside h3").inner_text() == "Sigmoid"


def perturbed(path):
    """Saves the digits network with one weight of its second convolution changed."""
    model = onnx.load(DIGITS)
    (conv,) = (node for node in model.graph.node if node.name == "/conv2/Conv")
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == conv.input[1])
    values = numpy_helper.to_array(weight).copy()
    values.flat[0] += 0.25
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, path)
    return path


def test_verify_shows_the_errors_of_the_candidate(graft, show, schema, tmp_path):
    wrong = perturbed(tmp_path / "wrong.onnx")
    report = tmp_path / "verify.html"
    answer = graft("verify", DIGITS, wrong, "--report", report, "--json", code=1)
    written = json.loads((tmp_path / "verify.html.json").read_text())
    schema(written)
    (table,) = (section for section in written["sections"] if section["title"] == "Tensors")
    titles = [column["title"] for column in table["columns"]]
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in table["rows"]}
    for output in answer.json["outputs"]:
        row = rows[output["candidate_name"]]
        assert row["max abs"] == output["max_absolute"] > 0
        assert row["differ"] == output["mismatched"]
        assert row["verdict"] == "differs"
    page = show(report)
    assert "not the same" in page.locator(".facts").inner_text()
    page.click("#next-problem")
    assert "differs" in page.locator("aside").inner_text()
    bars = page.locator("#sections section", has_text="Number of tensors").locator(".chart text").all_text_contents()
    assert sum(int(text) for text in bars if text.isdigit()) == len(rows)


def test_layers_lead_to_the_first_divergence(graft, show, schema, tmp_path):
    wrong = perturbed(tmp_path / "wrong.onnx")
    report = tmp_path / "layers.html"
    answer = graft("verify", DIGITS, wrong, "--layers", "--report", report, "--json", code=1)
    written = json.loads((tmp_path / "layers.html.json").read_text())
    schema(written)
    (table,) = (section for section in written["sections"] if section["title"] == "Tensors")
    assert len(table["rows"]) == len(answer.json["layers"])
    page = show(report)
    page.click("#next-problem")
    details = page.locator("aside").inner_text()
    assert page.locator("aside h3").inner_text() == "Conv"
    assert "/conv2/Conv" in details
    assert "first divergence" in details
    # Nodes before the changed one are right, and nodes after it differ.
    kinds = {node["name"]: node["kind"] for node in written["graphs"][0]["nodes"]}
    assert kinds["/conv1/Conv"] in ("exact", "close")
    assert kinds["/act2/LeakyRelu"] == "differs"
    (elements,) = (s for s in written["sections"] if s["title"].startswith("Errors in /conv2"))
    (layer,) = (each for each in answer.json["layers"] if "/conv2/Conv" in each["candidate_node"])
    assert sum(bin["count"] for bin in elements["bins"]) == layer["elements"]


def test_verify_of_the_same_model_has_no_problem(graft, show, tmp_path):
    assert graft("verify", DIGITS, DIGITS, "--report", tmp_path / "same.html").code == 0
    page = show(tmp_path / "same.html")
    assert page.locator("#next-problem").count() == 0
    assert "the same" in page.locator("#legend").inner_text()


def section(written, title):
    (found,) = (each for each in written["sections"] if each["title"].startswith(title))
    return found


def columns(table):
    """Returns the rows of a table as dictionaries; a cell with a link to a node becomes its text."""
    titles = [column["title"] for column in table["columns"]]
    texts = [
        [cell["text"] if isinstance(cell, dict) and "text" in cell else cell for cell in row] for row in table["rows"]
    ]
    return [dict(zip(titles, row, strict=True)) for row in texts]


def quantized(graft, model, folder, *options):
    """Returns the page of `graft quantize --precision int8`, its JSON, and the graph that it wrote."""
    page, out = folder / "int8.html", folder / "int8.onnx"
    data = f"image={DIGITS_DATA}:images"
    answer = graft(
        "quantize", model, "-o", out, "--precision", "int8", "--data", data, "--report", page, "--json", *options
    )
    assert answer.code == 0, answer.err
    return page, answer.json, onnx.load(out).graph


@pytest.fixture(scope="module")
def digits_in_int8(graft, converted, tmp_path_factory):
    return quantized(graft, converted, tmp_path_factory.mktemp("int8"))


@pytest.fixture(scope="module")
def searched(graft, converted, tmp_path_factory):
    """Quantizes with a limit of 40 dB, which the network does not reach in int8 alone, so some layers stay in f32."""
    return quantized(graft, converted, tmp_path_factory.mktemp("searched"), "--limit", 40)


def test_the_json_of_int8_has_the_scales_of_the_answer(digits_in_int8, schema):
    page, answer, graph = digits_in_int8
    written = json.loads(pathlib.Path(f"{page}.json").read_text())
    schema(written)
    tensors = columns(section(written, "Tensors"))
    made = [value.name for value in graph.input] + [name for node in graph.node for name in node.output]
    names = [row["tensor"] for row in tensors]
    assert len(names) >= 4
    assert names == sorted(names, key=made.index), "in the order of the network"
    for row, tensor in zip(tensors, answer["tensors"], strict=True):
        assert row["tensor"] == tensor["name"]
        for title, key in (("threshold", "threshold"), ("scale", "scale"), ("SNR", "rounding_snr_db")):
            assert row[title] == pytest.approx(tensor[key], rel=1e-6)
        assert row["saturated"] == pytest.approx(100 * tensor["saturated"])
    # Pooling keeps the scale of its input; no tensor shares the image's scale.
    scale_of = {row["tensor"]: row["scale of"] for row in tensors}
    assert scale_of["image"] is None
    assert scale_of["/pool/MaxPool_output_0"] == scale_of["/act2/LeakyRelu_output_0"] is not None
    titles = [each["title"] for each in written["sections"]]
    assert "Accuracy against speed" not in titles, "one model was tried"


def test_the_json_of_int8_has_what_the_search_found(searched, schema):
    page, answer, _ = searched
    written = json.loads(pathlib.Path(f"{page}.json").read_text())
    schema(written)
    alone = {row["alone"] for row in columns(section(written, "Nodes"))} - {None}
    assert alone == {layer["snr_db"] for layer in answer["sensitivities"]}
    bars = section(written, "Most sensitive layers")["rows"]
    assert [sum(value or 0 for value in row["values"]) for row in bars] == sorted(alone)
    kept = {node["node"] for node in answer["nodes"] if node["why"] == "kept"}
    assert kept
    assert {row["label"].split("'")[1] for row in bars if row["values"][1] is not None} == kept

    plot = section(written, "Accuracy")
    trials = answer["trials"]
    assert [point["y"] for point in plot["points"]] == [trial["snr_db"] for trial in trials]
    assert [point["series"] for point in plot["points"]] == [int(trial["snr_db"] < 40) for trial in trials]
    (chosen,) = (trial for trial, point in zip(trials, plot["points"], strict=True) if point["chosen"])
    assert chosen["snr_db"] == min(output["snr_db"] for output in answer["outputs"])
    assert chosen["kept"] == len(kept)
    # A multiply-add in f32 counts as 16, so a network in int8 costs a sixteenth.
    assert trials[0]["f32_multiply_adds"] == 0
    for trial, point in zip(trials, plot["points"], strict=True):
        work = trial["int8_multiply_adds"] + 16 * trial["f32_multiply_adds"]
        assert point["x"][0] == pytest.approx(100 * work / (16 * trials[0]["int8_multiply_adds"]))
        assert 0 < point["x"][1] <= 100
        assert point["x"][1] / plot["points"][0]["x"][1] == pytest.approx(
            trial["bytes_moved"] / trials[0]["bytes_moved"]
        )
    outputs = columns(section(written, "Outputs"))
    assert [row["SNR"] for row in outputs] == [output["snr_db"] for output in answer["outputs"]]
    assert [row["SNR, all in int8"] for row in outputs] == [output["snr_db"] for output in answer["plain_outputs"]]


def test_the_distributions_of_int8_are_those_of_the_numbers(digits_in_int8):
    page, _, _ = digits_in_int8
    written = json.loads(pathlib.Path(f"{page}.json").read_text())
    images = np.load(DIGITS_DATA)["images"].astype(np.float32)
    (image,) = (each for each in written["distributions"] if each["title"] == "image")
    sizes = np.abs(images[images != 0])
    assert image["zeros"] == images.size - sizes.size
    end = image["bin_width"] * len(image["counts"])
    # The counts come from at least 4096 bins, each of which belongs to one of these as a whole.
    edges, width = np.linspace(0, end, len(image["counts"]) + 1)[1:], end / 4096
    for edge, count in zip(edges, np.cumsum(image["counts"]), strict=True):
        assert np.sum(sizes < edge - width) <= count <= np.sum(sizes < edge + width)
    assert sum(image["counts"]) == sizes.size


def test_int8_can_be_looked_through(digits_in_int8, show):
    page_file, answer, graph = digits_in_int8
    page = show(page_file)
    # Weights are part of their layers, with the DequantizeLinear before them.
    constants = {tensor.name for tensor in graph.initializer}
    weights = [node for node in graph.node if all(name in constants for name in node.input)]
    assert weights
    assert drawn(page) == len(graph.node) - len(weights) + len(graph.input) + len(graph.output)
    legend = {text.split()[1]: text.split()[-1] for text in page.locator("#legend button").all_inner_texts()}
    in_int8 = [node["operator"] for node in answer["nodes"] if node["type"] == "int8"]
    moving = [op for op in in_int8 if op in ("MaxPool", "Flatten")]
    assert (int(legend["int8"]), int(legend["passes"])) == (len(in_int8) - len(moving), len(moving))
    rounding = sum(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in graph.node)
    assert legend["Q/DQ"] == str(rounding - len(weights))

    table = page.locator("#sections section", has_text="Tensors in int8")
    assert table.locator("tbody svg.spark").count() == len(answer["tensors"])
    assert table.locator("tbody path.beyond").first.get_attribute("d") == "", "no image is brighter than 1"
    # The first click sorts the tensors with the largest rounding error first.
    table.locator("th button", has_text="SNR").click()
    found = [float(text) for text in table.locator("tbody td:nth-child(8)").all_inner_texts()]
    assert found == sorted(found)
    assert found[0] == pytest.approx(min(tensor["rounding_snr_db"] for tensor in answer["tensors"]), abs=0.01)
    table.locator(".link", has_text="/act1/LeakyRelu_output_0").click()
    details = page.locator("aside").inner_text()
    for text in ("QuantizeLinear", "threshold", "one step", "after rounding", "saturates"):
        assert text in details
    assert page.locator("aside svg.spread path.beyond").get_attribute("d"), "some saturate"


def test_a_layer_that_the_search_kept_says_why(searched, show):
    page_file, answer, _ = searched
    page = show(page_file)
    kept = [node["node"] for node in answer["nodes"] if node["why"] == "kept"]
    legend = {text.split()[1]: text.split()[-1] for text in page.locator("#legend button").all_inner_texts()}
    assert legend["kept"] == str(len(kept))
    page.locator("#sections .link", has_text=kept[0]).first.click()
    assert "with only this layer in int8, the SNR of the outputs is" in page.locator("aside").inner_text()


def test_the_plot_of_trials_can_be_read_by_mouse_and_by_keys(searched, show):
    page_file, answer, _ = searched
    for scheme in ("light", "dark"):
        page = show(page_file, scheme)
        plot = page.locator("#sections section", has_text="Accuracy against speed").first
        said = plot.locator("[role=status]")
        assert "(chosen)" in said.inner_text()
        panels = plot.locator(".plots > svg")
        assert panels.count() == 2
        points = plot.locator(".plots .dot, .plots .cross")
        assert points.count() == 2 * len(answer["trials"])
        assert plot.locator(".ring").count() == 2
        for panel in panels.all():
            box = panel.bounding_box()
            for point in panel.locator(".dot, .cross").all():
                inner = point.bounding_box()
                assert box["x"] <= inner["x"] <= box["x"] + box["width"]
                assert box["y"] <= inner["y"] <= box["y"] + box["height"]
        plot.locator(".plots").press("Home")
        assert "all in int8" in said.inner_text()
        plot.locator(".plots").press("ArrowRight")
        assert "kept in f32" in said.inner_text()
        points.first.hover()
        assert f"{answer['trials'][0]['snr_db']:.1f}" in said.inner_text()
        paper = page.locator("body").evaluate("(element) => getComputedStyle(element).backgroundColor")
        for mark, paint in ((".dot", "fill"), (".cross", "stroke"), (".ring", "stroke")):
            color = plot.locator(mark).first.evaluate("(element, name) => getComputedStyle(element)[name]", paint)
            assert contrast(color, paper) >= AA_GRAPHIC


def test_two_hundred_tensors_are_shown(graft, show, schema, tmp_path):
    random = np.random.default_rng(8)
    nodes, weights = [], []
    for i in range(200):
        nodes.append(helper.make_node("Conv", [f"t{i}", f"w{i}"], [f"t{i + 1}"], name=f"conv{i}", kernel_shape=[1, 1]))
        weights.append(numpy_helper.from_array(random.normal(0, 0.5, (4, 4, 1, 1)).astype(np.float32), f"w{i}"))
    model = save(tmp_path / "long.onnx", nodes, [("t0", [1, 4, 8, 8])], [("t200", [1, 4, 8, 8])], weights)
    np.savez(tmp_path / "data.npz", t0=random.normal(0, 1, (2, 4, 8, 8)).astype(np.float32))
    report = tmp_path / "long.html"
    options = ["--precision", "int8", "--data", tmp_path / "data.npz", "--report", report]
    answer = graft("quantize", model, "-o", tmp_path / "out.onnx", *options)
    assert answer.code == 1 and "20 dB" in answer.err, "200 layers of random weights do not hold int8"
    assert report.stat().st_size < 3e6
    written = json.loads((tmp_path / "long.html.json").read_text())
    schema(written)
    assert [row["tensor"] for row in columns(section(written, "Tensors"))] == [f"t{i}" for i in range(200)]
    assert len(written["distributions"]) == 200
    show(report)


def test_the_json_of_f16_is_of_the_published_schema(graft, converted, schema, tmp_path):
    report = tmp_path / "f16.html"
    graft("quantize", converted, "-o", tmp_path / "f16.onnx", "--precision", "f16", "--report", report, code=0)
    schema(json.loads((tmp_path / "f16.html.json").read_text()))


def test_bench_has_bars_and_no_graph(graft, show, schema, tmp_path):
    report = tmp_path / "speed.html"
    answer = graft("bench", "--op", "all", "--device", "cpu", "--no-peers", "--report", report, "--json", code=0)
    schema(json.loads((tmp_path / "speed.html.json").read_text()))
    page = show(report)
    assert page.locator("#graph").is_hidden()
    operators = {row["operator"] for row in answer.json["results"]}
    charts = page.locator("svg.chart")
    assert charts.count() >= len(operators)
    # Bars stay within their chart.
    for chart in charts.all():
        width = float(chart.get_attribute("viewBox").split()[2])
        for bar in chart.locator("rect").all():
            assert 0 < float(bar.get_attribute("x")) + float(bar.get_attribute("width")) <= width


def test_the_json_is_of_the_published_schema(inspected, schema, tmp_path):
    report = inspected(mixed_model(tmp_path / "m.onnx"), code=1)
    written = json.loads(pathlib.Path(f"{report}.json").read_text())
    schema(written)
    assert written["command"] == "inspect"
    verdicts = {node["name"]: node["kind"] for graph in written["graphs"] for node in graph["nodes"]}
    assert (verdicts["stem"], verdicts["act"], verdicts["norm"]) == ("native", "lowered", "plugin")
    assert verdicts[HOSTILE] == verdicts["det"] == "unsupported"


@pytest.mark.parametrize("page", ["/no/such/folder/page.html", "{tmp}/folder"])
def test_a_page_that_cannot_be_written_is_refused_by_name(graft, tmp_path, page):
    (tmp_path / "folder").mkdir()
    path = page.format(tmp=tmp_path)
    answer = graft("inspect", DIGITS, "--report", path, code=2)
    assert path in answer.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


# ---- the first screen


def test_a_report_says_what_wrote_it_and_when(graft, show, schema, tmp_path):
    """The date is that of SOURCE_DATE_EPOCH, and two runs then write the same bytes."""
    model = save(tmp_path / "a model.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    report = tmp_path / "page.html"
    environment = {"SOURCE_DATE_EPOCH": "1700000000"}
    graft("inspect", model, "--report", report, code=0, env=environment)
    written = json.loads(pathlib.Path(f"{report}.json").read_text())
    schema(written)
    assert written["date"] == "2023-11-14T22:13:20Z"
    assert written["command_line"] == f"graft inspect '{model}' --report {report} --probe none"
    page = show(report)
    version = graft("--version").out.split()[1]
    assert page.locator(".made").inner_text() == f"graft inspect · version {version} · 2023-11-14 22:13 UTC"
    assert page.locator(".call code").first.inner_text() == written["command_line"]
    page.locator(".call button").first.click()
    page.wait_for_function("() => document.querySelector('.call button').textContent === 'copied'")

    first = report.read_bytes()
    graft("inspect", model, "--report", report, code=0, env=environment)
    assert report.read_bytes() == first


@pytest.mark.parametrize("value", ["yesterday", "-1", "1e9", "999999999999999", "12 "])
def test_a_date_that_is_no_number_of_seconds_is_refused(graft, tmp_path, value):
    answer = graft("inspect", DIGITS, "--report", tmp_path / "page.html", code=2, env={"SOURCE_DATE_EPOCH": value})
    assert "SOURCE_DATE_EPOCH" in answer.err and f'"{value}"' in answer.err
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_run_and_what_to_do_is_on_the_first_screen(graft, inspected, show, tmp_path):
    model = mixed_model(tmp_path / "m.onnx")
    page = show(inspected(model, code=1))
    assert page.locator("#verdict").inner_text() == "By Graft's rules, 3 of 9 nodes do not run in TensorRT."
    items = page.locator("#problems-first > li")
    answer = graft("inspect", model, "--json", code=1).json
    bad = [node for node in answer["nodes"] if node["verdict"] == "unsupported"]
    assert items.count() == len({node["operator"] for node in bad}) == 2
    for node in bad:
        item = items.filter(has_text=node["operator"])
        assert node["reason"] in item.inner_text() and node["advice"] in item.inner_text()
        box = item.bounding_box()
        assert box["y"] + box["height"] <= 860, "above the fold"
    items.filter(has_text="Det").locator(".link").first.click()
    assert page.locator("aside h3").inner_text() == "Det"
    commands = page.locator("#next code").all_inner_texts()
    assert commands == [next["command"] for next in answer["next"] if next["command"]]


# ---- fusions and comparisons


def test_inspect_shows_what_convert_fuses(graft, show, tmp_path):
    """The groups that `inspect` predicts have the nodes that `convert` then replaces together."""
    report = tmp_path / "page.html"
    answer = graft("inspect", DIGITS, "--json", "--report", report, code=0).json
    done = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--json", code=0).json
    rewritten = {
        frozenset(text.split("'")[1] for text in rewrite["nodes"])
        for rewrite in done["rewrites"]
        if len(rewrite["nodes"]) > 1 and rewrite["pass"].startswith("fuse_")
    }
    assert {frozenset(fusion["nodes"]) for fusion in answer["fusions"]} == rewritten and rewritten
    (fusion,) = answer["fusions"]
    assert fusion["replacement"].startswith("L2Normalize<") and fusion["plugin"]
    text = graft("inspect", DIGITS).out
    assert "fused by `graft convert`  1 time" in text and "-> L2Normalize, as a plugin" in text

    page = show(report)
    page.click("#whole")
    chip = page.locator("#legend button", has_text="fused by convert")
    assert chip.locator("strong").inner_text() == str(len(fusion["nodes"]))
    chip.click()
    assert page.locator(".nodes .node.lit").count() == len(fusion["nodes"])
    chip.click()
    page.locator("#sections tr", has_text="L2Normalize").first.locator(".link").click()
    assert page.locator(".nodes .node.mate").count() == len(fusion["nodes"])
    assert "Fused to L2Normalize" in page.locator("aside").inner_text()


def test_a_converted_model_has_no_fusion(graft, converted):
    assert graft("inspect", converted, "--json").json["fusions"] == []
    assert graft("inspect", DIGITS, "--convert", "--json").json["fusions"] == []


def test_before_and_after_are_side_by_side(graft, show, tmp_path):
    report = tmp_path / "convert.html"
    graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--report", report, code=0)
    written = json.loads((tmp_path / "convert.html.json").read_text())
    before, after = (written["graphs"][written["compared"][side]]["nodes"] for side in ("before", "after"))
    # The tensors that the linked nodes compute are those that the files have in common.
    kept = {name for node in onnx.load(tmp_path / "out.onnx").graph.node for name in node.output}
    for node in before:
        if node["end"]:
            continue
        computed = {port["name"] for port in node["outputs"]}
        linked = {port["name"] for other in node["counterparts"] for port in after[other]["outputs"]}
        assert linked <= kept
        if computed <= kept:
            assert computed <= linked
    reduced = [node for node in before if node["name"].startswith("/ReduceL2") or node["op"] == "Div"]
    assert reduced and all("L2Normalize" in after[node["counterparts"][0]]["op"] for node in reduced)

    page = show(report)
    assert page.locator(".pane").count() == 2
    boxes = [pane.bounding_box() for pane in page.locator(".pane").all()]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    page.locator("#sections tr", has_text="fuse_l2_normalize").locator(".link").first.click()
    assert page.locator(".pane:first-child .node.chosen").count() == 1
    counterpart = page.locator(".pane:nth-child(2) .node.counterpart")
    assert counterpart.count() == 1 and "L2Normalize" in counterpart.text_content()
    counterpart.click()
    assert page.locator(".pane:first-child .node.counterpart").count() == len(
        [node for node in after if "L2Normalize" in node["op"]][0]["counterparts"]
    )
    page.click("#compare")
    assert page.locator(".pane").count() == 1
    page.click("#compare")
    assert page.locator(".pane").count() == 2


# ---- counts


def counted(graft, folder, nodes, inputs, outputs, constants=(), **options):
    """Returns the costs of the nodes of a model, by the name of the first output."""
    model = save(folder / "m.onnx", nodes, inputs, outputs, constants, **options)
    return {node["node"]: node["cost"] for node in graft("inspect", model, "--json").json["nodes"]}


PRODUCTS = {
    "Conv": ([("x", [2, 4, 9, 11]), ("w", [6, 4, 3, 2])], {"strides": [2, 1], "dilations": [1, 2]}),
    "grouped Conv": ([("x", [1, 4, 7, 7]), ("w", [8, 1, 3, 3])], {"group": 4}),
    "ConvTranspose": ([("x", [2, 3, 5, 4]), ("w", [3, 5, 2, 3])], {"strides": [2, 3]}),
    "grouped ConvTranspose": ([("x", [1, 4, 5, 5]), ("w", [4, 2, 3, 3])], {"group": 2}),
    "MatMul": ([("x", [2, 1, 3, 5]), ("w", [4, 5, 7])], {}),
    "vector MatMul": ([("x", [5]), ("w", [5, 7])], {}),
    "Gemm": ([("x", [5, 3]), ("w", [5, 7])], {"transA": 1}),
    "Einsum": ([("x", [2, 3, 4]), ("w", [2, 4, 5])], {"equation": "bij,bjk->bik"}),
    "outer Einsum": ([("x", [3]), ("w", [4])], {"equation": "i,j->ij"}),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_macs_are_the_products_that_a_runtime_sums(graft, tmp_path, name):
    """Each product of ones is one, so the sum of the result in ONNX Runtime is the number of products."""
    (x, w), attributes = PRODUCTS[name]
    node = helper.make_node(name.split()[-1], ["x", "w"], ["y"], **attributes)
    ones = [numpy_helper.from_array(np.ones(w[1], np.float32), "w")]
    cost = counted(graft, tmp_path, [node], [x], [("y", None)], ones)["y"]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": np.ones(x[1], np.float32)})
    assert cost["macs"] == result.sum()
    assert cost["parameters"] == np.prod(w[1])
    assert cost["weight_bytes"] == 4 * np.prod(w[1])
    assert cost["tensor_bytes"] == 4 * (np.prod(x[1]) + result.size)


def test_macs_of_layers_with_a_state_and_of_attention(graft, tmp_path):
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["h"], hidden_size=5, direction="bidirectional"),
        helper.make_node("Attention", ["q", "k", "v"], ["a"]),
    ]
    random = np.random.default_rng(1)
    constants = [
        numpy_helper.from_array(random.normal(size=(2, 20, 3)).astype(np.float32), "w"),
        numpy_helper.from_array(random.normal(size=(2, 20, 5)).astype(np.float32), "r"),
    ]
    inputs = [("x", [7, 4, 3]), ("q", [2, 4, 6, 8]), ("k", [2, 4, 9, 8]), ("v", [2, 4, 9, 10])]
    cost = counted(graft, tmp_path, nodes, inputs, [("h", None), ("a", [2, 4, 6, 10])], constants, opset=23)
    # Four gates of five units for each of two directions, seven steps and four sequences.
    assert cost["h"]["macs"] == 7 * 4 * 2 * 4 * 5 * (3 + 5)
    # Queries times keys, then weights times values.
    assert cost["a"]["macs"] == 2 * 4 * 6 * 9 * 8 + 2 * 4 * 6 * 9 * 10


def test_what_is_not_known_stays_unknown(graft, tmp_path):
    """A dynamic size, an operator of another domain, an algorithm that a runtime chooses and a number beyond 64 bits
    have no count."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["dynamic"]),
        helper.make_node("Relu", ["dynamic"], ["relu"]),
        helper.make_node("Wobble", ["f"], ["foreign"], domain="acme"),
        helper.make_node("Einsum", ["f", "f", "f"], ["three"], equation="ij,jk,kl->il"),
        helper.make_node("MatMul", ["huge", "huge"], ["beyond"]),
    ]
    constants = [numpy_helper.from_array(np.ones((3, 5), np.float32), "w")]
    outputs = [(name, None) for name in ("relu", "foreign", "three", "beyond")]
    inputs = [("x", ["batch", 3]), ("f", [4, 4]), ("huge", [2**40, 2**40])]
    cost = counted(graft, tmp_path, nodes, inputs, outputs, constants, domains=["acme"])
    assert cost["dynamic"] == {"macs": None, "parameters": 15, "weight_bytes": 60, "tensor_bytes": None}
    assert cost["relu"]["macs"] == 0 and cost["relu"]["tensor_bytes"] is None
    assert [cost[name]["macs"] for name in ("foreign", "three", "beyond")] == [None] * 3
    assert cost["beyond"]["tensor_bytes"] is None
    total = graft("inspect", tmp_path / "m.onnx", "--json").json["cost"]
    assert total == {"macs": 0, "parameters": 15, "nodes_without_macs": 4}
    # With the size of the input, the count is known.
    sized = graft("inspect", tmp_path / "m.onnx", "--input", "x:8x3", "--json").json
    assert sized["cost"] == {"macs": 8 * 3 * 5, "parameters": 15, "nodes_without_macs": 3}


def test_shapes_are_no_parameters_and_shared_weights_count_once(graft, tmp_path):
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["real"]),
        helper.make_node("Add", ["b", "real"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([2, 4]), "shape"),
        numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"),
        numpy_helper.from_array(np.ones(4, np.int8), "q"),
        numpy_helper.from_array(np.float32(0.5), "scale"),
        numpy_helper.from_array(np.int8(0), "zero"),
    ]
    cost = counted(graft, tmp_path, nodes, [("x", [8])], [("y", None)], constants)
    assert (cost["flat"]["parameters"], cost["flat"]["weight_bytes"]) == (0, 16)
    assert cost["a"]["parameters"] == cost["b"]["parameters"] == 16
    assert cost["real"] == {"macs": 0, "parameters": 0, "weight_bytes": 0, "tensor_bytes": 0}
    assert (cost["y"]["parameters"], cost["y"]["weight_bytes"]) == (4, 4 + 4 + 1)
    answer = graft("inspect", tmp_path / "m.onnx", "--json").json
    assert answer["cost"]["parameters"] == 16 + 4
    assert answer["weight_bytes"] == 16 + 64 + 9


def test_a_network_has_one_number_of_nodes(graft, show, tmp_path):
    """The style network has 98 Constant nodes, which no number counts as nodes."""
    style = SOURCE / "examples" / "style_transfer" / "style.onnx"
    graph = onnx.load(style).graph
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    report = tmp_path / "page.html"
    answer = graft("inspect", style, "--report", report, "--json", code=0).json
    assert answer["node_count"] == len(nodes)
    page = show(report)
    assert f"all {len(nodes)} nodes" in page.locator("#verdict").inner_text()
    assert f"{len(nodes)} nodes and {len(graph.node) - len(nodes)} constants" in page.locator(".facts").inner_text()
    assert page.locator("#legend").inner_text().startswith(f"{len(nodes)} nodes, 1 input, 1 output")
    assert (
        page.locator("#sections section", has_text="what to do").locator("[role=status]").inner_text()
        == f"{len(nodes)} rows"
    )
    assert sum(int(text) for text in page.locator("#legend .chip:not(.fused) strong").all_inner_texts()) == len(nodes)


# ---- narrow screens, addresses and files

CLIPPED = """() => {
  const wide = document.documentElement.clientWidth;
  return [...document.querySelectorAll("main, main *")].filter((element) => {
    if (element.closest(".hidden") || (element.closest("svg") && element.tagName !== "svg")) return false;
    const box = element.getBoundingClientRect(), scrolls = getComputedStyle(element).overflowX !== "visible";
    if (!box.width || !box.height) return false;
    return box.right > wide + 1 || box.left < -1 || (scrolls && element.scrollWidth > element.clientWidth + 1);
  }).map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
}"""


@pytest.fixture(scope="module")
def pages(graft, converted, searched, tmp_path_factory):
    """Returns a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    commands = {
        "inspect": ("inspect", mixed_model(folder / "m.onnx")),
        "convert": ("convert", DIGITS, "-o", folder / "out.onnx"),
        "verify": ("verify", DIGITS, converted, "--layers"),
        "f16": ("quantize", converted, "-o", folder / "f16.onnx", "--precision", "f16"),
        "bench": ("bench", "--op", "LeakyReLU", "--device", "cpu", "--no-peers"),
    }
    for name, command in commands.items():
        graft(*command, "--report", folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in commands} | {"int8": searched[0]}


@pytest.mark.parametrize("name", ["inspect", "convert", "verify", "f16", "bench", "int8"])
def test_nothing_is_clipped_on_a_screen_of_400_pixels(pages, show, name):
    page = show(pages[name])
    page.set_viewport_size({"width": 400, "height": 860})
    page.wait_for_function("() => getComputedStyle(document.querySelector('main')).paddingLeft !== '22.4px'")
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate(CLIPPED) == []
    # The check itself notices a wide element.
    page.evaluate(
        "document.querySelector('main').append(Object.assign(document.createElement('div'), { style: 'width: 500px; height: 9px' }))"
    )
    assert len(page.evaluate(CLIPPED)) == 1


def test_an_address_leads_to_a_node(inspected, show, tmp_path):
    report = inspected(mixed_model(tmp_path / "m.onnx"), code=1)
    page = show(report)
    page.locator(".nodes .node", has_text="LReLU_TRT").click()
    assert page.evaluate("location.hash") == "#node-act"
    assert page.locator("aside .link", has_text="link to this node").get_attribute("href") == "#node-act"
    # Nodes of sub-graphs, inputs and outputs have addresses, and a name with special characters has one.
    addresses = page.evaluate("[...anchors.keys()]")
    assert (
        len(addresses) == len(set(addresses)) == sum(page.evaluate("report.graphs.map((graph) => graph.nodes.length)"))
    )
    assert {"node-det", "input-x", "output-y"} <= set(addresses)
    for address in addresses:
        page.evaluate("(address) => { location.hash = address; }", address)
        page.wait_for_function(
            "(address) => anchorOf({ graph: active.graph.index, node: active.chosen }) === address", arg=address
        )
    page.evaluate("location.hash = 'node-norm'")
    page.wait_for_function("() => document.querySelector('aside h3').textContent.startsWith('InstanceNormalization')")
    page.reload()
    page.wait_for_selector("html[data-shown]", state="attached")
    assert page.locator("aside p").first.inner_text() == "norm"


def test_a_graph_is_saved_as_svg(inspected, show, chromium, tmp_path):
    page = show(inspected(mixed_model(tmp_path / "m.onnx"), code=1))
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "m.onnx.main_graph.svg"
    path = tmp_path / "graph.svg"
    download.value.save_as(path)
    text = path.read_text()
    root = ElementTree.fromstring(text)
    space = {"svg": "http://www.w3.org/2000/svg"}
    nodes = [group for group in root.iterfind(".//svg:g", space) if "node" in group.get("class", "").split()]
    assert len(nodes) == drawn(page)
    assert len(root.findall(".//svg:path", space)) == page.evaluate("active.graph.edges.length")
    assert any(HOSTILE in title.text for title in root.iterfind(".//svg:title", space))
    assert root.find(".//svg:script", space) is None and "href" not in text and "url(" not in text
    # The file is a picture by itself: nothing is drawn outside of it.
    picture = chromium.new_page()
    picture.goto(path.as_uri())
    inside = """() => { const whole = document.documentElement.getBoundingClientRect();
      return [...document.querySelectorAll(".node")].every((node) => { const box = node.getBoundingClientRect();
        return box.left >= whole.left && box.right <= whole.right && box.top >= whole.top && box.bottom <= whole.bottom; }); }"""
    assert picture.evaluate(inside)
    picture.close()
