#include "traffic/paced_server/paced_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "load/generation_config.h"
#include "traffic/token_script.h"

namespace paceline::traffic {
namespace {

constexpr int64_t kErrorPeriod = 5;  // positions; one of them is drafted wrongly

// The tokenizer must outlive it.
TokenTexts token_texts(const Tokenizer& tokenizer) {
  return [&tokenizer](TokenId id) -> TokenText {
    return {.bytes = tokenizer.token_bytes(id), .is_special = tokenizer.is_special(id)};
  };
}

// Checks that each scripted token is text that is emitted at once.
void check_script(const Tokenizer& tokenizer) {
  for (TokenId id = kFirstToken; id < kFirstToken + kNumTokens; ++id) {
    const bool is_known = id < tokenizer.vocab_size() && !tokenizer.is_special(id);
    const std::string_view bytes = is_known ? tokenizer.token_bytes(id) : std::string_view();
    const bool is_text = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(),
                                                       [](char c) { return c >= ' ' && c < 127; });
    if (!is_text) {
      throw Error(ErrorCode::invalid,
                  fmt::format("tokenizer: token {} is no plain text; the paced server speaks in "
                              "tokens {} to {} of models/paceline-10m",
                              id, kFirstToken, kFirstToken + kNumTokens - 1));
    }
  }
}

EngineLimits limits_of(const PacedModelOptions& options) {
  return {.max_model_len = options.max_model_len,
          .max_batched_tokens = options.max_batched_tokens,
          .max_num_seqs = options.max_num_seqs,
          .max_queued = options.max_queued,
          .speculation = {.num_tokens = options.num_drafted, .adapts = false}};
}

std::array<CacheGroup, 1> one_group(int64_t num_blocks) {
  return {CacheGroup{.window = 0, .num_blocks = num_blocks}};
}

}  // namespace

PacedModel::PacedModel(const PacedModelOptions& options)
    : directory_(options.directory),
      tokenizer_(Tokenizer::load(directory_)),
      generation_(read_generation_config(directory_, tokenizer_.vocab_size())),
      chat_(set_up_chat(directory_, "", tokenizer_)),
      cache_(options.block_size, one_group(options.num_blocks)),
      runner_(tokenizer_.vocab_size(), options.pace),
      drafter_(kErrorPeriod),
      engine_(runner_, memory_, cache_, limits_of(options), token_texts(tokenizer_), &drafter_) {
  check_script(tokenizer_);
  runner_.watch(&engine_);
}

TextModel PacedModel::text_model() {
  return {.name = directory_.string(),
          .engine = engine_,
          .tokenizer = &tokenizer_,
          .chat_template = chat_.chat_template ? &*chat_.chat_template : nullptr,
          .chat_problem = chat_.problem,
          .generation = generation_,
          .max_position = engine_.limits().max_model_len,
          .salt_key = salt_key_};
}

}  // namespace paceline::traffic
