// PreparedWriter writes a file of prepared weights, one after another as they are packed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/new_file.h"
#include "base/thread_pool.h"
#include "prepared/layout.h"

namespace paceline {

// Replaces a file of that name once the new one is complete; destroyed before, it leaves nothing.
// Errors have the path and the system's reason: exhausted when there is no space.
class PreparedWriter {
 public:
  // Leaves `front_bytes` for the table and the sums, which are written last. `threads` must outlive
  // it.
  PreparedWriter(const std::filesystem::path& path, uint64_t front_bytes, ThreadPool& threads);

  // Writes a weight, whose bytes may then be freed.
  void add(Part part);
  // Writes the table of what was added, with the other facts of `table`, and names the file.
  // Returns its size.
  uint64_t finish(const PreparedTable& table);

  // Whether a call has thrown: the file can't be finished.
  bool has_failed() const { return has_failed_; }

 private:
  void write_part(const Part& part);
  uint64_t write_front(const PreparedTable& table);

  NewFile file_;
  ThreadPool& threads_;
  uint64_t first_part_ = 0;
  std::vector<Part> parts_;  // without bytes
  std::vector<uint64_t> sums_;
  bool has_failed_ = false;
};

// The room for the table and sums of these parts.
uint64_t front_bytes(const PreparedTable& table);
// A room that suffices for `num_parts` with names of `name_bytes` and weights of `weight_bytes`
// together.
uint64_t front_bytes_at_most(uint64_t num_parts, uint64_t name_bytes, uint64_t weight_bytes);

}  // namespace paceline
