// What a config or a tensor of PEFT's format may say that isn't plain LoRA, and how it is refused.
#pragma once

#include <string>
#include <string_view>

#include "base/json_cursor.h"

namespace paceline {

// Throws Error unsupported naming the field and what would help, for another method than LoRA, its
// variants, and initialisations that change the base's weights.
void refuse_unsupported_peft(const JsonCursor& config);

// Why a tensor that is no lora_A.weight or lora_B.weight is refused.
std::string why_refused_peft_tensor(std::string_view tensor);

}  // namespace paceline
