// A model that a Python child computes: our tokenizer and templates, its tokens.
#pragma once

#include <memory>

#include "load/loaded_model.h"

namespace paceline {

// Reads the small files of a directory, of whatever model_type, and waits until the child has
// loaded it. Throws Error invalid naming an option that the backend can't obey, unsupported with
// the child's words when it can't load the model, internal when it ends, and exhausted when it
// takes longer than LoadOptions::backend_timeout; what LoadOptions::progress throws ends the wait.
std::unique_ptr<LoadedModel> load_child_model(const LoadOptions& options);

}  // namespace paceline
