// Writes both halves, and then the file that names them (docs/schema/graft.cut.schema.json).
#include "present/json/write_cut.hpp"

#include "core/atomic_file.hpp"
#include "present/json/fields.hpp"

namespace graft::present {

toolkit::CutFiles write_cut(toolkit::CutResult& result, const std::filesystem::path& file) {
  toolkit::CutFiles files = toolkit::cut_files(file);
  result.tensorrt_model.save(files.tensorrt);
  result.host_model.save(files.host);
  result.tensorrt.file = files.tensorrt;
  result.host.file = files.host;
  write_file(files.network, json_of_fields<report::CutHalves>(result).dump(2) + "\n");
  result.file = files.network;
  return files;
}

}  // namespace graft::present
