# onnx_support.py - runs ONNX's own test of each operator through Graft and writes docs/ops/onnx.md.
"""What tests/import/test_onnx_backend.py asserts, as a table: for each operator its tests, by operator set, and who
found the expected results in the converted model.

Run after a build, with the environment of .deps/venv: python tools/onnx_support.py [--build build/release]
"""

import argparse
import collections
import os
import pathlib
import sys
import tempfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]

HEAD = """<!-- Written by tools/onnx_support.py; do not edit. -->
# ONNX's operators

The `onnx` package ({version}) tests every operator of ONNX with one or more small models and their results. Graft
converts each of these models; what comes out is run by ONNX Runtime {runtime}, or by the package's reference
implementation where ONNX Runtime lacks the operator, the type or the operator set, and compared with the results that
the package expects, with the package's tolerances. Nothing here says that TensorRT runs the operator: `graft inspect`
answers that.

| | models |
|---|---|
| tests of operators | {total} |
| converted | {converted} |
| refused | {refused} |
| right, by ONNX Runtime | {onnxruntime} |
| right, by the reference implementation | {reference} |
| wrong | {wrong} |
| cannot be judged | {nobody} |

Operators whose result cannot be judged are kept as they are: {excused}.

Beside these the package holds {stored} models of PyTorch and of whole features (operator sets 6 to 12) and nine
networks of 2017 (operator set 9); the same test converts them and finds their stored results.

The last column: the operator sets that the tests are written in.

| operator | tests | operator sets |
|---|---|---|
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    arguments = parser.parse_args()
    os.environ["GRAFT_BUILD_DIR"] = str(arguments.build)
    sys.path.insert(0, str(ROOT / "tests" / "import"))
    import onnx_judges  # noqa: PLC0415
    import onnxruntime  # noqa: PLC0415
    import test_onnx_backend as tests  # noqa: PLC0415

    cases = onnx_judges.node_cases()
    with tempfile.TemporaryDirectory() as folder:
        converted, _ = tests.convert_all(cases, pathlib.Path(folder))
    counts, rows, excused = collections.Counter(), collections.defaultdict(list), []
    for case in cases:
        who = onnx_judges.judge(converted[case.name], case)[0] if case.name in converted else "refused"
        has_reason = any(case.name.startswith(name) for name in tests.NO_JUDGE)
        counts[who or ("nobody" if has_reason else "wrong")] += 1
        # The expanded form of an operator is a test of others.
        if "_expanded" in case.name:
            continue
        node = case.model.graph.node[-1]
        domain = node.domain
        version = next(o.version for o in case.model.opset_import if o.domain == domain)
        rows[f"{domain}::{node.op_type}" if domain else node.op_type].append(version)
    for name, reason in tests.NO_JUDGE.items():
        excused.append(f"{name.removeprefix('test_')} ({reason})")
    text = HEAD.format(
        version=onnx.__version__,
        runtime=onnxruntime.__version__,
        total=len(cases),
        converted=len(converted),
        refused=counts["refused"],
        onnxruntime=counts["ONNX Runtime"],
        reference=counts["onnx.reference"],
        wrong=counts["wrong"],
        nobody=counts["nobody"],
        excused=", ".join(excused),
        stored=sum(len(onnx_judges.stored_cases(k)) for k in ("pytorch-converted", "pytorch-operator", "simple")),
    )
    for name in sorted(rows, key=lambda key: ("::" in key, key)):
        versions = ", ".join(str(v) for v in sorted(set(rows[name])))
        text += f"| {name} | {len(rows[name])} | {versions} |\n"
    (ROOT / "docs" / "ops" / "onnx.md").write_text(text)
    print({"total": len(cases), **counts})


if __name__ == "__main__":
    main()
