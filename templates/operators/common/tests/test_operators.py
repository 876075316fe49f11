# The library in graft's commands: the operator computes what the network does, is found in it, and is built.
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: {error}; pip install numpy onnx")
    sys.exit(77)
from network import SHAPES, expected, network, with_operator

GRAFT = os.environ["GRAFT_BIN"]
LIBRARY = os.environ["LIBRARY"]


class Operators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def graft(self, *arguments, allowed=(0,)):
        """Runs a command with the library in the test's folder; returns its exit code, its JSON and its warnings."""
        command = [GRAFT, *arguments, "--operators", LIBRARY, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, allowed, done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    def convert(self):
        """Writes converted.onnx; returns its operators, and why they are not others."""
        onnx.save(network(), self.folder / "network.onnx")
        _, answer, why = self.graft("convert", "network.onnx", "-o", "converted.onnx", "--explain")
        for miss in answer["near_misses"]:
            if miss["pass"] == "fuse_library_operators":
                why += f"{miss['pattern']} matches {miss['matched_nodes']} nodes: {miss['reason']}\n"
        if "fusion.yaml" not in why and "fuse_library_operators" not in why:
            why += "no pattern in beta_swish/beta_swish_fusion.yaml comes near it\n"
        return [node.op_type for node in onnx.load(self.folder / "converted.onnx").graph.node], why

    def require_operator(self):
        """What a test does with converted.onnx says nothing where the operator is not in it."""
        operators, _ = self.convert()
        if operators != ["BetaSwish", "Neg"]:
            self.fail("nothing to test: `graft convert` finds no BetaSwish, see test_convert_finds_the_operator")

    def assert_computes(self, kernels, what):
        """That the operator's node computes what `expected` does."""
        random = np.random.default_rng(1)
        inputs = {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
        np.savez(self.folder / "in.npz", **inputs)
        onnx.save(with_operator(), self.folder / "operator.onnx")
        self.graft("run", "operator.onnx", "-i", "in.npz", "-o", "out.npz", "--kernels", kernels)
        with np.load(self.folder / "out.npz") as out:
            found = out["y"]
        wanted = expected(*(array.astype(np.float64) for array in inputs.values()))
        self.assertEqual(found.shape, wanted.shape, f"the shape of y, by {what}")
        wrong = np.argwhere(~np.isclose(found, wanted, rtol=1e-5, atol=1e-6))
        if len(wrong):
            at = tuple(wrong[0].tolist())
            self.fail(
                f"{what} differs from `expected` in tests/network.py at {len(wrong)} of {wanted.size} elements, "
                f"first y{list(at)}: expected {wanted[at]:.7g}, got {found[at]:.7g}"
            )

    def test_kernel_computes_it(self):
        self.assert_computes("own", "the CPU kernel, beta_swish/beta_swish_cpu.cpp,")

    def test_function_computes_it(self):
        self.assert_computes("functions", "`function` in beta_swish/beta_swish.hpp")

    def test_convert_finds_the_operator(self):
        operators, why = self.convert()
        if operators != ["BetaSwish", "Neg"]:
            self.fail(f"`graft convert` makes {', '.join(operators)} of tests/network.py, not BetaSwish, Neg:\n{why}")

    def test_f16_stays_close(self):
        self.require_operator()
        self.graft("quantize", "converted.onnx", "-o", "f16.onnx", "--precision", "f16")
        self.graft("verify", "network.onnx", "f16.onnx", "--kernels", "own", "--snr", "40")

    @unittest.skipUnless(os.environ["HAS_PLUGINS"] == "1", "built without CUDA: the library has no plugins")
    def test_engine_holds_the_plugin(self):
        self.require_operator()
        missing = 3
        build = ("build", "converted.onnx", "-o", "network.engine", "--target", "sm89")
        code, answer, _ = self.graft(*build, allowed=(0, missing))
        if code == missing:
            self.skipTest(answer["error"]["message"])
        self.assertEqual([plugin["name"] for plugin in answer["network"]["plugins"]], ["BetaSwish"])


if __name__ == "__main__":
    unittest.main()
