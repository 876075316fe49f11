// Definition of DeformableConvolution: shapes, checks, and the sizes that its kernels use.
#include "ops/deformable_convolution/deformable_convolution.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "ops/deformable_convolution/plan.hpp"

namespace graft::ops {
namespace {

constexpr std::size_t image_axes = 2;

Status refuse_deformable(std::string message) {
  return invalid_argument("DeformableConvolution: " + std::move(message));
}

std::int64_t number_at(const std::vector<std::int64_t>& list, std::size_t axis, std::int64_t otherwise) {
  return list.empty() ? otherwise : list[axis];
}

Status check_deformable_shape(const Problem& problem, std::size_t port, const Extents& required) {
  const Extents& found = problem.inputs[port].extents;
  if (found == required) return {};
  return refuse_deformable(std::string(DeformableConvolution::ports()[port].name) + " has shape " + to_string(found) +
                           "; it must have shape " + to_string(required));
}

}  // namespace

DeformableSizes::DeformableSizes(const DeformableConvolution& op, const Problem& problem)
    : items(problem.inputs[DeformableConvolution::x].extents[0]),
      channels(problem.inputs[DeformableConvolution::x].extents[1]),
      outputs(problem.outputs[0].extents[1]),
      groups(op.group),
      offset_groups(op.offset_group),
      has_bias(problem.inputs[DeformableConvolution::bias].extents[0] > 0),
      has_mask(problem.inputs[DeformableConvolution::mask].extents.rank() == 4) {
  const auto axis_of = [&](std::size_t axis) {
    const int at = static_cast<int>(axis + image_axes);
    return DeformableAxis{.in = problem.inputs[DeformableConvolution::x].extents[at],
                          .out = problem.outputs[0].extents[at],
                          .kernel = problem.inputs[DeformableConvolution::weight].extents[at],
                          .stride = number_at(op.strides, axis, 1),
                          .pad = number_at(op.pads, axis, 0),
                          .dilation = number_at(op.dilations, axis, 1)};
  };
  rows = axis_of(0);
  columns = axis_of(1);
}

DeformableSections::DeformableSections(const DeformableSizes& sizes, DType dtype) {
  constexpr std::int64_t vector_bytes = 16;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t vector = vector_bytes / element;
  const auto divide_up = [](std::int64_t value, std::int64_t by) { return (value + by - 1) / by; };
  count = std::max(sizes.groups, sizes.offset_groups);
  of_group = count / sizes.groups;
  channels = sizes.channels / count;
  stored_channels = divide_up(channels, vector) * vector;
  step_channels = deformable_step_bytes / element;
  chunks = divide_up(channels, step_channels);
  steps = of_group * chunks * sizes.taps();
  x_at = add(sizes.items * sizes.in_pixels() * count * stored_channels * element);
  weight_at = add(sizes.outputs * steps * step_channels * element);
}

std::vector<Shape> DeformableConvolution::infer_shapes(std::span<const Shape> inputs) const {
  constexpr std::array<std::size_t, 5> ranks{4, 4, 4, 1, 4};
  for (std::size_t port = 0; port < inputs.size(); ++port) {
    const std::size_t found = inputs[port].size();
    if (found == ranks[port] || (port == mask && found == 1)) continue;
    throw std::invalid_argument("`" + std::string(ports()[port].name) + "` has rank " + std::to_string(found) +
                                "; the rank must be " + std::to_string(ranks[port]));
  }
  Shape y{inputs[x][0], inputs[weight][0]};
  for (std::size_t axis = 0; axis < image_axes; ++axis) {
    const Dim window = kernel_shape.empty() ? inputs[weight][2 + axis] : Dim(kernel_shape[axis]);
    const Dim reach = (window - 1) * number_at(dilations, axis, 1) + 1;
    const std::int64_t padding = number_at(pads, axis, 0) + number_at(pads, image_axes + axis, 0);
    y.push_back(floor_div(inputs[x][2 + axis] + padding - reach, number_at(strides, axis, 1)) + 1);
  }
  return {y};
}

Status DeformableConvolution::check_attributes() const {
  const auto check_list = [](const char* list_name, const std::vector<std::int64_t>& list,
                             std::size_t count) -> Status {
    if (list.empty() || list.size() == count) return {};
    return refuse_deformable("attribute `" + std::string(list_name) + "` is " + to_string(AttributeValue(list)) +
                             "; it must have " + std::to_string(count) + " elements");
  };
  if (Status status = check_list("dilations", dilations, image_axes); !status.ok()) return status;
  if (Status status = check_list("kernel_shape", kernel_shape, image_axes); !status.ok()) return status;
  if (Status status = check_list("strides", strides, image_axes); !status.ok()) return status;
  return check_list("pads", pads, 2 * image_axes);
}

Status DeformableConvolution::check(const Problem& problem) const {
  const Extents& image = problem.inputs[x].extents;
  const Extents& filters = problem.inputs[weight].extents;
  const Extents& results = problem.outputs[0].extents;
  if (image[1] % group != 0 || filters[0] % group != 0 || image[1] % offset_group != 0) {
    return refuse_deformable("x has " + std::to_string(image[1]) + " channels and y has " + std::to_string(filters[0]) +
                             "; both must be multiples of group, " + std::to_string(group) +
                             ", and the channels of x also of offset_group, " + std::to_string(offset_group));
  }
  Extents window;
  for (int axis = 0; axis < static_cast<int>(image_axes); ++axis) {
    window.push_back(number_at(kernel_shape, static_cast<std::size_t>(axis), filters[2 + axis]));
  }
  if (Status status = check_deformable_shape(problem, weight, {filters[0], image[1] / group, window[0], window[1]});
      !status.ok()) {
    return status;
  }
  for (std::size_t axis = 0; axis < image_axes; ++axis) {
    const auto at = static_cast<int>(axis);
    const std::int64_t size = image[2 + at] + number_at(pads, axis, 0) + number_at(pads, image_axes + axis, 0);
    const std::int64_t reach = (window[at] - 1) * number_at(dilations, axis, 1) + 1;
    if (window[at] >= 1 && size >= reach) continue;
    return refuse_deformable("axis " + std::to_string(2 + axis) + " of x has " + std::to_string(size) +
                             " elements with padding, and the window spans " + std::to_string(reach) +
                             "; the window must not be empty or larger than the padded axis");
  }
  // The kernels store rows and columns in 32 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (image[2] > most || image[3] > most) {
    return refuse_deformable("x has shape " + to_string(image) + "; it may have at most 2147483647 rows and columns");
  }
  const std::int64_t samples = offset_group * window.element_count();
  if (Status status = check_deformable_shape(problem, offset, {image[0], 2 * samples, results[2], results[3]});
      !status.ok()) {
    return status;
  }
  const Extents none{0};
  if (!(problem.inputs[bias].extents == none)) {
    if (Status status = check_deformable_shape(problem, bias, {filters[0]}); !status.ok()) return status;
  }
  if (problem.inputs[mask].extents == none) return {};
  return check_deformable_shape(problem, mask, {image[0], samples, results[2], results[3]});
}

std::size_t DeformableConvolution::workspace(const Problem& problem) const {
  const DeformableSizes sizes(*this, problem);
  if (!DeformableSections::exist(sizes)) return 0;
  return static_cast<std::size_t>(DeformableSections(sizes, problem.inputs[x].dtype).bytes);
}

std::vector<DropIn> DeformableConvolution::drop_ins() {
  const auto translate = [](std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) -> Status {
    for (const NamedAttribute& field : fields) {
      if (field.name == "padding") {
        const auto& found = std::get<std::vector<std::int64_t>>(field.value);
        std::vector<std::int64_t> padding = found;
        if (padding.size() == 2 * image_axes && padding[0] == padding[1] && padding[2] == padding[3]) {
          padding = {padding[0], padding[2]};
        }
        if (padding.size() != image_axes) {
          return refuse_deformable("attribute `padding` is " + to_string(field.value) +
                                   "; it must have 2 elements, for rows and columns, or each of them twice");
        }
        attributes.push_back({"pads", std::vector{padding[0], padding[1], padding[0], padding[1]}});
      } else if (field.name == "bias" && std::get<std::int64_t>(field.value) != 0) {
        return refuse_deformable("attribute `bias` is " + to_string(field.value) +
                                 "; it must be 0, because this plugin has no bias");
      }
    }
    return {};
  };
  const DropInField padding{"padding", "", AttributeType::integers,
                            "the number of rows and columns of zeros to add at each end"};
  const auto from_nvidia = [&](std::string_view plugin_version) -> DropIn {
    return {.plugin_name = "ModulatedDeformConv2d",
            .version = plugin_version,
            .fields = {{"stride", "strides"},
                       padding,
                       {"dilation", "dilations"},
                       {"group", "group"},
                       {"deformable_group", "offset_group"}},
            .doc = "NVIDIA's plugin of TensorRT 8.5 and later",
            .translate = translate,
            .inputs = {"x", "offset", "mask", "weight", "bias"}};
  };
  const std::vector<DropInField> named_as_in_mmcv{{"stride", "strides"},
                                                  padding,
                                                  {"dilation", "dilations"},
                                                  {"groups", "group"},
                                                  {"deform_groups", "offset_group"}};
  const auto modulated = [&](std::string_view plugin_name, std::string_view doc) -> DropIn {
    return {.plugin_name = plugin_name,
            .version = "1",
            .fields = named_as_in_mmcv,
            .doc = doc,
            .translate = translate,
            .inputs = {"x", "offset", "mask", "weight", "bias"}};
  };
  std::vector<DropInField> of_first_version = named_as_in_mmcv;
  of_first_version.push_back({"bias", "", AttributeType::integer, "must be 0: the plugin has no bias"});
  of_first_version.push_back(
      {"im2col_step", "", AttributeType::integer, "the number of items per call of mmcv's kernel"});
  return {from_nvidia("1"),
          from_nvidia("2"),
          modulated("MMCVModulatedDeformConv2d", "mmcv.ops.ModulatedDeformConv2d, as mmcv and mmdeploy export it"),
          modulated("ModulatedDeformableConv2dTRT", "BEVFormer_tensorrt's plugin"),
          modulated("ModulatedDeformableConv2dTRT2", "BEVFormer_tensorrt's plugin for pairs of f16"),
          {.plugin_name = "MMCVDeformConv2d",
           .version = "1",
           .fields = std::move(of_first_version),
           .doc = "mmcv.ops.DeformConv2d, as mmcv and mmdeploy export it",
           .translate = translate,
           .inputs = {"x", "offset", "weight"}}};
}

}  // namespace graft::ops
