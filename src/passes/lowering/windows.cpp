// Reads the attributes of windows, and derives their padding from the sizes of the input.
#include "passes/lowering/windows.hpp"

#include <algorithm>

namespace graft::passes {

std::optional<std::vector<Window>> windows_of(Site& site, const std::vector<std::int64_t>& kernel) {
  const std::size_t axes = kernel.size();
  const auto strides = site.ints_or("strides", axes, 1);
  const auto dilations = site.ints_or("dilations", axes, 1);
  const auto pads = site.ints_or("pads", 2 * axes, 0);
  const std::string rule = site.node().string_or("auto_pad", "NOTSET");
  const bool rounds_up = site.node().int_or("ceil_mode", 0) != 0;
  std::vector<Window> windows;
  for (std::size_t i = 0; i < axes; ++i) {
    Window window{kernel[i], strides[i], dilations[i], 0, 0};
    if (window.kernel < 1 || window.stride < 1 || window.dilation < 1)
      return site.no("a size of its kernel, a stride or a dilation is below 1");
    const auto size = site.size(0, static_cast<std::int64_t>(i + 2));
    if (rule == "NOTSET") {
      window.pad_begin = pads[i];
      window.pad_end = pads[i + axes];
    } else if (rule != "VALID") {
      if (!size) return site.no_size("its padding follows from sizes that are dynamic (auto_pad)");
      const std::int64_t count = (*size + window.stride - 1) / window.stride;
      const std::int64_t padding = std::max<std::int64_t>(0, (count - 1) * window.stride + window.extent() - *size);
      window.pad_begin = rule == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
      window.pad_end = padding - window.pad_begin;
    }
    if (window.pad_begin < 0 || window.pad_end < 0) return site.no("its padding is negative");
    if (size && *size + window.pad_begin + window.pad_end < window.extent())
      return site.no("no window fits into the padded input");
    if (rounds_up) {
      if (!size) return site.no_size("the number of its windows is rounded up (ceil_mode) from a size that is dynamic");
      const std::int64_t rest = (*size + window.pad_begin + window.pad_end - window.extent()) % window.stride;
      // ONNX leaves out a window that would begin in the padding at the end.
      if (rest != 0 && window.count(*size) * window.stride < *size + window.pad_begin) {
        window.beyond = window.stride - rest;
        window.pad_end += window.beyond;
      }
    }
    windows.push_back(window);
  }
  return windows;
}

std::vector<std::int64_t> kernel_of(const std::vector<Window>& windows) {
  std::vector<std::int64_t> kernel;
  for (const Window& window : windows) kernel.push_back(window.kernel);
  return kernel;
}

std::int64_t places_of(const std::vector<Window>& windows) { return product(kernel_of(windows)); }

void for_each_index(const std::vector<std::int64_t>& sizes,
                    const std::function<void(const std::vector<std::int64_t>&)>& f) {
  check_table(sizes);
  std::vector<std::int64_t> index(sizes.size(), 0);
  const std::int64_t count = product(sizes);
  for (std::int64_t i = 0; i < count; ++i) {
    f(index);
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      if (++index[axis] < sizes[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace graft::passes
