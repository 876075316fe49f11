// The page of `graft convert --report`: the network before and after, with what was rewritten.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/model.hpp"
#include "inspect/verdicts.hpp"
#include "passes/report.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Whether a pass prepares the network for the others, or tidies up behind them.
[[nodiscard]] bool tidies_up(std::string_view pass);

/// Begun before the conversion, which changes the model.
class ConvertPage {
 public:
  ConvertPage(const std::string& file, const Model& before);
  /// `nodes` is of judge_nodes of the converted model.
  [[nodiscard]] report::Report finish(const Model& after, const std::vector<inspect::NodeVerdict>& nodes,
                                      const ConvertReport& done, const std::string& summary);

 private:
  void mark(const Rewrite& rewrite);
  /// The first of the nodes that is drawn, and then all of their names.
  [[nodiscard]] std::vector<report::Cell> cells_of(const std::vector<std::string>& nodes) const;
  /// Those of passes that tidy up, of the others, or all.
  [[nodiscard]] report::Table rewrites(std::string title, const std::vector<Rewrite>& rewrites,
                                       std::optional<bool> tidying) const;

  report::Report page_;
  report::ModelPlaces before_;
};

}  // namespace graft::present
