// The model architectures that are read from GGUF files, and what their files leave unsaid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weights/gguf_metadata.h"

namespace paceline {

struct GgufArchitecture {
  std::string_view name;                 // general.architecture, and what its keys begin with
  std::string_view model_type;           // of config.json
  std::string_view hf_class;             // architectures of config.json
  std::string_view windowed_type = {};   // the same two when the file has a sliding window;
  std::string_view windowed_class = {};  // empty: no different
  // Rows of the query and key projections that rotate together stand side by side.
  bool interleaved_rotary = false;
  // Norms stand before and behind each branch, and the files hold 1 + w.
  bool four_norms = false;
  bool two_ropes = false;  // layers with a window have a rope of their own
  std::string_view activation = "silu";
  int64_t default_window = 0;  // of windowed layers; 0: none unless the file says so
  int64_t window_pattern = 0;  // every so manieth layer has no window; 0: all are alike
  double attention_soft_cap = 0;
  double final_soft_cap = 0;
  // The largest of the published models, told by its layers, divides scores by the square root of
  // hidden size / heads instead of the head's size; files don't say so.
  int64_t widely_scaled_layers = 0;
};

// Of the file's general.architecture. Throws Error unsupported naming it and those that are known.
const GgufArchitecture& find_gguf_architecture(const GgufMetadata& metadata);

// "blk.3.attn_q.weight" as "model.layers.3.self_attn.q_proj.weight". Nothing for tables of rotary
// frequencies, which are no weights; a name that isn't known stays as it is.
std::optional<std::string> checkpoint_name(const GgufArchitecture& architecture,
                                           std::string_view gguf_name);

}  // namespace paceline
