// Pooling in forms that TensorRT does not have: with dilations, of p-norms with p above 2, and with the indices of the
// largest elements.
//
//   MaxPool<dilations=[2, 2]>(x)   becomes   Max of strided Slices of x, one for each position in the window;
//   AveragePool
//                                            and LpPool become their mean and norm
//   LpPool<p=3>(x)                 becomes   (n * AveragePool(|x|^3))^(1/3), with n places in a window; a Pad before it
//                                            where the padding is as large as the windows
//   y, i = MaxPool(x)              becomes   w = Gather(x, windows); y = ReduceMax(w); i = Gather(table, ArgMax(w))
//   MaxUnpool(x, i)                becomes   ScatterElements(zeros, i, x)
//
// Dilations: the ends of the slices count from the end, so that sizes may be dynamic.
//
// Indices: each window of the image, flattened, becomes a row. ArgMax returns the place in the window, a table the
// index in the image. A place in the padding repeats the first place inside the image, and has its index, so that it
// does not matter which of both ArgMax finds. MaxUnpool accepts indices of any windows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

/// Returns the divisor of each window of an AveragePool, windows in row-major order: the number of window elements
/// inside the image, or inside image and padding if `with_padding`. `sizes` are those of the image.
std::vector<double> counts_of(const std::vector<Window>& windows, const std::vector<std::int64_t>& sizes,
                              bool with_padding) {
  std::vector<std::vector<double>> along;
  std::vector<std::int64_t> outer;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    outer.push_back(window.count(sizes[i]));
    check_table({outer.back(), window.kernel});
    std::vector<double>& counts = along.emplace_back();
    for (std::int64_t at = 0; at < outer.back(); ++at) {
      double count = 0;
      for (std::int64_t k = 0; k < window.kernel; ++k) {
        const std::int64_t place = at * window.stride - window.pad_begin + k * window.dilation;
        const std::int64_t begin = with_padding ? -window.pad_begin : 0;
        const std::int64_t end = sizes[i] + (with_padding ? window.pad_end - window.beyond : 0);
        count += place >= begin && place < end ? 1 : 0;
      }
      counts.push_back(count);
    }
  }
  std::vector<double> result;
  for_each_index(outer, [&](const std::vector<std::int64_t>& index) {
    double count = 1;
    for (std::size_t i = 0; i < index.size(); ++i) count *= along[i][static_cast<std::size_t>(index[i])];
    result.push_back(count);
  });
  return result;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Returns a list of sizes as text for an attribute: "[2, 2]".
std::string sizes_text(const std::vector<std::int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

/// Returns the windows of a pool along its spatial axes. Returns nothing, and stores the reason with site.no(), if the
/// input is not f32, f16 or bf16 of known rank, or if the windows are unknown.
std::optional<std::vector<Window>> pool_windows(Site& site) {
  const auto kernel = site.node().ints("kernel_shape");
  const Shape* shape = site.shape(0);
  if (shape == nullptr) return site.no("the rank of its input is unknown");
  if (!kernel || shape->size() != kernel->size() + 2) return site.no("the rank of its input does not fit kernel_shape");
  if (!site.is_real(0)) return site.no_type(0);
  return windows_of(site, *kernel);
}

/// Writes the f32 tensor |x|^p, and returns its name.
std::string add_powers(Replacement& result, const std::string& x, std::int64_t p) {
  if (p == 2) {
    result.line(fmt::format("powers = Mul({0}, {0})", x));
  } else if (p == 1) {
    result.line(fmt::format("powers = Abs({})", x));
  } else {
    result.line(fmt::format("magnitudes = Abs({})", x));
    result.line(fmt::format("powers = Pow(magnitudes, {})",
                            result.constant("exponent", f32_tensor({}, {static_cast<double>(p)}))));
  }
  return "powers";
}

/// Returns, as text, the operator call that computes the p-th root of `sum`, for Replacement::give.
std::string root_of(Replacement& result, const std::string& sum, std::int64_t p) {
  if (p == 2) return fmt::format("Sqrt({})", sum);
  return fmt::format("Pow({}, {})", sum, result.constant("root", f32_tensor({}, {1.0 / static_cast<double>(p)})));
}

/// Writes a Pad of `x` by the padding of the windows, filled with `filling`, and returns the name of the result.
std::string add_pad(Replacement& result, const std::string& x, const std::vector<Window>& windows, double filling) {
  const std::size_t rank = windows.size() + 2;
  std::vector<std::int64_t> pads(2 * rank, 0);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    pads[2 + i] = windows[i].pad_begin;
    pads[rank + 2 + i] = windows[i].pad_end;
  }
  const std::string value = result.constant("filling", f32_tensor({}, {filling}));
  result.line(fmt::format("padded = Pad({}, {}, {})", x, result.ints("pads", pads), value));
  return "padded";
}

/// Writes one strided Slice of `x` for each position within the window, and returns their names in row-major order.
/// Each Slice holds the element at that position of all windows.
std::vector<std::string> add_slices(Replacement& result, const std::string& x, const std::vector<Window>& windows) {
  std::vector<std::int64_t> along;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    along.push_back(static_cast<std::int64_t>(i + 2));
    strides.push_back(windows[i].stride);
  }
  const std::string along_name = result.ints("along", along);
  const std::string strides_name = result.ints("strides", strides);
  std::vector<std::string> slices;
  for_each_index(kernel_of(windows), [&](const std::vector<std::int64_t>& place) {
    std::vector<std::int64_t> from;
    std::vector<std::int64_t> to;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const std::int64_t begin = place[i] * windows[i].dilation;
      const std::int64_t left = windows[i].extent() - 1 - begin;
      from.push_back(begin);
      to.push_back(left == 0 ? std::numeric_limits<std::int64_t>::max() : -left);
    }
    const std::string name = fmt::format("place{}", slices.size());
    result.line(fmt::format("{} = Slice({}, {}, {}, {}, {})", name, x, result.ints(name + "_from", from),
                            result.ints(name + "_to", to), along_name, strides_name));
    slices.push_back(name);
  });
  return slices;
}

bool is_padded(const std::vector<Window>& windows) {
  return std::any_of(windows.begin(), windows.end(),
                     [](const Window& w) { return w.pad_begin != 0 || w.pad_end != 0; });
}

/// Writes the constant by which the sums of windows are divided, and returns its name. Returns nothing, and stores the
/// reason with site.no(), if it depends on a dynamic size or a window lies entirely in the padding.
std::optional<std::string> add_divisor(Replacement& result, Site& site, const std::vector<Window>& windows) {
  const bool with_padding = site.node().int_or("count_include_pad", 0) != 0;
  const bool goes_beyond = std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.beyond != 0; });
  if (!is_padded(windows) || (with_padding && !goes_beyond)) {
    return result.constant("places", f32_tensor({}, {static_cast<double>(places_of(windows))}));
  }
  const auto sizes = site.sizes(0, 2);
  if (!sizes) return site.no_size("its mean excludes the padding (count_include_pad = 0), and a size is dynamic");
  std::vector<std::int64_t> table{1, 1};
  for (std::size_t i = 0; i < windows.size(); ++i) table.push_back(windows[i].count((*sizes)[i]));
  const std::vector<double> counts = counts_of(windows, *sizes, with_padding);
  if (std::find(counts.begin(), counts.end(), 0) != counts.end()) {
    return site.no("a window lies entirely in the padding");
  }
  return result.constant("places", f32_tensor(table, counts));
}

/// The elements of the image that the windows of a MaxPool read. Each list is a row-major matrix with one row per
/// window and one column per position in the window.
struct WindowElements {
  std::vector<std::int64_t> positions;  ///< The row-major positions in the image.
  std::vector<std::int64_t> indices;    ///< The positions as the output Indices contains them.
};

/// Returns the elements that the windows read in an image of the spatial sizes `sizes`; there are outer[i] windows
/// along spatial axis i. A position in the padding is replaced by the first element of its window inside the image.
/// Returns nothing if a window lies entirely in the padding. If `is_column_major` is true (storage_order = 1),
/// WindowElements::indices counts in column-major order.
std::optional<WindowElements> window_elements(const std::vector<Window>& windows,
                                              const std::vector<std::int64_t>& outer,
                                              const std::vector<std::int64_t>& sizes, bool is_column_major) {
  WindowElements elements;
  bool is_empty = false;
  for_each_index(outer, [&](const std::vector<std::int64_t>& window) {
    const std::size_t first = elements.positions.size();
    std::vector<bool> is_inside;
    std::int64_t inside = -1;
    for_each_index(kernel_of(windows), [&](const std::vector<std::int64_t>& place) {
      std::int64_t position = 0;
      std::int64_t index = 0;
      std::int64_t step = 1;
      bool fits = true;
      for (std::size_t i = 0; i < place.size(); ++i) {
        const Window& w = windows[i];
        const std::int64_t at = window[i] * w.stride - w.pad_begin + place[i] * w.dilation;
        fits = fits && at >= 0 && at < sizes[i];
        position = position * sizes[i] + at;
        index += at * step;
        step *= sizes[i];
      }
      if (fits && inside < 0) inside = static_cast<std::int64_t>(elements.positions.size());
      is_inside.push_back(fits);
      elements.positions.push_back(position);
      elements.indices.push_back(is_column_major ? index : position);
    });
    is_empty = is_empty || inside < 0;
    for (std::size_t i = 0; !is_empty && i < is_inside.size(); ++i) {
      if (is_inside[i]) continue;
      elements.positions[first + i] = elements.positions[static_cast<std::size_t>(inside)];
      elements.indices[first + i] = elements.indices[static_cast<std::size_t>(inside)];
    }
  });
  return is_empty ? std::nullopt : std::optional(std::move(elements));
}

/// Writes nodes that add the index of the first element of each image (one per batch item and channel) to `within`,
/// indices inside an image, and returns the name of the sum.
std::string add_begins_of_images(Replacement& result, const std::string& within, std::int64_t channels,
                                 std::int64_t pixels) {
  result.line("batch = Shape<start=0, end=1>(x0)");
  result.line(fmt::format("images = Mul(batch, {})", result.ints("channels", {channels})));
  result.line(fmt::format("count = Squeeze(images, {})", result.ints("first", {0})));
  const std::string zero = result.integer("zero", 0);
  const std::string one = result.integer("one", 1);
  result.line(fmt::format("numbers = Range({}, count, {})", zero, one));
  result.line(fmt::format("begins = Mul(numbers, {})", result.ints("pixels", {pixels})));
  result.line(fmt::format("bases = Reshape(begins, {})", result.ints("bases_shape", {-1, channels, 1})));
  result.line(fmt::format("index = Add({}, bases)", within));
  return "index";
}

}  // namespace

std::optional<Replacement> lower_lp_pool(Site& site) {
  const std::int64_t p = site.node().int_or("p", 2);
  if (has_dilations(site.node())) return std::nullopt;
  if (p < 1) return site.no(fmt::format("p is {}; it must be at least 1", p));
  const auto windows = pool_windows(site);
  if (!windows) return std::nullopt;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> pads;
  for (const Window& window : *windows) {
    strides.push_back(window.stride);
    pads.push_back(window.pad_begin);
  }
  for (const Window& window : *windows) pads.push_back(window.pad_end);
  // ONNX Runtime refuses a pool whose padding is as large as its windows. It merges a Pad into an AveragePool that
  // reads it, so the elements are padded and not their powers.
  const bool needs_pad = std::any_of(windows->begin(), windows->end(),
                                     [](const Window& w) { return std::max(w.pad_begin, w.pad_end) >= w.kernel; });
  Replacement result;
  std::string x = result.in_f32("x0", site.type(0));
  if (needs_pad) {
    x = add_pad(result, x, *windows, 0);
    std::fill(pads.begin(), pads.end(), 0);
  }
  const std::string powers = add_powers(result, x, p);
  result.line(fmt::format("mean = AveragePool<kernel_shape={}, strides={}, pads={}, count_include_pad=1>({})",
                          sizes_text(kernel_of(*windows)), sizes_text(strides), sizes_text(pads), powers));
  result.line(fmt::format("sum = Mul(mean, {})",
                          result.constant("places", f32_tensor({}, {static_cast<double>(places_of(*windows))}))));
  result.give("y0", site.type(0), root_of(result, "sum", p));
  result.summary = fmt::format("Pow with exponent {}, AveragePool, and the root of the sum", p);
  return result;
}

std::optional<Replacement> lower_dilated_pool(Site& site) {
  if (site.is_used(1)) return std::nullopt;  // lower_max_pool reads the dilations
  const auto windows = pool_windows(site);
  if (!windows) return std::nullopt;
  constexpr std::int64_t most_places = 128;
  const std::int64_t places = places_of(*windows);
  if (places > most_places)
    return site.no(fmt::format("its windows have {} positions; at most {} are supported", places, most_places));

  const bool is_max = site.node().is("MaxPool");
  const bool is_mean = site.node().is("AveragePool");
  const std::int64_t p = site.node().int_or("p", 2);
  if (!is_max && !is_mean && p < 1) return site.no(fmt::format("p is {}; it must be at least 1", p));
  Replacement result;
  std::string divisor;
  if (is_mean) {
    const auto name = add_divisor(result, site, *windows);
    if (!name) return std::nullopt;
    divisor = *name;
  }
  std::string x = result.in_f32("x0", site.type(0));
  if (!is_max && !is_mean) x = add_powers(result, x, p);
  if (is_padded(*windows)) x = add_pad(result, x, *windows, is_max ? -std::numeric_limits<double>::infinity() : 0.0);
  const std::string all = fmt::format("{}({})", is_max ? "Max" : "Sum", joined(add_slices(result, x, *windows)));
  if (is_max || (!is_mean && p == 1)) {
    result.give("y0", site.type(0), all);
  } else {
    result.line("sum = " + all);
    result.give("y0", site.type(0), is_mean ? fmt::format("Div(sum, {})", divisor) : root_of(result, "sum", p));
  }
  if (!is_max && !is_mean && p > 2) {
    // For inputs of 1e-9, which proofs use, the powers are denormal or 0, and CPU engines round them differently.
    result.by_definition =
        "by definition: the root of the sum of powers; powers of small numbers underflow f32, where CPU engines "
        "differ, so they cannot verify this; the lowering is tested with results of ONNX's definition";
  }
  result.summary = fmt::format("{} of {} strided slices", is_max ? "Max" : is_mean ? "mean" : "norm", places);
  return result;
}

std::optional<Replacement> lower_max_pool(Site& site) {
  const auto kernel = site.node().ints("kernel_shape");
  const auto sizes = site.sizes(0, 2);
  const auto channels = site.size(0, 1);
  if (!kernel || !sizes || !channels || sizes->size() != kernel->size())
    return site.no_size("a size of its image is dynamic");
  if (!site.is_real(0)) return site.no_type(0);
  const auto windows = windows_of(site, *kernel);
  if (!windows) return std::nullopt;
  std::vector<std::int64_t> outer;
  for (std::size_t i = 0; i < sizes->size(); ++i) outer.push_back((*windows)[i].count((*sizes)[i]));
  const std::int64_t places = places_of(*windows);
  const std::int64_t pixels = product(*sizes);
  const std::int64_t rows = product(outer);
  if (rows > most_constants / places)
    return site.no(fmt::format("the table of its windows would have more than {} elements", most_constants));

  const bool is_column_major = site.node().int_or("storage_order", 0) != 0;
  const auto elements = window_elements(*windows, outer, *sizes, is_column_major);
  if (!elements) return site.no("a window lies entirely in the padding");

  Replacement result;
  std::vector<std::int64_t> pooled{0, 0};
  pooled.insert(pooled.end(), outer.begin(), outer.end());
  const std::string pooled_shape = result.ints("pooled_shape", pooled);
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < rows; ++row) starts.push_back(row * places);
  result.line(fmt::format("flat = Reshape(x0, {})", result.ints("flat_shape", {0, 0, pixels})));
  result.line(fmt::format("places = Gather<axis=2>(flat, {})", result.ints("positions", elements->positions)));
  result.line(fmt::format("rows = Reshape(places, {})", result.ints("rows_shape", {0, 0, rows, places})));
  result.line("largest = ReduceMax<axes=[3], keepdims=0>(rows)");
  result.line(fmt::format("y0 = Reshape(largest, {})", pooled_shape));
  result.line("which = ArgMax<axis=3, keepdims=0>(rows)");
  result.line(fmt::format("place = Add(which, {})", result.ints("starts", starts)));
  result.line(fmt::format("within = Gather<axis=0>({}, place)", result.ints("indices", elements->indices)));
  // The indices refer to the whole tensor.
  const std::string index = add_begins_of_images(result, "within", *channels, pixels);
  result.line(fmt::format("y1 = Reshape({}, {})", index, pooled_shape));
  if (is_column_major) {
    // OpenVINO 2026.4.1 ignores storage_order.
    result.by_definition =
        "by definition: the indices of the largest elements, counted by columns; the CPU engine counts by rows, so it "
        "cannot verify this; the lowering is tested with results of ONNX's own tests";
  }
  result.summary = fmt::format("ArgMax and ReduceMax of {} gathered windows of {}", rows, places);
  return result;
}

std::optional<Replacement> lower_max_unpool(Site& site) {
  const auto kernel = site.node().ints("kernel_shape");
  const auto sizes = site.sizes(0, 1);
  if (!kernel || !sizes || sizes->size() != kernel->size() + 1) return site.no_size("a size of its input is dynamic");
  if (!site.is_real(0)) return site.no_type(0);
  const std::size_t axes = kernel->size();
  const auto strides = site.ints_or("strides", axes, 1);
  const auto pads = site.ints_or("pads", 2 * axes, 0);
  std::vector<std::int64_t> image;
  for (std::size_t i = 0; i < axes; ++i) {
    image.push_back(((*sizes)[i + 1] - 1) * strides[i] - pads[i] - pads[i + axes] + (*kernel)[i]);
    if (image.back() < 1) return site.no("a size of its output would be below 1");
  }
  const std::int64_t channels = sizes->front();
  std::vector<std::int64_t> missing(2 * (axes + 2), 0);
  bool is_larger = false;
  if (site.has_input(2)) {
    const auto wanted = site.ints(2);
    if (!wanted || wanted->size() != axes + 2)
      return site.no("its input output_shape is not a constant with one size for each axis");
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t more = (*wanted)[i + 2] - image[i];
      if (more < 0) return site.no("its output_shape is smaller than the image that its windows cover");
      missing[axes + 2 + 2 + i] = more;
      is_larger = is_larger || more != 0;
    }
  }

  Replacement result;
  std::vector<std::int64_t> whole{-1, channels};
  whole.insert(whole.end(), image.begin(), image.end());
  const std::string line = result.ints("line", {-1});
  result.line("batch = Shape<start=0, end=1>(x0)");
  result.line(fmt::format("count = Mul(batch, {})", result.ints("of_one", {channels * product(image)})));
  result.line(fmt::format("nothing = ConstantOfShape<value={}([0])>(count)", to_string(site.type(0))));
  result.line(fmt::format("numbers = Reshape(x0, {})", line));
  result.line(fmt::format("places = Reshape(x1, {})", line));
  result.line("scattered = ScatterElements<axis=0>(nothing, places, numbers)");
  result.line(
      fmt::format("{} = Reshape(scattered, {})", is_larger ? "image" : "y0", result.ints("image_shape", whole)));
  if (is_larger) result.line(fmt::format("y0 = Pad(image, {})", result.ints("missing", missing)));
  result.summary = "ScatterElements into a tensor of zeros";
  return result;
}

}  // namespace graft::passes
