// GgufFile is a GGUF model on disk: its metadata and the places of its tensors, all checked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "weights/gguf_parse.h"

namespace paceline {

// Versions 2 and 3, little-endian. Immutable, so it may be read by several threads.
class GgufFile {
 public:
  // Maps the file and checks its whole header. For a split model (NAME-00001-of-00003.gguf) `path`
  // is the first file; the others are opened beside it. Throws Error naming file and place:
  // not_found for a missing file, corrupt for contradictions, unsupported for another version, byte
  // order or tensor type, and exhausted beyond the limits of gguf_parse.h.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return files_.front().path(); }
  // All files; several for a split model.
  std::span<const MappedFile> files() const { return files_; }
  // Of the first file.
  const GgufMetadata& metadata() const { return metadata_; }
  // Of all files, sorted by name.
  const std::vector<GgufTensorInfo>& tensors() const { return tensors_; }
  // Null when there is none of this name.
  const GgufTensorInfo* find_tensor(std::string_view name) const;

  // Gives the tensor's mapped pages back to the system; they are read again when touched.
  void release_pages(const GgufTensorInfo& tensor) const;

 private:
  void open_other_shards(int64_t num_files);

  std::vector<MappedFile> files_;
  GgufMetadata metadata_;
  std::vector<GgufTensorInfo> tensors_;
};

}  // namespace paceline
