// Shape rules of matrix products, convolutions, pooling, recurrent layers and STFT.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
Shape matmul_shape(const NodeTypes& t, Shape a, Shape b) {
  if (a.empty() || b.empty()) t.fail("an input is a scalar; both inputs must have at least rank 1");
  const bool a_vector = a.size() == 1;
  const bool b_vector = b.size() == 1;
  if (a_vector) a.insert(a.begin(), Dim(1));
  if (b_vector) b.emplace_back(1);
  const Dim& k_a = a.back();
  const Dim& k_b = b[b.size() - 2];
  if (k_a.is_constant() && k_b.is_constant() && k_a.value() != k_b.value()) {
    t.fail(fmt::format("the left input has {} columns and the right input has {} rows; these numbers must be equal",
                       k_a.value(), k_b.value()));
  }
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const Dim from_a = i + a.size() >= rank ? a[i + a.size() - rank] : Dim(1);
    const Dim from_b = i + b.size() >= rank ? b[i + b.size() - rank] : Dim(1);
    result.push_back(broadcast(from_a, from_b, t));
  }
  if (!a_vector) result.push_back(a[a.size() - 2]);
  if (!b_vector) result.push_back(b.back());
  return result;
}

namespace {

void matmul(NodeTypes& t) {
  const std::string& op = t.node().op_type;
  const std::size_t second = op == "QLinearMatMul" ? 3 : 1;
  t.set_type(0, op == "MatMul"          ? (t.type(0) ? t.type(0) : t.type(1))
                : op == "MatMulInteger" ? std::optional(ElementType::i32)
                                        : t.type(7));
  if (t.shape(0) != nullptr && t.shape(second) != nullptr)
    t.set_shape(0, matmul_shape(t, *t.shape(0), *t.shape(second)));
}

/// A side of an Einsum equation: "b...ij" has the letters "bij" and the ellipsis after the first letter.
struct EinsumTerm {
  std::string letters;
  std::optional<std::size_t> ellipsis;
};

EinsumTerm einsum_term(std::string_view text) {
  EinsumTerm term;
  for (const char letter : text) {
    if (letter == '.' && !term.ellipsis) term.ellipsis = term.letters.size();
    if (letter != '.') term.letters += letter;
  }
  return term;
}

/// Returns the size of the axes that a letter labels, of which two have the sizes `a` and `b`; size 1 is broadcast.
/// Throws Error if the sizes contradict each other.
Dim common_size(const NodeTypes& t, char letter, const Dim& a, const Dim& b) {
  if (!a.is_constant() || a == Dim(1)) return b.is_constant() || a == Dim(1) ? b : a;
  if (b.is_constant() && b != Dim(1) && a != b) {
    t.fail(fmt::format("its axes '{}' have {} and {} elements; these numbers must be equal", letter, a.value(),
                       b.value()));
  }
  return a;
}

void einsum(NodeTypes& t) {
  t.set_type(0, t.type(0));
  std::string equation = t.node().string_or("equation", "");
  std::erase_if(equation, [](char c) { return c == ' '; });
  const std::size_t arrow = equation.find("->");
  std::map<char, Dim> sizes;
  std::map<char, int> occurrences;
  Shape broadcasted;
  std::string_view left = std::string_view(equation).substr(0, arrow);
  const auto terms = static_cast<std::size_t>(std::count(left.begin(), left.end(), ',')) + 1;
  const std::size_t inputs = t.node().inputs.size();
  if (!equation.empty() && terms != inputs) {
    t.fail(fmt::format("its equation names {} input{}, but the node has {}", terms, terms == 1 ? "" : "s", inputs));
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    const std::size_t comma = left.find(',');
    if (t.shape(i) == nullptr || (comma == std::string_view::npos) != (i + 1 == inputs)) return;
    const EinsumTerm term = einsum_term(left.substr(0, comma));
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    const Shape& shape = *t.shape(i);
    const std::size_t count = term.letters.size();
    if (count > shape.size() || (!term.ellipsis && count < shape.size())) {
      t.fail(fmt::format("input {} has rank {}, but the equation names {} axes for it", i, shape.size(), count));
    }
    const std::size_t between = shape.size() - count;
    for (std::size_t at = 0; at < count; ++at) {
      const char letter = term.letters[at];
      const Dim& dim = shape[at < term.ellipsis.value_or(count) ? at : at + between];
      const auto [known, is_new] = sizes.emplace(letter, dim);
      if (!is_new) known->second = common_size(t, letter, known->second, dim);
      ++occurrences[letter];
    }
    if (!term.ellipsis) continue;
    if (broadcasted.size() < between) broadcasted.insert(broadcasted.begin(), between - broadcasted.size(), Dim(1));
    for (std::size_t at = 0; at < between; ++at) {
      Dim& into = broadcasted[broadcasted.size() - between + at];
      into = broadcast(into, shape[*term.ellipsis + at], t);
    }
  }
  EinsumTerm result;
  if (arrow != std::string::npos) {
    result = einsum_term(std::string_view(equation).substr(arrow + 2));
  } else {
    // Without an arrow, the ellipsis comes first, followed by the letters that occur once, in alphabetical order.
    result.ellipsis = 0;
    for (const auto& [letter, times] : occurrences) {
      if (times == 1) result.letters += letter;
    }
  }
  Shape shape;
  for (std::size_t at = 0; at <= result.letters.size(); ++at) {
    if (result.ellipsis == at) shape.insert(shape.end(), broadcasted.begin(), broadcasted.end());
    if (at == result.letters.size()) break;
    const auto size = sizes.find(result.letters[at]);
    if (size == sizes.end())
      t.fail(fmt::format("its result has the axis '{}', which no input has", result.letters[at]));
    shape.push_back(size->second);
  }
  t.set_shape(0, shape);
}

}  // namespace

void gemm(NodeTypes& t) {
  t.set_type(0, t.type(0) ? t.type(0) : t.type(1));
  const Shape* a = t.shape(0);
  const Shape* b = t.shape(1);
  if (a == nullptr || b == nullptr) return;
  if (a->size() != 2 || b->size() != 2)
    t.fail(fmt::format("the inputs have the ranks {} and {}; both must have rank 2", a->size(), b->size()));
  const bool transpose_a = t.node().int_or("transA", 0) != 0;
  const bool transpose_b = t.node().int_or("transB", 0) != 0;
  const Dim& k_a = (*a)[transpose_a ? 0 : 1];
  const Dim& k_b = (*b)[transpose_b ? 1 : 0];
  if (k_a.is_constant() && k_b.is_constant() && k_a.value() != k_b.value()) {
    t.fail(fmt::format("the left input has {} columns and the right input has {} rows; these numbers must be equal",
                       k_a.value(), k_b.value()));
  }
  t.set_shape(0, {(*a)[transpose_a ? 1 : 0], (*b)[transpose_b ? 0 : 1]});
}

namespace {

std::vector<std::int64_t> list_or(const NodeTypes& t, std::string_view name, std::size_t size, std::int64_t otherwise) {
  std::vector<std::int64_t> list = t.node().ints(name).value_or(std::vector<std::int64_t>(size, otherwise));
  if (list.size() != size) {
    t.fail(fmt::format("attribute `{}` has {} elements; it must have {}", name, list.size(), size));
  }
  return list;
}

/// Returns the number of windows of the size `kernel` of a convolution or pooling in each spatial dimension of `x`.
std::optional<Shape> window_shape(const NodeTypes& t, const Shape& x, const Shape& kernel) {
  const std::size_t spatial = kernel.size();
  if (x.size() != spatial + 2)
    t.fail(fmt::format("the input has rank {}; the kernel requires rank {}", x.size(), spatial + 2));
  const auto strides = list_or(t, "strides", spatial, 1);
  const auto dilations = list_or(t, "dilations", spatial, 1);
  const auto pads = list_or(t, "pads", spatial * 2, 0);
  const std::string auto_pad = t.node().string_or("auto_pad", "NOTSET");
  const bool ceil_mode = t.node().int_or("ceil_mode", 0) != 0;
  Shape result;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (strides[i] <= 0 || dilations[i] <= 0) t.fail("each element of `strides` and `dilations` must be at least 1");
    const Dim& size = x[i + 2];
    const Dim window = (kernel[i] - 1) * dilations[i] + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      result.push_back(ceil_div(size, strides[i]));
      continue;
    }
    const bool valid = auto_pad == "VALID";
    const Dim room = size + Dim(valid ? 0 : (Dim(pads[i]) + pads[i + spatial])) - window;
    if (room.is_constant() && room.value() < 0) {
      t.fail(fmt::format("a window of {} does not fit into dimension {} ({}) with its padding", window.to_string(),
                         i + 2, size.to_string()));
    }
    if (!ceil_mode) {
      result.push_back(floor_div(room, strides[i]) + 1);
    } else if (room.is_constant()) {
      std::int64_t count = ceil_div(room, strides[i]).value() + 1;
      // A window must not begin after the end of the image and the padding before it.
      if (size.is_constant() && (Dim(count - 1) * strides[i]).value() >= (size + (valid ? 0 : pads[i])).value())
        --count;
      result.emplace_back(count);
    } else {
      result.push_back(strides[i] == 1 ? room + 1 : unknown_dim());
    }
  }
  return result;
}

std::optional<Shape> kernel_of(const NodeTypes& t, std::size_t weight_input) {
  if (const auto kernel = t.node().ints("kernel_shape")) return Shape(kernel->begin(), kernel->end());
  const Shape* weight = weight_input == 0 ? nullptr : t.shape(weight_input);
  if (weight == nullptr || weight->size() < 3) return std::nullopt;
  return Shape(weight->begin() + 2, weight->end());
}

/// Throws Error if the attribute `kernel_shape` differs from the shape of the weights.
void check_kernel(const NodeTypes& t, const Shape& kernel, std::size_t weight_input) {
  const Shape* weight = t.shape(weight_input);
  if (weight == nullptr || t.node().attribute("kernel_shape") == nullptr) return;
  const bool same_rank = weight->size() == kernel.size() + 2;
  bool fits = same_rank;
  for (std::size_t i = 0; fits && i < kernel.size(); ++i) {
    const Dim& size = (*weight)[i + 2];
    fits = !size.is_constant() || size == kernel[i];
  }
  if (fits) return;
  t.fail(fmt::format("attribute `kernel_shape` is {}, but the weights '{}' have the shape {}", to_string(kernel),
                     t.node().input(weight_input)->name, to_string(*weight)));
}

/// Throws Error unless there is one bias per output channel.
void check_bias(const NodeTypes& t, std::size_t bias_input, const Dim& channels) {
  const Shape* bias = t.shape(bias_input);
  if (bias == nullptr || bias->size() != 1 || !(*bias)[0].is_constant() || !channels.is_constant()) return;
  if ((*bias)[0].value() == channels.value()) return;
  t.fail(fmt::format("its bias '{}' has {} elements; the weights require {}", t.node().input(bias_input)->name,
                     (*bias)[0].value(), channels.value()));
}

}  // namespace

void convolution(NodeTypes& t) {
  const std::string& op = t.node().op_type;
  const std::size_t weight = op == "QLinearConv" ? 3 : 1;
  t.set_type(0, op == "Conv" || op == "FusedConv" || op == "DeformConv" ? t.type(0)
                : op == "ConvInteger"                                   ? std::optional(ElementType::i32)
                                                                        : t.type(7));
  const auto kernel = kernel_of(t, weight);
  if (t.shape(0) == nullptr || !kernel || t.shape(0)->size() < 2) return;
  check_kernel(t, *kernel, weight);
  const auto spatial = window_shape(t, *t.shape(0), *kernel);
  const Shape* w = t.shape(weight);
  const Dim& channels = (*t.shape(0))[1];
  const std::int64_t group = t.node().int_or("group", 1);
  if (w != nullptr && w->size() > 1 && (*w)[1].is_constant() && channels.is_constant() &&
      (Dim(group) * (*w)[1]).value() != channels.value()) {
    t.fail(fmt::format("the input has {} channels; the weights require {}", channels.value(),
                       (Dim(group) * (*w)[1]).value()));
  }
  Shape result{(*t.shape(0))[0], w == nullptr || w->empty() ? unknown_dim() : (*w)[0]};
  if (op == "Conv") check_bias(t, 2, result[1]);
  result.insert(result.end(), spatial->begin(), spatial->end());
  t.set_shape(0, std::move(result));
}

namespace {

void causal_convolution(NodeTypes& t) {
  t.copy(0);
  t.set_type(1, t.type(0));
  const Shape* x = t.shape(0);
  const Shape* w = t.shape(1);
  if (x == nullptr || w == nullptr || x->size() != 3 || w->size() != 3) return;
  t.set_shape(1, {(*x)[0], (*x)[1], (*w)[2] - 1});
}

void conv_transpose(NodeTypes& t) {
  t.set_type(0, t.type(0));
  const auto kernel = kernel_of(t, 1);
  const Shape* x = t.shape(0);
  const Shape* w = t.shape(1);
  if (x == nullptr || w == nullptr || w->size() < 3 || !kernel) return;
  const std::size_t spatial = kernel->size();
  if (x->size() != spatial + 2)
    t.fail(fmt::format("the input has rank {}; the kernel requires rank {}", x->size(), spatial + 2));
  check_kernel(t, *kernel, 1);
  if ((*x)[1].is_constant() && (*w)[0].is_constant() && (*x)[1].value() != (*w)[0].value()) {
    t.fail(fmt::format("the input has {} channels; the weights require {}", (*x)[1].value(), (*w)[0].value()));
  }
  check_bias(t, 2, (*w)[1] * t.node().int_or("group", 1));
  const auto strides = list_or(t, "strides", spatial, 1);
  const auto dilations = list_or(t, "dilations", spatial, 1);
  const auto pads = list_or(t, "pads", spatial * 2, 0);
  const auto extra = list_or(t, "output_padding", spatial, 0);
  const auto given = t.node().ints("output_shape");
  const std::string auto_pad = t.node().string_or("auto_pad", "NOTSET");
  Shape result{(*x)[0], (*w)[1] * t.node().int_or("group", 1)};
  for (std::size_t i = 0; i < spatial; ++i) {
    if (given && given->size() >= spatial) {
      result.emplace_back((*given)[given->size() - spatial + i]);
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      result.push_back((*x)[i + 2] * strides[i]);
    } else {
      const Dim padding = auto_pad == "VALID" ? Dim(0) : Dim(pads[i]) + pads[i + spatial];
      const Dim window = ((*kernel)[i] - 1) * dilations[i] + 1;
      result.push_back(((*x)[i + 2] - 1) * strides[i] + (window + extra[i] - padding));
    }
  }
  t.set_shape(0, std::move(result));
}

void pool(NodeTypes& t) {
  t.set_type(0, t.type(0));
  t.set_type(1, ElementType::i64);
  const auto kernel = kernel_of(t, 0);
  if (t.shape(0) == nullptr) return;
  if (!kernel) t.fail("it lacks the attribute `kernel_shape`, which is required");
  if (t.shape(0)->size() < 2) return;
  const auto spatial = window_shape(t, *t.shape(0), *kernel);
  Shape result{(*t.shape(0))[0], (*t.shape(0))[1]};
  result.insert(result.end(), spatial->begin(), spatial->end());
  t.set_shape(0, result);
  t.set_shape(1, std::move(result));
}

void global_pool(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) == nullptr) return;
  Shape result = *t.shape(0);
  for (std::size_t i = 2; i < result.size(); ++i) result[i] = 1;
  t.set_shape(0, std::move(result));
}

void recurrent(NodeTypes& t) {
  for (std::size_t i = 0; i < 3; ++i) t.set_type(i, t.type(0));
  const Shape* x = t.shape(0);
  const std::int64_t hidden = t.node().int_or("hidden_size", 0);
  if (x == nullptr || x->size() != 3 || hidden <= 0) return;
  const bool both = t.node().string_or("direction", "forward") == "bidirectional";
  const Dim directions(both ? 2 : 1);
  if (t.node().int_or("layout", 0) == 0) {
    t.set_shape(0, {(*x)[0], directions, (*x)[1], hidden});
    for (std::size_t i = 1; i < 3; ++i) t.set_shape(i, {directions, (*x)[1], hidden});
  } else {
    t.set_shape(0, {(*x)[0], (*x)[1], directions, hidden});
    for (std::size_t i = 1; i < 3; ++i) t.set_shape(i, {(*x)[0], directions, hidden});
  }
}

void determinant(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) != nullptr && t.shape(0)->size() >= 2)
    t.set_shape(0, Shape(t.shape(0)->begin(), t.shape(0)->end() - 2));
}

/// Infers the output of STFT, which has the shape [batch, frames, frequencies, 2].
void short_time_transform(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) == nullptr || t.shape(0)->size() < 2) return;
  const Dim& elements = (*t.shape(0))[1];
  const auto step = t.ints(1);
  std::optional<std::int64_t> length;  // The length of a frame.
  if (const auto given = t.ints(3); given && given->size() == 1) length = given->front();
  const Shape* window = t.shape(2);
  if (!t.has_input(3) && window != nullptr && window->size() == 1 && window->front().is_constant()) {
    length = window->front().value();
  }
  Shape shape{t.shape(0)->front(), unknown_dim(), unknown_dim(), 2};
  if (length && *length > 0) {
    shape[2] = t.node().int_or("onesided", 1) != 0 ? *length / 2 + 1 : *length;
    const bool is_known = step && step->size() == 1 && step->front() > 0 && elements.is_constant();
    if (is_known && elements.value() >= *length) shape[1] = (elements.value() - *length) / step->front() + 1;
  }
  t.set_shape(0, std::move(shape));
}

}  // namespace

void add_products(Table& table) {
  add(table, matmul, {"MatMul", "MatMulInteger", "QLinearMatMul"});
  add(table, einsum, {"Einsum"});
  add(table, gemm, {"Gemm"});
  add(table, convolution, {"Conv", "ConvInteger", "DeformConv", "QLinearConv"});
  add(table, causal_convolution, {"CausalConvWithState"});
  add(table, conv_transpose, {"ConvTranspose"});
  add(table, pool, {"AveragePool", "LpPool", "MaxPool"});
  add(table, global_pool, {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"});
  add(table, recurrent, trait::recurrent);
  add(table, determinant, {"Det"});
  add(table, short_time_transform, {"STFT"});
}

}  // namespace graft::onnx::shape_rules
