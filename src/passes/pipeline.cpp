// The passes in their order, with the reason for the place of each, and the loop that runs them.
#include "passes/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "graft/error.hpp"
#include "graph/functions.hpp"
#include "graph/operator_node.hpp"
#include "graph/shape_inference.hpp"
#include "passes/rewriter.hpp"

namespace graft {
namespace {

constexpr std::array passes = {
    Pass{"inline_functions", "functions of exporters hide what the other passes look for",
         inline_functions_of_exporters},
    Pass{"raise_opset", "the other passes and the functions of Graft's operators know one operator set, 17 and later",
         raise_model_opset},
    Pass{"remove_dead", "what no output needs must not count as another use of an inner value", remove_dead},
    Pass{"fold_constants", "patterns want axes and epsilons as constants, however they were written", fold_constants},
    Pass{"remove_identities", "what copies its input must not stand between the nodes of a pattern", remove_identities},
    Pass{"lower_drop_ins", "plugins of other libraries become operators before these are chosen between",
         lower_drop_ins},
    Pass{"fuse_upsampling", "elements that only move, before anybody takes some of their nodes for something else",
         fuse_upsampling},
    Pass{"fuse_padding", "the same; after repetitions, parts of which look like a border", fuse_padding},
    Pass{"fuse_spatial_pyramid_pooling", "pools of one image, while they are still nodes of ONNX",
         fuse_spatial_pyramid_pooling},
    Pass{"fuse_l2_normalize", "the larger patterns first, so that no smaller one takes a part of them",
         fuse_l2_normalize},
    Pass{"fuse_normalize", "an L2Normalize that has just been found, with the factor after it", fuse_normalize},
    Pass{"fuse_leaky_relu", "leaky ReLU in pieces, which runs in several kernels", fuse_leaky_relu},
    Pass{"fuse_instance_norm", "after leaky ReLU, which becomes part of it where it follows", fuse_instance_norm},
    Pass{"remove_leftovers", "transpositions that fusions put round an operator cancel those that stood there before",
         remove_identities},
    Pass{"choose_plugins", "last, when every operator has been found: native layer or plugin, with the reason",
         choose_plugins},
};

/// Where passes of the caller's own come in.
constexpr std::string_view last_pass = "choose_plugins";

void check_names(const std::vector<std::string>& names, const std::vector<Pass>& known) {
  for (const std::string& name : names) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const Pass& pass) { return pass.name == name; });
    if (found) continue;
    std::vector<std::string_view> allowed;
    for (const Pass& pass : known) allowed.push_back(pass.name);
    throw Error(fmt::format("there is no pass '{}'; the passes are {}", name, fmt::join(allowed, ", ")));
  }
}

bool is_enabled(const Pass& pass, const ConvertOptions& options) {
  const auto lists = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), pass.name) != names.end();
  };
  return (options.only.empty() || lists(options.only)) && !lists(options.without);
}

void infer(Model& model, const ConvertOptions& options) {
  if (options.input_shapes.empty()) {
    infer_shapes(model);
  } else {
    infer_shapes(model, options.input_shapes);
  }
}

}  // namespace

std::span<const Pass> pipeline() { return passes; }

ConvertReport convert(Model& model, const ConvertOptions& options) {
  std::vector<Pass> all(passes.begin(), passes.end());
  const auto last = std::find_if(all.begin(), all.end(), [](const Pass& pass) { return pass.name == last_pass; });
  all.insert(last, options.extra_passes.begin(), options.extra_passes.end());
  check_names(options.only, all);
  check_names(options.without, all);

  ConvertReport report;
  Rewriter rewriter(model, options, report);
  infer(model, options);
  // A node that no runtime will take is bad input, and no pass could make it right.
  for (Graph* graph : rewriter.graphs()) {
    for (const Node* node : graph->nodes()) {
      try {
        check_operator(*node);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: {}", model.source, error.what()));
      }
    }
  }
  for (const Pass& pass : all) {
    if (!is_enabled(pass, options)) continue;
    const auto start = std::chrono::steady_clock::now();
    const std::size_t before = report.rewrites.size();
    rewriter.begin(std::string(pass.name));
    pass.run(rewriter);
    const std::size_t made = report.rewrites.size() - before;
    if (made != 0) {
      rewriter.end();
      infer(model, options);
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    report.passes.push_back(
        {.pass = std::string(pass.name), .why = std::string(pass.why), .rewrites = made, .seconds = spent.count()});
  }
  rewriter.finish();
  attach_functions(model);
  remove_unused_functions(model);
  return report;
}

}  // namespace graft
