#include "prepared/write_prepared.h"

#include "prepared/prepared_writer.h"

namespace paceline {

uint64_t write_prepared(const std::filesystem::path& path, const PreparedTable& table,
                        ThreadPool& threads) {
  PreparedWriter writer(path, front_bytes(table), threads);
  for (const Part& part : table.weights.parts) writer.add(part);
  return writer.finish(table);
}

}  // namespace paceline
