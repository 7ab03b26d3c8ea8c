#include "load/score_head.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/json_cursor.h"
#include "models/score_layers.h"

namespace paceline {
namespace {

// `id2label` in the order of ids, else transformers' LABEL_0, LABEL_1, ...
std::vector<std::string> read_names(const JsonCursor& config, int64_t num_labels,
                                    std::string_view weight) {
  std::vector<std::string> names;
  const auto listed = config.find("id2label");
  for (int64_t id = 0; id < num_labels; ++id) {
    const std::string key = std::to_string(id);
    names.push_back(listed ? std::string(listed->at(key).string()) : "LABEL_" + key);
  }
  if (listed && std::ssize(listed->members()) != num_labels) {
    listed->fail(
        fmt::format("{} labels, but {} has {} rows", listed->members().size(), weight, num_labels));
  }
  return names;
}

SequenceLabels::Scoring read_scoring(const JsonCursor& config, int64_t num_labels) {
  const auto problem = config.find("problem_type");
  const std::string type = problem ? std::string(problem->string()) : "";
  if (type == "regression") return SequenceLabels::Scoring::none;
  if (type == "multi_label_classification" || num_labels == 1) {
    return SequenceLabels::Scoring::sigmoid;
  }
  return SequenceLabels::Scoring::softmax;
}

void add_layer(WeightReader& weights, const ScoreLayer& layer, const Extents& shape,
               Backend& backend, PooledHead& head) {
  const std::string name(layer.name);
  const Tensor weight = weights.read(name + ".weight", shape);
  std::optional<Tensor> bias;
  if (layer.has_bias) bias = weights.read(name + ".bias", {shape[0]});
  head.add(backend, weight, bias ? &*bias : nullptr, layer.activation);
  weights.release(name + ".weight");
  if (bias) weights.release(name + ".bias");
}

}  // namespace

std::optional<ScoreHead> load_score_head(WeightReader& weights, const Json& config_json,
                                         std::string_view where, int64_t hidden_size,
                                         Backend& backend) {
  const JsonCursor config(config_json, std::string(where));
  const ScoreLayers* const kind = find_score_layers(weights, config);
  if (kind == nullptr) return std::nullopt;
  const std::string last = std::string(kind->last()) + ".weight";
  const auto shape = weights.shape_of(last);
  if (shape->rank() != 2) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} isn't a matrix", where, last));
  }
  const int64_t num_labels = (*shape)[0];
  ScoreHead loaded;
  loaded.labels = {.names = read_names(config, num_labels, last),
                   .scoring = read_scoring(config, num_labels),
                   .pooling = kind->reads_first_token ? Pooling::first : Pooling::last};
  for (const ScoreLayer& layer : kind->layers) {
    const bool is_last = layer.name == kind->last();
    add_layer(weights, layer, {is_last ? num_labels : hidden_size, hidden_size}, backend,
              loaded.head);
  }
  return loaded;
}

void read_cross_encoder(const ModelFiles& files, SequenceLabels& labels) {
  constexpr const char* kText = "sentence_bert_config.json";
  constexpr const char* kModel = "config_sentence_transformers.json";
  const auto refuse = [&labels](const JsonCursor& field, std::string_view what) {
    if (labels.pair_problem.empty())
      labels.pair_problem = fmt::format("{}: {}", field.name(), what);
  };
  if (files.contains(kText)) {
    const Json json = files.read_json(kText);
    const auto modalities = JsonCursor(json, files.where(kText)).find("modality_config");
    if (modalities && modalities->contains("message")) {
      refuse(modalities->at("message"), "pairs in a chat template aren't supported");
    }
  }
  if (!files.contains(kModel)) return;
  const Json json = files.read_json(kModel);
  const JsonCursor root(json, files.where(kModel));
  if (const auto prompt = root.find("default_prompt_name")) {
    refuse(*prompt, "a prompt in front of pairs isn't supported");
  }
  const auto activation = root.find("activation_fn");
  if (!activation) return;
  const std::string name = activation->string();
  labels.pairs_are_logits = name == "torch.nn.modules.linear.Identity";
  if (!labels.pairs_are_logits && name != "torch.nn.modules.activation.Sigmoid") {
    refuse(*activation,
           found_instead(activation->node().shown(), "Sigmoid or Identity of torch.nn"));
  }
}

}  // namespace paceline
