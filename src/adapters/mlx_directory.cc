#include "adapters/mlx_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "adapters/adapter_reading.h"
#include "adapters/adapter_writing.h"
#include "base/json_cursor.h"
#include "base/model_files.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMlxA = ".lora_a";
constexpr std::string_view kMlxB = ".lora_b";

struct MlxConfig {
  std::string base_name;
  int64_t rank = 0;
  double scale = 0;
  int64_t num_layers = -1;                       // from the last one; below 1: all
  std::optional<std::vector<std::string>> keys;  // sorted; nothing: every linear layer

  bool adapts(std::string_view module, std::string_view file_module, int64_t base_num_layers) const;
};

// Whether linear_to_lora_layers() in mlx_lm/tuner/utils.py gives the module a pair.
bool MlxConfig::adapts(std::string_view module, std::string_view file_module,
                       int64_t base_num_layers) const {
  const auto is_key = [this](std::string_view name) {
    return std::ranges::binary_search(*keys, name);
  };
  if (keys && is_key(file_module)) return true;
  const auto split = split_layer_module(module);
  if (!split || (keys && !is_key(split->part))) return false;
  if (num_layers < 1 || base_num_layers == 0) return true;
  return split->layer >= base_num_layers - num_layers;
}

void check_fine_tune_type(const JsonCursor& config) {
  const auto type = config.find("fine_tune_type");
  if (!type || type->string() == "lora") return;
  type->fail(ErrorCode::unsupported, found_instead(shown_text(type->string()), "\"lora\""));
}

MlxConfig read_mlx_config(const JsonCursor& config, int64_t max_rank) {
  constexpr size_t kMaxKeys = 16'384;
  constexpr double kMaxScale = std::numeric_limits<float>::max();
  check_fine_tune_type(config);
  const JsonCursor parameters = config.at("lora_parameters");
  MlxConfig result;
  result.rank =
      parameters.at("rank").integer(NumberRange{.min = 1, .max = static_cast<double>(max_rank)});
  result.scale = parameters.at("scale").number(NumberRange{.min = -kMaxScale, .max = kMaxScale});
  if (const auto layers = config.find("num_layers")) result.num_layers = layers->integer();
  if (const auto model = config.find("model")) result.base_name = model->string();
  const auto keys = parameters.find("keys");
  if (!keys) return result;
  if (keys->num_items() > kMaxKeys) {
    keys->fail(ErrorCode::exhausted,
               fmt::format("{} items, at most {} are allowed", keys->num_items(), kMaxKeys));
  }
  result.keys.emplace();
  for (const JsonCursor& key : keys->items()) result.keys->push_back(key.string());
  std::ranges::sort(*result.keys);
  return result;
}

[[noreturn]] void refuse_mlx_tensor(const std::string& where, std::string_view name) {
  const std::string_view why =
      name.ends_with(".m") ? "is a magnitude of DoRA, which isn't supported"
                           : "is no LoRA matrix (lora_a or lora_b); whole weights aren't supported";
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: tensor {} {}", where, quoted_name(name), why));
}

PairCollector::Parts collect_mlx_pairs(const MappedFile& file, const std::string& where,
                                       const AdapterBase& base, const AdapterLimits& limits) {
  PairCollector collector(where, base, limits);
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), where)) {
    const std::string_view name = tensor.name;
    const bool is_a = name.ends_with(kMlxA);
    if (!is_a && !name.ends_with(kMlxB)) refuse_mlx_tensor(where, name);
    const std::string_view module = name.substr(0, name.size() - kMlxA.size());
    if (is_unused_module(module)) continue;
    collector.add(module, is_a ? LoraSide::a : LoraSide::b, stored_matrix(tensor, true));
  }
  return collector.finish();
}

// The whole names, or those inside a layer if they are the same in each of the last num_layers.
struct MlxKeys {
  std::vector<std::string> keys;
  int64_t num_layers = -1;
};

MlxKeys find_mlx_keys(const Adapter& adapter, const AdapterBase& base) {
  MlxKeys whole;
  std::vector<std::string> parts;
  int64_t first_layer = base.num_layers;
  bool in_layers = base.num_layers > 0;
  for (const LoraPair& pair : adapter.pairs()) {
    whole.keys.push_back(prefixed(base.mlx_prefixes, pair.module));
    const auto split = split_layer_module(pair.module);
    if (!split) {
      in_layers = false;
      continue;
    }
    first_layer = std::min(first_layer, split->layer);
    if (std::ranges::find(parts, split->part) == parts.end()) parts.emplace_back(split->part);
  }
  const auto num_layers = static_cast<size_t>(base.num_layers - first_layer);
  // Each pair is another part or layer, so this number of them leaves out none.
  if (!in_layers || adapter.pairs().size() != num_layers * parts.size()) return whole;
  return {.keys = std::move(parts), .num_layers = static_cast<int64_t>(num_layers)};
}

std::string mlx_config_text(const Adapter& adapter, const AdapterBase& base) {
  const LoraPair& first = adapter.pairs().front();
  const MlxKeys keys = find_mlx_keys(adapter, base);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("fine_tune_type", "lora").key("lora_parameters").begin_object();
  json.member("dropout", 0.0).key("keys").begin_array();
  for (const std::string& key : keys.keys) json.string(key);
  json.end_array().member("rank", first.rank()).member("scale", scale_to_write(first));
  json.end_object();
  if (!adapter.base_name().empty()) json.member("model", adapter.base_name());
  json.member("num_layers", keys.num_layers).end_object();
  return text + "\n";
}

void expect_one_rank_and_scale(const Adapter& adapter, const fs::path& directory) {
  const LoraPair& first = adapter.pairs().front();
  for (const LoraPair& pair : adapter.pairs()) {
    if (pair.rank() == first.rank() && pair.scale == first.scale) continue;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: {} has rank {} and scale {}, {} has rank {} and scale {}; mlx-lm's "
                    "format has one rank and one scale, PEFT's has any",
                    directory.string(), first.module, first.rank(), first.scale, pair.module,
                    pair.rank(), pair.scale));
  }
}

}  // namespace

Adapter read_mlx_adapter(const fs::path& directory, const AdapterBase& base,
                         const AdapterLimits& limits, Memory& memory) {
  const fs::path config_path = directory / kAdapterConfigFile;
  const std::string config_where = config_path.string();
  const Json json = parse_json(read_text_file(config_path, kMaxConfigBytes), config_where);
  const MlxConfig config = read_mlx_config(JsonCursor(json, config_where), limits.max_rank);
  const MappedFile file(directory / kMlxWeightsFile);
  const std::string where = file.path().string();
  check_adapter_bytes(file.path(), file.bytes().size(), limits);
  const PairCollector::Parts all = collect_mlx_pairs(file, where, base, limits);
  for (const auto& [module, parts] : all) {
    if (!config.adapts(module, parts.file_module, base.num_layers)) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: tensor {} adapts a module outside keys and num_layers of {}",
                              where, quoted_name(parts.a->tensor), config_where));
    }
    check_config_rank(where, parts, config.rank, config_where);
  }
  std::vector<LoraPair> pairs;
  for (const auto& [module, parts] : all) {
    LoraPair pair = read_pair(where, module, parts, memory);
    set_scale(config_where, pair, config.scale * static_cast<double>(config.rank), config.scale);
    pairs.push_back(std::move(pair));
  }
  return Adapter(config.base_name, std::move(pairs));
}

void write_mlx_adapter(const Adapter& adapter, const AdapterBase& base, const fs::path& directory) {
  PL_CHECK(!adapter.pairs().empty(), "an adapter has a pair");
  expect_one_rank_and_scale(adapter, directory);
  NewDirectory out(directory);
  const auto name_of = [&base](const LoraPair& pair, LoraSide side) {
    return fmt::format("{}{}", prefixed(base.mlx_prefixes, pair.module),
                       side == LoraSide::a ? kMlxA : kMlxB);
  };
  write_matrices(adapter, out.filling_path() / kMlxWeightsFile,
                 {.format = "mlx", .name_of = name_of, .transposed = true});
  write_new_file(out.filling_path() / kAdapterConfigFile, mlx_config_text(adapter, base));
  out.commit();
}

}  // namespace paceline
