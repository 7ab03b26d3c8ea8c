// LogitsDump scores windows and writes the logits that it scored by to a file, for comparisons.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/runner.h"
#include "load/loaded_model.h"

namespace paceline {

// Passes everything on and writes each row of logits that is asked for: raw float32 [rows, vocab].
class RecordingRunner : public Runner {
 public:
  RecordingRunner(Runner& runner, const std::string& path);

  int64_t vocab_size() const override { return runner_.vocab_size(); }
  void run(const Batch& batch) override { runner_.run(batch); }
  std::span<const float> logits(int64_t first, int64_t count) override;
  float log_sum_exp(int64_t row) override { return runner_.log_sum_exp(row); }
  std::span<const uint8_t> finite_rows() const override { return runner_.finite_rows(); }
  int64_t max_logits_rows() const override { return runner_.max_logits_rows(); }
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t> columns) override {
    return runner_.column_logits(first, count, columns);
  }

  // Throws Error exhausted when the file could not be written in full.
  void finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  Runner& runner_;
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

class LogitsDump {
 public:
  LogitsDump(const LoadOptions& options, const std::string& path);

  const WeightsCacheUse& weights_cache() const { return model_->weights_cache; }
  int64_t context() const { return engine_.limits().max_model_len; }
  // The sum of the log-probabilities of all tokens but the first; a row of logits for each of them.
  double score(const std::vector<TokenId>& window);
  void finish() { recorder_.finish(); }

 private:
  std::unique_ptr<LoadedModel> model_;
  RecordingRunner recorder_;
  Engine engine_;
};

}  // namespace paceline
