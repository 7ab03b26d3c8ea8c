// Finds and loads the model of a variant.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/bench_measure.h"
#include "cli/bench_shapes.h"
#include "cli/settings.h"
#include "models/decoder_config.h"

namespace paceline {

// A variant whose configuration was read, not yet its weights.
struct BenchModel {
  std::string name;
  LoadOptions options;
  DecoderConfig config;
  BenchRuns planned;
  std::unique_ptr<ShapeDirectory> directory;  // of a shape
};

// Throws Error as reading a model does.
BenchModel find_bench_model(const Settings& settings, const BenchVariant& variant);

// Loads it with just as long a context as the runs need, and fills in the report all but its rows.
std::unique_ptr<LoadedModel> load_bench_model(const BenchModel& found, BenchReport& report);

}  // namespace paceline
