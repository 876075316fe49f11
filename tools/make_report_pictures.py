"""Writes the pictures of docs/guide/reports.md: runs graft, opens its pages in Chromium and takes screenshots.

Needs `make build` and `tools/setup browser`. ResNet-50 is that of the onnx package, with seeded weights in place of its
constants; one weight of the judged network is changed, so that the report shows a difference.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
CHANGED = "gpu_0/res3_1_branch2b_w_0"
MOST_BYTES = 200_000


def resnet50() -> onnx.ModelProto:
    """Returns the network with initial weights as before training; batch normalization keeps values near one."""
    model = onnx.load(LIGHT)
    random = np.random.default_rng(50)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape, name = constants[node.input[0]], node.output[0]
        if len(shape) > 1:
            values = random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        else:
            values = np.full(shape, 1.0 if name.endswith(("_bn_s_0", "_bn_riv_0")) else 0.0)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def changed(model: onnx.ModelProto) -> onnx.ModelProto:
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == CHANGED)
    values = numpy_helper.to_array(weight).copy()
    values[3] *= 1.5
    weight.CopyFrom(numpy_helper.from_array(values, CHANGED))
    return model


def run(graft: pathlib.Path, *arguments: object) -> None:
    done = subprocess.run([graft, *map(str, arguments), "-q"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"graft {arguments[0]}: {done.stderr}")


def open_page(browser: Browser, path: pathlib.Path, scheme: str) -> Page:
    page = browser.new_page(viewport={"width": 1100, "height": 700}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-shown]", state="attached")
    return page


def take(page: Page, path: pathlib.Path) -> None:
    page.screenshot(path=path)
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path}: {path.stat().st_size} bytes, at most {MOST_BYTES}")
    print(f"wrote {path.relative_to(ROOT)}: {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graft", type=pathlib.Path, default=ROOT / "build" / "bin" / "graft")
    graft = parser.parse_args().graft
    browser_program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if browser_program is None:
        sys.exit("no Chromium here; tools/setup browser installs it")
    pictures = ROOT / "docs" / "guide" / "pictures"
    pictures.mkdir(exist_ok=True)
    style = ROOT / "examples" / "style_transfer" / "style.onnx"
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = pathlib.Path(temporary)
        browser = playwright.chromium.launch(executable_path=browser_program)

        shutil.copy(style, folder / "style.onnx")
        run(graft, "convert", folder / "style.onnx", "-o", folder / "out.onnx", "--report", folder / "convert.html")
        page = open_page(browser, folder / "convert.html", "light")
        page.locator("#sections tr", has_text="fuse_instance_norm").first.locator(".link").click()
        page.evaluate("document.querySelector('#graph').scrollIntoView()")
        take(page, pictures / "report_convert.png")
        page.click("#compare")
        page.select_option("#graph-choice select", label="after")
        page.fill("input[type=search]", "InstanceNorm")
        page.press("input[type=search]", "Enter")
        take(page, pictures / "report_after.png")

        onnx.save(resnet50(), folder / "resnet50.onnx")
        onnx.save(changed(resnet50()), folder / "resnet50_changed.onnx")
        models = (folder / "resnet50.onnx", folder / "resnet50_changed.onnx")
        run(graft, "verify", *models, "--layers", "--report", folder / "verify.html")
        print(f"the page of ResNet-50: {(folder / 'verify.html').stat().st_size} bytes")
        page = open_page(browser, folder / "verify.html", "dark")
        print(f"it was shown after {page.get_attribute('html', 'data-shown')} ms")
        page.click("#next-problem")
        take(page, pictures / "report_verify.png")
        page.locator("h2", has_text="Tensors").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('#sections').scrollIntoView()")
        take(page, pictures / "report_errors.png")

        digits = ROOT / "examples" / "digits"
        run(graft, "convert", digits / "digits.onnx", "-o", folder / "digits.onnx")
        data = f"image={digits / 'digits_test.npz'}:images"
        options = ("--precision", "int8", "--data", data, "--limit", 38, "--report", folder / "int8.html")
        run(graft, "quantize", folder / "digits.onnx", "-o", folder / "digits.int8.onnx", *options)
        page = open_page(browser, folder / "int8.html", "light")
        page.locator("#sections .link", has_text="/act2/LeakyRelu_output_0").first.click()
        take(page, pictures / "report_int8.png")
        page.locator("h2", has_text="Accuracy").evaluate("(heading) => heading.scrollIntoView()")
        take(page, pictures / "report_search.png")
        page = open_page(browser, folder / "int8.html", "dark")
        page.locator("h2", has_text="Tensors").evaluate("(heading) => heading.scrollIntoView()")
        take(page, pictures / "report_tensors.png")
        browser.close()


if __name__ == "__main__":
    main()
