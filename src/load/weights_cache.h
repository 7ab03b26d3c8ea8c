// WeightsCache keeps a model's packed weights in a file for the next start.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "load/weights_key.h"
#include "paceline/results.h"
#include "prepared/prepared_file.h"

namespace paceline {

// One file per key in a directory of the user's. A failure of the cache doesn't fail the load:
// use() reports it, and the weights come from the model's files.
class WeightsCache {
 public:
  // `threads` and the files must outlive it.
  WeightsCache(std::filesystem::path directory, const WeightsOrigin& origin, ThreadPool& threads);

  // The verified cached weights; null when there are no usable ones.
  std::unique_ptr<PreparedFile> find();
  // Reports that the weights of find() don't fit the model, so that its files are read.
  void refuse(const std::string& reason);
  // Writes newly packed weights, unless the model's files have changed since they were opened.
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
