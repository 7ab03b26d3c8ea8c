// Reads LoRA adapters for a loaded model and packs them.
#pragma once

#include <memory>

#include "load/loaded_model.h"
#include "runner/loaded_adapter.h"

namespace paceline {

// Throws Error invalid naming the option for adapters without a name, two of one name, or limits
// out of range.
void check_lora_options(const LoadOptions& options);

// Throws Error invalid for a name or a scale that no adapter can have.
void check_lora_source(const LoraSource& source);

// Whether the engine has room for adapters, those of the options or later ones.
bool uses_adapters(const LoadOptions& options);

// Reads and packs one, with a thread and scratch of its own: another thread may compute with the
// model meanwhile. Throws Error naming the file and what is at fault.
std::shared_ptr<const LoadedAdapter> load_adapter(const LoadedModel& model,
                                                  const LoraSource& source, int64_t max_rank);

// Throws as load_adapters() does for an adapter that isn't there or isn't one.
void check_lora_files(const LoadOptions& options);

// Loads those of the options into model.adapters. Throws Error "--lora NAME: ...", of the only one
// "--lora: ...".
void load_adapters(LoadedModel& model, const LoadOptions& options);

}  // namespace paceline
