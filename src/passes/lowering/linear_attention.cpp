// LinearAttention: a Scan along the sequence, whose state is one matrix for each head.
//
//   LinearAttention(q, k, v, state, decay, beta)   becomes, in each step of a Scan,
//                                                      kept = Mul(state, Exp(decay))
//                                                      change = Mul(beta, Sub(v, MatMul(k, kept)))
//                                                      state = Add(kept, Mul(Transpose(k), change))
//                                                      y = MatMul(q, state)
//
// Without a decay, `kept` is the state; without a beta, `change` is v. ONNX computes the state in f32. TensorRT builds
// the Scan with sequences of any length; the lowering of Scan replaces it by copies of its body if the sequence is
// short.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "onnx/functions.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// A tensor of the Scan: its name outside of the body, where it has the axes batch, step, heads, rows and columns. In
/// the body, the name has the suffix _now, and the tensor has no axis for the steps.
struct Scanned {
  std::string name;
  std::vector<Dim> sizes;  ///< The sizes of heads, rows and columns.
};

void declare(onnx::Value& value, const Dim& batch, const std::vector<Dim>& sizes) {
  value.type = onnx::ElementType::f32;
  value.shape = Shape{batch};
  value.shape->insert(value.shape->end(), sizes.begin(), sizes.end());
}

/// Adds to `graph` a Scan with the state `state` and the tensors `scanned`, whose body has the nodes `text`. The
/// results are `last_state` and `of_steps`, each part of which has the sizes `y`.
void add_scan(onnx::Graph& graph, const Scanned& state, const std::vector<Scanned>& scanned, const std::vector<Dim>& y,
              const Dim& batch, const std::string& text) {
  auto body = std::make_unique<onnx::Graph>(&graph);
  body->name = "step";
  std::vector<onnx::Value*> inputs{graph.find(state.name)};
  declare(*body->add_input("state"), batch, state.sizes);
  for (const Scanned& each : scanned) {
    inputs.push_back(graph.find(each.name));
    declare(*body->add_input(each.name + "_now"), batch, each.sizes);
  }
  onnx::parse_nodes(*body, text, {"state_next", "y_now"}, nullptr);
  declare(*body->outputs()[0], batch, state.sizes);
  declare(*body->outputs()[1], batch, y);
  onnx::Node* scan = graph.add_node("Scan", inputs, {"last_state", "of_steps"});
  const std::vector<std::int64_t> axes(scanned.size(), 1);
  scan->attributes["num_scan_inputs"] = onnx::AttributeData(static_cast<std::int64_t>(scanned.size()));
  scan->attributes["scan_input_axes"] = onnx::AttributeData(axes);
  scan->attributes["scan_output_axes"] = onnx::AttributeData(std::vector<std::int64_t>{1});
  scan->attributes["body"] = onnx::AttributeData(std::move(body));
}

class LinearAttentionWriter {
 public:
  explicit LinearAttentionWriter(Site& site) : site_(site), node_(site.node()) {}

  std::optional<Replacement> write() {
    if (!read_sizes() || !read_rule()) return std::nullopt;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      if (site_.has_input(i))
        in_f32_.push_back(result_.in_f32(fmt::format("x{}", i), site_.type(i)));
      else
        in_f32_.emplace_back();
    }
    const float given = node_.float_or("scale", 0);
    const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(k_size_)) : given;
    result_.line(fmt::format("scaled = Mul({}, {})", in_f32_[0], result_.number("scale", scale)));
    scan("q", "scaled", heads_, q_heads_ / heads_, k_size_);
    scan("k", in_f32_[1], heads_, 1, k_size_);
    scan("k_column", in_f32_[1], heads_, k_size_, 1);
    scan("v", in_f32_[2], heads_, 1, v_size_);
    std::string step;
    std::string kept = "state";
    std::string change = "v_now";
    if (has_decay_) {
      result_.line(fmt::format("factors = Exp({})", in_f32_[4]));
      scan("factor", "factors", heads_, *site_.size(4, 2) / heads_, 1);
      step += "kept = Mul(state, factor_now)\n";
      kept = "kept";
    }
    if (has_beta_) {
      scan("beta", in_f32_[5], *site_.size(5, 2), 1, 1);
      step += fmt::format("found = MatMul(k_now, {})\nmissing = Sub(v_now, found)\n", kept);
      step += "change = Mul(beta_now, missing)\n";
      change = "change";
    }
    step += fmt::format("added = Mul(k_column_now, {})\nstate_next = Add({}, added)\n", change, kept);
    step += "y_now = MatMul(q_now, state_next)\n";
    const std::string first_state = start();
    result_.add([state = Scanned{first_state, {heads_, k_size_, v_size_}}, scanned = scanned_,
                 y = std::vector<Dim>{heads_, q_heads_ / heads_, v_size_}, batch = site_.shape(0)->front(),
                 step](onnx::Graph& graph) { add_scan(graph, state, scanned, y, batch, step); });
    const std::string shape = result_.ints("y_shape", {0, 0, q_heads_ * v_size_});
    result_.give("y0", site_.type(0), fmt::format("Reshape(of_steps, {})", shape));
    result_.give("y1", site_.type(site_.has_input(3) ? 3 : 0), "Identity(last_state)");
    result_.summary = fmt::format("a Scan along the sequence, with a state of {} x {} for each of {} heads", k_size_,
                                  v_size_, heads_);
    result_.is_proven_by_onnxruntime = true;
    result_.needs_small_values = true;  // Only keys of the norm 1 keep the state from growing.
    return std::move(result_);
  }

 private:
  /// Reads types, heads and sizes. Returns whether they are known and fit together, and otherwise stores the reason.
  bool read_sizes() {
    std::vector<std::optional<std::int64_t>> last;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      last.push_back(site_.has_input(i) ? site_.size(i, -1) : 0);
      if (site_.has_input(i) && !site_.is_real(i)) return refuse_type(i);
      if (!last.back()) return refuse_size(i);
    }
    q_heads_ = node_.int_or("q_num_heads", 0);
    heads_ = node_.int_or("kv_num_heads", 0);
    if (q_heads_ < 1 || heads_ < 1 || q_heads_ % heads_ != 0) {
      return refuse(fmt::format("its {} query heads are not a multiple of its {} key heads", q_heads_, heads_));
    }
    k_size_ = *last[1] / heads_;
    v_size_ = *last[2] / heads_;
    const bool fits = *last[0] == q_heads_ * k_size_ && *last[1] == heads_ * k_size_ && *last[2] == heads_ * v_size_;
    return fits || refuse("the last sizes of its query, key and value do not fit its heads");
  }

  /// Reads the update rule. Returns whether the inputs decay and beta fit it, and otherwise stores the reason.
  bool read_rule() {
    const std::string rule = node_.string_or("update_rule", "gated_delta");
    has_decay_ = rule == "gated" || rule == "gated_delta";
    has_beta_ = rule == "delta" || rule == "gated_delta";
    if (!has_decay_ && !has_beta_ && rule != "linear") {
      return refuse(fmt::format("its update_rule is \"{}\", which ONNX does not define", rule));
    }
    if (has_decay_ != site_.has_input(4) || has_beta_ != site_.has_input(5)) {
      return refuse(fmt::format("its inputs decay and beta do not fit its update_rule \"{}\"", rule));
    }
    const std::int64_t decays = has_decay_ ? *site_.size(4, -1) : heads_;
    const std::int64_t betas = has_beta_ ? *site_.size(5, -1) : heads_;
    const bool fits = (decays == heads_ || decays == heads_ * k_size_) && (betas == heads_ || betas == 1);
    return fits || refuse("the last size of its decay or beta does not fit its heads");
  }

  bool refuse(std::string why) {
    site_.no(std::move(why));
    return false;
  }
  bool refuse_type(std::size_t input) {
    site_.no_type(input);
    return false;
  }
  bool refuse_size(std::size_t input) {
    site_.no_size(fmt::format("the last size of its input {} is dynamic", input));
    return false;
  }

  /// Writes the node that separates the last axis of `tensor` into heads, rows and columns, and lists the result `name`
  /// among the tensors of the Scan.
  void scan(const std::string& name, const std::string& tensor, std::int64_t heads, std::int64_t rows,
            std::int64_t columns) {
    const std::string shape = result_.ints(name + "_shape", {0, 0, heads, rows, columns});
    result_.line(fmt::format("{} = Reshape({}, {})", name, tensor, shape));
    scanned_.push_back({name, {heads, rows, columns}});
  }

  /// Writes the state before the first step, and returns its name.
  std::string start() {
    if (site_.has_input(3)) return in_f32_[3];
    result_.line("batch = Shape<start=0, end=1>(x0)");
    result_.line(fmt::format("state_sizes = Concat<axis=0>(batch, {})",
                             result_.ints("sizes_of_head", {heads_, k_size_, v_size_})));
    result_.line(fmt::format("no_state = Expand({}, state_sizes)", result_.number("nothing", 0)));
    return "no_state";
  }

  Site& site_;
  const onnx::Node& node_;
  Replacement result_;
  std::vector<std::string> in_f32_;  ///< The names of the inputs in f32.
  std::vector<Scanned> scanned_;
  std::int64_t q_heads_ = 0;
  std::int64_t heads_ = 0;  ///< The number of heads of keys, values and state.
  std::int64_t k_size_ = 0;
  std::int64_t v_size_ = 0;
  bool has_decay_ = false;
  bool has_beta_ = false;
};

}  // namespace

std::optional<Replacement> lower_linear_attention(Site& site) { return LinearAttentionWriter(site).write(); }

}  // namespace graft::passes
