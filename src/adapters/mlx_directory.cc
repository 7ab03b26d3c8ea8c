#include "adapters/mlx_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "adapters/adapter_reading.h"
#include "adapters/adapter_writing.h"
#include "adapters/expert_names.h"
#include "adapters/expert_stacks.h"
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
      name.ends_with(".m")
          ? "is a magnitude of DoRA, which isn't supported"
          : "isn't a LoRA matrix (lora_a or lora_b); whole weights aren't supported";
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: tensor {} {}", where, quoted_name(name), why));
}

// The file's name of a stack of experts' matrices, by that of each expert's module.
using StackNames = std::map<std::string, std::string, std::less<>>;

// Adds the matrices of a stack, [experts, rank, in] or [experts, out, rank] (LoRASwitchLinear in
// mlx_lm/tuner/lora.py). Returns false for tensors of other modules.
bool add_expert_stack(PairCollector& collector, StackNames& names, std::string_view module,
                      LoraSide side, const StoredLoraMatrix& stack) {
  constexpr std::string_view kStack = ".switch_mlp.", kExperts = ".experts.";  // the latter gpt-oss
  const std::string_view mark = module.find(kStack) != module.npos ? kStack : kExperts;
  const size_t at = module.rfind(mark);
  const Extents& shape = stack.shape;
  if (at == module.npos || shape.rank() != 3 || shape[0] == 0) return false;
  int64_t expert = 0;
  for (StoredLoraMatrix& one : matrices_of_stack(stack)) {
    one.is_transposed = false;
    const std::string name = fmt::format("{}.experts.{}.{}", module.substr(0, at), expert++,
                                         module.substr(at + mark.size()));
    names.emplace(name, module);
    collector.add(name, side, std::move(one));
  }
  return true;
}

PairCollector::Parts collect_mlx_pairs(const MappedFile& file, const std::string& where,
                                       const AdapterBase& base, const AdapterLimits& limits) {
  PairCollector collector(where, base, limits);
  StackNames stacks;
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), where)) {
    const std::string_view name = tensor.name;
    const bool is_a = name.ends_with(kMlxA);
    if (!is_a && !name.ends_with(kMlxB)) refuse_mlx_tensor(where, name);
    const std::string_view module = name.substr(0, name.size() - kMlxA.size());
    if (is_unused_module(module)) continue;
    const LoraSide side = is_a ? LoraSide::a : LoraSide::b;
    const StoredLoraMatrix matrix = stored_matrix(tensor, true);
    if (!add_expert_stack(collector, stacks, module, side, matrix)) {
      collector.add(module, side, matrix);
    }
  }
  PairCollector::Parts all = collector.finish();
  for (auto& [module, parts] : all) {
    const auto stack = stacks.find(parts.file_module);
    parts.is_parameter = stack != stacks.end();
    if (parts.is_parameter) parts.file_module = stack->second;
  }
  return all;
}

// A module as configs know it, which call stacks of experts and routers as the file does:
// "layers.3.mlp.switch_mlp.up_proj".
std::string configured_module(const std::string& module, const LoraParts& parts) {
  const auto layer = split_layer_module(module);
  const bool is_router = layer && is_router_part(layer->part);
  if (!parts.is_parameter && !is_router) return module;
  const size_t at = parts.file_module.find("layers.");
  return at == std::string::npos ? parts.file_module : parts.file_module.substr(at);
}

// A module of a written file.
struct MlxModule {
  std::string module;  // without a model's prefix
  WrittenMatrix a;
  WrittenMatrix b;
};

// The pairs of all experts of a layer's projection; of gate_up_proj those of gate or of up.
MlxModule stacked_module(std::string module, const std::vector<const LoraPair*>& pairs,
                         int64_t first_row, int64_t num_rows) {
  const LoraPair& first = *pairs.front();
  const auto experts = std::ssize(pairs);
  const auto joined = [pairs](const auto& bytes_of) {
    std::vector<std::byte> all;
    for (const LoraPair* const pair : pairs) {
      const std::span<const std::byte> bytes = bytes_of(*pair);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  };
  MlxModule result{.module = std::move(module), .a = {}, .b = {}};
  result.a = {.dtype = first.a.view.dtype(),
              .shape = {experts, first.rank(), first.in()},
              .bytes = [joined] {
                return joined([](const LoraPair& pair) { return pair.a.view.bytes(); });
              }};
  result.b = {.dtype = first.b.view.dtype(),
              .shape = {experts, num_rows, first.rank()},
              .bytes = [joined, first_row, num_rows] {
                return joined([&](const LoraPair& pair) {
                  return pair.b.view.slice(0, first_row, first_row + num_rows).bytes();
                });
              }};
  return result;
}

// Throws Error unsupported when only some experts of a layer have a pair.
std::vector<MlxModule> mlx_modules(const Adapter& adapter, const AdapterBase& base,
                                   const fs::path& directory) {
  std::vector<MlxModule> modules;
  const ExpertPairs experts = pairs_of_experts(adapter);
  for (const LoraPair* const pair : experts.others) {
    const auto layer = split_layer_module(pair->module);
    const bool is_router = layer && layer->part == kRouterPart;
    modules.push_back({.module = is_router ? fmt::format("layers.{}.{}", layer->layer,
                                                         base.expert_names.router_in_mlx)
                                           : pair->module,
                       .a = transposed_matrix("", pair->a.view),
                       .b = transposed_matrix("", pair->b.view)});
  }
  for (const auto& [name, pairs] : experts.by_module) {
    if (!are_all_experts(pairs, base)) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: {}: mlx-lm's format has pairs of one type for all experts of a "
                              "layer, found others; --to peft writes them",
                              directory.string(), pairs.front()->module));
    }
    const auto layer = split_layer_module(name);
    const std::string block =
        fmt::format("layers.{}.{}.", layer->layer, base.expert_names.stacked_in_mlx);
    const std::string projection = name.substr(name.rfind('.') + 1);
    const int64_t rows = pairs.front()->out();
    if (projection != "gate_up_proj") {
      modules.push_back(stacked_module(block + projection, pairs, 0, rows));
      continue;
    }
    if (!base.is_known()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: {}: mlx-lm's format has gate and up apart, and which rows are "
                              "whose depends on the base model; name it with --model",
                              directory.string(), pairs.front()->module));
    }
    modules.push_back(stacked_module(block + "gate_proj", pairs, 0, rows / 2));
    modules.push_back(stacked_module(block + "up_proj", pairs, rows / 2, rows / 2));
  }
  return modules;
}

// The whole names, or those inside a layer if they are the same in each of the last num_layers.
struct MlxKeys {
  std::vector<std::string> keys;
  int64_t num_layers = -1;
};

MlxKeys find_mlx_keys(const std::vector<MlxModule>& modules, const AdapterBase& base) {
  MlxKeys whole;
  std::vector<std::string> parts;
  int64_t first_layer = base.num_layers;
  bool in_layers = base.num_layers > 0;
  for (const MlxModule& one : modules) {
    whole.keys.push_back(prefixed(base.mlx_prefixes, one.module));
    const auto split = split_layer_module(one.module);
    if (!split) {
      in_layers = false;
      continue;
    }
    first_layer = std::min(first_layer, split->layer);
    if (std::ranges::find(parts, split->part) == parts.end()) parts.emplace_back(split->part);
  }
  const auto num_layers = static_cast<size_t>(base.num_layers - first_layer);
  // Each pair is another part or layer, so this number of them leaves out none.
  if (!in_layers || modules.size() != num_layers * parts.size()) return whole;
  return {.keys = std::move(parts), .num_layers = static_cast<int64_t>(num_layers)};
}

std::string mlx_config_text(const Adapter& adapter, const MlxKeys& keys) {
  const LoraPair& first = adapter.pairs().front();
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
    if (!config.adapts(configured_module(module, parts), parts.file_module, base.num_layers)) {
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
  const std::vector<MlxModule> modules = mlx_modules(adapter, base, directory);
  NewDirectory out(directory);
  std::vector<WrittenMatrix> matrices;
  for (const MlxModule& one : modules) {
    const std::string name = prefixed(base.mlx_prefixes, one.module);
    matrices.push_back(one.a);
    matrices.back().name = fmt::format("{}{}", name, kMlxA);
    matrices.push_back(one.b);
    matrices.back().name = fmt::format("{}{}", name, kMlxB);
  }
  write_matrices(std::move(matrices), out.filling_path() / kMlxWeightsFile, "mlx");
  write_new_file(out.filling_path() / kAdapterConfigFile,
                 mlx_config_text(adapter, find_mlx_keys(modules, base)));
  out.commit();
}

}  // namespace paceline
