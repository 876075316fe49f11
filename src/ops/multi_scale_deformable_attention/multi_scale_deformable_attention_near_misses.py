# Networks that resemble MultiScaleDeformableAttention but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import constants, miss, same

PREFIX = "attention"
OPERATOR = "MultiScaleDeformableAttention"
SHAPES, HEADS, CHANNELS, QUERIES, POINTS = [(4, 5), (2, 3)], 2, 4, 3, 2
NETWORK = "(float[N,26,2,4] x, float[N,3,2,2,2,2] l, float[N,3,2,2,2] w) => (float[N,3,8] y)"

CONSTANTS = constants("""
    int64[2] sizes = {20, 6}; int64[2] sizes_swapped = {6, 20}; int64[4] map0 = {-1, 4, 4, 5};
    int64[4] map1 = {-1, 4, 2, 3}; int64[4] map0_turned = {-1, 4, 5, 4}; int64[4] grid = {-1, 3, 2, 2};
    int64[4] grid_of_points = {-1, 2, 3, 2}; int64[4] joined = {-1, 4, 3, 4}; int64[4] of_weights = {-1, 1, 3, 4};
    int64[3] channels = {-1, 8, 3}; int64[3] queries = {-1, 3, 8}; int64 level0 = {0}; int64 level1 = {1};
    int64[1] axis_of_levels = {3}; int64[1] axis_of_points = {4}; int64[1] axis_of_queries = {2};
    int64[1] final = {-1}; float two = {2}; float three = {3}; float one = {1}; float half = {0.5};
    float[2] each = {2, 2.5}; float zero = {0}; float four = {4}; float five = {5}; int64 int0 = {0};
    int64 int1 = {1}; int64 int3 = {3}; int64 int4 = {4}; int64 int5 = {5}; int64 int6 = {6}; int64 int7 = {7};
    int64[1] axis_of_channels = {1}; int64[2] row = {-1, 6}; int64[8] margins = {0, 0, 1, 1, 0, 0, 1, 1};
    int64[3] pixels = {-1, 4, 20}; int64[3] pixels_and_zeros = {-1, 4, 42}; int64[3] all_channels = {1, 4, 1};
    int64[1] level0_of_points = {0}; int64[3] all_points = {1, 1, 2}; int64[4] samples = {-1, 4, 3, 2}
""")

SPLIT = "v0, v1 = Split<axis=1>(x, sizes) "
MAP0 = "a0 = Transpose<perm=[0,2,3,1]>(v0) m0 = Reshape(a0, map0) "
MAP1 = "a1 = Transpose<perm=[0,2,3,1]>(v1) m1 = Reshape(a1, map1) "
SCALE = "d = Mul(l, two) e = Sub(d, one) "
GRID0 = "e0 = Gather<axis=3>(e, level0) t0 = Transpose<perm=[0,2,1,3,4]>(e0) g0 = Reshape(t0, grid) "
GRID1 = "e1 = Gather<axis=3>(e, level1) t1 = Transpose<perm=[0,2,1,3,4]>(e1) g1 = Reshape(t1, grid) "
SAMPLE0 = 's0 = GridSample<mode="bilinear", padding_mode="zeros", align_corners=0>(m0, g0) '
SAMPLE1 = 's1 = GridSample<mode="bilinear", padding_mode="zeros", align_corners=0>(m1, g1) '
STACK0 = "u0 = Unsqueeze(s0, axis_of_levels) "
STACK1 = "u1 = Unsqueeze(s1, axis_of_levels) "
STACK = "c = Concat<axis=3>(u0, u1) f = Reshape(c, joined) "
WEIGHTS = "b = Transpose<perm=[0,2,1,3,4]>(w) k = Reshape(b, of_weights) "
PRODUCT = "p = Mul(f, k) "
SUM = "r = ReduceSum<keepdims=0>(p, final) "
OUT = "o = Reshape(r, channels) y = Transpose<perm=[0,2,1]>(o)"
PARTS = [SPLIT, MAP0, MAP1, SCALE, GRID0, GRID1, SAMPLE0, SAMPLE1, STACK0, STACK1, STACK, WEIGHTS, PRODUCT, SUM, OUT]


def network(*changes):
    """Returns the text of the network. Each change is a pair of an element of PARTS and the text that replaces it."""
    parts = list(PARTS)
    for part, other in changes:
        parts[parts.index(part)] = other
    return "".join(parts)


# The samples of map 0 by gathers. `across` and `down` are the positions of points; `left` and `top` are these positions
# rounded down.
PLACES = (
    "gx = Gather<axis=3>(g0, level0) hx = Add(gx, one) ix = Mul(hx, five) jx = Sub(ix, one) kx = Div(jx, two) "
    "gy = Gather<axis=3>(g0, level1) hy = Add(gy, one) iy = Mul(hy, four) jy = Sub(iy, one) ky = Div(jy, two) "
    "across = Reshape(kx, row) down = Reshape(ky, row) "
)
FLOORS = (
    "left_floor = Floor(across) left = Cast<to=7>(left_floor) right = Add(left, int1) "
    "top_floor = Floor(down) top = Cast<to=7>(top_floor) bottom = Add(top, int1) "
)
PARTS_OF_CORNERS = (
    "of_right = Sub(across, left_floor) of_left = Sub(one, of_right) "
    "of_bottom = Sub(down, top_floor) of_top = Sub(one, of_bottom) "
    "weight00 = Mul(of_left, of_top) weight10 = Mul(of_right, of_top) "
    "weight01 = Mul(of_left, of_bottom) weight11 = Mul(of_right, of_bottom) "
)
CORNERS = [("00", "left", "top"), ("10", "right", "top"), ("01", "left", "bottom"), ("11", "right", "bottom")]
MARGIN = "with_zeros = Pad(m0, margins) flat = Reshape(with_zeros, pixels_and_zeros) "
NO_MARGIN = "flat = Reshape(m0, pixels) "
MARGIN_LIMITS = (
    "column_left = Clip(right, int0, int6) "
    "right1 = Add(right, int1) column_right = Clip(right1, int0, int6) "
    "row_top = Clip(bottom, int0, int5) "
    "bottom1 = Add(bottom, int1) row_bottom = Clip(bottom1, int0, int5) "
)
LIMITS = (
    "column_left = Clip(left, int0, int4) column_right = Clip(right, int0, int4) "
    "row_top = Clip(top, int0, int3) row_bottom = Clip(bottom, int0, int3) "
)
MASKS = "".join(
    f"{side}_from = GreaterOrEqual({side}, int0) {side}_to = Less({side}, {end}) in_{side} = And({side}_from, {side}_to) "
    for side, end in (("left", "int5"), ("right", "int5"), ("top", "int4"), ("bottom", "int4"))
)
SAMPLES = (
    "above = Add(part00, part10) below = Add(part01, part11) both = Add(above, below) s0 = Reshape(both, samples) "
)


def gathers(row_length, masked):
    text = f"down_top = Mul(row_top, {row_length}) down_bottom = Mul(row_bottom, {row_length}) "
    for name, column, row in CORNERS:
        text += f"at{name} = Add(down_{row}, column_{column}) "
        text += f"one{name} = Unsqueeze(at{name}, axis_of_channels) all{name} = Expand(one{name}, all_channels) "
        text += f"pixel{name} = GatherElements<axis=2>(flat, all{name}) "
        weight = f"weight{name}"
        if masked:
            text += f"in{name} = And(in_{column}, in_{row}) inside{name} = Cast<to=1>(in{name}) "
            text += f"masked{name} = Mul({weight}, inside{name}) "
            weight = f"masked{name}"
        text += f"of_all{name} = Unsqueeze({weight}, axis_of_channels) part{name} = Mul(pixel{name}, of_all{name}) "
    return text


PADDED = [PLACES, FLOORS, PARTS_OF_CORNERS, MARGIN, MARGIN_LIMITS, gathers("int7", False), SAMPLES]
MASKED = [PLACES, FLOORS, PARTS_OF_CORNERS, NO_MARGIN, LIMITS, MASKS, gathers("int5", True), SAMPLES]


def gathered(parts, *changes):
    """Returns the network with map 0 sampled by gathers, the lines `parts`, in which each change replaces old by new text."""
    text = "".join(parts)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return network((SAMPLE0, text))


def sampled(part, old, new):
    return network((part, part.replace(old, new)))


# fmt: off
MISSES = [
    miss("align_corners", "corners of map 0 are aligned", "align_corners of node",
         NETWORK, sampled(SAMPLE0, "align_corners=0", "align_corners=1")),
    miss("nearest", "map 1 is sampled at the nearest pixel", "is nearest",
         NETWORK, sampled(SAMPLE1, "bilinear", "nearest")),
    miss("border", "map 0 goes on beyond its border", "is border", NETWORK, sampled(SAMPLE0, "zeros", "border")),
    miss("reflection", "map 1 is mirrored beyond its border", "is reflection",
         NETWORK, sampled(SAMPLE1, "zeros", "reflection")),
    miss("not_weighted", "the samples are added, and none multiplied", None,
         NETWORK, network((WEIGHTS, ""), (PRODUCT, "p = Neg(f) "))),
    miss("weights_added", "weights are added to samples", None, NETWORK, network((PRODUCT, "p = Add(f, k) "))),
    miss("weights_of_samples", "samples are multiplied with themselves", None,
         NETWORK, network((WEIGHTS, ""), (PRODUCT, "p = Mul(f, f) "))),
    miss("weights_turned", "the weights of the points of a level lie where those of the levels of a point should",
         "is not computed from one tensor", NETWORK,
         network((WEIGHTS, "b = Transpose<perm=[0,2,1,4,3]>(w) k = Reshape(b, of_weights) "))),
    miss("weights_of_queries", "weights of queries lie where those of heads should", "is not computed from one tensor",
         NETWORK, network((WEIGHTS, "k = Reshape(w, of_weights) "))),
    miss("maximum", "the largest product is taken, not the sum", None,
         NETWORK, network((SUM, "r = ReduceMax<axes=[-1], keepdims=0>(p) "))),
    miss("mean", "the mean of the products is taken", None,
         NETWORK, network((SUM, "r = ReduceMean<axes=[-1], keepdims=0>(p) "))),
    miss("over_queries", "the sum is over the queries", "the sum is not over the last of four axes",
         "(float[N,26,2,4] x, float[N,3,2,2,2,2] l, float[N,3,2,2,2] w) => (float[M,4,4] y)",
         network((SUM, "y = ReduceSum<keepdims=0>(p, axis_of_queries)"), (OUT, ""))),
    miss("not_brought_back", "channels and queries stay in their order, only called otherwise",
         "is not reshaped to items, queries and channels", NETWORK, network((OUT, "y = Reshape(r, queries)"))),
    miss("scaled_by_three", "the grid is 3 * x - 1", "the grids are not 2 * x - 1",
         NETWORK, network((SCALE, "d = Mul(l, three) e = Sub(d, one) "))),
    miss("not_scaled", "the grid is x itself", "the grids are not 2 * x - 1",
         NETWORK, network((SCALE, "e = Identity(l) "))),
    miss("shifted", "the grid is 2 * x - 0.5", "the grids are not 2 * x - 1",
         NETWORK, network((SCALE, "d = Mul(l, two) e = Sub(d, half) "))),
    miss("turned_round", "the grid is 1 - 2 * x", "the grids are not 2 * x - 1",
         NETWORK, network((SCALE, "d = Mul(l, two) e = Sub(one, d) "))),
    miss("scaled_apart", "x and y of the grid are scaled apart", "the grids are not 2 * x - 1",
         NETWORK, network((SCALE, "d = Mul(l, each) e = Sub(d, one) "))),
    miss("levels_swapped", "each map is sampled at the points of the other", "the grids are not 2 * x - 1",
         NETWORK, network((GRID0, GRID0.replace("level0", "level1")), (GRID1, GRID1.replace("level1", "level0")))),
    miss("grid_negated", "map 1 is sampled at the opposite points", "the grids are not 2 * x - 1",
         NETWORK, network((GRID1, GRID1.replace("(e1)", "(z1)").replace("t1 =", "z1 = Neg(e1) t1 =")))),
    miss("samples_swapped", "samples of map 1 come before those of map 0", "the maps are not parts of one tensor",
         NETWORK, network((STACK, STACK.replace("u0, u1", "u1, u0")))),
    miss("pixels_swapped", "the pixels of map 1 come before those of map 0", "the maps are not parts of one tensor",
         NETWORK, network((SPLIT, "v1, v0 = Split<axis=1>(x, sizes_swapped) "))),
    miss("map_turned", "columns of map 0 are rows", "the maps are not parts of one tensor", NETWORK,
         network((MAP0,
         "a0 = Transpose<perm=[0,2,3,1]>(v0) z0 = Reshape(a0, map0_turned) m0 = Transpose<perm=[0,1,3,2]>(z0) "))),
    miss("map_by_channels", "channels of a pixel lie where pixels of a channel should",
         "the maps are not parts of one tensor", NETWORK,
         network((MAP0, "a0 = Transpose<perm=[0,2,1,3]>(v0) m0 = Reshape(a0, map0) "))),
    miss("heads_not_moved", "map 0 mixes heads and pixels", "the maps are not parts of one tensor",
         NETWORK, network((MAP0, "m0 = Reshape(v0, map0) "))),
    miss("grid_by_points", "queries and points of map 0 change places", "the grids are not 2 * x - 1", NETWORK,
         network((GRID0,
         "e0 = Gather<axis=3>(e, level0) t0 = Transpose<perm=[0,2,3,1,4]>(e0) h0 = Reshape(t0, grid_of_points) g0 = Reshape(h0, grid) "))),
    miss("points_before_levels", "points come before levels where samples lie side by side",
         "are not concatenated along the points", NETWORK,
         network((STACK0, "u0 = Unsqueeze(s0, axis_of_points) "), (STACK1, "u1 = Unsqueeze(s1, axis_of_points) "),
         (STACK, "c = Concat<axis=4>(u0, u1) f = Reshape(c, joined) "))),
    miss("negated", "the pixels of map 1 are negated", "the maps are not parts of one tensor",
         NETWORK, network((MAP1, "n1 = Neg(v1) a1 = Transpose<perm=[0,2,3,1]>(n1) m1 = Reshape(a1, map1) "))),
    same("sample_is_output", "the samples of map 0 are an output of the network", "is an output of the graph",
         "(float[N,26,2,4] x, float[N,3,2,2,2,2] l, float[N,3,2,2,2] w) => (float[N,3,8] y, float[M,4,3,2] s0)",
         network()),
    same("sum_is_used", "the sum is needed as well, before it is transposed",
         "is not reshaped to items, queries and channels",
         "(float[N,26,2,4] x, float[N,3,2,2,2,2] l, float[N,3,2,2,2] w) => (float[N,3,8] y, float[M,4,3] r2)",
         network((OUT, "r2 = Abs(r) " + OUT))),
    miss("gathered_border", "map 0 goes on beyond its border, by gathers", "does not gather pixels",
         NETWORK, gathered(PADDED, ("Pad(m0", 'Pad<mode="edge">(m0'))),
    miss("gathered_clamped", "what lies outside map 0 is not masked", "do not have the weights of bilinear sampling",
         NETWORK,
         network((SAMPLE0, "".join([PLACES, FLOORS, PARTS_OF_CORNERS, NO_MARGIN, LIMITS, gathers("int5", False),
         SAMPLES])))),
    miss("gathered_ones", "there are ones round map 0, not zeros", "does not gather pixels",
         NETWORK, gathered(PADDED, ("Pad(m0, margins)", "Pad(m0, margins, one)"))),
    miss("gathered_short", "the zeros on the right of map 0 are not reached",
         "do not have the weights of bilinear sampling", NETWORK, gathered(PADDED, ("int0, int6", "int0, int5"))),
    miss("gathered_row_length", "rows of map 0 are taken for shorter ones",
         "do not have the weights of bilinear sampling", NETWORK, gathered(PADDED, ("int7", "int5"))),
    miss("gathered_swapped", "x and y of the points change places", "the positions for align_corners = 0", NETWORK,
         gathered(PADDED, ("(g0, level0)", "(g0, first)"), ("(g0, level1)", "(g0, level0)"), ("(g0, first)",
         "(g0, level1)"))),
    miss("gathered_align_corners", "corners of map 0 are aligned, by gathers", "the positions for align_corners = 0",
         NETWORK,
         gathered(PADDED, ("ix = Mul(hx, five) jx = Sub(ix, one)", "jx = Mul(hx, four)"),
         ("iy = Mul(hy, four) jy = Sub(iy, one)", "jy = Mul(hy, three)"))),
    miss("gathered_shifted", "positions are half a pixel off", "the positions for align_corners = 0", NETWORK,
         gathered(PADDED, ("ix = Mul(hx, five) jx = Sub(ix, one)", "jx = Mul(hx, five)"),
         ("iy = Mul(hy, four) jy = Sub(iy, one)", "jy = Mul(hy, four)"))),
    miss("gathered_other_weight", "two corners have each other's weights",
         "do not have the weights of bilinear sampling", NETWORK,
         gathered(MASKED, ("Mul(weight10", "Mul(weight01_"), ("Mul(weight01,", "Mul(weight10,"), ("weight01_",
         "weight01"))),
    miss("gathered_uneven", "the weights of left and right do not add up to 1",
         "do not have the weights of bilinear sampling", NETWORK,
         gathered(PADDED, ("Sub(one, of_right)", "Sub(two, of_right)"))),
    miss("gathered_smooth", "weights go from pixel to pixel as squares", "do not have the weights of bilinear sampling",
         NETWORK,
         gathered(PADDED, ("of_right = Sub(across, left_floor)",
         "to_right = Sub(across, left_floor) of_right = Mul(to_right, to_right)"))),
    miss("gathered_three", "one of four corners is left out", "do not have the weights of bilinear sampling", NETWORK,
         gathered(PADDED, ("below = Add(part01, part11)", "none = Mul(part11, zero) below = Add(part01, none)"))),
    miss("gathered_nearest", "map 0 is sampled at the nearest pixel, by gathers",
         "do not have the weights of bilinear sampling", NETWORK,
         gathered(PADDED, ("Floor(across)", "Round(across)"), ("Floor(down)", "Round(down)"),
         ("Sub(across, left_floor)", "Mul(across, zero)"), ("Sub(down, top_floor)", "Mul(down, zero)"))),
    miss("gathered_truncated", "positions are rounded towards zero", "do not have the weights of bilinear sampling",
         NETWORK,
         gathered(MASKED, ("left_floor = Floor(across) left = Cast<to=7>(left_floor)",
         "left = Cast<to=7>(across) left_floor = Cast<to=1>(left)"),
         ("top_floor = Floor(down) top = Cast<to=7>(top_floor)",
         "top = Cast<to=7>(down) top_floor = Cast<to=1>(top)"))),
    miss("gathered_other_mask", "pixels on the right are masked where those on the left are outside",
         "do not have the weights of bilinear sampling", NETWORK,
         gathered(MASKED, ("OrEqual(right, int0)", "OrEqual(right, int1)"), ("Less(right, int5)",
         "Less(right, int6)"))),
    miss("gathered_late_mask", "a pixel beyond the border counts", "do not have the weights of bilinear sampling",
         NETWORK, gathered(MASKED, ("Less(right, int5)", "LessOrEqual(right, int5)"))),
    miss("gathered_negated_mask", "pixels inside are masked", "do not have the weights of bilinear sampling", NETWORK,
         gathered(MASKED, ("in11 = And(in_right, in_bottom)", "is11 = And(in_right, in_bottom) in11 = Not(is11)"))),
    miss("gathered_first_point", "all points are sampled at the first", None, NETWORK,
         gathered(PADDED, ("across = Reshape(kx, row)",
         "first_x = Gather<axis=2>(kx, level0_of_points) ex = Expand(first_x, all_points) across = Reshape(ex, row)"))),
    miss("gathered_by_points", "rows of queries and points are read as those of points and queries",
         "elements of different points are combined", NETWORK,
         gathered(PADDED, ("down = Reshape(ky, row)", "ty = Transpose<perm=[0,2,1]>(ky) down = Reshape(ty, row)"))),
    miss("gathered_twice", "a sample is added twice", "do not have the weights of bilinear sampling", NETWORK,
         gathered(PADDED, ("s0 = Reshape(both, samples)", "more = Add(both, both) s0 = Reshape(more, samples)"))),
]

CONTROLS = [
    ("attention", {"points": [2, 2]}, NETWORK, network()),
    ("attention_padded", {"points": [2, 2]}, NETWORK, gathered(PADDED)),
    ("attention_masked", {"points": [2, 2]}, NETWORK, gathered(MASKED)),
]
# fmt: on

_random = np.random.default_rng(11)
_weights = _random.random((4, 3, 2, 2, 2))
INPUTS = {
    "l": (_random.random((4, 3, 2, 2, 2, 2)) * 1.4 - 0.2).astype(np.float32),
    "w": (_weights / _weights.sum((3, 4), keepdims=True)).astype(np.float32),
}


def resembled(x):
    """Returns the output of the attention, computed pixel by pixel by the formula of the paper."""
    y = np.zeros((x.shape[0], QUERIES, HEADS, CHANNELS))
    x = x.astype(np.float64)
    locations, weights = INPUTS["l"].astype(np.float64), INPUTS["w"].astype(np.float64)
    for item, query, head, level, point in np.ndindex(weights.shape):
        height, width = SHAPES[level]
        across, down = locations[item, query, head, level, point] * [width, height] - 0.5
        for row in (int(np.floor(down)), int(np.floor(down)) + 1):
            for column in (int(np.floor(across)), int(np.floor(across)) + 1):
                if 0 <= row < height and 0 <= column < width:
                    part = (1 - abs(down - row)) * (1 - abs(across - column)) * weights[item, query, head, level, point]
                    pixel = sum(h * w for h, w in SHAPES[:level]) + row * width + column
                    y[item, query, head] += part * x[item, pixel, head]
    return [y.reshape(x.shape[0], QUERIES, HEADS * CHANNELS)]
