
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/perplexity.h"
#include "cli/usage_error.h"
#include "engine/run_alone.h"
#include "engine/step_engine.h"
#include "load/loaded_model.h"
#include "runner/model_runner.h"

namespace paceline {
namespace {

// Runs the model and writes each requested row of logits: raw float32 [rows, vocab].
class RecordingRunner : public Runner {
 public:
  RecordingRunner(Runner& runner, const std::string& path)
      : runner_(runner), path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw error_of(ErrorCode::invalid, "{}: {}", path, std::strerror(errno));
  }

  int64_t vocab_size() const override { return runner_.vocab_size(); }
  int64_t stretched_length(int64_t length) const override {
    return runner_.stretched_length(length);
  }
  void run(const Batch& batch, AdapterTable adapters) override { runner_.run(batch, adapters); }
  std::span<const float> logits(int64_t first, int64_t count) override {
    const std::span<const float> logits = runner_.logits(first, count);
    std::fwrite(logits.data(), sizeof(float), logits.size(), file_.get());
    return logits;
  }
  float log_sum_exp(int64_t row) override { return runner_.log_sum_exp(row); }
  std::span<const uint8_t> finite_rows() const override { return runner_.finite_rows(); }
  int64_t max_logits_rows() const override { return runner_.max_logits_rows(); }
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t> columns) override {
    return runner_.column_logits(first, count, columns);
  }

  // Throws Error exhausted when the file could not be written in full.
  void finish() {
    if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) {
      throw error_of(ErrorCode::exhausted, "{}: {}", path_, std::strerror(errno));
    }
  }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  Runner& runner_;
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

// Scores windows and writes their logits to a file, for comparisons.
class LogitsDump {
 public:
  LogitsDump(const LoadOptions& options, const std::string& path)
      : model_(load_model(options)),
        recorder_(*model_->runner, path),
        engine_(recorder_, model_->memory, *model_->cache, model_->engine->limits(), {}) {}

  const WeightsCacheUse& weights_cache() const { return model_->weights_cache; }
  int64_t context() const { return engine_.limits().max_model_len; }
  // The sum of the log-probabilities of all tokens but the first; a row of logits for each of them.
  double score(const std::vector<TokenId>& window) {
    double sum = 0;
    GenerateRequest request{.prompt = window, .max_tokens = 0, .score_from = 0};
    request.prefix = {.read = false, .write = PrefixUse::Write::none};
    for (const TokenEvent& event : run_alone(engine_, std::move(request))) {
      if (!event.prompt) continue;
      for (const ScoredToken& token : event.prompt->scored) {
        sum += static_cast<double>(token.logprob.value_or(0.0f));
      }
    }
    return sum;
  }
  void finish() { recorder_.finish(); }

 private:
  std::unique_ptr<LoadedModel> model_;
  RecordingRunner recorder_;
  StepEngine engine_;
};

std::string result_text(const Perplexity& measured, bool as_json) {
  if (!as_json) return perplexity_text(measured) + "\n";
  return object_json([&](JsonWriter& writer) { write_perplexity(measured, writer); }) + "\n";
}

}  // namespace

int run_perplexity(const Settings& settings, Session& session) {
  if (!settings.file && session.stdin_is_terminal()) {
    throw UsageError("no input: give --file, or pipe text in");
  }
  const Tokenizer tokenizer = open_tokenizer(settings);
  const MeasuredText text =
      read_measured_text(settings.file.value_or("-"), settings.max_positions, tokenizer);
  Perplexity measured;
  if (settings.dump_logits.empty()) {
    LLM llm = open_model(settings, session, 1);
    const Interrupt::Graceful graceful(session.interrupt());
    measured = measure_perplexity(text, tokenizer, llm.model_info().max_model_len,
                                  scorer_of(llm, session), session);
    llm.close();
  } else {
    LoadOptions options = load_options(settings);
    options.max_num_seqs = settings.max_num_seqs.value_or(1);
    LogitsDump dump(options, settings.dump_logits);
    print_weight_notes(dump.weights_cache(), settings, session);
    const Interrupt::Graceful graceful(session.interrupt());
    const auto score = [&](const std::vector<TokenId>& window) { return dump.score(window); };
    measured = measure_perplexity(text, tokenizer, dump.context(), score, session);
    dump.finish();
  }
  session.out().write(result_text(measured, settings.json));
  if (measured.is_partial()) session.explain_interruption("the rest of the text was not measured");
  return session.exit_code(0);
}

}  // namespace paceline
