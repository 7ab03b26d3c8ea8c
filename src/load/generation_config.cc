#include "load/generation_config.h"

#include <fmt/format.h>

#include "base/json_cursor.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

// One of the files, or an empty object if it doesn't exist.
Json read_file(const ModelFiles& files, const char* name) {
  if (!files.contains(name)) return Json(Json::Object());
  return parse_json(files.read(name, kMaxConfigBytes), files.where(name));
}

// An id or a list of ids.
std::vector<int32_t> token_ids(const JsonCursor& file, std::string_view key, int64_t vocab_size) {
  const NumberRange range = {.min = 0, .max = static_cast<double>(vocab_size - 1)};
  const auto field = file.find(key);
  if (!field) return {};
  std::vector<int32_t> ids;
  const auto add = [&](const JsonCursor& id) {
    ids.push_back(static_cast<int32_t>(id.integer(range)));
  };
  if (!field->is_array()) {
    add(*field);
  } else {
    for (const JsonCursor& id : field->items()) add(id);
  }
  return ids;
}

GenerateOptions defaults_of(const JsonCursor& file) {
  GenerateOptions defaults;
  for (const GenerationOption& option : kGenerationOptions) {
    const std::string_view key = option.file_keys.generation_config;
    const auto field = key.empty() ? std::nullopt : file.find(key);
    if (!field) continue;
    const bool is_whole = kind_of(option) == GenerationKind::integer;
    const GenerationValue value =
        is_whole ? GenerationValue(field->integer()) : GenerationValue(field->number());
    try {
      set_option(defaults, option, value);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", file.where(), error.what()));
    }
  }
  return defaults;
}

}  // namespace

GenerationConfig read_generation_config(const ModelFiles& files, int64_t vocab_size) {
  const Json file_json = read_file(files, "generation_config.json");
  const Json model_json = read_file(files, "config.json");
  const JsonCursor file(file_json, "generation_config.json");
  const JsonCursor model(model_json, "config.json");

  // The text model's own object comes last in a multi-modal config.
  std::vector<JsonCursor> sources = {file, model};
  if (const auto nested = model.find("text_config")) sources.push_back(*nested);
  GenerationConfig config;
  std::vector<int32_t> bos;
  for (const JsonCursor& source : sources) {
    if (config.eos_tokens.empty()) {
      config.eos_tokens = token_ids(source, "eos_token_id", vocab_size);
    }
    if (bos.empty()) bos = token_ids(source, "bos_token_id", vocab_size);
  }
  if (!bos.empty()) config.bos_token = bos[0];

  config.defaults = defaults_of(file);
  if (!file.boolean_or("do_sample", true)) config.defaults.temperature = 0.0f;
  return config;
}

}  // namespace paceline
