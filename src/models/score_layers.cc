#include "models/score_layers.h"

#include <algorithm>
#include <array>
#include <string>

namespace paceline {
namespace {

using enum PooledHead::Activation;

constexpr std::array kOfDecoders = {ScoreLayer{.name = "score", .bias = ScoreLayer::Bias::none}};
// modeling_roberta, modeling_distilbert, modeling_bert.
constexpr std::array kOfRoberta = {ScoreLayer{.name = "classifier.dense", .activation = tanh},
                                   ScoreLayer{.name = "classifier.out_proj"}};
constexpr std::array kOfDistilBert = {ScoreLayer{.name = "pre_classifier", .activation = relu},
                                      ScoreLayer{.name = "classifier"}};
// DeBERTa's (modeling_deberta_v2) are the same with `pooler_hidden_act`.
constexpr std::array kOfBert = {
    ScoreLayer{.name = "pooler.dense", .activation = tanh, .activation_field = "pooler_hidden_act"},
    ScoreLayer{.name = "classifier"}};
// modeling_modernbert.
constexpr std::array kOfModernBert = {ScoreLayer{.name = "head.dense",
                                                 .activation = gelu,
                                                 .bias = ScoreLayer::Bias::optional,
                                                 .activation_field = "classifier_activation",
                                                 .norm = "head.norm"},
                                      ScoreLayer{.name = "classifier"}};

constexpr std::array kKinds = {
    ScoreLayers{.layers = kOfDecoders, .reads_first_token = false},
    ScoreLayers{.layers = kOfRoberta}, ScoreLayers{.layers = kOfDistilBert},
    ScoreLayers{.layers = kOfModernBert}, ScoreLayers{.layers = kOfBert}};

// Heads with the same names choose among answers, or label each token.
bool is_for_sequences(const JsonCursor& config) {
  const auto classes = config.find("architectures");
  if (!classes) return true;
  return std::ranges::any_of(classes->items(), [](const JsonCursor& one) {
    return one.string().ends_with("ForSequenceClassification");
  });
}

}  // namespace

const ScoreLayers* find_score_layers(const WeightReader& weights, const JsonCursor& config) {
  for (const ScoreLayers& kind : kKinds) {
    const bool has_all = std::ranges::all_of(kind.layers, [&](const ScoreLayer& layer) {
      return weights.shape_of(std::string(layer.name) + ".weight").has_value();
    });
    if (!has_all) continue;
    const bool is_wanted = !kind.reads_first_token || is_for_sequences(config);
    return is_wanted ? &kind : nullptr;
  }
  return nullptr;
}

}  // namespace paceline
