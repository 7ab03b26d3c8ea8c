#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/logits_dump.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

// The sum of the log-probabilities of all tokens but the first, each given those before it.
using WindowScorer = std::function<double(const std::vector<TokenId>& window)>;

struct Measured {
  int64_t tokens = 0;
  double nats = 0;
  size_t bytes = 0;

  double perplexity() const { return std::exp(nats / static_cast<double>(tokens)); }
  double bits_per_byte() const { return nats / std::numbers::ln2 / static_cast<double>(bytes); }
};

// What stands before every window: BOS, else <|endoftext|>, else what ends a text.
TokenId separator_of(const Tokenizer& tokenizer) {
  for (const auto id : {tokenizer.bos_token(), tokenizer.token_id("<|endoftext|>")}) {
    if (id) return *id;
  }
  if (!tokenizer.stop_tokens().empty()) return tokenizer.stop_tokens().front();
  throw Error(ErrorCode::unsupported,
              "the tokenizer has no BOS, no <|endoftext|> and no EOS token to begin a window with");
}

WindowScorer scorer_of(LLM& llm, const std::stop_token& cancelled) {
  return [&llm, cancelled](const std::vector<TokenId>& window) {
    double sum = 0;
    for (const Logprob& token : llm.score(window, {.cancelled = cancelled})) {
      sum += static_cast<double>(token.logprob.value_or(0.0f));
    }
    return sum;
  };
}

// Windows of `context` tokens without overlap, the first of each the separator.
double total_nats(const std::vector<TokenId>& text, TokenId separator, int64_t context,
                  const WindowScorer& score, ProgressBar& progress, const Session& session) {
  if (context < 2) throw Error(ErrorCode::invalid, "the context is 1 token, expected 2 or more");
  double nats = 0;
  const auto stride = static_cast<size_t>(context - 1);
  std::vector<TokenId> window;
  for (size_t begin = 0; begin < text.size(); begin += stride) {
    if (session.interrupted()) throw Error(ErrorCode::cancelled, "interrupted");
    const size_t end = std::min(begin + stride, text.size());
    window.assign(1, separator);
    window.insert(window.end(), text.begin() + static_cast<std::ptrdiff_t>(begin),
                  text.begin() + static_cast<std::ptrdiff_t>(end));
    nats -= score(window);
    progress.update(static_cast<int64_t>(end));
  }
  return nats;
}

struct Text {
  std::vector<TokenId> tokens;
  size_t bytes = 0;
};

Text read_text(const Settings& settings, const Tokenizer& tokenizer) {
  const std::string path = settings.file.value_or("-");
  const std::string text = read_whole_file(path);
  Text read{.tokens = tokenizer.encode(text), .bytes = text.size()};
  if (read.tokens.empty()) {
    throw Error(ErrorCode::invalid, fmt::format("{}: empty, expected some text", path));
  }
  if (settings.max_positions && static_cast<size_t>(*settings.max_positions) < read.tokens.size()) {
    read.tokens.resize(static_cast<size_t>(*settings.max_positions));
    read.bytes = tokenizer.decode(read.tokens).size();
  }
  return read;
}

std::string result_text(const Measured& measured, bool as_json) {
  if (!as_json) {
    return fmt::format("{} tokens, perplexity {:.4f}, {:.4f} bits per byte\n", measured.tokens,
                       measured.perplexity(), measured.bits_per_byte());
  }
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("tokens", measured.tokens);
  writer.member("perplexity", measured.perplexity());
  writer.member("bits_per_byte", measured.bits_per_byte()).end_object();
  return json + "\n";
}

}  // namespace

int run_perplexity(const Settings& settings, Session& session) {
  if (!settings.file && session.stdin_is_terminal()) {
    throw UsageError("nothing to measure: give --file, or pipe a text in");
  }
  const Tokenizer tokenizer = open_tokenizer(settings);
  const Text text = read_text(settings, tokenizer);
  const TokenId separator = separator_of(tokenizer);
  const Interrupt::Graceful graceful(session.interrupt());

  Measured measured{.tokens = static_cast<int64_t>(text.tokens.size()), .bytes = text.bytes};
  const auto measure = [&](int64_t context, const WindowScorer& score) {
    ProgressBar progress(session.shows_progress(settings), "tok", measured.tokens);
    measured.nats = total_nats(text.tokens, separator, context, score, progress, session);
  };
  if (settings.dump_logits.empty()) {
    LLM llm = open_model(settings, session);
    measure(llm.model_info().max_model_len, scorer_of(llm, session.stop_token()));
  } else {
    LogitsDump dump(load_options(settings), settings.dump_logits);
    measure(dump.context(), [&](const std::vector<TokenId>& window) { return dump.score(window); });
    dump.finish();
  }
  session.out().write(result_text(measured, settings.json));
  session.out().flush();
  return 0;
}

}  // namespace paceline
