# graft doctor: what is there, and what is missing with the command that installs it.
import sys

from conftest import PLUGIN_LIBRARY


def finding(answer, name):
    return next(f for f in answer.json["findings"] if f["name"] == name)


def test_everything_is_found_where_it_is_installed(graft):
    import tensorrt_rtx

    answer = graft("doctor", "--json")
    assert finding(answer, "TensorRT-RTX")["found"]
    assert finding(answer, "TensorRT-RTX")["facts"]["version"] == tensorrt_rtx.__version__
    assert finding(answer, "CPU engine")["found"]
    assert finding(answer, "plugin library")["found"] == PLUGIN_LIBRARY.is_file()
    assert answer.code == (0 if PLUGIN_LIBRARY.is_file() else 3)


def test_a_python_without_tensorrt(graft):
    answer = graft("doctor", env={"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"})
    assert answer.code == 3
    assert "pip install tensorrt-rtx-cu13" in answer.out
    assert "missing" in answer.out


def test_no_python_at_all(graft):
    answer = graft("doctor", "--json", env={"GRAFT_PYTHON": "/nowhere/python"})
    assert answer.code == 3
    assert not finding(answer, "Python")["found"]
    assert "/nowhere/python" in finding(answer, "Python")["text"]
    assert "apt-get install" in finding(answer, "Python")["remedy"]
