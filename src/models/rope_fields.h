// Reads the ropes of a model from config.json, in the spellings of transformers 4 and 5.
#pragma once

#include <initializer_list>
#include <string_view>

#include "models/hf_config.h"

namespace paceline {

// The rope of one kind of layer.
struct RopeFields {
  std::string_view layer_type = "full_attention";  // its key in nested rope_parameters
  std::string_view theta_key = "rope_theta";       // beside rope_scaling (transformers 4), or none
  std::string_view share_key = "partial_rotary_factor";  // likewise
  bool scaled = true;                                    // rope_scaling applies to it
  double default_theta = 10000.0;
  int64_t head_dim = 0;                  // of its layers; 0: the decoder's
  bool rotates_part = false;             // a part of each head may rotate
  bool may_be_proportional = false;      // partial_rotary_factor is then one of the frequencies
  double default_share = 1.0;            // of a head's elements that rotate
  int64_t default_original_context = 0;  // before scaling; 0: max_position_embeddings
  const Json* otherwise = nullptr;       // the rope of files that describe none; it outlives them
  bool grows_queries = false;            // llama_4_scaling_beta applies
  bool scales_scores = false;            // mscale_all_dim multiplies attention_scale
  // The family's types "su" and "yarn" mean longrope, and it has no other.
  bool every_scaling_is_longrope = false;
  // Its factors of the angles are short_mscale and long_mscale, beyond the original context.
  bool has_mscales = false;
  bool may_be_of_images = false;  // the type "mrope" is the default one for text
  bool may_have_alpha = false;    // alpha of the type "dynamic" stretches theta of every length
};

// Whether config.json has a rope_scaling or rope_parameters that isn't empty.
bool describes_rope(const HfConfig& config);

// Sets `ropes`, one for each of `kinds`, `rotary_dim`, which is the first one's, and `query_growth`
// of `decoder`, whose head_dim and max_position must be set. `rope_parameters` is one object for
// all layers, or has one for each kind; `rope_scaling` takes precedence, as in transformers 5.
// Throws Error unsupported for a rope_type other than default, linear, dynamic, llama3, yarn and
// longrope, and proportional where `kinds` allow it.
void read_ropes(const HfConfig& config, std::initializer_list<RopeFields> kinds,
                DecoderConfig& decoder);

}  // namespace paceline
