// Reads the examples of a JSON file: an object a line, or an array of objects.
#pragma once

#include <string>
#include <string_view>

#include "dataset/dataset.h"

namespace paceline {

// As read_dataset; `options.now` must be set.
Dataset read_json_examples(const std::string& file, const DatasetModel& model,
                           const DatasetOptions& options);

// Whether a text that isn't called JSON begins with an example as such a file has it.
bool begins_with_example(std::string_view text);

}  // namespace paceline
