// PreparedFile is a mapped file of prepared weights, whose bytes have been verified.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "prepared/layout.h"

namespace paceline {

// What of a file is verified when it is opened. Weights of experts have ".experts." in their names.
enum class Verified : uint8_t { all, all_but_experts };

// Read-only. It must outlive the matrices and vectors that it returns, which read the mapping.
// Processes that map the same file share its pages. Deleting or replacing the file doesn't affect
// processes that have mapped it.
class PreparedFile {
 public:
  // `key` identifies the model's files and settings. Throws Error not_found when there is no such
  // file, corrupt naming the defect when a byte has changed, when the file is too short or too
  // long, or when it belongs to another key.
  PreparedFile(const std::filesystem::path& path, std::string_view key, ThreadPool& threads,
               Verified verified = Verified::all);
  PreparedFile(const PreparedFile&) = delete;
  PreparedFile& operator=(const PreparedFile&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }
  size_t size_bytes() const { return file_.bytes().size(); }
  Hash128 digest() const { return table_.digest; }
  int64_t num_parameters() const { return table_.weights.num_parameters; }
  bool is_quantised() const { return table_.weights.is_quantised; }
  bool has_experts() const;

  // Throw Error corrupt when the part is missing or has another shape.
  PackedMatrix matrix(std::string_view name, int64_t k, ActivationType activations) const;
  OwnedTensor vector(std::string_view name, int64_t size) const;
  // Throws Error corrupt: the part's number of outputs differs from the model's.
  [[noreturn]] void refuse(std::string_view name, int64_t outputs, int64_t expected) const;

  // Locks its pages into RAM and returns their bytes; throws Error exhausted with the system's
  // reason.
  size_t lock() const;

 private:
  PreparedHead read_head() const;
  void read_front(const PreparedHead& head);
  void verify_parts(const PreparedHead& head, ThreadPool& threads, Verified verified);
  std::span<const uint64_t> stored_sums(const PreparedHead& head) const;
  const Part& find(std::string_view name, PartKind kind) const;
  [[noreturn]] void fail(const std::string& what) const;

  MappedFile file_;
  PreparedTable table_;
  std::map<std::string_view, const Part*> by_name_;
};

}  // namespace paceline
