// The reference of Decoder: a padded, explicitly masked forward of a model in plain double loops.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/decoder_config.h"
#include "tests/models/test_model.h"
#include "weights/checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline::testing {

// Shares only the config with layers/, kernels/ and kv/: no cache, no blocks, no slices.
class MaskedReference {
 public:
  explicit MaskedReference(const std::filesystem::path& directory);

  // tokens [N][L] right-padded; lengths [N]. The mask [N, 1, L, L] holds 0 where a query may see a
  // key and -inf elsewhere (the future, padding, positions before the window). Returns logits
  // [N][L * vocab]; rows of padding are undefined.
  std::vector<std::vector<double>> forward(const std::vector<std::vector<int32_t>>& tokens,
                                           const std::vector<int64_t>& lengths) const;

  const DecoderConfig& config() const { return config_; }

 private:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;  // [L][width]
  using Mask = std::vector<std::vector<double>>;

  const Row& weights(const std::string& name, std::initializer_list<int64_t> shape) const;
  bool has(const std::string& name) const;
  Row norm(const Row& x, const std::string& name) const;
  Row linear(const Row& x, const std::string& name, int64_t out_features) const;
  void rotate(Row& heads, int64_t position, const RopeConfig& rope) const;
  void norm_heads(Row& heads, const std::string& name) const;
  Rows attention(const Rows& x, int64_t layer, const Mask& mask) const;
  // The attention output of one query [heads * head_dim], for all its heads; mask [L].
  Row attend(const Row& query, const Rows& keys, const Rows& values, const Row& mask,
             const Row& sinks) const;
  Row gated(const Row& x, const std::string& name, const MlpNames& names, int64_t width) const;
  Row mixture(const Row& x, int64_t layer) const;
  Row choice(const Row& scores, int64_t layer) const;
  Row mlp(const Row& x, int64_t layer) const;
  Mask mask_of(int64_t padded_length, int64_t length, int64_t window) const;

  Memory memory_;
  ThreadPool threads_{1};
  GoldenWeights weights_;
  std::unique_ptr<WeightReader> reader_;
  DecoderConfig config_;
  mutable std::map<std::string, Row> cache_;
};

}  // namespace paceline::testing
