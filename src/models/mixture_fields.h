// Reads the fields of config.json that describe mixtures of experts.
#pragma once

#include <optional>
#include <string_view>

#include "models/hf_config.h"
#include "weights/weight_reader.h"

namespace paceline {

// A family's defaults, and what its fields are called.
struct MixtureDefaults {
  std::string_view experts_key = "num_local_experts";  // beside num_experts
  std::string_view chosen_key = "num_experts_per_tok";
  std::string_view size_key = "moe_intermediate_size";  // of an expert's inner columns
  std::optional<int64_t> num_experts = {};
  std::optional<int64_t> experts_per_token = {};
  std::optional<int64_t> expert_size = {};
};

// Reads the number of experts, of chosen ones, and their size. Throws Error invalid naming a field
// that contradicts another.
MixtureConfig read_mixture(const HfConfig& config, const MixtureDefaults& defaults);

// Defaults of the fields of DeepSeek V3's router.
struct GroupedDefaults {
  int64_t num_groups = 1;
  int64_t groups_kept = 1;
  bool normalise = true;
  double scale = 1.0;
  std::string_view groups_key = "n_group";
  std::string_view normalise_key = "norm_topk_prob";
};
// Reads them: sigmoids, groups of experts, a factor.
void read_grouped_routing(const HfConfig& config, const GroupedDefaults& defaults,
                          RoutingParams& routing);

// Defaults of DeepSeek's mixtures.
struct DeepSeekExperts {
  MixtureDefaults mixture;
  GroupedDefaults routing;
  int64_t num_shared = 1;
  std::string_view shared_key = "n_shared_experts";
};
// Reads one. Each row has the shared experts, which are one network.
MixtureConfig read_deepseek_experts(const HfConfig& config, const DeepSeekExperts& defaults);
// The first layers are dense, and of the others all but every moe_layer_freq-th.
void mix_layers_behind(const HfConfig& config, int64_t default_dense,
                       std::vector<LayerConfig>& layers);
// A layer that predicts further tokens may come after these; it isn't used.
void read_unused_layers(const HfConfig& config, int64_t otherwise, DecoderConfig& decoder);

// What files of Mixtral and its kin call the parts of a mixture.
MixtureNames mixtral_names(const WeightReader& weights);

// Makes all layers mixtures.
void mix_all_layers(std::vector<LayerConfig>& layers);
// Those that `mlp_layer_types` calls sparse, and no others; without it nothing changes.
void mix_listed_layers(const HfConfig& config, std::vector<LayerConfig>& layers);
// Every `decoder_sparse_step`-th layer, unless `mlp_only_layers` lists it.
void mix_sparse_layers(const HfConfig& config, std::vector<LayerConfig>& layers);

}  // namespace paceline
