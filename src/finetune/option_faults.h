// What is wrong with the options of a run, before a model or data are read.
#pragma once

#include <optional>
#include <string>

#include "paceline/train_options.h"

namespace paceline {

// The first option that lies outside its range, or doesn't go with another one, as a sentence that
// begins with the flag; nothing when there is none.
std::optional<std::string> find_option_fault(const TrainOptions& options);

// Of the element type of LoRA matrices, which float16 and int8 can't be.
bool is_lora_dtype(DataType dtype);

}  // namespace paceline
