// `cut`: inspects a network, cuts it in two, and compares a run of both halves with the whole network.
#include "toolkit/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "inspect/advice.hpp"
#include "inspect/cut.hpp"
#include "inspect/detection_tail.hpp"
#include "inspect/forecast.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"
#include "runtime/answer.hpp"
#include "runtime/chain.hpp"
#include "toolkit/access.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/ports.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

graft::CutNetwork to_internal(const CutResult& result) {
  return {.tensorrt = model_of(result.tensorrt_model).clone(),
          .host = model_of(result.host_model).clone(),
          .tensorrt_is_first = result.tensorrt_is_first,
          .outputs = result.outputs};
}

/// An engine that runs the two models into which a network is cut (`graft cut`) as if they were one model: a model with
/// the metadata `mark` stands for both, and they are run one after the other. All other models run in `engine`.
class HalvesEngine final : public runtime::Engine {
 public:
  /// `engine` runs both models of `network`. When they are compiled, `host_engine` is set to the name of the engine
  /// that runs the model for the host.
  HalvesEngine(const runtime::Engine& engine, const graft::CutNetwork& network, std::string& host_engine)
      : engine_(engine), network_(network), host_engine_(host_engine) {}

  /// The metadata key of the model that stands for the two models of the cut network.
  static constexpr auto mark = "graft.cut";

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    if (!model.metadata.contains(mark)) return engine_.compile(model, options);
    const auto link = [&](const onnx::Model& half) {
      std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(half, options);
      if (&half == &network_.host) host_engine_ = answer_of(*compiled, engine_.name()).engine;
      return link_of(std::move(compiled), half);
    };
    return runtime::chain(link(network_.first()), link(network_.second()), network_.outputs);
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return engine_.evaluate_constant_graph(model);
  }

 private:
  const runtime::Engine& engine_;
  const graft::CutNetwork& network_;
  std::string& host_engine_;
};

/// Returns the ids of the nodes that TensorRT does not run or computes wrongly. If `plugins` is false, they include the
/// nodes of ONNX operators that `build` runs as Graft's plugins.
std::set<std::string, std::less<>> failing(const std::vector<report::NodeSupport>& nodes, bool plugins) {
  std::set<std::string, std::less<>> ids;
  for (const report::NodeSupport& node : nodes) {
    const bool is_left_to_build =
        !plugins && node.support == report::Support::plugin && onnx::is_standard_operator("", node.op);
    if (inspect::is_bad(node.support) || is_left_to_build) ids.insert(node.node.id);
  }
  return ids;
}

bool is_among(const onnx::Node& node, const std::set<std::string, std::less<>>& ids) {
  if (ids.contains(onnx::ref_of(node).id)) return true;
  const std::vector<onnx::Graph*> inner_graphs = node.subgraphs();
  return std::any_of(inner_graphs.begin(), inner_graphs.end(), [&](const onnx::Graph* inner) {
    const std::vector<onnx::Node*> nodes = inner->nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const onnx::Node* inside) { return is_among(*inside, ids); });
  });
}

report::CutHalf half_of(const Model& model) {
  return {.nodes = model.node_count(), .inputs = model.inputs(), .outputs = model.outputs()};
}

/// Returns which outputs were not compared and why, joined by semicolons; empty if all were compared.
std::string not_compared_text(const VerifyResult& verified) {
  std::string text;
  for (const report::ComparedOutput& output : verified.outputs) {
    if (output.verdict() != report::Verdict::nothing_compared) continue;
    text += text.empty() ? "" : "; ";
    text += report::nothing_compared_text(output);
  }
  return text;
}

/// Returns why ONNX Runtime cannot load `host`, the model that is cut off for the host, for CutResult::host_refused.
/// Returns an empty string if it loads the model or is not installed.
std::string host_refused(const onnx::Model& host, const Watch& watch) {
  Work work(watch);
  return work.run([&] {
    try {
      return refusal_of_onnxruntime(host, [&work] { return work.is_cancelled(); });
    } catch (const Error& missing) {
      if (missing.kind() != Error::Kind::missing_tool) throw;
      return std::string();
    }
  });
}

void run_halves(CutResult& result, const CutOptions& cut_options) {
  const graft::CutNetwork network = to_internal(result);
  onnx::Model joined = join(network);
  joined.metadata[HalvesEngine::mark] = "";
  const Model candidate = ModelAccess::make(std::move(joined));
  try {
    const auto halves = [&](const runtime::Engine& engine) {
      return std::make_unique<HalvesEngine>(engine, network, result.host_engine);
    };
    result.verified = VerifyResult{compare_outputs(model_of(result.model), model_of(candidate), engine_options({}),
                                                   cut_options.engine, cut_options.watch, halves),
                                   candidate};
    result.verdict = result.verified->verdict();
    if (result.verdict == Verdict::nothing_compared) result.not_verified = not_compared_text(*result.verified);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input && error.kind() != Error::Kind::missing_tool) throw;
    result.not_verified = error.what();
    result.host_engine.clear();
  }
  result.host_refused = host_refused(network.host, cut_options.watch);
  if (result.host_refused.empty() || result.verdict != Verdict::same) return;
  result.not_verified = fmt::format(
      "{}\nONNX Runtime refuses the half for the host; {} computed it, and both halves together equal the whole "
      "network",
      result.host_refused, result.host_engine);
  result.verified.reset();
  result.verdict.reset();
}

}  // namespace

bool decide_on_cut(std::vector<report::NodeSupport>& nodes, const std::function<bool()>& can_cut) {
  const bool is_advised = inspect::advises_cut(nodes);
  const bool has_bad = std::ranges::any_of(nodes, inspect::is_bad, &report::NodeSupport::support);
  const bool is_possible = (is_advised || has_bad) && can_cut();
  if (is_advised && !is_possible) inspect::withdraw_cut(nodes);
  return is_possible;
}

bool can_be_cut(const graft::onnx::Model& model, const std::vector<report::NodeSupport>& nodes) {
  const std::set<std::string, std::less<>> ids = failing(nodes, true);
  return inspect::find_cut(model, [&](const onnx::Node& node) { return is_among(node, ids); }).has_value();
}

std::optional<CutResult> cut(const graft::onnx::Model& model, const std::vector<report::NodeSupport>& nodes,
                             const CutOptions& options) {
  const std::set<std::string, std::less<>> ids = failing(nodes, options.plugins);
  if (ids.empty()) return std::nullopt;
  const auto found = inspect::find_cut(model, [&](const onnx::Node& node) { return is_among(node, ids); });
  if (!found) {
    throw NoCut(
        Error::Kind::answer_is_no,
        fmt::format("{}: no cut is possible: every layer with arithmetic reads the result of a node that TensorRT "
                    "does not run or computes wrongly, or such a node reads the result of the layer, or a half "
                    "would begin with a sequence or with a tensor of unknown type\nRun the network in a runtime "
                    "that has its operators; ONNX Runtime has the operators of ONNX",
                    model.source));
  }
  inspect::Halves halves = inspect::halves_of(model, *found);
  CutResult result;
  result.model = ModelAccess::make(model.clone());
  result.tensorrt_model = ModelAccess::make(std::move(halves.tensorrt));
  result.host_model = ModelAccess::make(std::move(halves.host));
  result.tensorrt_is_first = found->tensorrt_is_first;
  result.tensorrt = half_of(result.tensorrt_model);
  result.host = half_of(result.host_model);
  for (const onnx::Value* output : model.graph().outputs()) result.outputs.push_back(output->name);
  result.between = ports_of(found->between);
  result.share_in_tensorrt = found->arithmetic_in_tensorrt / found->arithmetic;
  for (const NodeSupport& node : nodes) {
    if (ids.contains(node.node.id)) result.causes.push_back(node);
  }
  if (found->tensorrt_is_first) {
    result.tails = inspect::find_tails(found->host, found->between);
  }
  if (options.verify) run_halves(result, options);
  return result;
}

std::optional<CutResult> cut(const ConvertReport& report, const CutOptions& options) {
  return cut(inspect::inferred_copy(model_of(report.model)), report.nodes, options);
}

std::optional<CutResult> cut(const Model& model, const CutOptions& options) {
  InspectOptions inspect_options = options.inspect;
  inspect_options.convert = false;
  inspect_options.reduce.clear();
  inspect_options.watch = options.watch;
  const InspectReport inspected = inspect(model, inspect_options);
  return cut(model_of(inspected.model), inspected.nodes, options);
}

std::vector<Port> CutNetwork::inputs() const {
  const Model& first = tensorrt_is_first ? tensorrt : host;
  const Model& second = tensorrt_is_first ? host : tensorrt;
  std::vector<Port> ports = first.inputs();
  std::vector<Port> known = first.outputs();
  known.insert(known.end(), ports.begin(), ports.end());
  for (Port& port : second.inputs()) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const Port& other) { return other.name == port.name; });
    if (!is_known) ports.push_back(std::move(port));
  }
  return ports;
}

CutNetwork CutResult::network() const {
  return {.tensorrt = tensorrt_model, .host = host_model, .tensorrt_is_first = tensorrt_is_first, .outputs = outputs};
}

CutFiles cut_files(const std::filesystem::path& file) {
  const std::filesystem::path stem = file.parent_path() / file.stem();
  return {.network = stem.string() + ".cut.json", .tensorrt = file, .host = stem.string() + ".host.onnx"};
}

void check_is_one_network(const std::filesystem::path& file) {
  if (!is_cut_network(file)) return;
  throw Error(
      fmt::format("{}: this file names both halves of a network that was cut, and TensorRT runs only one of the "
                  "halves\nPass this half: {}",
                  file.string(), read_cut_network(file).tensorrt.source));
}

bool is_cut_network(const std::filesystem::path& file) { return graft::is_cut_network(file); }

CutNetwork load_cut(const std::filesystem::path& file) {
  graft::CutNetwork network = read_cut_network(file);
  return {.tensorrt = ModelAccess::make(std::move(network.tensorrt)),
          .host = ModelAccess::make(std::move(network.host)),
          .tensorrt_is_first = network.tensorrt_is_first,
          .outputs = std::move(network.outputs)};
}

}  // namespace graft::toolkit
