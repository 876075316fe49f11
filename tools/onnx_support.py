# onnx_support.py - runs ONNX's own test of each operator through Graft and writes docs/ops/onnx.md and lowerings.md.
"""docs/ops/onnx.md is a table of what tests/import/test_onnx_backend.py asserts: for each operator its tests by opset,
and the runtime in which the converted model has the expected results. docs/ops/lowerings.md lists the lowerings.
tools/ledger.py measures what TensorRT-RTX builds of the same models.

Run it after a build, with the environment of .deps/venv:

    python tools/onnx_support.py                 writes docs/ops/onnx.md
    python tools/onnx_support.py --lowerings     writes docs/ops/lowerings.md
    python tools/onnx_support.py --check         exits with 1 if docs/ops/lowerings.md is outdated

--build names another build than build/release; --lowerings and --check need its convert_tool.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE_OF_LOWERINGS = ROOT / "docs" / "ops" / "lowerings.md"

HEAD = """<!-- Written by tools/onnx_support.py; do not edit. -->
# ONNX's operators

The `onnx` package ({version}) tests every operator of ONNX with one or more small models and their results. Graft
converts each of these models. ONNX Runtime {runtime} runs the converted model, or the package's reference implementation
where ONNX Runtime lacks the operator, the type or the operator set. The results are compared with the results in the
package, with the package's tolerances. The table does not show whether TensorRT runs the operator: `graft inspect`
reports that.

| | models |
|---|---|
| tests of operators | {total} |
| converted | {converted} |
| refused | {refused} |
| right, by ONNX Runtime | {onnxruntime} |
| right, by the reference implementation | {reference} |
| wrong | {wrong} |
| cannot be judged | {nobody} |

Operators whose result cannot be judged stay unchanged in the converted model: {excused}.

The package also contains {stored} models of PyTorch and of whole features (operator sets 6 to 12) and nine networks of
2017 (operator set 9). The same test converts them and compares their results with the stored results.

The last column lists the operator sets of the tests.

| operator | tests | operator sets |
|---|---|---|
"""


HEAD_OF_TABLE = "| operator | TensorRT refuses | Graft writes | which needs |\n|---|---|---|---|\n"
LOWERINGS = """<!-- Written by tools/onnx_support.py --lowerings; do not edit. -->
# Nodes that TensorRT refuses, and how Graft rewrites them

`graft convert` writes these nodes with layers that TensorRT has (pass `lower_to_native`). Each rewrite is proven like any
other rewrite, by running the node and its replacement. Where the CPU engine does not support the operator, the definition
of the operator is the proof, and the tests of Graft compare the rewrite with ONNX's own results. The report of the
conversion lists the cost of each rewrite: layers, operations and elements written.

{table}
A node that does not meet the condition in the last column stays unchanged, and `graft convert --explain` reports why.

TensorRT computes sizes from shapes, and from inputs of the network in i32 and i64. A size that is computed from another
input, or by an If, passes through a CumSum over an axis of size 1, which changes nothing: TensorRT reads the result when
the engine runs. A Range whose largest limit follows from a mask becomes a Slice of all its numbers, because TensorRT needs
a bound of its length.

## Tensors of u8

TensorRT accepts u8 only from an input of the network into Cast, and from Cast to an output of the network. The pass
`widen_bytes` computes u8 tensors between other nodes in another type: in the type to which all readers cast them if they
are only moved (Transpose, Slice, Concat, Gather, Pad ...), otherwise in i32. Sums, differences and products are taken
modulo 256 where they may leave the range of u8, as are numbers that are cast to u8. A Resize computes in f32; with mode
`linear` it cuts off fractions, as ONNX Runtime does. A cubic Resize of u8, and u8 tensors that a Loop or Scan hands from
iteration to iteration, stay unchanged. Quantized tensors, which have a scale, are not rewritten by this pass.
"""


def table_of_lowerings(tool):
    if not tool.is_file():
        sys.exit(f"{tool} does not exist; run: tools/build release -- convert_tool")
    listed = subprocess.run([tool, "lowerings"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    return HEAD_OF_TABLE + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def update_lowerings(tool, only_check):
    """Writes docs/ops/lowerings.md, or reports that it is outdated."""
    text = LOWERINGS.format(table=table_of_lowerings(tool))
    if only_check and text != PAGE_OF_LOWERINGS.read_text():
        print("docs/ops/lowerings.md is outdated; run: make docs", file=sys.stderr)
        return 1
    if not only_check:
        PAGE_OF_LOWERINGS.write_text(text)
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--lowerings", action="store_true", help="write docs/ops/lowerings.md")
    page.add_argument("--check", action="store_true", help="exit with 1 if docs/ops/lowerings.md is outdated")
    arguments = parser.parse_args()
    os.environ["GRAFT_BUILD_DIR"] = str(arguments.build)
    sys.path[:0] = [str(ROOT / "tests" / "import"), str(ROOT / "tests" / "support")]
    tool = arguments.build / "tests" / "convert_tool"
    if arguments.lowerings or arguments.check:
        sys.exit(update_lowerings(tool, arguments.check))
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
        # The expanded form of an operator tests other operators.
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
