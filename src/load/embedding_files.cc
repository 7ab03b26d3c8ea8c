#include "load/embedding_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "load/embedding_text.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kModelFields = "config_sentence_transformers.json";
constexpr double kMaxWidth = 1 << 20;

// A JSON file and the cursor at its root.
class JsonFile {
 public:
  JsonFile(const ModelFiles& files, const std::string& name)
      : json_(files.read_json(name)), root_(json_, files.where(name)) {}

  const JsonCursor& root() const { return root_; }

 private:
  Json json_;
  JsonCursor root_;
};

struct PoolingName {
  std::string_view name;  // of `pooling_mode`
  std::string_view flag;  // of older files
  Pooling pooling;
};

constexpr auto kPoolings = std::to_array<PoolingName>({
    {"lasttoken", "pooling_mode_lasttoken", Pooling::last},
    {"cls", "pooling_mode_cls_token", Pooling::first},
    {"mean", "pooling_mode_mean_tokens", Pooling::mean},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt},
    {"max", "pooling_mode_max_tokens", Pooling::max},
});

Pooling named_pooling(const JsonCursor& mode) {
  std::vector<std::string_view> names;
  for (const PoolingName& known : kPoolings) {
    const bool is_alone = mode.is_array() && mode.num_items() == 1;
    const JsonCursor name = is_alone ? mode.item(0) : mode;
    if (name.is_string() && name.string() == known.name) return known.pooling;
    names.push_back(known.name);
  }
  mode.fail(ErrorCode::unsupported, fmt::format("found {}, expected one of {}", mode.node().shown(),
                                                fmt::join(names, ", ")));
}

Pooling read_pooling(const JsonCursor& file) {
  if (const auto mode = file.find("pooling_mode")) return named_pooling(*mode);
  std::optional<Pooling> found;
  for (const PoolingName& known : kPoolings) {
    if (!file.boolean_or(known.flag, false)) continue;
    if (found) {
      file.at(known.flag)
          .fail(ErrorCode::unsupported,
                "a second pooling mode, expected one: vectors aren't joined");
    }
    found = known.pooling;
  }
  return found.value_or(Pooling::mean);
}

void check_pooling_fields(const JsonCursor& file, int64_t width) {
  constexpr std::string_view kWidths[] = {"embedding_dimension", "word_embedding_dimension"};
  std::vector<std::string_view> known = {kWidths[0], kWidths[1], "pooling_mode", "include_prompt"};
  for (const PoolingName& pooling : kPoolings) known.push_back(pooling.flag);
  file.expect_keys(known);
  for (const std::string_view key : kWidths) {
    const auto found = file.find(key);
    if (!found || found->integer() == width) continue;
    found->fail(fmt::format("{}, but the model's states have {}", found->integer(), width));
  }
}

// "torch.nn.modules.linear.Identity" -> "Identity".
std::string_view class_name(std::string_view type) {
  return type.substr(type.rfind('.') == type.npos ? 0 : type.rfind('.') + 1);
}

// The class of a module: "Pooling" of "sentence_transformers.models.Pooling". A model's own class
// may do anything.
std::string module_class(const JsonCursor& type) {
  constexpr std::string_view kPackage = "sentence_transformers.";
  if (!type.string().starts_with(kPackage)) {
    type.fail(ErrorCode::unsupported, fmt::format("found {}, expected a class of {}",
                                                  type.node().shown(), "sentence-transformers"));
  }
  return std::string(class_name(type.string()));
}

// The module is one step of the embedding and nothing beside it.
void check_names(const JsonCursor& root) {
  for (const char* const key : {"module_input_name", "module_output_name"}) {
    const auto name = root.find(key);
    if (!name || name->string() == "sentence_embedding") continue;
    name->fail(ErrorCode::unsupported, "expected sentence_embedding");
  }
}

// A folder inside the model's.
std::string module_path(const JsonCursor& module) {
  const JsonCursor at = module.at("path");
  const std::string path = at.string();
  const std::filesystem::path parts = path;
  if (parts.is_absolute() || std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    at.fail("leads out of the model's directory");
  }
  return path;
}

class ModuleReader {
 public:
  ModuleReader(const EmbeddingSource& source, Backend& backend, EmbeddingParts& parts)
      : source_(source), backend_(backend), parts_(parts), width_(source.hidden_size) {}

  void read(const JsonCursor& module) {
    constexpr std::string_view kKeys[] = {"idx", "name", "path", "type", "kwargs"};
    module.expect_keys(kKeys);
    const JsonCursor type = module.at("type");
    const std::string name = module_class(type);
    const std::string path = module_path(module);
    const bool is_first = std::exchange(is_first_, false);
    if (is_first != (name == "Transformer") || (is_first && !path.empty())) {
      type.fail(ErrorCode::unsupported,
                fmt::format("found {} in {}, expected the first module, and no other, to be "
                            "Transformer in the model's own folder",
                            json_quote(name), json_quote(path)));
    }
    if (is_first || name == "Dropout") return;
    if (parts_.config.normalises) type.fail(ErrorCode::unsupported, "comes after Normalize");
    if (name == "Pooling") {
      if (pools_) type.fail(ErrorCode::unsupported, "a second Pooling, expected one");
      read_pooling_module(path);
    } else if (name != "Dense" && name != "Normalize") {
      type.fail(
          ErrorCode::unsupported,
          fmt::format("found {}, expected Pooling, Dense, Normalize or Dropout", json_quote(name)));
    } else if (!pools_) {
      type.fail(ErrorCode::unsupported, "stands before Pooling");
    } else if (name == "Dense") {
      read_dense(path);
    } else {
      read_normalize(path);
    }
  }

  bool pools() const { return pools_; }

  int64_t width() const { return width_; }

 private:
  void read_pooling_module(const std::string& path) {
    const JsonFile file(source_.files, path + "/config.json");
    check_pooling_fields(file.root(), width_);
    parts_.config.pooling = read_pooling(file.root());
    parts_.config.pools_prompt = file.root().boolean_or("include_prompt", true);
    pools_ = true;
  }

  // Older models have no file of it.
  void read_normalize(const std::string& path) {
    parts_.config.normalises = true;
    const std::string name = path + "/config.json";
    if (!source_.files.contains(name)) return;
    const JsonFile file(source_.files, name);
    constexpr std::string_view kKeys[] = {"module_input_name", "module_output_name"};
    file.root().expect_keys(kKeys);
    check_names(file.root());
  }

  void read_dense(const std::string& path) {
    const JsonFile file(source_.files, path + "/config.json");
    const JsonCursor& root = file.root();
    constexpr std::string_view kKeys[] = {
        "in_features",       "out_features",       "bias",        "activation_function",
        "module_input_name", "module_output_name", "use_residual"};
    root.expect_keys(kKeys);
    const NumberRange widths{.min = 1, .max = kMaxWidth};
    const int64_t inputs = root.at("in_features").integer(widths);
    const int64_t outputs = root.at("out_features").integer(widths);
    if (inputs != width_) {
      root.at("in_features").fail(fmt::format("{}, but its inputs have {}", inputs, width_));
    }
    check_names(root);
    if (root.boolean_or("use_residual", false)) {
      root.at("use_residual").fail(ErrorCode::unsupported, "true isn't supported");
    }
    const auto weights = open_checkpoint(source_.files.origin() / path);
    const Tensor weight = read_floats(*weights, "linear.weight", {outputs, inputs});
    std::optional<Tensor> bias;
    if (root.boolean_or("bias", true)) bias = read_floats(*weights, "linear.bias", {outputs});
    parts_.head.add(backend_, weight, bias ? &*bias : nullptr, activation(root));
    width_ = outputs;
  }

  static Tensor read_floats(Checkpoint& weights, std::string_view name, const Extents& shape) {
    const Tensor tensor = weights.read(name, shape);
    if (is_float(tensor.dtype())) return tensor;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: tensor {} holds {}, expected float32, float16 or bfloat16",
                            weights.origin(), name, dtype_name(tensor.dtype())));
  }

  static PooledHead::Activation activation(const JsonCursor& root) {
    const auto found = root.find("activation_function");
    if (!found) return PooledHead::Activation::tanh;
    const std::string_view name = class_name(found->string());
    const bool is_torch = found->string().starts_with("torch.");
    if (is_torch && name == "Identity") return PooledHead::Activation::none;
    if (is_torch && name == "Tanh") return PooledHead::Activation::tanh;
    found->fail(ErrorCode::unsupported,
                found_instead(found->node().shown(), "Identity or Tanh of torch.nn"));
  }

  const EmbeddingSource& source_;
  Backend& backend_;
  EmbeddingParts& parts_;
  bool is_first_ = true;
  bool pools_ = false;
  int64_t width_;
};

// The prompts of sentence-transformers' encode_query and encode_document always exist.
void read_prompts(const JsonCursor& root, EmbeddingConfig& config) {
  if (const auto prompts = root.find("prompts")) {
    for (const auto& [name, text] : prompts->members()) {
      const JsonCursor entry = prompts->entry(name, text);
      config.prompts.emplace_back(name, entry.is_null() ? std::string() : entry.string());
    }
  }
  const auto has = [&config](std::string_view name) {
    return std::any_of(config.prompts.begin(), config.prompts.end(),
                       [&](const auto& prompt) { return prompt.first == name; });
  };
  for (const char* const name : {"query", "document"}) {
    if (config.has_files && !has(name)) config.prompts.emplace_back(name, std::string());
  }
  const auto by_default = root.find("default_prompt_name");
  if (!by_default) return;
  const std::string name = by_default->string();
  if (!has(name)) by_default->fail(fmt::format("{} is none of the prompts", json_quote(name)));
  config.default_prompt = name;
}

Similarity read_similarity(const JsonCursor& name) {
  constexpr std::pair<std::string_view, Similarity> kNames[] = {
      {"cosine", Similarity::cosine},
      {"dot", Similarity::dot},
      {"euclidean", Similarity::euclidean},
      {"manhattan", Similarity::manhattan}};
  for (const auto& [known, similarity] : kNames) {
    if (name.is_string() && name.string() == known) return similarity;
  }
  name.fail(ErrorCode::unsupported,
            found_instead(name.node().shown(), "cosine, dot, euclidean or manhattan"));
}

void read_model_fields(const ModelFiles& files, EmbeddingConfig& config) {
  const bool is_there = files.contains(kModelFields);
  if (!is_there && !config.has_files) return;
  const Json none = Json(Json::Object());
  std::optional<JsonFile> file;
  if (is_there) file.emplace(files, kModelFields);
  const JsonCursor root = file ? file->root() : JsonCursor(none, kModelFields);
  constexpr std::string_view kKeys[] = {"__version__",         "model_type",         "prompts",
                                        "default_prompt_name", "similarity_fn_name", "truncate_dim",
                                        "requirements"};
  root.expect_keys(kKeys);
  const auto type = root.find("model_type");
  if (type && !(type->is_string() && type->string() == "SentenceTransformer")) {
    type->fail(ErrorCode::unsupported, found_instead(type->node().shown(), "SentenceTransformer"));
  }
  read_prompts(root, config);
  if (const auto name = root.find("similarity_fn_name")) config.similarity = read_similarity(*name);
  if (const auto width = root.find("truncate_dim")) {
    const int64_t asked = width->integer({.min = 1});
    if (asked < config.width) config.cut_width = asked;
  }
}

// The published embedding models of these types are trained for several sizes, but their files
// don't say so (the model cards of Qwen3-Embedding and EmbeddingGemma do).
bool is_usually_matryoshka(std::string_view model_type) {
  return model_type == "qwen3" || model_type == "gemma3_text";
}

// vLLM's fields of config.json.
void read_dimensions(const JsonCursor& root, bool has_files, EmbeddingConfig& config) {
  const NumberRange widths{.min = 1, .max = static_cast<double>(config.width)};
  if (const auto listed = root.find("matryoshka_dimensions")) {
    for (const JsonCursor& one : listed->items()) config.dimensions.push_back(one.integer(widths));
  }
  const auto type = root.find("model_type");
  const bool usually =
      has_files && type && type->is_string() && is_usually_matryoshka(type->string());
  config.is_matryoshka = root.boolean_or("is_matryoshka", usually || !config.dimensions.empty());
}

// A cross-encoder of a language model, whose logits are the score: no embedding.
bool is_reranker(const JsonCursor& modules) {
  for (const JsonCursor& module : modules.items()) {
    if (class_name(module.at("type").string()) == "LogitScore") return true;
  }
  return false;
}

EmbeddingParts without_files(const EmbeddingSource& source) {
  EmbeddingParts parts;
  parts.config.width = source.hidden_size;
  return parts;
}

}  // namespace

std::set<std::string> embedding_folders(const ModelFiles& files) {
  std::set<std::string> folders;
  if (!files.contains(kModules)) return folders;
  const JsonFile modules(files, kModules);
  for (const JsonCursor& module : modules.root().items()) {
    const std::filesystem::path path = module_path(module);
    const std::string folder = path.lexically_normal().string();
    if (!path.empty() && folder != ".") folders.insert(folder);
  }
  return folders;
}

EmbeddingParts read_embedding_parts(const EmbeddingSource& source, Backend& backend) {
  EmbeddingParts parts = without_files(source);
  if (source.files.contains(kModules)) {
    parts.config.has_files = true;
    parts.config.normalises = false;
    const JsonFile modules(source.files, kModules);
    if (is_reranker(modules.root())) return without_files(source);
    ModuleReader reader(source, backend, parts);
    for (const JsonCursor& module : modules.root().items()) reader.read(module);
    if (!reader.pools()) modules.root().fail("has no Pooling");
    parts.config.width = reader.width();
    read_embedding_text(source.files, source.config_json, parts.config);
    if (parts.config.message && !source.has_chat_template) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: modality_config.message needs a chat template, found none",
                              source.files.where("sentence_bert_config.json")));
    }
  }
  read_model_fields(source.files, parts.config);
  const JsonCursor config(source.config_json, source.files.where("config.json"));
  read_dimensions(config, parts.config.has_files, parts.config);
  return parts;
}

}  // namespace paceline
