// Decides which nodes stay in f32 when a network becomes f16 or bf16, from the numbers that go through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/typed.hpp"
#include "runtime/engine.hpp"
#include "verify/emulate.hpp"
#include "verify/figures.hpp"
#include "verify/output_figures.hpp"

namespace graft::quant {

struct ChooseOptions {
  verify::Precision precision = verify::Precision::f16;
  bool typed_io = false;            ///< As in TypedOptions.
  std::vector<std::string> keep;    ///< Names of nodes, tensors or operators, with * and ?: these stay in f32.
  std::vector<std::string> only;    ///< The same: nothing else leaves f32. Empty: everything may.
  bool narrow_before_int8 = false;  ///< As in TypedOptions.
  std::map<std::string, std::string, std::less<>> kept = {};  ///< More of those, by key_of, and why.
  std::vector<runtime::TensorMap> data;  ///< Inputs to decide by, run by run; without them they are made up.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;  ///< Of synthetic inputs.
  std::optional<double> limit_db;  ///< Signal to noise ratio that each output has to have; nothing: limit_of.
  double margin_db = 0;  ///< How much more than the limit the search looks for, since other inputs may have less.
  int threads = 0;
  std::int64_t memory = std::int64_t{1} << 30;  ///< As in LayerOptions.
  NodeRefusal refusal = {};                     ///< TypedOptions::refusal takes it.
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// verify::narrow_limit_db, so that verify accepts what meets the limit.
[[nodiscard]] double limit_of(verify::Precision precision);

enum class WhyKept : std::uint8_t {
  form,      ///< It has no such form, or is left alone: see make_typed.
  asked,     ///< --keep, --only.
  overflow,  ///< A tensor that it makes or reads is beyond the range.
  integers,  ///< A tensor that it makes or reads counts further than the type does.
  sum,       ///< What it sums inside is beyond the range.
  loss,      ///< Without it an output misses the limit.
};
/// "form", "asked", "overflow", "integers", "sum", "loss".
[[nodiscard]] std::string_view to_string(WhyKept why);

/// A node and why it has its type.
struct ChosenNode {
  TypedNode node;
  std::optional<WhyKept> why;       ///< Of a kept one.
  verify::TensorRange range;        ///< Of its first output, as the f32 network gives it.
  verify::RoundingEffect rounding;  ///< What the type does to that.
  bool has_figures = false;         ///< Whether the two are there: the output is a tensor of f32.
};

struct ChosenTypes {
  TypedModel typed;
  std::vector<ChosenNode> nodes;
  std::size_t runs = 0;                        ///< That decided.
  std::vector<verify::OutputFigures> outputs;  ///< Of the model as it was written, in the worst of the runs.
  std::vector<verify::OutputFigures>
      plain;  ///< Of the model with nothing kept but what has no such form or was asked for.
  std::vector<std::string> notes;
  std::vector<std::string> inputs;  ///< "image: f32[2, 1, 8, 8]"
  double limit_db = 0;
  bool met = false;
  std::size_t trials = 0;  ///< Models that were run.

  [[nodiscard]] std::vector<const ChosenNode*> kept() const;  ///< Without those that have no such form.
};

/// Runs the f32 network, looks at every tensor, keeps in f32 what would overflow, count wrongly or sum too far, and
/// where the outputs then still miss the limit, what loses most, until they meet it or nothing helps. What was kept for
/// the last reason and is not needed in the end is given back. Everything is judged by running the typed model with
/// its tensors rounded where they are made, for all data: what a single run breaks is kept. Throws Error for a pattern
/// that matches nothing, and where the model does not run.
[[nodiscard]] ChosenTypes choose_types(const runtime::Engine& engine, const onnx::Model& model,
                                       const ChooseOptions& options);

}  // namespace graft::quant
