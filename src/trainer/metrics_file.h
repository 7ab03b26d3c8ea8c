// MetricsFile is a run's metrics.jsonl: a line for each report, complete up to the last one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "paceline/train_options.h"

namespace paceline {

class MetricsFile {
 public:
  // Keeps the lines of a file that exists up to `last_step`, and drops the others: they are of
  // steps that are taken again. Throws Error naming the file when it can't be read or written.
  MetricsFile(std::filesystem::path path, int64_t last_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  // Throws Error exhausted when the line can't be written whole.
  void add(const TrainingPoint& point);

  const std::vector<TrainingPoint>& points() const { return points_; }

 private:
  std::filesystem::path path_;
  std::vector<TrainingPoint> points_;
  int fd_ = -1;
};

std::string to_json_line(const TrainingPoint& point);

}  // namespace paceline
