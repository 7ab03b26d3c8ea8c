#include "load/score_head.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/json_cursor.h"
#include "load/embedding_text.h"
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

// Which states the head reads, where its files say so (ModernBERT's do).
Pooling read_pooling(const JsonCursor& config, const ScoreLayers& kind) {
  const auto field = config.find("classifier_pooling");
  if (!kind.reads_first_token) return Pooling::last;
  if (!field) return Pooling::first;
  if (field->string() == "cls") return Pooling::first;
  if (field->string() == "mean") return Pooling::mean;
  field->fail(ErrorCode::unsupported, found_instead(field->node().shown(), "cls or mean"));
}

PooledHead::Activation read_activation(const JsonCursor& config, const ScoreLayer& layer) {
  using enum PooledHead::Activation;
  const auto field =
      layer.activation_field.empty() ? std::nullopt : config.find(layer.activation_field);
  if (!field) return layer.activation;
  if (field->string() == "gelu") return gelu;
  if (field->string() == "relu") return relu;
  if (field->string() == "tanh") return tanh;
  field->fail(ErrorCode::unsupported, found_instead(field->node().shown(), "gelu, relu or tanh"));
}

// One layer of the head: reads its tensors, and releases them at its end.
class LayerFiles {
 public:
  LayerFiles(WeightReader& weights, const std::string& name, bool has_bias, const Extents& shape)
      : weights_(weights), name_(name), weight_(weights.read(name + ".weight", shape)) {
    if (has_bias) bias_ = weights.read(name + ".bias", {shape[0]});
  }
  ~LayerFiles() {
    weights_.release(name_ + ".weight");
    if (bias_) weights_.release(name_ + ".bias");
  }
  LayerFiles(const LayerFiles&) = delete;
  LayerFiles& operator=(const LayerFiles&) = delete;

  const Tensor& weight() const { return weight_; }
  const Tensor* bias() const { return bias_ ? &*bias_ : nullptr; }

 private:
  WeightReader& weights_;
  std::string name_;
  Tensor weight_;
  std::optional<Tensor> bias_;
};

void add_layer(WeightReader& weights, const JsonCursor& config, const ScoreLayer& layer,
               const Extents& shape, Backend& backend, PooledHead& head) {
  const auto has = [&weights](const std::string& bias) {
    return weights.shape_of(bias).has_value();
  };
  const std::string name(layer.name), norm(layer.norm);
  const bool has_bias = layer.bias == ScoreLayer::Bias::stored ||
                        (layer.bias == ScoreLayer::Bias::optional && has(name + ".bias"));
  const LayerFiles product(weights, name, has_bias, shape);
  head.add(backend, product.weight(), product.bias(), read_activation(config, layer));
  if (norm.empty()) return;
  constexpr double kEps = 1e-5;
  const auto eps = config.find("norm_eps");
  const LayerFiles files(weights, norm, has(norm + ".bias"), {shape[0]});
  head.add_norm(backend, files.weight(), files.bias(),
                static_cast<float>(eps ? eps->number({.min = 0, .max = 1}) : kEps));
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
                   .pooling = read_pooling(config, *kind)};
  for (const ScoreLayer& layer : kind->layers) {
    const bool is_last = layer.name == kind->last();
    add_layer(weights, config, layer, {is_last ? num_labels : hidden_size, hidden_size}, backend,
              loaded.head);
  }
  return loaded;
}

std::optional<PairLimit> read_pair_limit(const ModelFiles& files, const Json& config_json) {
  EmbeddingConfig read;
  read_embedding_text(files, config_json, read);
  if (!read.cut) return std::nullopt;
  return PairLimit{.max_tokens = read.cut->max_tokens, .drops_begin = read.cut->drops_begin};
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
