# The library in graft's commands: the operator is found in a network of standard ones, computes the same, and is built.
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
from network import SHAPES, expected, network

GRAFT = os.environ["GRAFT_BIN"]
LIBRARY = os.environ["LIBRARY"]


class Operators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        onnx.save(network(), self.folder / "network.onnx")
        self.graft("convert", "network.onnx", "-o", "converted.onnx")

    def graft(self, *arguments, allowed=(0,)):
        """Runs a command with the library in the test's folder; returns its exit code and its JSON."""
        command = [GRAFT, *arguments, "--operators", LIBRARY, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, allowed, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_convert_finds_the_operator(self):
        nodes = onnx.load(self.folder / "converted.onnx").graph.node
        self.assertEqual([(node.domain, node.op_type) for node in nodes], [("graft", "BetaSwish"), ("", "Neg")])

    def test_kernel_and_function_compute_it(self):
        random = np.random.default_rng(1)
        inputs = {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
        np.savez(self.folder / "in.npz", **inputs)
        wanted = expected(*(array.astype(np.float64) for array in inputs.values()))
        for kernels in ("own", "functions"):
            self.graft("run", "converted.onnx", "-i", "in.npz", "-o", "out.npz", "--kernels", kernels)
            with np.load(self.folder / "out.npz") as out:
                np.testing.assert_allclose(out["y"], wanted, rtol=1e-5, atol=1e-6)

    def test_f16_stays_close(self):
        self.graft("quantize", "converted.onnx", "-o", "f16.onnx", "--precision", "f16")
        self.graft("verify", "network.onnx", "f16.onnx", "--kernels", "own", "--snr", "40")

    @unittest.skipUnless(os.environ["HAS_PLUGINS"] == "1", "built without CUDA: the library has no plugins")
    def test_engine_holds_the_plugin(self):
        missing = 3
        build = ("build", "converted.onnx", "-o", "network.engine", "--target", "sm89")
        code, answer = self.graft(*build, allowed=(0, missing))
        if code == missing:
            self.skipTest(answer["error"]["message"])
        self.assertEqual([plugin["name"] for plugin in answer["network"]["plugins"]], ["BetaSwish"])


if __name__ == "__main__":
    unittest.main()
