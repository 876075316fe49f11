# Tests that networks of two and three seeded nodes agree with ONNX Runtime, and bit by bit with another process.
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["GRAFT_SOURCE_DIR"]) / "tools"))
import seeded_compositions  # noqa: E402

COUNT = 48


def test_some_compositions():
    rows, unstable = seeded_compositions.run_in_processes(range(COUNT), 2)
    assert [row for row in rows if row[3]] == []
    assert unstable == []
    steps = " ".join(name for name, *_ in rows)
    assert "chosen" in steps
    assert "repeated" in steps
    assert sum(engine == "ONNX" for _, engine, *_ in rows) > COUNT // 2
