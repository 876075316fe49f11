# Tests which of TensorRT's messages the driver passes on, with messages as TensorRT-RTX writes them; needs no TensorRT.
from __future__ import annotations

import types

from graft.engine.parsing import describe_parser_error, messages_without_gpu, parser_errors


def test_a_missing_gpu_is_named_only_where_there_is_no_other_reason() -> None:
    """The lines are those of TensorRT-RTX 1.7 on a machine without a GPU."""
    reason = "ITensor::getDimensions: Error Code 4: API Usage Error (mm: last dimension of input0 = 4)"
    gpu = "[checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (In catchCudaError at checkMacros.cpp:250)"
    error = {"node": "mm", "op_type": "MatMul", "code": "INVALID_NODE", "function": "parseNode"}

    def described(text: str) -> str:
        entry = types.SimpleNamespace(node_name="mm", node_operator="MatMul", desc=text, code="INVALID_NODE")
        entry.func = error["function"]
        parser = types.SimpleNamespace(num_errors=1, get_error=lambda index: entry)
        return describe_parser_error(parser_errors(parser)[0])

    both = described(f"Invalid Node - mm\n{reason}\n{gpu}")
    assert both == f"node 'mm' (MatMul): Invalid Node - mm\n{reason} [INVALID_NODE, parseNode]"
    assert gpu in described(f"Invalid Node - mm\n{gpu}")

    about_gpu, other, warning = (
        {"severity": severity, "message": message}
        for severity, message in (("error", gpu), ("error", "no kernel"), ("warning", "slow"))
    )
    assert messages_without_gpu([about_gpu, other], has_reason=False) == [other]
    assert messages_without_gpu([about_gpu, warning], has_reason=False) == [about_gpu, warning]
    assert messages_without_gpu([about_gpu], has_reason=True) == []
