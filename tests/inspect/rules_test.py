# rules_test.py - the rules that look at the graph around a node, against TensorRT-RTX.
"""The rules judge each network in the tool in GRAFT_ORACLE_TOOL, and TensorRT-RTX builds it. A family has networks that
TensorRT builds and networks that it does not, so that a rule that says the same of both fails."""

import os
import pathlib
import subprocess
import sys

import onnx
import onnx.parser
import pytest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
RELEASE = "rtx-1.7"

CONSTANTS = {
    "half": "float half = {0.5}",
    "one": "float one = {1}",
    "true": "bool true = {1}",
    "count": "int64 count = {3}",
    "zero": "int64 zero = {0}",
    "step": "int64 step = {1}",
    "at0": "int64[1] at0 = {0}",
    "at1": "int64[1] at1 = {1}",
    "at9": "int64[1] at9 = {9}",
    "four": "int64[1] four = {4}",
    "two_starts": "int64[2] two_starts = {0, 1}",
    "two_ends": "int64[2] two_ends = {2, 3}",
    "weights": "float[2,2,1,1] weights = {1, 1, 1, 1}",
    "unit": "float[1] unit = {1}",
    "table": "uint8[4] table = {1, 2, 3, 4}",
    "scales": "float[4] scales = {1, 1, 2, 1.5}",
    "gates": "float[1,8,3] gates = {" + ", ".join(["0.1"] * 24) + "}",
    "kernel": "float[1,1,2,2] kernel = {1, 2, 3, 4}",
    "kernel_3d": "float[1,1,1,1,1] kernel_3d = {1}",
    "kernel_4d": "float[1,1,1,1,1,1] kernel_4d = {1}",
    "to_rank_9": "int64[9] to_rank_9 = {2, 1, 1, 1, 1, 1, 1, 1, 3}",
    "to_rank_8": "int64[8] to_rank_8 = {2, 1, 1, 1, 1, 1, 1, 3}",
    "to_rank_2": "int64[2] to_rank_2 = {2, 3}",
    "memory": "float[1,8,2] memory = {" + ", ".join(["0.1"] * 16) + "}",
}


def network(inputs, outputs, nodes, opset=18):
    used = ", ".join(
        text
        for name, text in CONSTANTS.items()
        if name in nodes.replace(",", " ").replace(")", " ").replace("(", " ").split()
    )
    text = f'<ir_version: 9, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'
    return onnx.parser.parse_model(f"{text}g ({inputs}) => ({outputs}) <{used}> {{ {nodes} }}")


def loop(body, condition="true", carried="float[2,3]", returned="float[2,3]", count="count", start="x"):
    return (
        f"y = Loop ({count}, {condition}, {start}) <body: graph = b (int64 i, bool goes, {carried} h) => "
        f"(bool goes_on, {returned} next) {{ {body} }}>"
    )


def branches(then, otherwise, kind="float[2,3]", result="y", condition="c"):
    names = f"{result}_a", f"{result}_b"
    return (
        f"{result} = If ({condition}) <then_branch: graph = {result}_t () => ({kind} {names[0]}) "
        f"{{ {then.format(names[0])} }}, else_branch: graph = {result}_e () => ({kind} {names[1]}) "
        f"{{ {otherwise.format(names[1])} }}>"
    )


def of_loop(nodes, inputs="float[2,3] x"):
    return network(inputs, "float[r,3] y", nodes)


def u8(nodes, inputs="float[2,3] x", outputs="float[2,3] y"):
    return network(inputs, outputs, nodes)


def sized(source, inputs, opset=18):
    return network(f"{inputs}, float[1] x", "float[k] y", f"{source} y = Expand (x, s)", opset)


OF_OTHER_RANK = branches("{} = Identity (w)", "{} = Unsqueeze (w, at0)", "float[]")


def of_rank(op, dims, **_):
    return network(f"float[{dims}] x", "float[a] y", f"made = {op} (x) y = Cast <to: int = 1> (made)")


def of_sizes(op, rank, attributes="", more=""):
    """Returns a network of one node whose input and output have this rank."""
    return network(
        f"float[{','.join(['1', '1', *['4'] * (rank - 2)])}] x",
        f"float[{','.join('abcdefghi'[:rank])}] y",
        f"y = {op} {attributes}(x{more})",
    )


def attention(query, keys, kind="float", attributes="", mask=False):
    """Returns a network of one Attention whose query and keys have these dimensions."""
    shown = f"<{attributes}> " if attributes else ""
    return network(
        f"{kind}[{query}] q, {kind}[{keys}] k" + (f", {kind}[1,6] m" if mask else ""),
        f"{kind}[{','.join('abcd'[: query.count(',') + 1])}] y",
        f"y = Attention {shown}(q, k, k{', m' if mask else ''})",
        23,
    )


def lrn(dims="2,9,6,6", size=3, parameters=""):
    return network(f"float[{dims}] x", f"float[{dims}] y", f"y = LRN <size: int = {size}{parameters}> (x)")


FORWARD = "next = Mul (h, half) goes_on = Identity (goes)"
COMPUTED = "next = Mul (h, half) rest = ReduceSum <keepdims: int = 0> (next) goes_on = Greater (rest, half)"
ATTENTION = "{} = Attention (q, k, k)"
HEADS = "float16[1,2,16,64]"
MHA = "com.microsoft.MultiHeadAttention <num_heads: int = 2>"
THREE = "float[2,5,8] q, float[2,5,8] k, float[2,5,8] v"
STEP = "float[5] t"

FAMILIES = {
    "u8": {
        "between_nodes": u8("e = Equal (x, x) u = Cast <to: int = 2> (e) y = Cast <to: int = 1> (u)"),
        "identity": u8("u = Identity (x) y = Cast <to: int = 1> (u)", "uint8[2,3] x"),
        "transpose": u8("u = Transpose (x) y = Cast <to: int = 1> (u)", "uint8[3,2] x"),
        "input": u8("y = Cast <to: int = 1> (x)", "uint8[2,3] x"),
        "output": u8("r = Relu (x) y = Cast <to: int = 2> (r)", outputs="uint8[2,3] y"),
        "output_and_used": u8(
            "u = Cast <to: int = 2> (x) y = Cast <to: int = 1> (u)", outputs="float[2,3] y, uint8[2,3] u"
        ),
        "input_in_branch": u8(
            branches("{} = Cast <to: int = 1> (x)", "f = Cast <to: int = 1> (x) {} = Relu (f)"), "bool c, uint8[2,3] x"
        ),
        "output_of_branch": u8(
            branches("{} = Cast <to: int = 2> (x)", "f = Relu (x) {} = Cast <to: int = 2> (f)", "uint8[2,3]"),
            "bool c, float[2,3] x",
            "uint8[2,3] y",
        ),
    },
    "u8_constants": {
        "gather": u8("u = Gather (table, i) y = Cast <to: int = 1> (u)", "int64[2] i", "float[2] y"),
        "gather_elements": u8("u = GatherElements (table, i) y = Cast <to: int = 1> (u)", "int64[2] i", "float[2] y"),
        "add": u8("u = Gather (table, i) v = Add (u, u) y = Cast <to: int = 1> (v)", "int64[2] i", "float[2] y"),
        "where": u8("u = Where (c, table, table) y = Cast <to: int = 1> (u)", "bool[4] c", "float[4] y"),
        "returned": u8("y = Gather (table, i)", "int64[2] i", "uint8[2] y"),
        "with_input": u8("y = Equal (table, x)", "uint8[4] x", "bool[4] y"),
        "filled": u8("s = Shape (x) u = ConstantOfShape <value: tensor = uint8[1] {3}> (s) y = Cast <to: int = 1> (u)"),
    },
    "einsum": {
        letters: network("float[3,3] x", "float[3,3] y", f'y = Einsum <equation: string = "{letters}"> (x, x)')
        for letters in ("ab,bc->ac", "AB,BC->AC", "aB,Bc->ac")
    },
    "lstm": {
        f"forget_{forget}": network(
            "float[4,2,3] x",
            "float[4,1,2,2] y",
            f"y = LSTM <hidden_size: int = 2, input_forget: int = {forget}> (x, gates, memory)",
        )
        for forget in (0, 1)
    },
    "loop_condition": {
        "forwarded": of_loop(loop(FORWARD)),
        "missing_forwarded": of_loop(loop(FORWARD, '""')),
        "missing_computed": of_loop(loop(COMPUTED, '""')),
        "missing_read": of_loop(
            loop("f = Cast <to: int = 1> (goes) next = Mul (h, f) goes_on = Identity (true)", '""')
        ),
        "neither": of_loop(loop(COMPUTED, '""', count='""')),
        "no_count": of_loop(loop(COMPUTED, count='""')),
    },
    "carried": {
        "grows": of_loop(
            loop(
                "next = Concat <axis: int = 0> (h, x) goes_on = Identity (goes)",
                carried="float[p,3]",
                returned="float[q,3]",
            )
        ),
        "grows_by_dynamic": network(
            "float[1,3] w, float[2,3] x",
            "float[r,3] y",
            loop(
                "next = Concat <axis: int = 0> (h, h) goes_on = Identity (goes)",
                carried="float[p,3]",
                returned="float[q,3]",
            ),
        ),
        "shrinks": of_loop(
            loop(
                "next = Slice (h, at1, at9, at0) goes_on = Identity (goes)", carried="float[p,3]", returned="float[q,3]"
            )
        ),
        "shifts": of_loop(
            loop("s = Slice (h, at1, at9, at0) next = Concat <axis: int = 0> (s, w) goes_on = Identity (goes)"),
            "float[2,3] x, float[1,3] w",
        ),
        "broadcasts": of_loop(
            loop("next = Add (h, x) goes_on = Identity (goes)", start="w", carried="float[p,3]"),
            "float[2,3] x, float[1,3] w",
        ),
        "scan_grows": network(
            "float[2,5] s, float[4,1,5] k",
            "float[z,5] y",
            "y = Scan (s, k) <num_scan_inputs: int = 1, body: graph = b (float[p,5] h, float[1,5] t) => (float[q,5] next) "
            "{ next = Concat <axis: int = 0> (h, t) }>",
        ),
    },
    "scan": {
        "no_state": network(
            "float[4,5] k",
            "float[4,5] y",
            f"y = Scan (k) <num_scan_inputs: int = 1, body: graph = b ({STEP}) => (float[5] r) {{ r = Relu (t) }}>",
        ),
        "state": network(
            "float[5] s, float[4,5] k",
            "float[5] y",
            f"y = Scan (s, k) <num_scan_inputs: int = 1, body: graph = b (float[5] h, {STEP}) => (float[5] r) {{ r = Add (h, t) }}>",
        ),
    },
    "same_in_each_step": {
        "if_of_outer": of_loop(
            loop(
                f"{branches('{} = Add (x, one)', '{} = Neg (x)', result='o')} next = Mul (h, o) goes_on = Identity (goes)"
            ),
            "bool c, float[2,3] x",
        ),
        "if_of_step": of_loop(
            loop(
                f"{branches('{} = Add (x, one)', '{} = Neg (h)', result='o')} next = Mul (h, o) goes_on = Identity (goes)"
            ),
            "bool c, float[2,3] x",
        ),
        "if_of_number": of_loop(
            loop(
                f"f = Cast <to: int = 1> (i) l = Mul (x, f) {branches('{} = Add (l, one)', '{} = Neg (l)', result='o')} next = Mul (h, o) goes_on = Identity (goes)"
            ),
            "bool c, float[2,3] x",
        ),
        "if_of_constant": of_loop(
            loop(
                f"{branches('{} = Add (x, one)', '{} = Neg (x)', result='o', condition='true')} next = Mul (h, o) goes_on = Identity (goes)"
            )
        ),
        "if_of_fixed_dimension": of_loop(
            "s = Size (x) c = Equal (s, step) "
            + loop(
                f"{branches('{} = Add (x, one)', '{} = Neg (x)', result='o')} next = Mul (h, o) goes_on = Identity (goes)"
            )
        ),
        "if_of_condition": of_loop(
            loop(
                f"{branches('{} = Add (x, one)', '{} = Neg (x)', result='o', condition='goes')} next = Mul (h, o) goes_on = Identity (goes)"
            )
        ),
    },
    "attention_in_body": {
        "outside": network(f"{HEADS} q, {HEADS} k", f"{HEADS} y", ATTENTION.format("y"), 23),
        "if": network(
            f"bool c, {HEADS} q, {HEADS} k", f"{HEADS} y", branches(ATTENTION, "{} = Identity (q)", HEADS), 23
        ),
        "loop": network(
            f"{HEADS} x, {HEADS} k",
            f"{HEADS} y",
            loop("next = Attention (h, k, k) goes_on = Identity (goes)", carried=HEADS, returned=HEADS),
            23,
        ),
    },
    "lrn_sizes": {f"of_{size}": lrn(size=size) for size in (1, 2, 3, 4, 5, 8, 14, 15, 16, 17, 31)},
    "lrn_ranks": {dims: lrn(dims) for dims in ("2,9", "2,9,6", "2,9,6,6", "2,9,3,3,3")},
    "lrn_parameters": {
        f"{name}_{value}": lrn(parameters=f", {name}: float = {value}")
        for name, value in [
            ("alpha", "0.0"),
            ("alpha", "1e21"),
            ("beta", "0.01"),
            ("beta", "0.0"),
            ("bias", "0.0001"),
            ("bias", "0.000001"),
        ]
    },
    "attention_kernels": {
        f"{kind}_{queries}_{heads}": attention(f"2,4,{queries},{heads}", f"2,4,6,{heads}", kind)
        for kind in ("float", "float16", "bfloat16")
        for queries in (1, 3)
        for heads in (4, 8, 9, 12, 16, 20, 256, 264)
    },
    "attention_of_one_query": {
        f"{heads}_{name}": attention(f"2,4,1,{heads}", f"2,{groups},6,{heads}", attributes=attributes, mask=mask)
        for heads in (8, 12)
        for name, groups, attributes, mask in [
            ("mask", 4, "", True),
            ("causal", 4, "is_causal: int = 1", False),
            ("grouped", 2, "", False),
        ]
    },
    "attention_masks": {
        f"{keys}_{causal}_{mask}": attention(
            "2,4,3,64", f"2,4,{keys},64", "float16", f"is_causal: int = {causal}", mask=mask
        )
        for keys, causal, mask in [(6, 0, True), (6, 1, True), (6, 1, False), (8, 0, True)]
    },
    "attention_of_rank_3": {
        f"{kind}_{queries}_{size}_{groups}_{causal}": attention(
            f"2,{queries},{2 * size}",
            f"2,6,{groups * size}",
            kind,
            f"q_num_heads: int = 2, kv_num_heads: int = {groups}, is_causal: int = {causal}",
        )
        for kind in ("float", "float16")
        for queries in (1, 3)
        for size in (4, 8, 16)
        for groups, causal in ((2, 0), (1, 0), (2, 1))
    },
    "multi_head_attention": {
        "plain": network(THREE, "float[2,5,8] y", f"y = {MHA} (q, k, v)", 17),
        "attention_bias": network(
            f"{THREE}, float[2,2,5,5] w", "float[2,5,8] y", f'y = {MHA} (q, k, v, "", "", w)', 17
        ),
        "bias": network(f"{THREE}, float[24] w", "float[2,5,8] y", f"y = {MHA} (q, k, v, w)", 17),
        "mask": network(f"{THREE}, int32[2,5] w", "float[2,5,8] y", f'y = {MHA} (q, k, v, "", w)', 17),
        "present": network(
            THREE, "float[2,5,8] y, float[2,2,5,4] a, float[2,2,5,4] b", f"y, a, b = {MHA} (q, k, v)", 17
        ),
        "packed": network("float[2,5,2,3,4] q", "float[2,5,8] y", f"y = {MHA} (q)", 17),
        "past_length": network(
            f"{THREE}, int32[1] n", "float[2,5,8] y", f'y = {MHA} (q, k, v, "", "", "", "", "", n)', 17
        ),
        "scores": network(THREE, "float[2,5,8] y, float[a,b,c,d] s", f'y, "", "", s = {MHA} (q, k, v)', 17),
        **{
            name: network(THREE, "float[2,5,8] y", f"y = {MHA.replace('>', f', {attribute}>')} (q, k, v)", 17)
            for name, attribute in (
                ("unidirectional", "unidirectional: int = 1"),
                ("scale", "scale: float = 0.25"),
                ("mask_filter_value", "mask_filter_value: float = -9.0"),
            )
        },
        "cross": network("float[2,5,8] q, float[2,7,8] k", "float[2,5,8] y", f"y = {MHA} (q, k, k)", 17),
        "value_size": network(
            "float[2,5,8] q, float[2,7,8] k, float[2,7,12] v", "float[2,5,12] y", f"y = {MHA} (q, k, v)", 17
        ),
        "in_branch": network(
            f"bool c, {THREE}",
            "float[2,5,8] y",
            branches("{} = " + f"{MHA} (q, k, v)", "{} = Relu (q)", "float[2,5,8]"),
            17,
        ),
    },
    "sizes": {
        "integers": sized("s = Identity (n)", "int64[1] n"),
        "integers_as_floats": sized("f = Cast <to: int = 1> (n) g = Sqrt (f) s = Cast <to: int = 7> (g)", "int64[1] n"),
        "integer_mask": sized("s = ReduceSum <keepdims: int = 1> (n)", "int64[4] n"),
        "floats": sized("s = Cast <to: int = 7> (n)", "float[1] n"),
        "truth_mask": sized("m = Cast <to: int = 7> (n) s = ReduceSum <keepdims: int = 1> (m)", "bool[4] n"),
        "compared_floats": sized(
            "g = Greater (n, half) m = Cast <to: int = 7> (g) s = ReduceSum <keepdims: int = 1> (m)", "float[16] n"
        ),
        "convolution": sized(
            "w = Constant <value: tensor = float[1,1,1,1] {2}> () g = Conv (n, w) h = ReduceMax <keepdims: int = 0> (g) r = Reshape (h, at1) s = Cast <to: int = 7> (r)",
            "float[1,1,4,4] n",
        ),
        "best": sized("b = ArgMax <axis: int = 1, keepdims: int = 0> (n) s = Add (b, at1)", "float[1,4] n"),
        "matrices": sized(
            "a = Unsqueeze (n, at0) b = MatMul (a, a) d = Squeeze (b, at0) s = Cast <to: int = 7> (d)", "float[1] n"
        ),
        "branch": sized(branches("{} = Add (n, at1)", "{} = Identity (n)", "int64[1]", "s"), "bool c, int64[1] n"),
    },
    "readers_of_sizes": {
        f"{kind}_{name}": network(f"{kind}[1] n, {inputs}", "float[k] y", f"s = Cast <to: int = 7> (n) {nodes}")
        for kind in ("int32", "float")
        for name, inputs, nodes in [
            ("reshape", "float[1,1] x", "y = Reshape (x, s)"),
            ("slice", "float[4] x", "y = Slice (x, at0, s)"),
            ("range", "float[4] x", "l = Squeeze (s, at0) r = Range (zero, l, step) y = Cast <to: int = 1> (r)"),
            ("top_k", "float[4] x", "y, places = TopK (x, s)"),
            ("tile", "float[4] x", "y = Tile (x, s)"),
            ("data", "float[4] x", "f = Cast <to: int = 1> (s) y = Mul (x, f)"),
            ("index", "float[4] x", "y = Gather (x, s)"),
        ]
    },
    "axes": {
        "unsqueeze_of_fixed_shape": network(
            "float[1] n, float[4] x", "float[a,b] y", "s = Shape (n) y = Unsqueeze (x, s)"
        ),
        "unsqueeze_of_input": network(
            "int64[1] n, float[4] x", "float[a,b] y", "s = Identity (n) y = Unsqueeze (x, s)"
        ),
        "reduce_of_cast": network(
            "float[4,4] x",
            "float[a,b] y",
            "f = Cast <to: int = 1> (at1) s = Cast <to: int = 7> (f) y = ReduceSum (x, s)",
        ),
        "reduce_of_sum": network("float[4,4] x", "float[a,b] y", "s = Add (at0, at1) y = ReduceSum (x, s)"),
        "slice_of_input": network("int64[1] n, float[4,4] x", "float[a,b] y", "y = Slice (x, at0, at1, n)"),
        "cum_sum_of_input": network("int64[1] n, float[4,4] x", "float[4,4] y", "y = CumSum (x, n)"),
    },
    "branches": {
        "same_rank": of_loop(branches("{} = Relu (x)", "{} = Slice (x, at0, at1)"), "bool c, float[2,3] x"),
        "other_rank": of_loop(branches("{} = Relu (x)", "{} = Unsqueeze (x, at0)", "float[]"), "bool c, float[2,3] x"),
        "known": of_loop(
            "c = Not (true) " + branches("{} = Relu (x)", "{} = Unsqueeze (x, at0)", "float[]"), "float[2,3] x"
        ),
    },
    "sizes_of_branches": {
        name: sized(f"{condition} {branches('{} = Identity (at1)', '{} = Identity (four)', 'int64[1]', 's')}", inputs)
        for name, condition, inputs in [
            ("input", "", "bool c"),
            ("integers", "m = ReduceMax <keepdims: int = 0> (n) c = Equal (m, step)", "int64[1] n"),
            ("shape", "m = Size (w) c = Equal (m, step)", "float[4] w"),
            ("floats", "m = ReduceMax <keepdims: int = 0> (w) c = Greater (m, half)", "float[4] w"),
            (
                "best",
                "m = ArgMax <axis: int = 1, keepdims: int = 0> (w) l = Squeeze (m, at0) c = Equal (l, step)",
                "float[1,4] w",
            ),
        ]
    },
    # With N from 1 to 4; TensorRT decides these conditions without the sizes of inputs, or not at all.
    "conditions": {
        name: network("float[4] w, int64[1] n", "float[a,b] y", f"{nodes} {OF_OTHER_RANK}")
        for name, nodes in [
            ("fixed_dimension", "d = Shape (w) e = Squeeze (d, at0) c = Equal (e, step)"),
            ("sum_of_dimensions", "d = Shape (w) e = ReduceSum <keepdims: int = 0> (d) c = Greater (e, count)"),
            ("rank", "d = Shape (w) e = Size (d) m = Mod (e, count) c = Not (true)"),
            ("dimension_as_float", "d = Size (w) f = Cast <to: int = 1> (d) c = Greater (f, half)"),
            ("float_constants", "h = Add (half, half) c = Greater (h, half)"),
            (
                "flattened",
                "d = Shape (w) f = Flatten (d) r = Reshape (f, at1) e = Squeeze (r, at0) c = Equal (e, step)",
            ),
            ("integer", "e = Squeeze (n, at0) c = Equal (e, step)"),
        ]
    },
    "sizes_in_bodies": {
        name: network(
            f"float[6] x{inputs}",
            "float[6] y",
            loop(
                f"a = Reshape (i, at1) b = Add (a, at1) {nodes} q = ReduceSum <keepdims: int = 1> (z, at0) "
                "next = Add (h, q) goes_on = Identity (goes)",
                carried="float[6]",
                returned="float[6]",
            ),
            14,
        )
        for name, inputs, nodes in [
            ("slice_at_step", "", "z = Slice (x, a, b, at0)"),
            ("slice_to_step", "", "z = Slice (x, at0, b, at0)"),
            ("slice_of_state", "", "z = Slice (h, a, b, at0)"),
            ("slice_by_data", "", "u = Cast <to: int = 7> (h) v = Gather (u, at0) z = Slice (x, at0, v, at0)"),
            ("expand", "", "z = Expand (half, b)"),
            ("tile", "", "z = Tile (x, b)"),
            ("range", "", "r = Range (zero, i, step) z = Cast <to: int = 1> (r)"),
            ("constant_of_shape", "", "z = ConstantOfShape (b)"),
            ("pad", "", "p = Concat <axis: int = 0> (at0, b) z = Pad (x, p)"),
            ("top_k", "", "z, places = TopK (x, b)"),
            ("gather", "", "z = Gather (x, a)"),
            ("fixed", "", "z = Slice (x, at0, four, at0)"),
            ("shape_of_state", "", "s = Shape (h) z = Slice (x, at0, s, at0)"),
            ("input", ", int64[1] n", "z = Slice (x, at0, n, at0)"),
        ]
    },
    "sizes_in_scan": {
        name: network(
            "float[1] s, int64[4,1] k, float[6] x",
            "float[1] y",
            "y = Scan (s, k) <num_scan_inputs: int = 1, body: graph = b (float[1] h, int64[1] t) => (float[1] r) "
            f"{{ z = Slice (x, at0, {end}, at0) f = Cast <to: int = 1> (t) q = ReduceSum <keepdims: int = 1> (z, at0) "
            "p = Add (h, q) r = Add (p, f) }>",
        )
        for name, end in (("scanned", "t"), ("fixed", "four"))
    },
    "slices": {
        "of_all_axes": network("float[2,3] x", "float[a,b] y", "y = Slice (x, two_starts, two_ends)"),
        "of_first_axes": network("float[2,3,4] x", "float[a,b,c] y", "y = Slice (x, two_starts, two_ends)"),
    },
    "i8": {
        op: network("int8[2,3] x, int8[2,3] z", "int8[2,3] y", f"y = {op} (x, z)")
        for op in ("Sub", "Mul", "Div", "Max", "Min", "Sum", "Mod")
    }
    | {
        "clipped_to_input": network("int8[2,3] x, int8 l", "int8[2,3] y", "y = Clip (x, l)"),
        "clipped_above": network(
            "int8[2,3] x", "int8[2,3] y", 'top = Constant <value: tensor = int8 {1}> () y = Clip (x, "", top)'
        ),
        "clipped": network(
            "int8[2,3] x", "int8[2,3] y", "low = Constant <value: tensor = int8 {1}> () y = Clip (x, low)"
        ),
        "equal_to_constant": network(
            "int8[2,3] x", "bool[2,3] y", "low = Constant <value: tensor = int8 {1}> () y = Equal (x, low)"
        ),
        "equal": network("int8[2,3] x, int8[2,3] z", "bool[2,3] y", "y = Equal (x, z)"),
    },
    "stft": {
        "constant_window": network(
            "float[1,16,1] x",
            "float[1,a,5,2] y",
            "w = Constant <value: tensor = float[8] {1,1,1,1,1,1,1,1}> () s = Constant <value: tensor = int64 {4}> () y = STFT (x, s, w)",
        ),
        "window_of_input": network(
            "float[1,16,1] x, float[8] w",
            "float[1,a,5,2] y",
            "s = Constant <value: tensor = int64 {4}> () y = STFT (x, s, w)",
        ),
    },
    "high_ranks": {f"{op}_{rank}": of_sizes(op, rank) for op in ("Relu", "Transpose") for rank in (8, 9)}
    | {
        f"between_{rank}": network(
            "float[2,3] x",
            "float[a,b] y",
            f"r = Reshape (x, to_rank_{rank}) n = Relu (r) y = Reshape (n, to_rank_2)",
        )
        for rank in (8, 9)
    },
    "spatial_dimensions": {
        f"{op}_{count}": of_sizes(op, count + 2, "", f", kernel_{count}d")
        for op in ("Conv", "ConvTranspose")
        for count in (3, 4)
    }
    | {
        f"{op}_{count}": of_sizes(op, count + 2, f"<kernel_shape: ints = [{', '.join('2' * count)}]> ")
        for op in ("AveragePool", "MaxPool")
        for count in (3, 4)
    },
    "strides_and_dilations": {
        f"{strides}_{dilations}": of_sizes(
            "ConvTranspose", 4, f"<strides: ints = [{strides}], dilations: ints = [{dilations}]> ", ", kernel"
        )
        for strides in ("1, 1", "2, 1", "2, 2")
        for dilations in ("1, 1", "1, 2", "2, 2")
    },
    "ranks": {
        f"{op}_{dims}": of_rank(op, dims)
        for op in ("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin")
        for dims in ("4", "3,4")
    },
    "dropout": {
        "constant": network(
            "float[4] x", "float[4] y", "f = Constant <value: tensor = bool {0}> () y = Dropout (x, half, f)"
        ),
        "input": network("float[4] x, bool f", "float[4] y", "y = Dropout (x, half, f)"),
    },
}
# Inputs that TensorRT reads as sizes or axes.
VALUES = {"n": [1]}
MASKS = {"integer_mask": {"n": [1, 0, 1, 0]}}

# Builds at fixed sizes, and not for a range of them.
IF_OF_IMAGES = branches("{} = Add (x, one)", "{} = Neg (x)", "float[B,1,H,W]", "s")
INNER = branches("{} = Add (x, one)", "{} = Sub (x, one)", "float[B,5]", "o", "d")
FIXED_ONLY = {
    "resize_after_if": (
        network(
            "bool c, float[B,1,H,W] x",
            "float[p,q,r,t] y",
            f'{IF_OF_IMAGES} y = Resize <mode: string = "cubic"> (s, "", scales)',
        ),
        [[1, 1, 4, 4], [1, 1, 8, 8], [2, 1, 32, 32]],
    ),
    "resize_later": (
        network(
            "bool c, float[B,1,H,W] x",
            "float[p,q,r,t] y",
            f'{IF_OF_IMAGES} v = Relu (s) w = Add (v, x) y = Resize <mode: string = "cubic"> (w, "", scales)',
        ),
        [[1, 1, 4, 4], [1, 1, 8, 8], [2, 1, 32, 32]],
    ),
    "attention_of_rank_3": (
        network(
            "float[2,N,8] x, float[2,6,8] k",
            "float[2,N,8] y",
            "y = Attention <q_num_heads: int = 2, kv_num_heads: int = 2> (x, k, k)",
            23,
        ),
        [[2, 3, 8], [2, 4, 8], [2, 6, 8]],
    ),
    "if_in_if": (
        network(
            "bool c, bool d, float[B,5] x",
            "float[B,5] y",
            "y = If (c) <then_branch: graph = t () => (float[B,5] a) { " + INNER + " a = Relu (o) }, "
            "else_branch: graph = e () => (float[B,5] b) { b = Neg (x) }>",
        ),
        [[1, 5], [2, 5], [4, 5]],
    ),
}
FOR_ANY_SIZE = {
    "linear_resize_after_if": (
        network(
            "bool c, float[B,1,H,W] x",
            "float[p,q,r,t] y",
            f'{IF_OF_IMAGES} y = Resize <mode: string = "linear"> (s, "", scales)',
        ),
        [[1, 1, 4, 4], [1, 1, 8, 8], [2, 1, 32, 32]],
    ),
    "resize_beside_if": (
        network(
            "bool c, float[B,1,H,W] x",
            "float[p,q,r,t] y, float[B,1,H,W] s",
            f'{IF_OF_IMAGES} y = Resize <mode: string = "cubic"> (x, "", scales)',
        ),
        [[1, 1, 4, 4], [1, 1, 8, 8], [2, 1, 32, 32]],
    ),
    "if_in_loop": (
        network(
            "bool d, float[B,5] x",
            "float[B,5] y",
            loop(
                f"{INNER.replace('(x,', '(h,')} next = Mul (h, o) goes_on = Identity (goes)",
                carried="float[B,5]",
                returned="float[B,5]",
            ),
        ),
        [[1, 5], [2, 5], [4, 5]],
    ),
}

# With the shapes of their dynamic inputs.
DYNAMIC = {
    "transposed_channels": (
        network("float[1,C,4,4] x", "float[a,b,c,d] y", "y = ConvTranspose (x, weights)"),
        {"x": [[1, 2, 4, 4]] * 3},
    ),
    "transposed_images": (
        network("float[B,2,H,4] x", "float[a,b,c,d] y", "y = ConvTranspose (x, weights)"),
        {"x": [[1, 2, 4, 4], [1, 2, 6, 4], [2, 2, 8, 4]]},
    ),
    "channels": (network("float[1,C,4,4] x", "float[a,b,c,d] y", "y = Conv (x, weights)"), {"x": [[1, 2, 4, 4]] * 3}),
    "weights": (
        network("float[1,2,4,4] x, float[2,2,K,K] w", "float[a,b,c,d] y", "y = Conv (x, w)"),
        {"w": [[2, 2, 1, 1]] * 3},
    ),
    "gather_rank": (
        network("float[3,3] x, int64[2,K] i", "float[a] y", "y = GatherND (x, i)"),
        {"i": [[2, 2]] * 3},
    ),
    "gather_count": (
        network("float[3,3] x, int64[K,2] i", "float[a] y", "y = GatherND (x, i)"),
        {"i": [[1, 2], [2, 2], [3, 2]]},
    ),
    "branch_by_fixed_dimension": (
        network(
            "float[N,1] x",
            "float[k] y",
            "d = Shape (x) e = Gather (d, at1) l = Squeeze (e, at0) c = Equal (l, step) "
            + branches("{} = Squeeze (x, at1)", "{} = Identity (x)", "float[]"),
        ),
        {"x": [[1, 1], [2, 1], [4, 1]]},
    ),
    "eye": (network("float[N,4] x", "float[N,4] y", "y = EyeLike (x)"), {"x": [[1, 4], [2, 4], [3, 4]]}),
    "size_of_mask": (
        network(
            "float[N] n, float[1] x",
            "float[k] y",
            "g = Greater (n, half) m = Cast <to: int = 7> (g) s = ReduceSum <keepdims: int = 1> (m) y = Expand (x, s)",
        ),
        {"n": [[1], [4], [9]]},
    ),
}


# TensorRT builds each where the sizes of `x` decide the condition, and refuses it for the range from 1 to 4.
FIRST = "d = Shape (x) e = Gather (d, zero) c = Equal (e, step) "
X_OF_OTHER_RANK = OF_OTHER_RANK.replace("(w", "(x")
UNDECIDED = {
    "gathered": f"{FIRST}{X_OF_OTHER_RANK}",
    "sliced": f"d = Shape (x) s = Slice (d, at0, at1, at0) e = Squeeze (s, at0) c = Equal (e, step) {X_OF_OTHER_RANK}",
    "attribute": f"s = Shape <end: int = 1> (x) e = Squeeze (s, at0) c = Less (e, count) {X_OF_OTHER_RANK}",
}
# Conditions that read the fixed dimension.
DECIDED = {
    "gathered": f"d = Shape (x) e = Gather (d, step) c = Equal (e, step) {X_OF_OTHER_RANK}",
    "gathered_from_end": "m = Constant <value: tensor = int64 {-1}> () d = Shape (x) e = Gather (d, m) "
    f"c = Equal (e, step) {X_OF_OTHER_RANK}",
    "sliced": f"d = Shape (x) s = Slice (d, at1, at9, at0) e = Squeeze (s, at0) c = Equal (e, step) {X_OF_OTHER_RANK}",
    "attribute": f"s = Shape <start: int = 1> (x) e = Squeeze (s, at0) c = Less (e, count) {X_OF_OTHER_RANK}",
}


def judge(files):
    """Returns the verdict of the rules by file: "yes", "no" or "unknown"."""
    said = subprocess.run(
        [os.environ["GRAFT_ORACLE_TOOL"], RELEASE, *files], check=True, capture_output=True, text=True
    ).stdout
    return {pathlib.Path(line.split("\t")[0]): line.split("\t")[1:] for line in said.splitlines()}


def build(*arguments, **keywords):
    pytest.importorskip("tensorrt_rtx")
    sys.path.insert(0, str(SUPPORT))
    from tensorrt_builds import ask_tensorrt  # noqa: PLC0415

    return ask_tensorrt(*arguments, **keywords)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    files, values = {}, {}
    for family, networks in FAMILIES.items():
        (folder / family).mkdir()
        for name, model in networks.items():
            files[family, name] = folder / family / f"{name.replace(',', '_').replace('->', '_')}.onnx"
            values[files[family, name]] = MASKS.get(name, VALUES)
            onnx.save(model, files[family, name])
    built, said = build(files.values(), values=values), judge(files.values())
    return {key: (built[file], said[file]) for key, file in files.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rules_say_what_tensorrt_does(answers, family):
    of_family = {name: answer for (of, name), answer in answers.items() if of == family}
    assert {built.built for built, _ in of_family.values()} == {True, False}, "a family has both kinds"
    wrong = {
        name: (said, built.errors[:1])
        for name, (built, said) in of_family.items()
        if said[0] != ("yes" if built.built else "no")
    }
    assert wrong == {}


def test_what_builds_at_fixed_sizes_alone_is_not_promised(tmp_path):
    files, shapes = {}, {}
    for name, (model, (least, usual, largest)) in (FIXED_ONLY | FOR_ANY_SIZE).items():
        for kind, sizes in (("fixed", [usual] * 3), ("range", [least, usual, largest])):
            files[name, kind] = tmp_path / f"{name}_{kind}.onnx"
            shapes[files[name, kind]] = {"x": sizes}
            onnx.save(model, files[name, kind])
    built, said = build(files.values(), shapes=shapes), judge(files.values())
    for (name, kind), file in files.items():
        is_fixed_only = name in FIXED_ONLY
        assert built[file].built == (kind == "fixed" or not is_fixed_only), (name, kind, built[file].errors)
        assert said[file][0] == ("unknown" if is_fixed_only else "yes"), (name, said[file])
        if is_fixed_only:
            assert "builds that only where BuildOptions::shapes sets each dimension to one size" in said[file][1]


def test_dynamic_sizes(tmp_path):
    files = {name: tmp_path / f"{name}.onnx" for name in DYNAMIC}
    for name, (model, _) in DYNAMIC.items():
        onnx.save(model, files[name])
    shapes = {files[name]: of_inputs for name, (_, of_inputs) in DYNAMIC.items()}
    built, said = build(files.values(), shapes=shapes), judge(files.values())
    assert {answer.built for answer in built.values()} == {True, False}
    wrong = {
        name: (said[file], built[file].errors[:1])
        for name, file in files.items()
        if said[file][0] != ("yes" if built[file].built else "no")
    }
    assert wrong == {}


def test_conditions_of_dynamic_dimensions_are_not_promised(tmp_path):
    ranges = {"few": [[1, 4], [2, 4], [4, 4]], "many": [[5, 4], [6, 4], [8, 4]]}
    files, shapes = {}, {}
    for kind, networks in (("undecided", UNDECIDED), ("decided", DECIDED)):
        for name, nodes in networks.items():
            for which, sizes in ranges.items():
                file = files[kind, name, which] = tmp_path / f"{kind}_{name}_{which}.onnx"
                shapes[file] = {"x": sizes}
                onnx.save(network("float[N,4] x", "float[a,b] y", nodes), file)
    built, said = build(files.values(), shapes=shapes), judge(files.values())
    for (kind, name, which), file in files.items():
        assert built[file].built == (kind == "decided" or which == "many"), (kind, name, which, built[file].errors)
        assert said[file][0] == ("unknown" if kind == "undecided" else "yes"), (kind, name, said[file])


def test_values_beyond_the_search_are_not_promised(tmp_path):
    chain = " ".join(f"e{i + 1} = Add (e{i}, step)" for i in range(2100))
    start = "d = Shape (w) e0 = Squeeze (d, at0)"
    files = {
        "condition": (f"{start} {chain} c = Equal (e2100, step) {OF_OTHER_RANK}", "float[a,b] y"),
        "size": (f"{start} {chain} s = Reshape (e2100, at1) y = Expand (half, s)", "float[a] y"),
    }
    paths = {name: tmp_path / f"{name}.onnx" for name in files}
    for name, (nodes, output) in files.items():
        onnx.save(network("float[4] w", output, nodes), paths[name])
    said = judge(paths.values())
    assert {name: said[path][0] for name, path in paths.items()} == dict.fromkeys(files, "unknown")
