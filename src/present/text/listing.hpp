// The output of a command: lines with colored parts and tables, in the order in which they were added.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "present/text/table.hpp"

namespace graft::present {

class Listing {
 public:
  using Line = std::vector<Cell>;

  void add(Line line) { blocks_.emplace_back(std::move(line)); }
  void add(std::string line, Color color = Color::none) { add(Line{{std::move(line), color}}); }
  void add(Table table) { blocks_.emplace_back(std::move(table)); }
  void append(Listing other) {
    for (auto& block : other.blocks_) blocks_.push_back(std::move(block));
  }

  [[nodiscard]] const std::vector<std::variant<Line, Table>>& blocks() const { return blocks_; }

 private:
  std::vector<std::variant<Line, Table>> blocks_;
};

}  // namespace graft::present
