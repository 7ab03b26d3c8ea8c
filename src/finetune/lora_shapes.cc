#include "finetune/lora_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "adapters/expert_names.h"
#include "adapters/module_values.h"
#include "base/error.h"

namespace paceline {
namespace {

constexpr std::chrono::seconds kMatchingTime{10};

// The keys of one option, and those of them that a module used.
class PatternOption {
 public:
  PatternOption(std::string_view name, const NamedNumbers& numbers) : name_(name) {
    for (const auto& [key, number] : numbers) {
      values_.add(key, number, fmt::format("--{}: {}", name, key));
    }
  }

  double value_of(std::string_view module, MatchBudget& budget, double otherwise) {
    const auto* const entry = values_.find(module, budget);
    if (entry == nullptr) return otherwise;
    used_.insert(entry);
    return entry->value;
  }

  void refuse_unused(const LoraShapes& shapes) const {
    for (const auto& entry : values_.entries()) {
      if (used_.contains(&entry) || shapes.empty()) continue;
      throw error_of(ErrorCode::invalid,
                     "--{}: {} is used by no module: found none whose name ends in it, or "
                     "an earlier key matches; expected the end of a name such as {}",
                     name_, entry.key, shapes.begin()->first);
    }
  }

 private:
  std::string_view name_;
  ModuleValues<double> values_;
  std::set<const ModuleValues<double>::Entry*> used_;
};

int64_t checked_rank(double rank) {
  if (rank == std::floor(rank)) return static_cast<int64_t>(rank);
  throw error_of(ErrorCode::invalid, "--rank-pattern: found {}, expected an integer", rank);
}

double usual_alpha(const TrainOptions& options, int64_t rank) {
  if (!options.scale) return options.alpha;
  const auto divisor = static_cast<double>(rank);
  return *options.scale * (options.use_rslora ? std::sqrt(divisor) : divisor);
}

bool is_target(const TrainOptions& options, int64_t num_layers, std::string_view module) {
  const int64_t first_layer =
      options.num_layers < 0 ? 0 : std::max<int64_t>(num_layers - options.num_layers, 0);
  const auto layer = split_layer_module(module);
  if (!layer || layer->layer < first_layer) return false;
  const auto& targets = options.target_modules;
  const std::string_view name = module.substr(module.rfind('.') + 1);
  const auto is_named = [&](std::string_view one) {
    return std::ranges::find(targets, one) != targets.end();
  };
  if (split_expert_part(layer->part)) return is_named(fmt::format("experts.{}", name));
  return targets.empty() || is_named("all-linear") || is_named(name);
}

}  // namespace

LoraShapes lora_shapes(const TrainOptions& options, const DecoderConfig& config,
                       const ModulePrefixes& prefixes) {
  PatternOption ranks("rank-pattern", options.rank_pattern);
  PatternOption alphas("alpha-pattern", options.alpha_pattern);
  MatchBudget budget(kMatchingTime);
  LoraShapes shapes;
  std::vector<std::string> modules = linear_modules(config);
  for (std::string& module : expert_modules(config)) modules.push_back(std::move(module));
  for (const std::string& module : modules) {
    if (!is_target(options, config.num_stored_layers(), module)) continue;
    const std::string name = prefixed(prefixes, module);
    const int64_t rank =
        checked_rank(ranks.value_of(name, budget, static_cast<double>(options.rank)));
    shapes[module] = {.rank = rank,
                      .alpha = alphas.value_of(name, budget, usual_alpha(options, rank))};
  }
  ranks.refuse_unused(shapes);
  alphas.refuse_unused(shapes);
  return shapes;
}

}  // namespace paceline
