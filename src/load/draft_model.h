// What drafts for a model: a second model, or its own text.
#pragma once

#include <memory>
#include <string_view>

#include "engine/request.h"
#include "load/loaded_model.h"
#include "spec/drafter.h"

namespace paceline {

// The method that a flag or a field names. Throws Error beginning with `where`: unsupported for
// drafters that other engines have, else invalid.
DraftMethod read_draft_method(std::string_view name, std::string_view where);

// The options with what speculative_config sets. Throws Error invalid "--speculative-config: KEY:
// ...".
LoadOptions with_speculative_config(LoadOptions options);

// The limits of the options. Throws Error invalid naming the option.
SpeculationLimits speculation_limits(const LoadOptions& options);

// The weights of LoadOptions::speculative_model, on the target's machine; null without one. Throws
// Error invalid when its tokens aren't the target's, naming the first that differs.
std::unique_ptr<LoadedModel> load_draft_model(const LoadedModel& target,
                                              const LoadOptions& options);

// Null without prompt lookup.
std::unique_ptr<Drafter> make_ngram_drafter(const LoadOptions& options);

}  // namespace paceline
