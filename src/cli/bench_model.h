// Finds and loads the model of a variant.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_measure.h"
#include "cli/settings.h"
#include "models/decoder_config.h"

namespace paceline {

// A temporary model directory with nothing but the config.json of a shape; removed at the end.
class ShapeDirectory {
 public:
  // `shape` is one of the choices of --shape (PL_CHECK).
  explicit ShapeDirectory(std::string_view shape);
  ~ShapeDirectory();
  ShapeDirectory(const ShapeDirectory&) = delete;
  ShapeDirectory& operator=(const ShapeDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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
