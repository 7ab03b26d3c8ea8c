// Reads a plain text file as one stream of tokens, cut into examples.
#pragma once

#include <string>

#include "dataset/dataset.h"

namespace paceline {

// As read_dataset; `options.now` must be set. Each example begins with the last token of the one
// before it, so that every token but the first is predicted once.
Dataset read_plain_text(const std::string& file, const DatasetModel& model,
                        const DatasetOptions& options);

}  // namespace paceline
