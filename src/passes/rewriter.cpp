// Proves changes on copies of their regions, applies them to the model, and records them.
#include "passes/rewriter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <unordered_set>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/origin_note.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/region_text.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view as_asked = "not proven, as requested";

/// Adds the time between its construction and its destruction to a variable, in seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool compiles(const runtime::Engine& engine, const onnx::Model& region) {
  try {
    static_cast<void>(engine.compile(region));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Returns `engine` or its second engine, whichever is ONNX Runtime, or null if neither is.
const runtime::Engine* find_onnxruntime(const runtime::Engine& engine) {
  constexpr std::string_view name = "ONNX Runtime";
  if (engine.name().starts_with(name)) return &engine;
  const runtime::Engine* second = engine.second();
  return second != nullptr && second->name().starts_with(name) ? second : nullptr;
}

/// Returns whether the pattern matcher skips a node, so that it may lie inside a region although the pattern does not
/// contain it.
bool is_transparent(const onnx::Node& node) { return node.is("Identity") || node.is("Dropout") || node.is("Cast"); }

/// Returns the error of the first Graft operator in the region whose attributes or known input sizes are invalid, or an
/// empty string if all are valid.
std::string refusal_of(const onnx::Model& region) {
  try {
    region.graph().for_each_node(onnx::check_operator);
  } catch (const Error& refused) {
    return refused.what();
  }
  return "";
}

bool is_shape_number(const onnx::Value& value) {
  return value.type == onnx::ElementType::i64 || value.type == onnx::ElementType::i32;
}

/// Returns the outputs of the proposal, followed by all other outputs of its nodes that nodes outside read. The latter
/// are compared too, so that the proof fails if an edit changes a value that the proposal does not list.
std::vector<const onnx::Value*> results_of(const Proposal& proposal) {
  const std::unordered_set<const onnx::Node*> members(proposal.nodes.begin(), proposal.nodes.end());
  std::vector<const onnx::Value*> result(proposal.outputs.begin(), proposal.outputs.end());
  for (const onnx::Node* node : proposal.nodes) {
    if (node->graph != proposal.outputs.front()->graph) continue;
    for (const onnx::Value* output : node->outputs) {
      if (output == nullptr || std::find(result.begin(), result.end(), output) != result.end()) continue;
      const bool used = std::any_of(output->uses.begin(), output->uses.end(),
                                    [&](const onnx::Use& use) { return !members.contains(use.node); });
      if ((used || output->is_output()) && !output->constant()) result.push_back(output);
    }
  }
  return result;
}

/// Returns the values from which the nodes of a proposal are run in the proof: the inputs of the proposal and all other
/// non-constant values that its nodes read. A value that is computed from the shape of a tensor is replaced by that
/// tensor, so that shapes and tensors stay consistent.
std::vector<const onnx::Value*> boundary_of(const Proposal& proposal) {
  const std::unordered_set<const onnx::Node*> members(proposal.nodes.begin(), proposal.nodes.end());
  std::vector<const onnx::Value*> result;
  std::unordered_set<const onnx::Value*> seen;
  const auto add = [&](const onnx::Value* value) {
    if (seen.insert(value).second && !value->constant()) result.push_back(value);
  };
  for (const onnx::Value* value : proposal.inputs) add(value);

  std::vector<const onnx::Value*> waiting = results_of(proposal);
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (value == nullptr || seen.contains(value)) continue;
    const onnx::Node* producer = value->producer;
    const bool inside =
        producer != nullptr && (members.contains(producer) ||
                                (producer->subgraphs().empty() &&
                                 (is_transparent(*producer) || (is_shape_number(*value) && producer->domain.empty()))));
    if (!inside) {
      add(value);
      continue;
    }
    seen.insert(value);
    if (!producer->subgraphs().empty()) {
      const std::vector<const onnx::Value*> read = onnx::values_read_by(*producer);
      waiting.insert(waiting.end(), read.begin(), read.end());
      continue;
    }
    for (const onnx::Value* input : producer->inputs) {
      if (input == nullptr) continue;
      const bool only_its_shape = producer->is("Shape") || producer->is("Size");
      if (only_its_shape && (input->producer == nullptr || !members.contains(input->producer))) {
        add(input);
      } else {
        waiting.push_back(input);
      }
    }
  }
  return result;
}

/// Returns a description of the last node of a proposal for messages, or "another" if the proposal replaces no nodes.
std::string nodes_text(const Proposal& proposal) {
  return proposal.nodes.empty() ? "another" : onnx::describe(*proposal.nodes.back());
}

std::string anchor_of(const onnx::Node& node) {
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) return output->name;
  }
  return onnx::describe(node);
}

/// Returns a sub-graph as a separate model. Values that it reads from outer graphs become inputs, or constants if they
/// are constant.
onnx::Model model_of_subgraph(const onnx::Model& model, const onnx::Graph& graph) {
  onnx::Model result;
  result.ir_version = model.ir_version;
  result.source = model.source;
  result.graph().opset_imports = model.graph().opset_imports;
  const auto describe_as = [](const onnx::Value& original, onnx::Value* made) {
    made->type = original.type;
    made->shape = original.shape;
    return made;
  };
  const auto input_for = [&](const onnx::Value* value) -> onnx::Value* {
    if (value == nullptr) return nullptr;
    if (onnx::Value* known = result.graph().find_local(value->name)) return known;
    const auto constant = value->constant();
    if (!constant) return describe_as(*value, result.graph().add_input(value->name));
    onnx::Value* made = describe_as(*value, result.graph().add_value(value->name));
    result.graph().set_initializer(*made, *constant);
    return made;
  };
  const auto output_for = [&](const onnx::Value* value) -> onnx::Value* {
    return value == nullptr ? nullptr : describe_as(*value, result.graph().add_value(value->name));
  };
  for (const onnx::Node* node : graph.nodes()) {
    if (!node->subgraphs().empty() || node->is("Constant")) continue;
    std::vector<onnx::Value*> inputs;
    std::vector<onnx::Value*> outputs;
    for (const onnx::Value* value : node->inputs) inputs.push_back(input_for(value));
    for (const onnx::Value* value : node->outputs) outputs.push_back(output_for(value));
    onnx::Node* copy = result.graph().add_node_with_outputs(node->op_type, inputs, outputs, nullptr, node->domain);
    copy->name = node->name;
    for (const auto& [name, attribute] : node->attributes) copy->attributes.emplace(name, copy_attribute(attribute));
  }
  return result;
}

std::vector<const onnx::Value*> values_named(const onnx::Model& model, const std::vector<const onnx::Value*>& values) {
  std::vector<const onnx::Value*> result;
  for (const onnx::Value* value : values) {
    const onnx::Value* found = model.graph().find_local(value->name);
    if (found == nullptr) throw Error(fmt::format("'{}' is inside a sub-graph of a sub-graph", value->name));
    result.push_back(found);
  }
  return result;
}

void fix_shapes(onnx::Model& region, const std::map<std::string, Shape, std::less<>>& fixed) {
  std::map<std::string, Shape, std::less<>> shapes = fixed;
  for (const onnx::Value* input : region.graph().inputs()) {
    if (input->shape) shapes.emplace(input->name, *input->shape);
  }
  infer_shapes(region, shapes);
}

/// Applies the edit of a proposal, and stores in the metadata of each new node the names of the original tensors that
/// it replaces.
void edit_and_note_origin(const Proposal& proposal) {
  std::vector<std::string> tensors;
  for (const onnx::Node* node : proposal.nodes) {
    for (std::string& name : stands_for(*node)) {
      if (std::find(tensors.begin(), tensors.end(), name) == tensors.end()) tensors.push_back(std::move(name));
    }
  }
  onnx::Graph& graph = *proposal.outputs.front()->graph;
  // The graph lists the new nodes: to compare its nodes before and after took seconds for thousands of edits of a long
  // chain.
  for (onnx::Node* node : graph.nodes_added_by([&] { proposal.edit(graph); })) note_origin(*node, tensors);
}

void collect_graphs(onnx::Graph& graph, std::vector<onnx::Graph*>& result) {
  result.push_back(&graph);
  for (onnx::Node* node : graph.nodes()) {
    for (onnx::Graph* inner : node->subgraphs()) collect_graphs(*inner, result);
  }
}

/// Returns `graph` or a graph inside it that contains a value of this name, or null if none exists.
const onnx::Graph* find_graph_of(const onnx::Graph& graph, const std::string& value) {
  if (graph.find_local(value) != nullptr) return &graph;
  const onnx::Graph* found = nullptr;
  graph.for_each_node([&](const onnx::Node& node) {
    for (const onnx::Graph* inner : node.subgraphs()) {
      if (found == nullptr && inner->find_local(value) != nullptr) found = inner;
    }
  });
  return found;
}

}  // namespace

Rewriter::Rewriter(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options,
                   RewriteReport& report)
    : engine_(engine), model_(model), options_(options), report_(report) {}

std::vector<onnx::Graph*> graphs_of(onnx::Model& model) {
  std::vector<onnx::Graph*> result;
  collect_graphs(model.graph(), result);
  return result;
}

std::int64_t Rewriter::most_constant_bytes(std::int64_t if_first) {
  if (!most_constant_bytes_) most_constant_bytes_ = if_first;
  return *most_constant_bytes_;
}

void Rewriter::begin(std::string pass) { pass_ = std::move(pass); }

std::string Rewriter::key_of(const std::vector<NodeRef>& nodes, const std::string& replacement) const {
  std::string key = pass_ + '\n' + replacement;
  for (const NodeRef& node : nodes) key += '\n' + node.id;
  return key;
}

bool Rewriter::was_rejected(const std::vector<NodeRef>& nodes, const std::string& replacement) const {
  const auto known = rejections_.find(key_of(nodes, replacement));
  return known != rejections_.end() && known->second.is_final;
}

void Rewriter::reject(Rewrite rewrite, bool is_final) {
  const auto [known, is_new] =
      rejections_.try_emplace(key_of(rewrite.nodes, rewrite.replacement), Rejection{report_.rejected.size(), is_final});
  known->second.is_final = is_final;
  last_rejected_ = known->second.index;
  if (is_new) report_.rejected.emplace_back();
  report_.rejected[last_rejected_] = std::move(rewrite);
}

bool Rewriter::apply(const Proposal& proposal) {
  std::vector<NodeRef> nodes;
  for (const onnx::Node* node : proposal.nodes) nodes.push_back(ref_of(*node));
  if (was_rejected(nodes, proposal.replacement)) {
    last_rejected_ = rejections_.at(key_of(nodes, proposal.replacement)).index;
    return false;
  }
  const Verdict verdict = prove(proposal);
  Rewrite rewrite{.pass = pass_,
                  .nodes = std::move(nodes),
                  .others = {},
                  .replacement = proposal.replacement,
                  .reason = proposal.reason,
                  .proof = verdict.text,
                  .proof_kind = verdict.kind,
                  .place = proposal.place};
  if (!verdict.proven) {
    reject(std::move(rewrite), !verdict.could_not_run);
    return false;
  }
  for (const onnx::Node* node : proposal.nodes) rewritten_.insert(anchor_of(*node));
  edit_and_note_origin(proposal);
  report_.rewrites.push_back(std::move(rewrite));
  return true;
}

void Rewriter::record(Subject subject, std::string replacement, std::string reason, std::string proof) {
  report_.rewrites.push_back({.pass = pass_,
                              .nodes = std::move(subject.nodes),
                              .others = std::move(subject.others),
                              .replacement = std::move(replacement),
                              .reason = std::move(reason),
                              .proof = std::move(proof)});
}

void Rewriter::forget_near_misses(const onnx::Node& node) { rewritten_.insert(anchor_of(node)); }

void Rewriter::record_rejected(Subject subject, std::string replacement, std::string reason, std::string why) {
  reject({.pass = pass_,
          .nodes = std::move(subject.nodes),
          .others = std::move(subject.others),
          .replacement = std::move(replacement),
          .reason = std::move(reason),
          .proof = std::move(why)},
         true);
}

Rewriter::Verdict Rewriter::prove(const Proposal& proposal) {
  if (!proposal.by_definition.empty()) return {true, proposal.by_definition};
  if (!options_.prove) return {true, std::string(as_asked)};
  if (proposal.is_proven_by_onnxruntime) return prove_by_onnxruntime(proposal);
  const std::vector<const onnx::Value*> inputs = boundary_of(proposal);
  for (const onnx::Value* input : inputs) {
    if (!input->type || !input->shape) {
      return prove_whole_model(proposal, fmt::format("the type or the rank of '{}' is unknown", input->name));
    }
  }
  try {
    return prove_region_of(proposal, inputs);
  } catch (const Error& error) {
    return prove_whole_model(proposal, error.what());
  }
}

Rewriter::Verdict Rewriter::prove_by_onnxruntime(const Proposal& proposal) {
  const auto by_definition = [&](const std::string& why) {
    return Verdict{true, fmt::format("{}; ONNX Runtime did not prove it: {}", proposal.where_engine_lacks_it, why)};
  };
  const runtime::Engine* engine = find_onnxruntime(engine_);
  if (engine == nullptr) return by_definition("it is not among the CPU engines");
  const std::vector<const onnx::Value*> inputs = boundary_of(proposal);
  for (const onnx::Value* input : inputs) {
    if (!input->type || !input->shape) {
      return by_definition(fmt::format("the type or the rank of '{}' is unknown", input->name));
    }
  }
  try {
    const Region region = region_of(proposal, inputs);
    if (std::string why = refusal_of(region.after); !why.empty()) return {false, std::move(why)};
    Verdict verdict =
        prove_regions(*engine, region, proposal.changes_result, nodes_text(proposal), options_for(proposal));
    const bool has_run = verdict.proven || !verdict.could_not_run;
    return has_run || !compiles(*engine, region.after) ? verdict : by_definition(verdict.text);
  } catch (const Error& error) {
    return by_definition(error.what());
  }
}

Rewriter::Region Rewriter::region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs) const {
  const onnx::Graph& graph = *proposal.outputs.front()->graph;
  const std::vector<const onnx::Value*> outputs = results_of(proposal);
  Region region;
  if (&graph == &model_.graph()) {
    region.before = extract(model_, inputs, outputs);
  } else {
    const onnx::Model alone = model_of_subgraph(model_, graph);
    region.before = extract(alone, values_named(alone, inputs), values_named(alone, outputs));
  }
  if (!proposal.proof_shapes.empty()) fix_shapes(region.before, proposal.proof_shapes);
  region.after = region.before.clone();
  proposal.edit(region.after.graph());
  region.after.graph().remove_dead();
  return region;
}

Rewriter::Verdict Rewriter::prove_region_of(const Proposal& proposal, const std::vector<const onnx::Value*>& inputs) {
  const Region region = region_of(proposal, inputs);
  // The whole model would be refused for the same reason.
  if (std::string why = refusal_of(region.after); !why.empty()) return {false, std::move(why)};

  Verdict verdict =
      prove_regions(engine_, region, proposal.changes_result, nodes_text(proposal), options_for(proposal));
  if (!verdict.proven && verdict.could_not_run && !proposal.where_engine_lacks_it.empty() &&
      !compiles(engine_, region.before) && compiles(engine_, region.after)) {
    return {true, proposal.where_engine_lacks_it};
  }
  // A verdict on the whole model holds for this place only, so it is not kept for regions that look the same.
  if (!verdict.proven && verdict.could_not_run) return prove_whole_model(proposal, verdict.text);
  return verdict;
}

verify::ProofOptions Rewriter::options_for(const Proposal& proposal) const {
  verify::ProofOptions options = options_.proof;
  for (const onnx::Value* value : proposal.emptied) options.emptied.push_back(value->name);
  options.small_values = proposal.needs_small_values;
  return options;
}

Rewriter::Verdict Rewriter::prove_regions(const runtime::Engine& engine, const Region& region, bool changes_result,
                                          const std::string& nodes, const verify::ProofOptions& options) {
  const auto& [before, after] = region;
  const std::string key = (changes_result ? "!" : "=") + region_text(before) + region_text(after);
  if (const auto known = verdicts_.find(key); known != verdicts_.end()) {
    ++report_.proofs_reused;
    return known->second;
  }
  const bool alike = !changes_result && !options_.prove_each;
  const std::string kind = alike ? kind_text(before, after) : "";
  if (const auto known = kinds_.find(kind); alike && known != kinds_.end()) {
    if (auto verdict = prove_alike(engine, known->second, region, options)) return *std::move(verdict);
  }
  ++report_.proofs_run;
  const Stopwatch stopwatch(report_.proof_seconds);
  const verify::ProofResult result =
      changes_result ? measure_region(engine, before, after, options) : prove_region(engine, before, after, options);
  if (!result.proven && result.trials == 0 && !result.dispute)
    return {.proven = false, .text = result.text, .could_not_run = true};
  if (alike && result.proven) kinds_.try_emplace(kind, ProvenKind{.first = nodes, .text = result.text});
  return verdicts_.emplace(key, Verdict{.proven = result.proven, .text = result.text}).first->second;
}

std::optional<Rewriter::Verdict> Rewriter::prove_alike(const runtime::Engine& engine, ProvenKind& kind,
                                                       const Region& region, verify::ProofOptions options) {
  if (!kind.holds) return std::nullopt;
  ++kind.members;
  const bool is_checked = (kind.members & (kind.members - 1)) == 0;
  if (!is_checked) {
    ++report_.proofs_alike;
    return Verdict{.proven = true,
                   .text = fmt::format("structurally equal to {}, which was proven: {}", kind.first, kind.text),
                   .kind = ProofKind::one_of_a_kind};
  }
  ++report_.proofs_run;
  ++report_.spot_checks;
  const Stopwatch stopwatch(report_.proof_seconds);
  options.spot_check = true;
  const verify::ProofResult result = prove_region(engine, region.before, region.after, options);
  if (result.proven) {
    return Verdict{
        .proven = true,
        .text = fmt::format("structurally equal to {}, which was proven; spot check: {}", kind.first, result.text),
        .kind = ProofKind::spot_check};
  }
  kind.holds = false;
  if (kind.members > 2) throw NotAlike(result.text);
  return std::nullopt;
}

Rewriter::Verdict Rewriter::prove_whole_model(const Proposal& proposal, const std::string& why) {
  const std::string prefix = fmt::format("the region cannot be run on its own ({})", why);
  if (proposal.outputs.front()->graph != &model_.graph()) {
    return {.text = prefix + ", and it is part of a sub-graph", .could_not_run = true};
  }
  if (!proposal.emptied.empty()) {
    return {.text = prefix + ", and runs of the whole model may not reach tensors without elements",
            .could_not_run = true};
  }
  if (!proposal.proof_shapes.empty()) return {false, prefix + ", and the whole model has different sizes"};
  if (whole_model_proofs_ >= options_.whole_model_proofs) {
    return {.text = fmt::format("{}; the whole model has been run {} times for such proofs, which is the limit", prefix,
                                whole_model_proofs_),
            .could_not_run = true};
  }
  ++whole_model_proofs_;
  onnx::Model after = model_.clone();
  proposal.edit(after.graph());
  after.graph().remove_dead();
  const Verdict verdict = compare_models(model_, after, proposal.changes_result);
  return {.proven = verdict.proven, .text = prefix + "; " + verdict.text, .could_not_run = verdict.could_not_run};
}

Rewriter::Verdict Rewriter::prove_values(const onnx::Model& before, const onnx::Model& after,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& outputs) {
  if (!options_.prove) return {true, std::string(as_asked)};
  const auto region_between = [&](const onnx::Model& model) {
    const auto named = [](const onnx::Graph& graph, const std::vector<std::string>& names) {
      std::vector<const onnx::Value*> values;
      for (const std::string& name : names) {
        const onnx::Value* value = graph.find_local(name);
        if (value == nullptr) throw Error(fmt::format("'{}' is in another graph", name));
        values.push_back(value);
      }
      return values;
    };
    const onnx::Graph* graph = find_graph_of(model.graph(), outputs.front());
    if (graph == nullptr) throw Error(fmt::format("there is no value '{}'", outputs.front()));
    if (graph == &model.graph()) return extract(model, named(*graph, inputs), named(*graph, outputs));
    const onnx::Model alone = model_of_subgraph(model, *graph);
    return extract(alone, named(alone.graph(), inputs), named(alone.graph(), outputs));
  };
  try {
    const Region region{.before = region_between(before), .after = region_between(after)};
    Verdict verdict = prove_regions(engine_, region, false, fmt::format("'{}'", outputs.front()), options_.proof);
    if (!verdict.proven && verdict.could_not_run) throw Error(verdict.text);
    return verdict;
  } catch (const Error& error) {
    const Verdict verdict = prove_models(before, after);
    return {verdict.proven, fmt::format("the node cannot be run on its own ({}); {}", error.what(), verdict.text)};
  }
}

Rewriter::Verdict Rewriter::prove_models(const onnx::Model& before, const onnx::Model& after) {
  return compare_models(before, after, false);
}

Rewriter::Verdict Rewriter::compare_models(const onnx::Model& before, const onnx::Model& after, bool changes_result) {
  if (!options_.prove) return {true, std::string(as_asked)};
  ++report_.proofs_run;
  const Stopwatch stopwatch(report_.proof_seconds);
  try {
    const verify::VerifyReport report = verify::verify_models(engine_, before, after, {.edge_values = true});
    if (report.dispute) return {false, report.dispute->text()};
    for (const verify::ComparedOutput& output : report.outputs) {
      if (output.not_compared.empty() || changes_result) continue;
      return {false, fmt::format("the whole model proves nothing: output '{}' was not compared: {}",
                                 output.reference.name, output.not_compared)};
    }
    const auto without_evidence =
        std::find_if(report.outputs.begin(), report.outputs.end(), [&](const verify::ComparedOutput& output) {
          return !output.is_always_empty() && (output.compared == 0 || 2 * output.lost_runs > report.runs);
        });
    if (report.equal() && without_evidence == report.outputs.end() && !report.outputs.empty()) {
      return {true, fmt::format("the whole model was run {} times and agrees", report.runs)};
    }
    if (report.equal() && !changes_result) {
      if (report.outputs.empty()) return {false, "the whole model was run, and it has no output"};
      const char* why = without_evidence->compared == 0
                            ? "has no finite value to compare"
                            : "cannot be judged, because different rounding of the arithmetic alone changes it as much";
      return {false, fmt::format("the whole model proves nothing: output '{}' {}, in {} runs",
                                 without_evidence->reference.name, why, report.runs)};
    }
    if (changes_result && report.problems.empty()) {
      std::string text = fmt::format("the result changes, as requested; the whole model was run {} times", report.runs);
      for (const verify::ComparedOutput& output : report.outputs) {
        text += fmt::format("; output '{}': {}", output.reference.name, report::difference_text(output.worst));
      }
      return {true, std::move(text)};
    }
    std::string text = "the whole model disagrees";
    for (const verify::ComparedOutput& output : report.outputs) {
      if (!output.equal())
        text += fmt::format("; output '{}': {}", output.reference.name, report::difference_text(output.worst));
    }
    for (const std::string& problem : report.problems) text += "; " + problem;
    return {false, std::move(text)};
  } catch (const Error& error) {
    return {.text = fmt::format("the whole model cannot be run: {}", error.what()), .could_not_run = true};
  }
}

void Rewriter::warn(std::string text) {
  const std::vector<std::string>& said = report_.warnings;
  if (std::find(said.begin(), said.end(), text) == said.end()) report_.warnings.push_back(std::move(text));
}

void Rewriter::record_rule(RuleOutcome outcome) { report_.rules.push_back(std::move(outcome)); }

const Rewrite& Rewriter::last_rejected() const { return report_.rejected.at(last_rejected_); }

void Rewriter::near_miss(const std::string& pattern, const onnx::NearMiss& near) {
  const std::string anchor = anchor_of(*near.node);
  NearMiss note{.pass = pass_,
                .pattern = pattern,
                .node = ref_of(*near.node),
                .matched_nodes = near.matched_nodes,
                .pattern_nodes = near.pattern_nodes,
                .reason = near.reason,
                .is_of_library = pass_ == library_pass};
  const auto [notes, is_new] = notes_.try_emplace(anchor);
  if (is_new) anchors_.push_back(anchor);
  std::optional<NearMiss>& kept = notes->second.at(note.is_of_library ? 0 : 1);
  if (!kept || is_nearer(note, *kept)) kept = std::move(note);
}

void Rewriter::end() { model_.graph().remove_dead(); }

void Rewriter::finish() {
  std::unordered_set<std::string> given;  // ids of the nodes that the model has now
  std::as_const(model_).graph().for_each_node([&](const onnx::Node& node) { given.insert(ref_of(node).id); });
  std::erase_if(report_.choices, [&](const OperatorChoice& choice) { return !given.contains(choice.node.id); });
  // A rewrite that could not be proven in one round may have been proven in a later one.
  std::erase_if(report_.rejected, [&](const Rewrite& rejected) {
    return std::any_of(report_.rewrites.begin(), report_.rewrites.end(), [&](const Rewrite& made) {
      return made.pass == rejected.pass && made.replacement == rejected.replacement && made.nodes == rejected.nodes;
    });
  });
  for (const std::string& anchor : anchors_) {
    if (rewritten_.contains(anchor)) continue;
    for (const std::optional<NearMiss>& note : notes_.at(anchor)) {
      if (note) report_.near_misses.push_back(*note);
    }
  }
  std::stable_sort(report_.near_misses.begin(), report_.near_misses.end(), is_nearer);
}

void Rewriter::choose(const NodeRef& node, std::string_view op, OperatorChoice::Kind kind, std::string reason) {
  OperatorChoice choice{.node = node, .op = std::string(op), .kind = kind, .reason = std::move(reason)};
  const auto known = std::find_if(report_.choices.begin(), report_.choices.end(),
                                  [&](const OperatorChoice& each) { return each.node.id == node.id; });
  if (known == report_.choices.end()) {
    report_.choices.push_back(std::move(choice));
  } else if (known->kind != kind) {
    *known = std::move(choice);
  }
}

std::string Rewriter::refusal_of_plugin_in(const onnx::Graph& graph) const {
  if (graph.parent() == nullptr || options_.refusal_of_plugins_in_bodies.empty()) return "";
  const onnx::Node* holder = nullptr;
  for (const onnx::Node* node : graph.parent()->nodes()) {
    const auto bodies = node->subgraphs();
    if (std::find(bodies.begin(), bodies.end(), &graph) != bodies.end()) holder = node;
  }
  const std::string where = holder == nullptr ? "a body" : fmt::format("the body of {}", onnx::describe(*holder));
  return fmt::format("it is in {}, and {}", where, options_.refusal_of_plugins_in_bodies);
}

bool Rewriter::is_wanted(const Operator& op, const FunctionInputs& inputs, const onnx::Value& x, const onnx::Value& y) {
  if (model_.graph().opset() < onnx::working_opset) return false;
  if (onnx::native_form_of(op, inputs)) return true;
  if (options_.plugins == Plugins::never) return false;
  const std::string refusal = refusal_of_plugin_in(*y.graph);
  if (refusal.empty()) return true;
  // Passes try one fusion several times, with more and with fewer of the nodes after it.
  if (kept_native_.insert(fmt::format("{} {}", op.type().name, x.name)).second) {
    choose(ref_of(*y.producer), op.type().name, OperatorChoice::Kind::native,
           fmt::format("the layers of the network stay: {}", refusal));
  }
  return false;
}

std::function<void(onnx::Graph&)> operator_edit(std::shared_ptr<const Operator> op, std::vector<std::string> inputs,
                                                std::string output) {
  return [op = std::move(op), inputs = std::move(inputs), output = std::move(output)](onnx::Graph& graph) {
    onnx::Value* y = graph.find(output);
    onnx::Node* old = y->producer;
    std::vector<onnx::Value*> values;
    for (const std::string& name : inputs) values.push_back(name.empty() ? nullptr : graph.find(name));
    onnx::Node* node = add_operator_node(graph, *op, std::move(values), {output}, old);
    node->name = old->name;
    graph.move_output(*old, y->output_index, *node, 0);
  };
}

namespace {

/// Returns a value as a string. Of lists of more than 8 elements, only the first 4 and the count are written.
std::string short_text(const AttributeValue& value) {
  const auto shortened = [&](const auto& list) {
    constexpr std::size_t few = 8;
    if (list.size() <= few) return graft::to_string(value);
    return fmt::format("[{}, ... {} numbers]", fmt::join(list.begin(), list.begin() + few / 2, ", "), list.size());
  };
  if (const auto* floats = std::get_if<std::vector<float>>(&value)) return shortened(*floats);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) return shortened(*integers);
  return graft::to_string(value);
}

}  // namespace

Proposal propose_for(onnx::Node& node, std::string replacement, std::string reason) {
  Proposal proposal{.nodes = {&node},
                    .outputs = node.used_outputs(),
                    .replacement = std::move(replacement),
                    .reason = std::move(reason)};
  std::copy_if(node.inputs.begin(), node.inputs.end(), std::back_inserter(proposal.inputs),
               [](const onnx::Value* input) { return input != nullptr; });
  return proposal;
}

std::string to_text(const Operator& op) {
  std::string attributes;
  for (const AttributeInfo& info : op.type().attributes) {
    const AttributeValue value = op.get(info.name).value_or(info.default_value);
    // Scales matter only to int8; at their default they would hide the other attributes.
    if (info.name.ends_with("_scale") && value == info.default_value) continue;
    attributes += fmt::format("{}{}={}", attributes.empty() ? "" : ", ", info.name, short_text(value));
  }
  return fmt::format("{}<{}>", op.type().name, attributes);
}

bool same_shape(const onnx::Value& a, const onnx::Value& b) {
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return false;
  return std::equal(a.shape->begin(), a.shape->end(), b.shape->begin(),
                    [](const Dim& left, const Dim& right) { return left == right; });
}

}  // namespace graft::passes
