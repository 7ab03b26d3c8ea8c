#include "load/model_outline.h"

#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/json_cursor.h"
#include "load/load_decoder.h"
#include "models/decoder.h"

namespace paceline {
namespace {

// The first of these names that the text's part of the config has, else the config.
int64_t first_count(const JsonCursor& config, std::initializer_list<std::string_view> names) {
  constexpr NumberRange kCount{.min = 1, .max = 2147483647};
  const auto text = config.find("text_config");
  for (const std::string_view name : names) {
    auto found = text ? text->find(name) : std::nullopt;
    if (!found) found = config.find(name);
    if (found) return found->integer(kCount);
  }
  return 0;
}

}  // namespace

ModelOutline outline_of(const Decoder& decoder) {
  const DecoderConfig& config = decoder.config();
  return {.family = config.family,
          .num_layers = config.num_stored_layers(),
          .width = config.hidden_size,
          .vocab_size = config.vocab_size,
          .max_position = config.max_position,
          .num_parameters = decoder.num_parameters()};
}

ModelOutline read_model_outline(const ModelFiles& files) {
  const Json json = files.read_json(kConfig);
  const JsonCursor config(json, files.where(kConfig), ErrorCode::corrupt);
  const auto family = config.find("model_type");
  return {
      .family = family ? family->string() : std::string(),
      .num_layers = first_count(config, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}),
      .width = first_count(config, {"hidden_size", "n_embd", "d_model"}),
      .vocab_size = first_count(config, {"vocab_size"}),
      .max_position = first_count(
          config, {"max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length",
                   "max_seq_len", "seq_length", "context_length"})};
}

}  // namespace paceline
