// The report of `run`: the outputs of a run on the CPU, and the engine that computed them.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"
#include "graft/report/port.hpp"

namespace graft::report {

struct RunReport {
  std::string model;
  std::string output;
  std::string kernels;
  std::string engine;
  std::string ran_in;
  std::vector<std::string> left_out;
  double seconds = 0;
  std::vector<std::string> data_notes;
  std::size_t runs = 1;
  std::vector<Port> outputs;

  static constexpr Schema schema{"graft run", 1, "The outputs that were written."};
  static constexpr auto fields() {
    return std::tuple{
        field("model", &RunReport::model, "The file of the model."),
        field("output", &RunReport::output, "The file that was written."),
        field("kernels", &RunReport::kernels, "How Graft's operators were computed: 'functions' or 'own'."),
        field("engine", &RunReport::engine, "The engine of the options: 'auto', 'openvino', 'onnxruntime' or 'both'."),
        field("ran_in", &RunReport::ran_in, "The CPU engines that ran the model, for example 'ONNX Runtime 1.31.1'."),
        field("left_out", &RunReport::left_out,
              "Why the model did not run in the first choice of engines, known wrong results of the engine that ran "
              "it, and how this engine rewrote the model; mostly empty."),
        field("seconds", &RunReport::seconds, "The time of the run, without reading and compiling."),
        field("runs", &RunReport::runs, "The number of runs, whose outputs are joined along their first axis."),
        field("data_notes", &RunReport::data_notes,
              "How the arrays of the data were converted, and arrays that were not used; mostly empty."),
        field("outputs", &RunReport::outputs, "The outputs that were written."),
    };
  }
};

}  // namespace graft::report
