# Tests the library in graft's commands: each operator computes the same as its network, is found in it, and is built.
"""Tests the operators of the library: the function of each operator against its reference kernel, on the cases in
<operator>/<operator>_cases.hpp, and more where the operator has a network: <operator>/<operator>_network.py.

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
CASES = os.environ.get("CASES")
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
    """Returns the library's operators by name, as `graft ops` describes them."""
    command = [GRAFT, "ops", "--operators", LIBRARY, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = [each for each in json.loads(done.stdout)["operators"] if each["library"] is not None]
    return {each["name"]: each for each in sorted(found, key=lambda each: each["name"])}


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
WITH_FUNCTION = [name for name, each in OPERATORS.items() if each["functions"]]
WITHOUT_FUNCTION = [name for name in OPERATORS if name not in WITH_FUNCTION]


class Library(unittest.TestCase):
    def test_every_network_is_of_an_operator_of_the_library(self):
        for name, (place, _) in NETWORKS.items():
            if name not in OPERATORS:
                self.fail(
                    f"{place} has a node {name}, which is no operator of my_ops.inc: write the operator's name in the "
                    "network, or its line in my_ops.inc, as a comment to leave the operator out"
                )


@functools.cache
def written_cases():
    """Returns the folder with the cases of all operators and the results of their reference kernels, and the list."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    subprocess.run([CASES, "write", folder.name], check=True)
    return Path(folder.name), json.loads((Path(folder.name) / "manifest.json").read_text())["cases"]


# The types in NumPy, which has no bf16: a function usually has the same lines for f16 and bf16.
DTYPES = {"f32": "f4", "f16": "f2", "i8": "i1", "u8": "u1", "i32": "i4", "i64": "i8", "bool": "?"}
# The allowed difference in steps of the type: a function computes in f32, in another order than the kernel.
STEPS = {"f32": 64, "f16": 1}


def read_tensor(folder, tensor):
    array = np.fromfile(folder / tensor["file"], DTYPES[tensor["dtype"]], count=int(np.prod(tensor["shape"])))
    return array.reshape(tensor["shape"])


def differing(found, expected, case):
    """Returns where the results differ by more than the case allows. Infinities and NaN are not compared."""
    if found.dtype.kind != "f":
        step = 1 if found.dtype.itemsize == 1 and found.dtype.kind in "iu" else 0  # a rounded result may be on a tie
        return np.abs(found.astype(np.int64) - expected.astype(np.int64)) > step
    a, b = found.astype(np.float64), expected.astype(np.float64)
    limits = np.finfo(found.dtype)
    steps = STEPS["f16" if found.dtype.itemsize == 2 else "f32"]
    allowed = np.abs(b) * (steps * limits.eps + case["tolerance"]) + case["absolute"] + limits.tiny
    # The exponential functions of ONNX Runtime have an absolute error, also where their results are near 0.
    allowed += 1e-6 * np.abs(b[np.isfinite(b)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        return np.isfinite(b) & ~(np.abs(a - b) <= allowed)


class OfCases:
    """The test of an operator on its cases. `load_tests` creates a class for each operator with a function."""

    def test_function_computes_what_the_kernel_computes(self):
        """Runs `function` on the cases of the operator: the kernel and the function are written separately."""
        folder, every = written_cases()
        cases = [
            case
            for case in every
            if case["operator"] == self.operator
            and all(each["dtype"] in DTYPES for each in [*case["inputs"], *case["outputs"]])
        ]
        if not cases:
            self.skipTest(f"no case of {self.operator} has inputs of ordinary numbers")
        nodes, inputs, outputs, arrays, constants = [], [], [], {}, []
        for at, case in enumerate(cases):
            names = []
            for i, tensor in enumerate(case["inputs"]):
                names.append(f"x{at}_{i}")
                array = arrays[names[-1]] = read_tensor(folder, tensor)
                kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
                inputs.append(onnx.helper.make_tensor_value_info(names[-1], kind, array.shape))
            for i, values in enumerate(case["shape_values"]):
                names.append(f"s{at}_{i}")
                constants.append(onnx.numpy_helper.from_array(np.array(values, np.int64), names[-1]))
            results = [f"y{at}_{i}" for i in range(len(case["outputs"]))]
            attributes = {key: value for key, value in case["attributes"].items() if value != []}
            nodes.append(
                onnx.helper.make_node(self.operator, names, results, f"case_{at}", domain="graft", **attributes)
            )
            for name, tensor in zip(results, case["outputs"], strict=True):
                kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[tensor["dtype"]]))
                outputs.append(onnx.helper.make_tensor_value_info(name, kind, None))
        graph = onnx.helper.make_graph(nodes, "cases", inputs, outputs, constants)
        opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("graft", 1)]
        with tempfile.TemporaryDirectory() as own:
            onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), Path(own) / "cases.onnx")
            np.savez(Path(own) / "in.npz", **arrays)
            command = [GRAFT, "run", "cases.onnx", "-i", "in.npz", "-o", "out.npz", "--operators", LIBRARY]
            done = subprocess.run(command, cwd=own, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with np.load(Path(own) / "out.npz") as out:
                results = dict(out)
        wrong = []
        for at, case in enumerate(cases):
            for i, tensor in enumerate(case["outputs"]):
                found, expected = results[f"y{at}_{i}"], read_tensor(folder, tensor)
                if found.shape != expected.shape:
                    wrong.append(f"{case['case']}: {found.shape} by `function`, {expected.shape} by the kernel")
                    continue
                places = np.argwhere(differing(found, expected, case))
                if len(places):
                    place = tuple(places[0].tolist())
                    wrong.append(
                        f"{case['case']}: {len(places)} of {expected.size} elements differ, first output {i} at "
                        f"{list(place)}: {found[place]:.7g} by `function`, {expected[place]:.7g} by the kernel"
                    )
        if wrong:
            self.fail(
                f"`function` of {self.operator} and its reference kernel compute different results in {len(wrong)} of "
                f"{len(cases)} cases, so one of them is wrong:\n" + "\n".join(wrong[:3])
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
        bases = [OfCases] * (name in WITH_FUNCTION) + [OfAnOperator] * (name in NETWORKS)
        if bases:
            of_it = type(name, (*bases, unittest.TestCase), {"operator": name})
            tests.addTests(loader.loadTestsFromTestCase(of_it))
    return tests


def untested():
    """Prints which operators these tests leave out."""
    for folder in LEFT_OUT:
        print(f"tests nothing of {folder}: its line in my_ops.inc is a comment")
    if WITHOUT_FUNCTION:
        print(f"compares no function of {', '.join(WITHOUT_FUNCTION)}: the definition has none")
    if WITHOUT_NETWORK:
        print(
            f"tests neither expected results nor a fusion of {', '.join(WITHOUT_NETWORK)}: there is no "
            "<operator>/<operator>_network.py whose `with_operator` has its node"
        )


if __name__ == "__main__":
    untested()
    if not ONLY_WHAT_IS_UNTESTED:
        unittest.main()
