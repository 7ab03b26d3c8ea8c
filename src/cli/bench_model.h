// Finds and loads the model of a variant.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_directory.h"
#include "cli/bench_measure.h"
#include "cli/settings.h"
#include "models/decoder_config.h"

namespace paceline {

// A variant whose configuration was read, but not its weights.
struct BenchModel {
  std::string name;
  LoadOptions options;
  DecoderConfig config;
  BenchRuns planned;
  std::unique_ptr<TemporaryDirectory> directory;  // of a shape: its config.json
};

// Throws Error as reading a model does.
BenchModel find_bench_model(const Settings& settings, const BenchVariant& variant);

// Loads it with the context that the runs need, and fills in the report except its rows.
std::unique_ptr<LoadedModel> load_bench_model(const BenchModel& found, BenchReport& report);

}  // namespace paceline
