// The layers of heads that classify whole texts (transformers' ...ForSequenceClassification), by
// the names of their weights.
#pragma once

#include <span>
#include <string_view>

#include "base/json_cursor.h"
#include "models/pooled_head.h"
#include "weights/weight_reader.h"

namespace paceline {

struct ScoreLayer {
  enum class Bias : uint8_t { none, stored, optional };  // optional: where the files have one

  std::string_view name;  // canonical, without ".weight" and ".bias"
  PooledHead::Activation activation = PooledHead::Activation::none;
  Bias bias = Bias::stored;
  // The field of config.json that has the activation; files without it have `activation`.
  std::string_view activation_field = {};
  std::string_view norm = {};  // a layer norm behind the activation; its bias is optional
};

struct ScoreLayers {
  std::span<const ScoreLayer> layers;
  bool reads_first_token = true;  // else the last

  std::string_view last() const { return layers.back().name; }
};

// Those of a checkpoint; null: it has none. `config` is config.json's.
const ScoreLayers* find_score_layers(const WeightReader& weights, const JsonCursor& config);

}  // namespace paceline
