#include "load/embedding_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kPrompts = "config_sentence_transformers.json";
constexpr const char* kSentenceBert = "sentence_bert_config.json";
constexpr double kMaxWidth = 1 << 20;

// A JSON file and the cursor at its root.
class JsonFile {
 public:
  JsonFile(const ModelFiles& files, const std::string& name)
      : json_(parse_json(files.read(name, kMaxConfigBytes), files.where(name))),
        root_(json_, files.where(name)) {}

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
    if (mode.is_string() && mode.string() == known.name) return known.pooling;
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
  if (!found) file.fail(ErrorCode::invalid, "no pooling mode is true");
  return *found;
}

// The last token's state is the same with its prompt or without.
void check_prompt_rows(const JsonCursor& file, Pooling pooling) {
  if (file.boolean_or("include_prompt", true) || pooling == Pooling::last) return;
  file.at("include_prompt").fail(ErrorCode::unsupported, "false isn't supported");
}

// "sentence_transformers.models.Pooling" -> "Pooling".
std::string_view class_name(std::string_view type) {
  return type.substr(type.rfind('.') == type.npos ? 0 : type.rfind('.') + 1);
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
    const JsonCursor type = module.at("type");
    const std::string name(class_name(type.string()));
    const std::string path = module_path(module);
    if (name == "Transformer" && path.empty()) return;
    if (name == "Pooling") {
      if (pools_) type.fail(ErrorCode::unsupported, "a second Pooling, expected one");
      pools_ = true;
      const JsonFile file(source_.files, path + "/config.json");
      parts_.config.pooling = read_pooling(file.root());
      check_prompt_rows(file.root(), parts_.config.pooling);
    } else if (name == "Dense") {
      if (!pools_) type.fail(ErrorCode::unsupported, "stands before Pooling");
      read_dense(path);
    } else if (name == "Normalize") {
      parts_.config.normalises = true;
      return;
    } else {
      type.fail(ErrorCode::unsupported,
                fmt::format("found {} in {}, expected Transformer in the model's own folder, "
                            "Pooling, Dense and Normalize",
                            json_quote(name), json_quote(path)));
    }
    if (parts_.config.normalises) type.fail(ErrorCode::unsupported, "comes after Normalize");
  }

  bool pools() const { return pools_; }

  int64_t width() const { return width_; }

 private:
  void read_dense(const std::string& path) {
    const JsonFile file(source_.files, path + "/config.json");
    const JsonCursor& root = file.root();
    const NumberRange widths{.min = 1, .max = kMaxWidth};
    const int64_t inputs = root.at("in_features").integer(widths);
    const int64_t outputs = root.at("out_features").integer(widths);
    if (inputs != width_) {
      root.at("in_features").fail(fmt::format("{}, but its inputs have {}", inputs, width_));
    }
    check_names(root);
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

  // The layer is one step of the embedding and nothing beside it.
  static void check_names(const JsonCursor& root) {
    for (const char* const key : {"module_input_name", "module_output_name"}) {
      const auto name = root.find(key);
      if (!name || name->string() == "sentence_embedding") continue;
      name->fail(ErrorCode::unsupported, "expected sentence_embedding");
    }
    if (root.boolean_or("use_residual", false)) {
      root.at("use_residual").fail(ErrorCode::unsupported, "true isn't supported");
    }
  }

  static PooledHead::Activation activation(const JsonCursor& root) {
    const auto found = root.find("activation_function");
    if (!found) return PooledHead::Activation::tanh;
    const std::string_view name = class_name(found->string());
    if (name == "Identity") return PooledHead::Activation::none;
    if (name == "Tanh") return PooledHead::Activation::tanh;
    found->fail(ErrorCode::unsupported,
                fmt::format("found {}, expected Identity or Tanh", json_quote(name)));
  }

  const EmbeddingSource& source_;
  Backend& backend_;
  EmbeddingParts& parts_;
  bool pools_ = false;
  int64_t width_;
};

void read_prompts(const ModelFiles& files, EmbeddingConfig& config) {
  if (!files.contains(kPrompts)) return;
  const JsonFile file(files, kPrompts);
  const auto prompts = file.root().find("prompts");
  if (prompts) {
    for (const auto& [name, text] : prompts->members()) {
      config.prompts.emplace_back(name, prompts->entry(name, text).string());
    }
  }
  const auto by_default = file.root().find("default_prompt_name");
  if (!by_default) return;
  const std::string name = by_default->string();
  const auto is_it = [&](const auto& prompt) { return prompt.first == name; };
  if (std::none_of(config.prompts.begin(), config.prompts.end(), is_it)) {
    by_default->fail(fmt::format("{} is none of the prompts", json_quote(name)));
  }
  config.default_prompt = name;
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

void check_letter_case(const ModelFiles& files) {
  if (!files.contains(kSentenceBert)) return;
  const JsonFile file(files, kSentenceBert);
  if (!file.root().boolean_or("do_lower_case", false)) return;
  file.root().at("do_lower_case").fail(ErrorCode::unsupported, "true isn't supported");
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
    check_letter_case(source.files);
  }
  read_prompts(source.files, parts.config);
  const JsonCursor config(source.config_json, source.files.where("config.json"));
  read_dimensions(config, parts.config.has_files, parts.config);
  return parts;
}

}  // namespace paceline
