// A family maps a config.json to a DecoderConfig; the registry finds the family of a model.
#pragma once

#include <span>
#include <string_view>

#include "models/hf_config.h"
#include "weights/weight_reader.h"

namespace paceline {

struct Family {
  std::string_view model_type;
  DecoderConfig (*read)(const HfConfig& config, const WeightReader& weights);
};

std::span<const Family> families();

// The config of the text decoder in a whole config.json: `text_config` is looked into when there is
// one; without a model_type, Qwen 2 and 3 are told apart by the presence of q_norm. `where` names
// the file in errors. Throws Error unsupported naming the model_type, invalid naming the field.
DecoderConfig read_decoder_config(const Json& json, const WeightReader& weights,
                                  std::string_view where);

// What a family's published configs leave out because transformers has a default; 0: no default.
struct CommonDefaults {
  int64_t vocab_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;      // 0: hidden / heads
  int64_t max_position = 2048;
  bool tied_head = false;
};

// The fields every family has, with transformers' own spellings. `head_dim`: the field, else taken
// from the q projection, else the default.
DecoderConfig read_common(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults = {});

// Every layer alike: all with `window` where `sliding` says so (everywhere when it is empty).
std::vector<LayerConfig> uniform_layers(int64_t num_layers, int64_t window);
std::vector<LayerConfig> windowed_layers(const std::vector<bool>& sliding, int64_t window);

// One file each in this folder.
DecoderConfig read_llama(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mistral(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma3(const HfConfig& config, const WeightReader& weights);

}  // namespace paceline
