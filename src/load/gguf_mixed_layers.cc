#include "load/gguf_mixed_layers.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "load/gguf_layers.h"

namespace paceline {
namespace {

constexpr std::string_view kMixedHeads = "attention.head_count_kv";
constexpr std::string_view kMixedColumns = "feed_forward_length";
constexpr std::string_view kSharedLayers = "attention.shared_kv_layers";

// A number for each layer, from one or a list.
std::vector<int64_t> numbers_of_layers(const GgufFields& fields, std::string_view key,
                                       int64_t layers) {
  if (!fields.metadata().is_array(fields.key(key))) {
    return std::vector<int64_t>(static_cast<size_t>(layers), fields.size(key));
  }
  auto listed = fields.metadata().integers(fields.key(key)).value();
  if (std::ssize(listed) < layers) {
    fields.corrupt(key, fmt::format("{} entries for {} layers", listed.size(), layers));
  }
  constexpr int64_t kMost = int64_t{1} << 24;
  listed.resize(static_cast<size_t>(layers));
  for (const int64_t number : listed) {
    if (number < 1 || number > kMost) {
      fields.corrupt(key, fmt::format("{}, expected 1 to {}", number, kMost));
    }
  }
  return listed;
}

// The number that all layers of one kind have.
std::optional<int64_t> number_of_kind(const GgufFields& fields, std::string_view key,
                                      const std::vector<bool>& windowed, bool has_window) {
  const auto numbers = numbers_of_layers(fields, key, std::ssize(windowed));
  std::optional<int64_t> found;
  for (size_t i = 0; i < windowed.size(); ++i) {
    if (windowed[i] != has_window) continue;
    if (found.value_or(numbers[i]) != numbers[i]) {
      fields.unsupported(
          key, fmt::format("layers of one kind that differ ({} and {})", *found, numbers[i]));
    }
    found = numbers[i];
  }
  return found;
}

void check_values(const GgufFields& fields, std::string_view keys, std::string_view values) {
  const int64_t key_dim = fields.size(keys);
  const int64_t value_dim = fields.integer(values).value_or(key_dim);
  if (value_dim == key_dim) return;
  fields.unsupported(values,
                     fmt::format("values of {} elements beside keys of {}", value_dim, key_dim));
}

int64_t shared_layers(const GgufFields& fields, int64_t layers) {
  const int64_t shared = fields.integer(kSharedLayers).value_or(0);
  if (shared < 0 || shared > layers) {
    fields.corrupt(kSharedLayers, fmt::format("{} of {} layers", shared, layers));
  }
  return shared;
}

// Whether the layers that share keys and values have MLPs of twice the width.
bool has_double_mlps(const GgufFields& fields, int64_t layers, int64_t shared) {
  const auto columns = numbers_of_layers(fields, kMixedColumns, layers);
  const bool doubles = columns.back() != columns.front();
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t factor = doubles && i >= layers - shared ? 2 : 1;
    const int64_t found = columns[static_cast<size_t>(i)];
    if (found == factor * columns.front()) continue;
    fields.unsupported(kMixedColumns, fmt::format("layers of {} and {} columns, but for twice as "
                                                  "many in those that share keys and values,",
                                                  columns.front(), found));
  }
  return doubles;
}

void add_layer_inputs(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  constexpr std::string_view kWidth = "embedding_length_per_layer_input";
  const int64_t width = fields.integer(kWidth).value_or(0);
  if (width < 0) fields.corrupt(kWidth, fmt::format("{}, expected 0 or more", width));
  config.emplace_back("hidden_size_per_layer_input", width);
  const GgufTensorInfo* const table = file.find_tensor("per_layer_token_embd.weight");
  if (table != nullptr && table->extents.rank() == 2) {
    config.emplace_back("vocab_size_per_layer_input", table->extents[0]);
  }
}

}  // namespace

int64_t gguf_windowed_key_heads(const GgufFields& fields) {
  if (!fields.metadata().is_array(fields.key(kMixedHeads))) return fields.size(kMixedHeads);
  const auto count = fields.metadata().integers(fields.key(kMixedHeads)).value().size();
  const auto windowed = gguf_windowed_layers(fields, static_cast<int64_t>(count));
  const auto heads = number_of_kind(fields, kMixedHeads, windowed, true);
  if (heads) return *heads;
  const auto others = number_of_kind(fields, kMixedHeads, windowed, false);
  if (!others) fields.corrupt(kMixedHeads, "an empty list, expected a number for each layer");
  return *others;
}

int64_t gguf_first_mlp_size(const GgufFields& fields) {
  return numbers_of_layers(fields, kMixedColumns, 1).front();
}

void add_gguf_mixed_layers(const GgufFile& file, const GgufFields& fields, int64_t layers,
                           Json::Object& config) {
  check_values(fields, "attention.key_length", "attention.value_length");
  check_values(fields, "attention.key_length_swa", "attention.value_length_swa");
  add_gguf_mixed_ropes(file, fields, config);
  const auto windowed = gguf_windowed_layers(fields, layers);
  const int64_t shared = shared_layers(fields, layers);
  const auto heads = number_of_kind(fields, kMixedHeads, windowed, false);
  Json::Object sizes;
  bool joins_values = false;
  for (int64_t i = 0; i < layers; ++i) {
    if (windowed[static_cast<size_t>(i)]) continue;
    sizes.emplace_back(fmt::format("{}", i),
                       Json(Json::Object{{"head_dim", Json(fields.size("attention.key_length"))},
                                         {"num_key_value_heads", Json(heads.value())}}));
    const std::string values = fmt::format("blk.{}.attn_v.weight", i);
    if (i < layers - shared && file.find_tensor(values) == nullptr) joins_values = true;
  }
  config.emplace_back("per_layer_config", Json(std::move(sizes)));
  config.emplace_back("attention_k_eq_v", joins_values);
  config.emplace_back("num_kv_shared_layers", shared);
  config.emplace_back("use_double_wide_mlp", has_double_mlps(fields, layers, shared));
  add_layer_inputs(file, fields, config);
  const bool has_experts = fields.integer("expert_count").value_or(0) > 0;
  config.emplace_back("enable_moe_block", has_experts);
  if (has_experts) config.emplace_back("top_k_experts", fields.size("expert_used_count"));
}

}  // namespace paceline
