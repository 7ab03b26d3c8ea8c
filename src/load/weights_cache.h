// WeightsCache keeps a model's weights as kernels read them in a file, for the next start.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "load/weights_key.h"
#include "paceline/results.h"
#include "prepared/prepared_file.h"

namespace paceline {

// One file for each key in a directory of the user's. A failure of the cache is no error of the
// load: it is noted in use(), and the weights come from the model's files.
class WeightsCache {
 public:
  // `threads` and the files must outlive it.
  WeightsCache(std::filesystem::path directory, const WeightsOrigin& origin, ThreadPool& threads);

  // The cached weights, all verified; null when there are no usable ones.
  std::unique_ptr<PreparedFile> find();
  // The weights that find() returned don't fit the model: load from its files.
  void refuse(const std::string& reason);
  // Keeps weights that were made; nothing when the model's files have changed since they were
  // opened.
  void store(const PreparedWeights& weights, Hash128 digest);

  const WeightsCacheUse& use() const { return use_; }

 private:
  void write(const PreparedWeights& weights, Hash128 digest);

  std::filesystem::path directory_;
  std::span<const MappedFile> files_;
  ThreadPool& threads_;
  std::string key_;
  std::filesystem::path path_;
  WeightsCacheUse use_;
};

}  // namespace paceline
