#include "adapters/peft_directory.h"

#include <fmt/format.h>

#include <optional>

#include "adapters/adapter_reading.h"
#include "adapters/adapter_writing.h"
#include "adapters/peft_config.h"
#include "adapters/peft_refusals.h"
#include "base/json_writer.h"
#include "base/model_files.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// In front of the model's own names, where saved by PeftModel.
constexpr std::string_view kPeftPrefix = "base_model.model.";
constexpr std::chrono::seconds kMatchingTime{10};

struct PeftTensorName {
  std::string_view module;
  LoraSide side = LoraSide::a;
};

// "MODULE.lora_A.weight", or "MODULE.lora_A.NAME.weight" with the adapter's name inside.
std::optional<PeftTensorName> parse_peft_name(std::string_view name) {
  constexpr std::string_view kWeight = "weight";
  for (const LoraSide side : {LoraSide::a, LoraSide::b}) {
    const std::string_view mark = side == LoraSide::a ? ".lora_A." : ".lora_B.";
    const size_t at = name.rfind(mark);
    if (at == name.npos) continue;
    const std::string_view rest = name.substr(at + mark.size());
    if (rest != kWeight && !rest.ends_with(".weight")) return std::nullopt;
    std::string_view module = name.substr(0, at);
    if (module.starts_with(kPeftPrefix)) module.remove_prefix(kPeftPrefix.size());
    return PeftTensorName{module, side};
  }
  return std::nullopt;
}

PairCollector::Parts collect_peft_pairs(const MappedFile& file, const std::string& where,
                                        const AdapterBase& base, const AdapterLimits& limits) {
  PairCollector collector(where, base, limits);
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), where)) {
    const auto name = parse_peft_name(tensor.name);
    if (!name) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} {}", where, quoted_name(tensor.name),
                              why_refused_peft_tensor(tensor.name)));
    }
    if (is_unused_module(name->module)) continue;
    collector.add(name->module, name->side, stored_matrix(tensor, false));
  }
  return collector.finish();
}

void check_against_config(const std::string& where, const PeftConfig& config,
                          const LoraParts& parts, std::string_view config_where,
                          MatchBudget& budget) {
  if (!config.targets(parts.file_module, budget)) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} adapts a module that {} doesn't choose (target_modules, "
                            "layers_to_transform), so PEFT would leave it out",
                            where, quoted_name(parts.a->tensor), config_where));
  }
  check_config_rank(where, parts, config.rank_of(parts.file_module, budget), config_where);
}

std::string peft_config_text(const Adapter& adapter, const AdapterBase& base) {
  const LoraPair& usual = adapter.pairs().front();
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("alpha_pattern").begin_object();
  for (const LoraPair& pair : adapter.pairs()) {
    if (alpha_to_write(pair) == alpha_to_write(usual)) continue;
    json.key(prefixed(base.peft_prefixes, pair.module));
    write_number(json, alpha_to_write(pair));
  }
  json.end_object();
  json.key("base_model_name_or_path");
  adapter.base_name().empty() ? json.null() : json.string(adapter.base_name());
  json.member("bias", "none").member("fan_in_fan_out", false).member("inference_mode", true);
  json.member("init_lora_weights", true).key("lora_alpha");
  write_number(json, alpha_to_write(usual));
  json.member("lora_dropout", 0.0).member("peft_type", "LORA").member("r", usual.rank());
  json.key("rank_pattern").begin_object();
  for (const LoraPair& pair : adapter.pairs()) {
    if (pair.rank() == usual.rank()) continue;
    json.member(prefixed(base.peft_prefixes, pair.module), pair.rank());
  }
  json.end_object().key("target_modules").begin_array();
  for (const LoraPair& pair : adapter.pairs()) {
    json.string(prefixed(base.peft_prefixes, pair.module));
  }
  json.end_array().member("task_type", "CAUSAL_LM");
  json.member("use_dora", false).member("use_rslora", false).end_object();
  return text + "\n";
}

}  // namespace

Adapter read_peft_adapter(const fs::path& directory, const AdapterBase& base,
                          const AdapterLimits& limits, Memory& memory) {
  const fs::path config_path = directory / kAdapterConfigFile;
  const std::string config_where = config_path.string();
  const Json json = parse_json(read_text_file(config_path, kMaxConfigBytes), config_where);
  const PeftConfig config(json, config_where, limits.max_rank);
  const MappedFile file(directory / kPeftWeightsFile);
  const std::string where = file.path().string();
  check_adapter_bytes(file.path(), file.bytes().size(), limits);
  const PairCollector::Parts all = collect_peft_pairs(file, where, base, limits);
  MatchBudget budget(kMatchingTime);
  for (const auto& [module, parts] : all) {
    check_against_config(where, config, parts, config_where, budget);
  }
  std::vector<LoraPair> pairs;
  for (const auto& [module, parts] : all) {
    LoraPair pair = read_pair(where, module, parts, memory);
    const double alpha = config.alpha_of(parts.file_module, budget);
    set_scale(config_where, pair, alpha, config.scale_of(alpha, pair.rank()));
    pairs.push_back(std::move(pair));
  }
  return Adapter(config.base_name(), std::move(pairs));
}

void write_peft_files(const Adapter& adapter, const AdapterBase& base, const fs::path& directory) {
  PL_CHECK(!adapter.pairs().empty(), "an adapter has a pair");
  const auto name_of = [&base](const LoraPair& pair, LoraSide side) {
    return fmt::format("{}{}.{}.weight", kPeftPrefix, prefixed(base.peft_prefixes, pair.module),
                       side == LoraSide::a ? "lora_A" : "lora_B");
  };
  write_matrices(adapter, directory / kPeftWeightsFile,
                 {.format = "pt", .name_of = name_of, .transposed = false});
  write_new_file(directory / kAdapterConfigFile, peft_config_text(adapter, base));
}

void write_peft_adapter(const Adapter& adapter, const AdapterBase& base,
                        const fs::path& directory) {
  NewDirectory out(directory);
  write_peft_files(adapter, base, out.filling_path());
  out.commit();
}

}  // namespace paceline
