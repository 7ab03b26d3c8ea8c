// Loads the head of a model that classifies whole texts (transformers'
// ...ForSequenceClassification): score.weight and the labels of config.json.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/model_files.h"
#include "kernels/backend.h"
#include "models/pooled_head.h"
#include "text/sequence_labels.h"
#include "weights/weight_reader.h"

namespace paceline {

struct ScoreHead {
  PooledHead head;
  SequenceLabels labels;
};

// Nothing for files without such a head. Throws Error corrupt or invalid when its labels aren't
// those of `id2label`; `where` names config.json.
std::optional<ScoreHead> load_score_head(WeightReader& weights, const Json& config_json,
                                         std::string_view where, int64_t hidden_size,
                                         Backend& backend);

// Reads how sentence-transformers' CrossEncoder scores pairs with the head, where the model was
// saved by it.
void read_cross_encoder(const ModelFiles& files, SequenceLabels& labels);

// At how many tokens sentence-transformers' CrossEncoder cuts the pairs of an encoder; nothing
// where no file says.
std::optional<PairLimit> read_pair_limit(const ModelFiles& files, const Json& config_json);

}  // namespace paceline
