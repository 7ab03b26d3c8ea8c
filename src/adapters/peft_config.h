// PeftConfig is the adapter_config.json of a LoRA adapter in PEFT's format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/module_pattern.h"
#include "adapters/module_values.h"
#include "base/json_cursor.h"

namespace paceline {

// Read as huggingface/peft 0.21 reads it. Module names are those of transformers' model:
// "model.layers.3.self_attn.q_proj".
class PeftConfig {
 public:
  // Throws Error naming the field: unsupported for anything but plain LoRA on linear layers of an
  // unchanged base, invalid for a malformed field. Keys that PEFT doesn't know either are ignored.
  // So are keys that aren't supported here, as long as they are null or have their default.
  PeftConfig(const Json& json, const std::string& where, int64_t max_rank);

  const std::string& base_name() const { return base_name_; }

  // Whether target_modules, exclude_modules, layers_to_transform and layers_pattern choose the
  // module (check_target_module_exists in peft/tuners/tuners_utils.py): a string matches whole
  // names, an item of a list whole names or their ends behind a dot. True when target_modules is
  // absent.
  bool targets(std::string_view module, MatchBudget& budget) const;

  // Whether target_parameters chooses a parameter ("model.layers.3.mlp.experts.down_proj"): an item
  // is its whole name or the end of it behind a dot (_inject_parameters in
  // peft/tuners/tuners_utils.py).
  bool targets_parameter(std::string_view parameter) const;

  // The value that rank_pattern or alpha_pattern has for the module, or else r or lora_alpha.
  int64_t rank_of(std::string_view module, MatchBudget& budget) const;
  double alpha_of(std::string_view module, MatchBudget& budget) const;
  // lora_alpha / rank, or with use_rslora lora_alpha / sqrt(rank).
  double scale_of(double alpha, int64_t rank) const;

 private:
  // target_modules or exclude_modules.
  struct Choice {
    std::vector<std::string> names;  // sorted
    std::optional<ModulePattern> pattern;

    bool contains(std::string_view module, MatchBudget& budget) const;
  };
  void read_targets(const JsonCursor& config);
  void read_layers(const JsonCursor& config);
  static Choice read_choice(const JsonCursor& field);
  bool is_in_layers(std::string_view module, MatchBudget& budget) const;

  std::string base_name_;
  int64_t rank_ = 8;
  double alpha_ = 8;
  bool is_rank_stabilised_ = false;
  ModuleValues<int64_t> rank_pattern_;
  ModuleValues<double> alpha_pattern_;
  std::optional<Choice> targets_;
  std::vector<std::string> target_parameters_;  // sorted
  bool targets_all_ = false;                    // "all-linear": all but the head
  std::optional<Choice> excluded_;
  std::vector<int64_t> layers_;  // to transform; empty: all
  std::vector<ModulePattern> layer_patterns_;
};

}  // namespace paceline
