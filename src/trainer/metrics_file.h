// MetricsFile is a run's metrics.jsonl: a line for each report, complete up to the last one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

struct TrainingPoint {
  int64_t step = 0;
  std::optional<double> loss;  // of training: the mean since the last report
  std::optional<double> validation_loss;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  int64_t num_tokens = 0;  // trained so far
  uint64_t peak_bytes = 0;
};

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
