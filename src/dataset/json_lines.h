// Reads the examples of a JSON Lines file.
#pragma once

#include "dataset/dataset.h"

namespace paceline {

// As read_dataset; `options.now` must be set.
Dataset read_json_lines(const std::string& file, const DatasetModel& model,
                        const DatasetOptions& options);

}  // namespace paceline
