#include "adapters/peft_directory.h"

#include <fmt/format.h>

#include <optional>

#include "adapters/adapter_reading.h"
#include "adapters/adapter_writing.h"
#include "adapters/expert_names.h"
#include "adapters/expert_stacks.h"
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
                                        const AdapterBase& base, const AdapterLimits& limits,
                                        ExpertStackReader& stacks, MatchBudget& budget) {
  PairCollector collector(where, base, limits);
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), where)) {
    const auto name = parse_peft_name(tensor.name);
    if (!name) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} {}", where, quoted_name(tensor.name),
                              why_refused_peft_tensor(tensor.name)));
    }
    if (is_unused_module(name->module)) continue;
    const StoredLoraMatrix matrix = stored_matrix(tensor, false);
    if (!stacks.add(name->module, name->side, matrix)) {
      collector.add(name->module, name->side, matrix);
    }
  }
  stacks.add_experts(collector, base, budget);
  PairCollector::Parts all = collector.finish();
  for (auto& [module, parts] : all) {
    const std::string* const parameter = stacks.parameter_of(parts.file_module);
    parts.is_parameter = parameter != nullptr;
    if (parts.is_parameter) parts.file_module = *parameter;
  }
  return all;
}

// A linear module's weight as target_parameters may choose it.
std::string weight_parameter(std::string_view module) { return fmt::format("{}.weight", module); }

// What rank_pattern and alpha_pattern call a module.
std::string pattern_name(const PeftConfig& config, const LoraParts& parts, MatchBudget& budget) {
  if (parts.is_parameter || config.targets(parts.file_module, budget)) return parts.file_module;
  return weight_parameter(parts.file_module);
}

void check_against_config(const std::string& where, const PeftConfig& config,
                          const LoraParts& parts, std::string_view config_where,
                          MatchBudget& budget) {
  if (parts.is_parameter) return;  // ExpertStackReader has checked it
  if (!config.targets(parts.file_module, budget) &&
      !config.targets_parameter(weight_parameter(parts.file_module))) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} adapts a module that {} doesn't choose (target_modules, "
                            "target_parameters, layers_to_transform), so PEFT would leave it out",
                            where, quoted_name(parts.a->tensor), config_where));
  }
  check_config_rank(where, parts, config.rank_of(pattern_name(config, parts, budget), budget),
                    config_where);
}

// A module's name in transformers' class of the base.
std::string peft_module_name(const LoraPair& pair, const AdapterBase& base) {
  const auto layer = split_layer_module(pair.module);
  if (layer && layer->part == kRouterPart) {
    return prefixed(base.peft_prefixes,
                    fmt::format("layers.{}.{}", layer->layer, base.expert_names.router));
  }
  const auto expert = layer ? split_expert_part(layer->part) : std::nullopt;
  if (!expert) return prefixed(base.peft_prefixes, pair.module);
  return prefixed(base.peft_prefixes,
                  fmt::format("layers.{}.{}.{}.{}", layer->layer, base.expert_names.single,
                              expert->expert, base.expert_names.projection(expert->projection)));
}

// What adapter_config.json says of a module or parameter.
struct NamedPair {
  std::string name;
  const LoraPair* pair = nullptr;
};

// The experts' name in transformers' class: "layers.3.mlp.experts".
std::string experts_of(const ExpertStack& stack, const AdapterBase& base) {
  const auto layer = split_layer_module(stack.module);
  return prefixed(base.peft_prefixes,
                  fmt::format("layers.{}.{}", layer->layer, base.expert_names.stacked));
}

std::string parameter_name(const ExpertStack& stack, const AdapterBase& base) {
  return experts_of(stack, base) + stack.module.substr(stack.module.rfind('.'));
}

std::string peft_config_text(const Adapter& adapter, const AdapterBase& base,
                             const StackedAdapter& stacked) {
  const LoraPair& usual = adapter.pairs().front();
  std::vector<NamedPair> modules, parameters;
  for (const LoraPair* const pair : stacked.pairs) {
    const auto layer = split_layer_module(pair->module);
    std::string name = peft_module_name(*pair, base);
    if (layer && is_router_part(layer->part)) {
      parameters.push_back({weight_parameter(name), pair});
    } else {
      modules.push_back({std::move(name), pair});
    }
  }
  for (const ExpertStack& stack : stacked.stacks) {
    parameters.push_back({parameter_name(stack, base), stack.pairs.front()});
  }
  std::vector<NamedPair> all = modules;
  all.insert(all.end(), parameters.begin(), parameters.end());
  std::string text;
  JsonWriter json(text);
  const auto write_names = [&](const std::vector<NamedPair>& pairs) {
    json.begin_array();
    for (const NamedPair& one : pairs) json.string(one.name);
    json.end_array();
  };
  json.begin_object();
  json.key("alpha_pattern").begin_object();
  for (const auto& [name, pair] : all) {
    if (alpha_to_write(*pair) == alpha_to_write(usual)) continue;
    json.key(name);
    write_number(json, alpha_to_write(*pair));
  }
  json.end_object();
  json.key("base_model_name_or_path");
  adapter.base_name().empty() ? json.null() : json.string(adapter.base_name());
  json.member("bias", "none").member("fan_in_fan_out", false).member("inference_mode", true);
  json.member("init_lora_weights", true).key("lora_alpha");
  write_number(json, alpha_to_write(usual));
  json.member("lora_dropout", 0.0).member("peft_type", "LORA").member("r", usual.rank());
  json.key("rank_pattern").begin_object();
  for (const auto& [name, pair] : all) {
    if (pair->rank() != usual.rank()) json.member(name, pair->rank());
  }
  json.end_object().key("target_modules");
  write_names(modules);
  if (!parameters.empty()) {
    json.key("target_parameters");
    write_names(parameters);
  }
  json.member("task_type", "CAUSAL_LM");
  json.member("use_dora", false).member("use_rslora", false).end_object();
  return text + "\n";
}

std::vector<WrittenMatrix> peft_matrices(const StackedAdapter& stacked, const AdapterBase& base) {
  std::vector<WrittenMatrix> matrices;
  const auto name_of = [](const std::string& module, LoraSide side) {
    return fmt::format("{}{}.{}.weight", kPeftPrefix, module,
                       side == LoraSide::a ? "lora_A" : "lora_B");
  };
  for (const LoraPair* const pair : stacked.pairs) {
    const std::string module = peft_module_name(*pair, base);
    matrices.push_back(whole_matrix(name_of(module, LoraSide::a), pair->a.view));
    matrices.push_back(whole_matrix(name_of(module, LoraSide::b), pair->b.view));
  }
  for (const ExpertStack& stack : stacked.stacks) {
    const std::string module = experts_of(stack, base) + (stack.is_inner ? ".base_layer" : "");
    for (const LoraSide side : {LoraSide::a, LoraSide::b}) {
      const LoraPair& first = *stack.pairs.front();
      matrices.push_back({.name = name_of(module, side),
                          .dtype = (side == LoraSide::a ? first.a : first.b).view.dtype(),
                          .shape = stack.shape(side),
                          .bytes = [&stack, side] { return stack.matrix(side); }});
    }
  }
  return matrices;
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
  MatchBudget budget(kMatchingTime);
  ExpertStackReader stacks(where, config);
  const PairCollector::Parts all = collect_peft_pairs(file, where, base, limits, stacks, budget);
  for (const auto& [module, parts] : all) {
    check_against_config(where, config, parts, config_where, budget);
  }
  std::vector<LoraPair> pairs;
  for (const auto& [module, parts] : all) {
    LoraPair pair = read_pair(where, module, parts, memory);
    const double alpha = config.alpha_of(pattern_name(config, parts, budget), budget);
    set_scale(config_where, pair, alpha, config.scale_of(alpha, pair.rank()));
    pairs.push_back(std::move(pair));
  }
  return Adapter(config.base_name(), std::move(pairs));
}

void write_peft_files(const Adapter& adapter, const AdapterBase& base, const fs::path& directory) {
  PL_CHECK(!adapter.pairs().empty(), "an adapter has a pair");
  const StackedAdapter stacked = stack_experts(adapter, base);
  write_matrices(peft_matrices(stacked, base), directory / kPeftWeightsFile, "pt");
  write_new_file(directory / kAdapterConfigFile, peft_config_text(adapter, base, stacked));
}

void write_peft_adapter(const Adapter& adapter, const AdapterBase& base,
                        const fs::path& directory) {
  NewDirectory out(directory);
  write_peft_files(adapter, base, out.filling_path());
  out.commit();
}

}  // namespace paceline
