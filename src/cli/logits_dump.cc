#include "cli/logits_dump.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "engine/model_runner.h"
#include "engine/run_alone.h"
#include "paceline/error.h"

namespace paceline {

RecordingRunner::RecordingRunner(Runner& runner, const std::string& path)
    : runner_(runner), path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

std::span<const float> RecordingRunner::logits(int64_t first, int64_t count) {
  const std::span<const float> logits = runner_.logits(first, count);
  std::fwrite(logits.data(), sizeof(float), logits.size(), file_.get());
  return logits;
}

void RecordingRunner::finish() {
  if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: {}", path_, std::strerror(errno)));
  }
}

LogitsDump::LogitsDump(const LoadOptions& options, const std::string& path)
    : model_(load_model(options)),
      recorder_(*model_->runner, path),
      engine_(recorder_, model_->memory, *model_->cache, model_->engine->limits(), {}) {}

double LogitsDump::score(const std::vector<TokenId>& window) {
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

}  // namespace paceline
