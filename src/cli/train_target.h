// TrainTarget is what a run trains, and what it leaves: an adapter or a model.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json_writer.h"
#include "cli/settings.h"
#include "load/loaded_model.h"
#include "train/trained_set.h"
#include "trainer/checkpoint_files.h"
#include "trainer/result_files.h"

namespace paceline {

struct TrainTarget {
  std::unique_ptr<TrainedSet> trained;
  std::unique_ptr<ResultFiles> result;  // refers to `trained`
  std::string description;
};

// Throws UsageError for options that don't go together.
void check_target_options(const TrainChoice& choice);

// `model` must outlive it. Throws Error when the model can't be trained in this way.
TrainTarget make_train_target(const Settings& settings, LoadedModel& model);

// Adds a property that must be the same when a run is resumed, as JSON.
template <class T>
void add_property(std::string_view name, const T& value, RunIdentity& identity) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    identity.members.emplace_back(name, json_quote(value));
  } else {
    identity.members.emplace_back(name, fmt::format("{}", value));
  }
}

// Adds those of the target.
void add_target_identity(const TrainChoice& choice, RunIdentity& identity);

}  // namespace paceline
