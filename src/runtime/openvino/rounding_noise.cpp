// The noise is a node after each operation that rounds; the number of the draw is shared by all of them.
#include "runtime/openvino/rounding_noise.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/mvn.hpp>
#include <openvino/op/op.hpp>
#include <openvino/op/reduce_mean.hpp>
#include <openvino/op/sqrt.hpp>
#include <openvino/op/subtract.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::runtime {
namespace {

using Out = ov::Output<ov::Node>;

/// Epsilons of f32 by which a result moves: a few, since vector instructions for exp, tanh and the like are off by as
/// many.
constexpr double epsilons = 4;
/// Arithmetic on integers up to this size is exact: they are indices, sizes and counts that happen to be f32.
constexpr float largest_kept_integer = 65536;
/// Larger numbers might overflow.
constexpr float largest_moved = 1e38F;

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// One bit for each element.
bool is_up(std::uint64_t seed, std::size_t element) {
  constexpr std::size_t bits = 64;
  return ((mixed(seed + element / bits) >> (element % bits)) & 1U) != 0;
}

template <class T>
void move_last_bits(const T* from, T* to, std::size_t count, std::uint64_t seed, double share, bool keeps_integers) {
  constexpr std::size_t piece = 1 << 14;  // a multiple of 64
  tbb::parallel_for(std::size_t{0}, (count + piece - 1) / piece, [&](std::size_t index) {
    const auto up = static_cast<T>(1 + share);
    const auto down = static_cast<T>(1 - share);
    for (std::size_t i = index * piece; i < std::min(count, (index + 1) * piece); ++i) {
      const T x = from[i];
      const bool is_exact = keeps_integers && std::abs(x) <= largest_kept_integer && x == std::trunc(x);
      const bool stays = is_exact || !(std::abs(x) <= largest_moved);
      to[i] = stays ? x : x * (is_up(seed, i) ? up : down);
    }
  });
}

/// Moves the elements of its first input. A second one is what that is the sum of: the rounding of a sum grows with the
/// root of the number of its terms.
class NoiseNode : public ov::op::Op {
 public:
  OPENVINO_OP("Noise", "graft");

  NoiseNode() = default;
  NoiseNode(const ov::OutputVector& inputs, std::shared_ptr<runtime::RoundingNoise> noise, std::uint64_t number,
            bool keeps_integers)
      : Op(inputs), noise_(std::move(noise)), number_(number), keeps_integers_(keeps_integers) {
    constructor_validate_and_infer_types();
  }

  void validate_and_infer_types() override {
    set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
  }

  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    // A loop of a constant length is unrolled into clones of its body, and each turn is to round in its own way.
    return std::make_shared<NoiseNode>(inputs, noise_, mixed(number_ + (++clones_ << 32U)), keeps_integers_);
  }

  bool visit_attributes(ov::AttributeVisitor& visitor) override {
    visitor.on_attribute("number", number_);
    visitor.on_attribute("keeps_integers", keeps_integers_);
    return true;
  }

  bool has_evaluate() const override { return true; }
  // Each run is to draw anew.
  bool can_constant_fold(const ov::OutputVector& /*inputs*/) const override { return false; }

  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    const ov::Tensor& source = inputs[0];
    ov::Tensor& result = outputs[0];
    result.set_shape(source.get_shape());
    const std::size_t count = source.get_size();
    if (count == 0) return true;
    double share = std::ldexp(epsilons, -23);
    if (inputs.size() > 1) {
      const double terms = static_cast<double>(inputs[1].get_size()) / static_cast<double>(count);
      share = std::ldexp(std::max(epsilons, std::sqrt(terms)), -23);
    }
    // A loop's body evaluates it again and again: errors that went the same way each time would add up too fast.
    if (std::exchange(draw_, noise_->draw) != noise_->draw) evaluations_ = 0;
    const std::uint64_t seed = mixed(mixed(noise_->draw * 0x100000001b3U + number_) + evaluations_++) << 20;
    if (source.get_element_type() == ov::element::f32) {
      move_last_bits(source.data<const float>(), result.data<float>(), count, seed, share, keeps_integers_);
    } else if (source.get_element_type() == ov::element::f64) {
      move_last_bits(source.data<const double>(), result.data<double>(), count, seed, share, keeps_integers_);
    } else {
      source.copy_to(result);
    }
    return true;
  }

 private:
  std::shared_ptr<runtime::RoundingNoise> noise_;
  std::uint64_t number_ = 0;
  bool keeps_integers_ = false;
  mutable std::uint64_t clones_ = 0;
  mutable std::uint64_t draw_ = 0;
  mutable std::uint64_t evaluations_ = 0;  ///< In this draw.
};

/// The operators here are OpenVINO's, which the table of ONNX's operators (graph/schema.hpp) does not know.
bool is_one_of(const ov::Node& node, const std::set<std::string_view>& names) {
  return names.contains(node.get_type_info().name);
}

/// What they give is as exact as what they are given.
bool is_exact(const ov::Node& node) {
  static const std::set<std::string_view> names{"Parameter",
                                                "Constant",
                                                "Result",
                                                "Noise",
                                                "Rounding",
                                                "Convert",
                                                "ConvertLike",
                                                "Reshape",
                                                "Squeeze",
                                                "Unsqueeze",
                                                "Transpose",
                                                "Concat",
                                                "Split",
                                                "VariadicSplit",
                                                "StridedSlice",
                                                "Slice",
                                                "Gather",
                                                "GatherElements",
                                                "GatherND",
                                                "GatherTree",
                                                "Relu",
                                                "MaxPool",
                                                "Maximum",
                                                "Minimum",
                                                "Clamp",
                                                "Pad",
                                                "Broadcast",
                                                "Tile",
                                                "Select",
                                                "ShapeOf",
                                                "Abs",
                                                "Negative",
                                                "Sign",
                                                "TopK",
                                                "ReduceMax",
                                                "ReduceMin",
                                                "ScatterUpdate",
                                                "Floor",
                                                "Ceiling",
                                                "Round",
                                                "Identity",
                                                "Loop",
                                                "If",
                                                "TensorIterator",
                                                "NonMaxSuppression",
                                                "NonZero",
                                                "Unique",
                                                "ReverseSequence",
                                                "Reverse",
                                                "DepthToSpace",
                                                "SpaceToDepth",
                                                "ShuffleChannels",
                                                "Roll",
                                                "ExtractImagePatches",
                                                "BatchToSpace",
                                                "SpaceToBatch",
                                                "FakeQuantize",
                                                "OneHot",
                                                "Eye",
                                                "Bucketize",
                                                "RandomUniform",
                                                "Mod",
                                                "FloorMod",
                                                "ReadValue",
                                                "Assign",
                                                "AdaptiveMaxPool",
                                                "ScatterElementsUpdate",
                                                "ScatterNDUpdate",
                                                "Range"};
  return is_one_of(node, names);
}

/// Whether all operands are numbers to compute with; of the others the first alone is.
bool takes_numbers_only(const ov::Node& node) {
  static const std::set<std::string_view> names{"Convolution",
                                                "GroupConvolution",
                                                "ConvolutionBackpropData",
                                                "GroupConvolutionBackpropData",
                                                "MatMul",
                                                "Einsum",
                                                "LSTMSequence",
                                                "GRUSequence",
                                                "RNNSequence",
                                                "LSTMCell",
                                                "GRUCell",
                                                "RNNCell",
                                                "DeformableConvolution",
                                                "ScaledDotProductAttention"};
  return is_one_of(node, names);
}

bool is_reduction(const ov::Node& node) {
  static const std::set<std::string_view> names{"ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceProd"};
  return is_one_of(node, names);
}

/// Sums of products, or of many terms: what goes into them is what is rounded.
bool adds_up(const ov::Node& node) {
  static const std::set<std::string_view> names{"ReduceLogSumExp", "AvgPool", "AdaptiveAvgPool",    "Softmax",
                                                "LogSoftmax",      "CumSum",  "Interpolate",        "GridSample",
                                                "NormalizeL2",     "LRN",     "GroupNormalization", "ROIAlign",
                                                "Operator"};
  return takes_numbers_only(node) || is_reduction(node) || is_one_of(node, names);
}

bool is_arithmetic(const ov::Node& node) {
  static const std::set<std::string_view> names{"Add", "Subtract", "Multiply", "Divide"};
  return is_one_of(node, names);
}

bool is_wide(const Out& value) {
  return value.get_element_type() == ov::element::f32 || value.get_element_type() == ov::element::f64;
}

/// f16 and bf16 too: the plugin computes them in f32.
bool is_real(const Out& value) { return value.get_element_type().is_real(); }

bool is_constant(const Out& value) { return ov::is_type<ov::op::v0::Constant>(value.get_node()); }

/// Mean, variance and division in the place of one node that does all of it.
void open_normalization(const std::shared_ptr<ov::Node>& node) {
  const auto mvn = ov::as_type_ptr<ov::op::v6::MVN>(node);
  if (mvn == nullptr || !is_wide(mvn->input_value(0))) return;
  const Out x = mvn->input_value(0);
  const Out axes = mvn->input_value(1);
  const Out mean = std::make_shared<ov::op::v1::ReduceMean>(x, axes, true);
  Out y = std::make_shared<ov::op::v1::Subtract>(x, mean);
  if (mvn->get_normalize_variance()) {
    const Out variance =
        std::make_shared<ov::op::v1::ReduceMean>(std::make_shared<ov::op::v1::Multiply>(y, y), axes, true);
    const Out epsilon = ov::op::v0::Constant::create(x.get_element_type(), ov::Shape{}, {mvn->get_eps()});
    const bool inside = mvn->get_eps_mode() == ov::op::MVNEpsMode::INSIDE_SQRT;
    Out deviation;
    if (inside) {
      deviation = std::make_shared<ov::op::v0::Sqrt>(std::make_shared<ov::op::v1::Add>(variance, epsilon));
    } else {
      deviation = std::make_shared<ov::op::v1::Add>(std::make_shared<ov::op::v0::Sqrt>(variance), epsilon);
    }
    y = std::make_shared<ov::op::v1::Divide>(y, deviation);
  }
  for (ov::Input<ov::Node> reader : node->output(0).get_target_inputs()) reader.replace_source_output(y);
}

class Noise {
 public:
  explicit Noise(std::shared_ptr<runtime::RoundingNoise> noise) : noise_(std::move(noise)) {}

  /// Of what depends on an input, or on what a sub-graph is given, by more than its shape.
  void add(ov::Model& model) {
    for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) open_normalization(node);
    std::set<const ov::Node*> from_data;
    for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
      if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
        for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) add(*body);
      }
      bool depends = is_one_of(*node, {"Parameter"});
      if (!is_one_of(*node, {"ShapeOf"})) {
        for (const auto& input : node->input_values()) depends = depends || from_data.contains(input.get_node());
      }
      if (!depends || ov::is_type<ov::op::v0::Constant>(node)) continue;
      from_data.insert(node.get());
      move_operands(*node, from_data);
      if (!is_exact(*node)) move_results(*node, from_data);
    }
    model.validate_nodes_and_infer_types();
  }

 private:
  Out noise_on(const ov::OutputVector& inputs, bool keeps_integers) {
    return std::make_shared<NoiseNode>(inputs, noise_, ++count_, keeps_integers);
  }

  void move_operands(ov::Node& node, const std::set<const ov::Node*>& from_data) {
    const bool sums = adds_up(node);
    const std::size_t operands =
        is_arithmetic(node) || takes_numbers_only(node) ? node.get_input_size() : std::size_t{sums ? 1U : 0U};
    for (std::size_t i = 0; i < operands; ++i) {
      const Out source = node.input_value(i);
      if (!is_real(source) || is_one_of(*source.get_node(), {"Noise"})) continue;
      // The plugin wants the weights of these to be constants.
      if (takes_numbers_only(node) && !from_data.contains(source.get_node())) {
        if (is_constant(source)) node.input(i).replace_source_output(moved_constant(source));
      } else if (sums || is_constant(source)) {
        node.input(i).replace_source_output(moved_operand(source));
      }
    }
  }

  Out moved_operand(const Out& source) {
    const auto known = operands_.find(source);
    if (known != operands_.end()) return known->second;
    return operands_.emplace(source, noise_on({source}, true)).first->second;
  }

  Out moved_constant(const Out& source) {
    const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(source.get_node_shared_ptr());
    if (constant->get_element_type() != ov::element::f32) return source;
    const std::size_t count = ov::shape_size(constant->get_shape());
    std::vector<float> moved(count);
    move_last_bits(constant->get_data_ptr<float>(), moved.data(), count, mixed(++count_) << 20,
                   std::ldexp(epsilons, -23), true);
    return std::make_shared<ov::op::v0::Constant>(ov::element::f32, constant->get_shape(), moved.data());
  }

  void move_results(ov::Node& node, std::set<const ov::Node*>& from_data) {
    const bool keeps_integers = is_one_of(node, {"Add", "Subtract", "Multiply", "Convolution", "MatMul", "ReduceSum"});
    for (const Out& output : node.outputs()) {
      if (!is_real(output)) continue;
      const std::set<ov::Input<ov::Node>> readers = output.get_target_inputs();
      if (readers.empty()) continue;
      const Out moved = is_reduction(node) ? noise_on({output, node.input_value(0)}, keeps_integers)
                                           : noise_on({output}, keeps_integers);
      for (ov::Input<ov::Node> reader : readers) reader.replace_source_output(moved);
      from_data.insert(moved.get_node());
    }
  }

  std::shared_ptr<runtime::RoundingNoise> noise_;
  std::uint64_t count_ = 0;
  std::map<Out, Out> operands_;
};

}  // namespace

void add_rounding_noise(ov::Model& model, const std::shared_ptr<runtime::RoundingNoise>& noise) {
  Noise(noise).add(model);
}

}  // namespace graft::runtime
