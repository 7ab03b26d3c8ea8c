#include "load/generation_config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "text/generation_options.h"

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

GenerateOptions defaults_of(const ConfigFile& file) {
  GenerateOptions defaults;
  for (const GenerationOption& option : kGenerationOptions) {
    const std::string_view key = option.file_keys.generation_config;
    const Json* field = key.empty() ? nullptr : file.json.find_value(key);
    if (field == nullptr) continue;
    const bool is_whole = kind_of(option) == GenerationKind::integer;
    const GenerationValue value = is_whole ? GenerationValue(field->as_int(file.path(key)))
                                           : GenerationValue(field->as_double(file.path(key)));
    try {
      set_option(defaults, option, value);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", file.where, error.what()));
    }
  }
  return defaults;
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

  config.defaults = defaults_of(file);
  if (const Json* field = file.json.find_value("do_sample")) {
    if (!field->as_bool(file.path("do_sample"))) config.defaults.temperature = 0.0f;
  }
  return config;
}

}  // namespace paceline
