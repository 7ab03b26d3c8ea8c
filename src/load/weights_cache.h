// WeightsCache keeps a model's packed weights in a file for the next start.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "load/weights_key.h"
#include "paceline/results.h"
#include "prepared/prepared_file.h"
#include "prepared/prepared_writer.h"
#include "weights/checkpoint.h"

namespace paceline {

// One file per key in a directory of the user's. A failure of the cache doesn't fail the load:
// use() reports it, and the weights come from the model's files.
class WeightsCache {
 public:
  // `threads` and the files must outlive it.
  WeightsCache(std::filesystem::path directory, const WeightsOrigin& origin, ThreadPool& threads);

  // The verified cached weights; null when there are no usable ones. Experts of a file that was
  // verified before, and whose stamp is the same since, are not verified again.
  std::unique_ptr<PreparedFile> find();
  // Reports that the weights of find() don't fit the model, so that its files are read.
  void refuse(const std::string& reason);

  // Begins to write newly packed weights, with room for the table of a checkpoint's; null when
  // nothing can be written.
  std::unique_ptr<PreparedWriter> begin(const Checkpoint& checkpoint);
  // Completes the file, unless the model's files have changed since they were opened. Returns
  // whether it is there.
  bool finish(PreparedWriter& writer, PreparedTable facts);
  // Reports that the weights could not be written.
  void fail(const std::string& reason);

  const WeightsCacheUse& use() const { return use_; }

 private:
  std::filesystem::path stamp_path() const;
  bool was_verified() const;
  void note_verified() const;

  std::filesystem::path directory_;
  std::span<const MappedFile> files_;
  ThreadPool& threads_;
  std::string key_;
  std::filesystem::path path_;
  bool is_written_ = false;  // by this start
  WeightsCacheUse use_;
};

}  // namespace paceline
