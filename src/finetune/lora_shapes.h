// The rank and alpha of every module that a run with LoRA adapts.
#pragma once

#include <map>
#include <string>

#include "adapters/adapter_base.h"
#include "models/decoder_config.h"
#include "paceline/train_options.h"
#include "train/lora_set.h"

namespace paceline {

using LoraShapes = std::map<std::string, LoraShape, std::less<>>;  // by canonical module name

// Keys of rank_pattern and alpha_pattern are matched as PEFT matches them, with the names that
// `prefixes` make. Throws Error invalid for a rank that is no integer, and for a key that is no
// regular expression or that no adapted module uses.
LoraShapes lora_shapes(const TrainOptions& options, const DecoderConfig& config,
                       const ModulePrefixes& prefixes);

}  // namespace paceline
