#include "load/generation_config.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace paceline {
namespace {

// One of the files, if it is there, with the name for messages.
struct ConfigFile {
  ConfigFile(const ModelFiles& files, const char* name) : where(name) {
    if (files.contains(name)) {
      json = parse_json(files.read(name, kMaxConfigBytes), files.where(name));
    }
  }

  std::string path(std::string_view key) const { return fmt::format("{}: {}", where, key); }

  std::optional<float> number(std::string_view key) const {
    const Json* field = json.find_value(key);
    if (field == nullptr) return std::nullopt;
    const double value = field->as_double(path(key));
    if (!std::isfinite(value)) {
      throw Error(ErrorCode::invalid, fmt::format("{}: not a finite number", path(key)));
    }
    return static_cast<float>(value);
  }

  std::string where;
  Json json;
};

int32_t token_id(const Json& value, const std::string& where, int64_t vocab_size) {
  const int64_t id = value.as_int(where);
  if (id < 0 || id >= vocab_size) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: token id {} is not in [0, {})", where, id, vocab_size));
  }
  return static_cast<int32_t>(id);
}

// An id or a list of ids.
std::vector<int32_t> token_ids(const ConfigFile& file, std::string_view key, int64_t vocab_size) {
  const Json* field = file.json.find_value(key);
  if (field == nullptr) return {};
  std::vector<int32_t> ids;
  if (!field->is_array()) {
    ids.push_back(token_id(*field, file.path(key), vocab_size));
    return ids;
  }
  for (const Json& item : field->as_array(file.path(key))) {
    ids.push_back(token_id(item, file.path(key), vocab_size));
  }
  return ids;
}

// The text model's own object comes first in a multi-modal config.
const Json* text_config(const ConfigFile& file) { return file.json.find_value("text_config"); }

}  // namespace

GenerationConfig read_generation_config(const ModelFiles& files, int64_t vocab_size) {
  const ConfigFile file(files, "generation_config.json");
  ConfigFile model(files, "config.json");

  GenerationConfig config;
  config.eos_tokens = token_ids(file, "eos_token_id", vocab_size);
  std::vector<int32_t> bos = token_ids(file, "bos_token_id", vocab_size);
  if (config.eos_tokens.empty()) config.eos_tokens = token_ids(model, "eos_token_id", vocab_size);
  if (bos.empty()) bos = token_ids(model, "bos_token_id", vocab_size);
  if (const Json* nested = text_config(model)) {
    ConfigFile text = model;
    text.json = *nested;
    if (config.eos_tokens.empty()) config.eos_tokens = token_ids(text, "eos_token_id", vocab_size);
    if (bos.empty()) bos = token_ids(text, "bos_token_id", vocab_size);
  }
  if (!bos.empty()) config.bos_token = bos[0];

  if (const Json* field = file.json.find_value("max_new_tokens")) {
    config.max_new_tokens = field->as_int(file.path("max_new_tokens"));
  }
  config.temperature = file.number("temperature");
  config.top_p = file.number("top_p");
  config.min_p = file.number("min_p");
  config.repetition_penalty = file.number("repetition_penalty");
  if (const Json* field = file.json.find_value("top_k")) {
    config.top_k = static_cast<int32_t>(field->as_int(file.path("top_k")));
  }
  if (const Json* field = file.json.find_value("do_sample")) {
    if (!field->as_bool(file.path("do_sample"))) config.temperature = 0.0f;
  }
  return config;
}

}  // namespace paceline
