# Tests the library in graft's commands: each operator computes the same as its network, is found in it, and is built.
"""Tests each operator of the library that has a network next to its definition: <operator>/<operator>_network.py.

`test_operators.py untested` prints which operators these tests leave out, and why.
"""

import functools
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # writes no __pycache__ into the operators' folders
PROJECT = Path(__file__).resolve().parent.parent
GRAFT = os.environ.get("GRAFT_BIN")
LIBRARY = os.environ.get("LIBRARY")
ONLY_WHAT_IS_UNTESTED = sys.argv[1:] == ["untested"]
SKIPPED = 77

if GRAFT is None or LIBRARY is None:
    sys.exit("ctest runs these tests: ctest --test-dir my_ops/build -R my_ops_commands --output-on-failure")
if not Path(LIBRARY).exists():
    sys.exit(f"{LIBRARY}: not there, as no build has succeeded: cmake --build {Path(LIBRARY).parent}")

try:
    import numpy as np
    import onnx
except ImportError as error:
    if ONLY_WHAT_IS_UNTESTED:
        print("will be skipped: ", end="")
    print(
        f"{sys.executable}: {error}\nActivate the environment that has NumPy and onnx, as that of Graft's wheel has, or "
        "name its Python in GRAFT_PYTHON, and configure again in a new build folder"
    )
    sys.exit(0 if ONLY_WHAT_IS_UNTESTED else SKIPPED)


def operators():
    """Returns the names of the library's operators."""
    command = [GRAFT, "ops", "--operators", LIBRARY, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return sorted(each["name"] for each in json.loads(done.stdout)["operators"] if each["library"] is not None)


def left_out():
    """Returns the folders whose line in my_ops.inc is a comment."""
    text = (PROJECT / "my_ops.inc").read_text(encoding="utf-8-sig")
    listed = r"GRAFT_OPERATOR\( *([a-z0-9_]+) *,"
    in_use = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return sorted(set(re.findall(listed, text)) - set(re.findall(listed, in_use)))


def networks():
    """Returns the path and module of each operator's network. The node in `with_operator` determines the operator."""
    found = {}
    for path in sorted(PROJECT.glob("*/*_network.py")):
        if path.stem != f"{path.parent.name}_network" or path.parent.name in LEFT_OUT:
            continue
        sys.path.insert(0, str(path.parent))
        module = importlib.import_module(path.stem)
        sys.path.pop(0)
        place = path.relative_to(PROJECT)
        names = {node.op_type for node in module.with_operator().graph.node if node.domain == "graft"}
        if len(names) != 1:
            sys.exit(f"{place}: `with_operator` writes nodes of {len(names)} operators in the domain graft; write one")
        (name,) = names
        if name in found:
            sys.exit(f"{place} and {found[name][0]} have a network of the same operator, {name}: write one of its own")
        found[name] = (place, module)
    return found


OPERATORS = operators()
LEFT_OUT = left_out()
NETWORKS = networks()
WITHOUT_NETWORK = [name for name in OPERATORS if name not in NETWORKS]


class Library(unittest.TestCase):
    def test_every_network_is_of_an_operator_of_the_library(self):
        for name, (place, _) in NETWORKS.items():
            if name not in OPERATORS:
                self.fail(
                    f"{place} has a node {name}, which is no operator of my_ops.inc: write the operator's name in the "
                    "network, or its line in my_ops.inc, as a comment to leave the operator out"
                )


class OfAnOperator:
    """The tests of one operator. `load_tests` creates a class for each operator."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.place, self.network = NETWORKS[self.operator]
        self.files = str(self.place).removesuffix("_network.py")
        self.ranges = getattr(self.network, "RANGES", {})
        self.wanted = [node.op_type for node in self.network.with_operator().graph.node]

    def graft(self, *arguments, allowed=(0,)):
        """Runs a command with the library in the test's folder; returns its exit code, its JSON and its warnings."""
        command = [GRAFT, *arguments, "--operators", LIBRARY, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, allowed, done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    def convert(self):
        """Writes converted.onnx; returns its operators, and the reasons of `graft convert`."""
        onnx.save(self.network.network(), self.folder / "network.onnx")
        # Exit code 1: TensorRT does not support the nodes that remain instead of the operator.
        convert = ("convert", "network.onnx", "-o", "converted.onnx", "--explain")
        _, answer, why = self.graft(*convert, allowed=(0, 1))
        for miss in answer["near_misses"]:
            if miss["pass"] == "fuse_library_operators":
                why += f"{miss['pattern']} matches {miss['matched_nodes']} of {miss['pattern_nodes']} nodes: {miss['reason']}\n"
        if "fusion.yaml" not in why and "fuse_library_operators" not in why:
            why += f"no pattern in {self.files}_fusion.yaml comes near it\n"
        return [node.op_type for node in onnx.load(self.folder / "converted.onnx").graph.node], why

    def require_operator(self):
        """Skips a test if converted.onnx does not contain the operator."""
        operators, _ = self.convert()
        if operators != self.wanted:
            self.skipTest(f"`graft convert` finds no {self.operator}, see test_convert_finds_the_operator")

    def make_inputs(self, factor):
        """Returns random inputs: within their range in the network's RANGES, or normal numbers times the factor."""
        random = np.random.default_rng(1)
        types = {each.name: each.type.tensor_type.elem_type for each in self.network.with_operator().graph.input}
        inputs = {}
        for name, shape in self.network.SHAPES.items():
            dtype = onnx.helper.tensor_dtype_to_np_dtype(types[name])
            is_integer = dtype.kind in "iub"
            if name in self.ranges:
                draw = functools.partial(random.integers, endpoint=True) if is_integer else random.uniform
                inputs[name] = draw(*self.ranges[name], size=shape).astype(dtype)
            elif is_integer:
                self.fail(
                    f'{self.place}: {name} is of type {dtype}: write what it may be, as in RANGES = {{"{name}": (0, 7)}}'
                )
            else:
                inputs[name] = (factor * random.normal(size=shape)).astype(dtype)
        return inputs

    def run_operator(self, kernels, factor=1.0):
        """Runs the network with the operator's node; returns the inputs and y."""
        inputs = self.make_inputs(factor)
        np.savez(self.folder / "in.npz", **inputs)
        onnx.save(self.network.with_operator(), self.folder / "operator.onnx")
        self.graft("run", "operator.onnx", "-i", "in.npz", "-o", "out.npz", "--kernels", kernels)
        with np.load(self.folder / "out.npz") as out:
            return inputs, out["y"]

    def assert_computes(self, kernels, what):
        """Fails unless the operator's node and `expected` compute the same."""
        inputs, found = self.run_operator(kernels)
        wanted = self.network.expected(
            *(array.astype(np.float64) if array.dtype.kind == "f" else array for array in inputs.values())
        )
        self.assertEqual(found.shape, wanted.shape, f"the shape of y, by {what}")
        wrong = np.argwhere(~np.isclose(found, wanted, rtol=1e-5, atol=1e-6))
        if len(wrong):
            at = tuple(wrong[0].tolist())
            self.fail(
                f"{what} differs from `expected` in {self.place} at {len(wrong)} of {wanted.size} elements, "
                f"first y{list(at)}: expected {wanted[at]:.7g}, got {found[at]:.7g}"
            )

    def test_kernel_computes_it(self):
        self.assert_computes("own", f"the CPU kernel, {self.files}_cpu.cpp,")

    def test_function_computes_it(self):
        self.assert_computes("functions", f"`function` in {self.files}.hpp")

    def test_kernel_overflows_where_the_function_does(self):
        """Compares results of inputs in the thousands, whose exp(x) is infinite. Inputs with a range stay within it."""
        if self.ranges.keys() >= self.network.SHAPES.keys():
            self.skipTest(f"RANGES in {self.place} says what every input may be")
        _, by_kernel = self.run_operator("own", factor=1000)
        _, by_function = self.run_operator("functions", factor=1000)
        self.assertEqual(by_kernel.shape, by_function.shape)
        wrong = np.argwhere(np.isfinite(by_kernel) != np.isfinite(by_function))
        if len(wrong):
            at = tuple(wrong[0].tolist())
            self.fail(
                f"for inputs in the thousands y{list(at)} is {by_kernel[at]:.7g} by the CPU kernel, {self.files}_cpu.cpp, "
                f"and {by_function[at]:.7g} by `function` in {self.files}.hpp: one of them overflows"
            )

    def test_convert_finds_the_operator(self):
        operators, why = self.convert()
        if operators != self.wanted:
            self.fail(
                f"`graft convert` makes {', '.join(operators)} of {self.place}, not {', '.join(self.wanted)}:\n{why}"
            )

    def test_f16_stays_close(self):
        """Compares the kernel and the function, which may have other lines in f16, with the network in f32."""
        self.require_operator()
        self.graft("quantize", "converted.onnx", "-o", "f16.onnx", "--precision", "f16")
        ranges = [f"--range={name}={lowest}..{highest}" for name, (lowest, highest) in self.ranges.items()]
        computes = {"own": f"the CPU kernel, {self.files}_cpu.cpp,", "functions": f"`function` in {self.files}.hpp"}
        for kernels, what in computes.items():
            verify = ("verify", "network.onnx", "f16.onnx", "--kernels", kernels, "--snr", "40", *ranges)
            code, answer, _ = self.graft(*verify, allowed=(0, 1))
            if code:
                wrong = answer["outputs"][0]
                self.fail(
                    f"in f16 {what} is not close to the network in f32: {wrong['mismatched']} of "
                    f"{wrong['elements']} elements differ, SNR {wrong['snr_db']} dB, which is to be 40"
                )

    @unittest.skipUnless(os.environ["HAS_PLUGINS"] == "1", "built without CUDA: the library has no plugins")
    def test_engine_holds_the_plugin(self):
        self.require_operator()
        missing = 3
        build = ("build", "converted.onnx", "-o", "network.engine", "--target", "sm120")
        code, answer, _ = self.graft(*build, allowed=(0, missing))
        if code == missing:
            self.skipTest(answer["error"]["message"])
        self.assertEqual([plugin["name"] for plugin in answer["network"]["plugins"]], [self.operator])


def load_tests(loader, tests, _pattern):
    for name in OPERATORS:
        if name in NETWORKS:
            of_it = type(name, (OfAnOperator, unittest.TestCase), {"operator": name})
            tests.addTests(loader.loadTestsFromTestCase(of_it))
    return tests


def untested():
    """Prints which operators these tests leave out."""
    for folder in LEFT_OUT:
        print(f"tests nothing of {folder}: its line in my_ops.inc is a comment")
    if WITHOUT_NETWORK:
        print(
            f"tests neither function nor fusion of {', '.join(WITHOUT_NETWORK)}: there is no "
            "<operator>/<operator>_network.py whose `with_operator` has its node"
        )


if __name__ == "__main__":
    untested()
    if not ONLY_WHAT_IS_UNTESTED:
        unittest.main()
