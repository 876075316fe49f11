// graft inspect: how each node will run in TensorRT, by rule.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "cli/program.hpp"
#include "cli/tensorrt_support.hpp"
#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "graph/operator_node.hpp"
#include "graph/shape_inference.hpp"
#include "passes/pipeline.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::string model;
};

/// From best to worst.
enum class Verdict : std::uint8_t { native, lowered, plugin, unsupported };
constexpr std::array all_verdicts{Verdict::native, Verdict::lowered, Verdict::plugin, Verdict::unsupported};

struct Judgement {
  Verdict verdict = Verdict::native;
  std::string reason;
  std::string advice;
};

struct JudgedNode {
  std::string name;
  std::string op;
  Judgement judgement;
};

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::native: return "native";
    case Verdict::lowered: return "lowered";
    case Verdict::plugin: return "plugin";
    case Verdict::unsupported: return "unsupported";
  }
  return "";
}

std::string_view meaning_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::native: return "TensorRT runs it as it is";
    case Verdict::lowered: return "`graft convert` makes native layers of it";
    case Verdict::plugin: return "Graft's plugin library runs it";
    case Verdict::unsupported: return "neither TensorRT nor Graft runs it";
  }
  return "";
}

Colour colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::plugin: return Colour::good;
    case Verdict::unsupported: return Colour::bad;
    case Verdict::native:
    case Verdict::lowered: return Colour::none;
  }
  return Colour::none;
}

/// What `convert` would do, by the description of each node that goes: "`graft convert` makes ... of it".
using Replacements = std::map<std::string, std::string>;

Replacements replacements_of(const Model& model) {
  Model converted = model.clone();
  ConvertOptions options;
  options.prove = false;
  Replacements found;
  for (const Rewrite& rewrite : convert(converted, options).rewrites) {
    const std::string what = rewrite.pass == "remove_dead"
                                 ? "no output needs it: `graft convert` takes it away"
                                 : fmt::format("`graft convert` makes {} of it", rewrite.replacement);
    for (const std::string& node : rewrite.nodes) found.emplace(node, what);
  }
  return found;
}

Judgement judge_operator(const Node& node, const OperatorMatch& match) {
  const std::unique_ptr<Operator> op = make_operator(node);
  const Value* input = node.input(0);
  const std::optional<DType> dtype =
      input != nullptr && input->type ? to_dtype(*input->type) : std::optional<DType>(DType::f32);
  if (const auto form = dtype ? op->native_form(function_inputs(node)) : std::nullopt) {
    return {Verdict::lowered, fmt::format("the native form is as fast: {}", *form), "graft convert"};
  }
  std::string reason(match.type->why_plugin);
  if (match.drop_in != nullptr) {
    reason = fmt::format("Graft's {} stands in for {} {}; {}", match.type->name, match.drop_in->plugin_name,
                         match.drop_in->version, reason);
  }
  return {Verdict::plugin, reason, "graft build"};
}

class Inspector {
 public:
  Inspector(const Model& model, Replacements replacements) : model_(model), replacements_(std::move(replacements)) {}

  [[nodiscard]] Judgement judge(const Node& node, int depth = 0) const {
    if (const OperatorMatch match = find_operator_for(node)) return judge_operator(node, match);
    if (const FunctionDefinition* function = model_.find_function(node)) return judge_function(*function, depth);
    const auto replaced = replacements_.find(describe(node));
    if (is_standard_operator(node.domain, node.op_type) && node.domain != "ai.onnx.ml") {
      const std::optional<std::string> refusal = refusal_of_tensorrt(node);
      if (!refusal) {
        if (replaced == replacements_.end()) return {Verdict::native, remark_on_native(node), ""};
        return {Verdict::native, replaced->second, ""};
      }
      if (replaced != replacements_.end()) {
        return {Verdict::lowered, *refusal, replaced->second};
      }
      return {Verdict::unsupported, *refusal,
              "no operator of Graft stands in for it; write one: graft's guide \"add an operator\""};
    }
    const std::string domain = node.domain.empty() ? "" : fmt::format(" of domain {}", node.domain);
    return {Verdict::unsupported, fmt::format("{}{} is an operator neither of ONNX nor of Graft", node.op_type, domain),
            "a plugin library may have it: graft plugins LIB.so; then graft build --plugin-lib LIB.so"};
  }

 private:
  /// TensorRT inlines a function, so its worst node decides.
  [[nodiscard]] Judgement judge_function(const FunctionDefinition& function, int depth) const {
    constexpr int deepest = 24;
    Judgement worst{Verdict::native, "its ONNX function is inlined as native layers", ""};
    if (depth >= deepest) return worst;
    function.body->for_each_node([&](const Node& inner) {
      const Judgement judgement = judge(inner, depth + 1);
      if (judgement.verdict <= worst.verdict) return;
      worst = judgement;
      worst.reason = fmt::format("inside its function, {}: {}", describe(inner), judgement.reason);
    });
    return worst;
  }

  const Model& model_;
  Replacements replacements_;
};

void print_counts(const Console& console, const std::vector<JudgedNode>& nodes) {
  Table table;
  for (const Verdict verdict : all_verdicts) {
    const auto count = std::count_if(nodes.begin(), nodes.end(),
                                     [&](const JudgedNode& node) { return node.judgement.verdict == verdict; });
    table.add({{std::string(name_of(verdict)), count == 0 ? Colour::faint : colour_of(verdict)},
               {fmt::format("{:>5}", count), count == 0 ? Colour::faint : Colour::strong},
               {std::string(meaning_of(verdict)), Colour::faint}});
  }
  console.print(table);
}

/// Nodes with the same verdict for the same reason.
struct Group {
  const Judgement* judgement = nullptr;
  std::vector<const JudgedNode*> nodes;
};

std::vector<Group> grouped(const std::vector<JudgedNode>& nodes, bool every_node) {
  std::vector<Group> groups;
  for (const JudgedNode& node : nodes) {
    const Judgement& judged = node.judgement;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.judgement->verdict == judged.verdict && group.judgement->reason == judged.reason;
    });
    if (same != groups.end() && !every_node) {
      same->nodes.push_back(&node);
    } else {
      groups.push_back({&judged, {&node}});
    }
  }
  return groups;
}

/// "3 Conv, 1 Relu"
std::string operators_text(const Group& group) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const JudgedNode* node : group.nodes) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == node->op; });
    if (same == counts.end()) {
      counts.emplace_back(node->op, 1);
    } else {
      ++same->second;
    }
  }
  std::string text;
  for (const auto& [op, count] : counts) {
    text += text.empty() ? "" : ", ";
    text += count == 1 ? op : fmt::format("{} {}", count, op);
  }
  return text;
}

std::string names_text(const Group& group) {
  constexpr std::size_t few = 4;
  std::string text;
  for (std::size_t i = 0; i < group.nodes.size() && i < few; ++i) text += (i == 0 ? "" : ", ") + group.nodes[i]->name;
  return group.nodes.size() <= few ? text : fmt::format("{} and {} more", text, group.nodes.size() - few);
}

/// What there is something to say of; the rest, which is plainly native, on one line. With -v every node.
void print_nodes(const Console& console, const std::vector<JudgedNode>& nodes) {
  Table plain;
  for (const Group& group : grouped(nodes, console.verbose)) {
    const Judgement& judged = *group.judgement;
    if (judged.reason.empty()) {
      plain.add({std::string(name_of(judged.verdict)), {operators_text(group), Colour::faint}});
      continue;
    }
    Table table;
    const Cell verdict(std::string(name_of(judged.verdict)), colour_of(judged.verdict));
    table.add({verdict, {operators_text(group) + "  " + names_text(group), Colour::strong}});
    table.add({"", judged.reason});
    if (judged.verdict == Verdict::unsupported) table.add({"", {"what to do: " + judged.advice, Colour::faint}});
    console.print();
    console.print(table);
  }
  if (plain.empty()) return;
  console.print();
  console.print(plain);
}

/// A call of an operator's function goes by the operator's own name.
std::string operator_name(const Node& node) {
  const OperatorMatch match = find_operator_for(node);
  const std::string name = match && match.drop_in == nullptr ? std::string(match.type->name) : node.op_type;
  return node.domain.empty() ? name : node.domain + "::" + name;
}

Exit inspect(const Console& console, const Arguments& arguments) {
  Model model = read_onnx(arguments.model);
  infer_shapes(model);
  const Inspector inspector(model, replacements_of(model));
  std::vector<JudgedNode> nodes;
  const Graph& graph = model.graph();
  graph.for_each_node([&](const Node& node) {
    const Value* output = node.output(0);
    const std::string name = !node.name.empty() ? node.name : output != nullptr ? output->name : "";
    nodes.push_back({name, operator_name(node), inspector.judge(node)});
  });

  bool runs = true;
  Json listed = Json::array();
  Json counts = Json::object();
  for (const Verdict verdict : all_verdicts) counts[std::string(name_of(verdict))] = 0;
  for (const JudgedNode& node : nodes) {
    const Judgement& judged = node.judgement;
    runs = runs && judged.verdict != Verdict::unsupported;
    counts[std::string(name_of(judged.verdict))] = counts[std::string(name_of(judged.verdict))].get<int>() + 1;
    listed.push_back({{"node", node.name},
                      {"operator", node.op},
                      {"verdict", name_of(judged.verdict)},
                      {"reason", judged.reason},
                      {"advice", judged.advice}});
  }
  console.print(fmt::format("{}: opset {}, {}", console.paint(arguments.model, Colour::strong), graph.opset(),
                            count_text(nodes.size(), "node")));
  console.print();
  print_counts(console, nodes);
  print_nodes(console, nodes);
  console.result({{"model", arguments.model},
                  {"opset", graph.opset()},
                  {"runs", runs},
                  {"truth", "rule"},
                  {"counts", counts},
                  {"nodes", listed}});
  return runs ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_inspect(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "inspect", "how each node will run in TensorRT: native, lowered, plugin or unsupported (then exit code 1)",
      "graft inspect digits.onnx", [arguments](const Console& c) { return inspect(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model")->required();
}

}  // namespace graft::cli
