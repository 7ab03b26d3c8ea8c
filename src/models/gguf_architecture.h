// The supported model architectures of GGUF files, with facts that the files lack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weights/gguf_metadata.h"

namespace paceline {

struct GgufArchitecture {
  std::string_view name;                 // general.architecture, and the prefix of its keys
  std::string_view model_type;           // of config.json
  std::string_view hf_class;             // architectures of config.json
  std::string_view windowed_type = {};   // model_type with a sliding window; empty: the same
  std::string_view windowed_class = {};  // its class
  std::string_view mixture_type = {};    // model_type with mixtures of experts; empty: the same
  std::string_view mixture_class = {};   // its class
  bool has_mixtures = false;             // of experts, in some or all layers
  bool normalises_experts = false;       // their weights add up to 1, unless the file says more
  // Rows of the query and key projections that rotate together are neighbours.
  bool interleaved_rotary = false;
  // Each branch has a norm before and after it, and the files hold 1 + w.
  bool four_norms = false;
  bool two_ropes = false;  // layers with a window have a rope of their own
  std::string_view activation = "silu";
  int64_t default_window = 0;  // of windowed layers, when the file has no window; 0: none
  int64_t window_pattern = 0;  // every window_pattern-th layer has no window; 0: all are equal
  double attention_soft_cap = 0;
  double final_soft_cap = 0;
  // A model with this number of layers divides scores by sqrt(hidden size / heads), others by
  // sqrt(head size). No key of the file says so.
  int64_t widely_scaled_layers = 0;
};

// The file's general.architecture. Throws Error unsupported naming it and the supported ones.
const GgufArchitecture& find_gguf_architecture(const GgufMetadata& metadata);

// Converts "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight". Nothing for tables of
// rotary frequencies, which aren't weights; unknown names are kept.
std::optional<std::string> checkpoint_name(const GgufArchitecture& architecture,
                                           std::string_view gguf_name);

}  // namespace paceline
