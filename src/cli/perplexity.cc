#include "cli/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "cli/progress.h"
#include "cli/text_file.h"

namespace paceline {
namespace {

TokenId separator_of(const Tokenizer& tokenizer) {
  for (const auto id : {tokenizer.bos_token(), tokenizer.token_id("<|endoftext|>")}) {
    if (id) return *id;
  }
  if (!tokenizer.stop_tokens().empty()) return tokenizer.stop_tokens().front();
  throw Error(ErrorCode::unsupported,
              "the tokenizer has no BOS, no <|endoftext|> and no EOS token to begin a window with");
}

// Nothing after an interruption, which also ends a running call.
std::optional<double> score_unless_interrupted(const WindowScorer& score,
                                               const std::vector<TokenId>& window,
                                               const Session& session) {
  if (session.interrupted()) return std::nullopt;
  try {
    return score(window);
  } catch (const Error& error) {
    if (session.interrupted() && error.code() == ErrorCode::cancelled) return std::nullopt;
    throw;
  }
}

}  // namespace

double Perplexity::value() const { return std::exp(nats / static_cast<double>(tokens)); }

double Perplexity::bits_per_byte() const {
  return nats / std::numbers::ln2 / static_cast<double>(bytes);
}

MeasuredText read_measured_text(const std::string& path, std::optional<int64_t> max_positions,
                                const Tokenizer& tokenizer) {
  const std::string text = read_whole_text(path);
  MeasuredText read{.tokens = tokenizer.encode(text), .bytes = text.size()};
  if (read.tokens.empty()) {
    throw error_of(ErrorCode::invalid, "{}: empty, expected some text", path);
  }
  read.separator = separator_of(tokenizer);
  if (max_positions && static_cast<size_t>(*max_positions) < read.tokens.size()) {
    read.tokens.resize(static_cast<size_t>(*max_positions));
    read.bytes = tokenizer.decode(read.tokens).size();
  }
  return read;
}

Perplexity measure_perplexity(const MeasuredText& text, const Tokenizer& tokenizer, int64_t context,
                              const WindowScorer& score, const Session& session) {
  if (context < 2) throw Error(ErrorCode::invalid, "the context is 1 token, expected 2 or more");
  const std::vector<TokenId>& tokens = text.tokens;
  Perplexity measured{.bytes = text.bytes, .text_tokens = static_cast<int64_t>(tokens.size())};
  ProgressBar progress(session.shows_progress(), "tok", measured.text_tokens);
  const auto stride = static_cast<size_t>(context - 1);
  std::vector<TokenId> window;
  for (size_t begin = 0; begin < tokens.size(); begin += stride) {
    const size_t end = std::min(begin + stride, tokens.size());
    window.assign(1, text.separator);
    window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                  tokens.begin() + static_cast<std::ptrdiff_t>(end));
    const auto logprob = score_unless_interrupted(score, window, session);
    if (!logprob) break;
    measured.nats -= *logprob;
    measured.tokens = static_cast<int64_t>(end);
    progress.update(measured.tokens);
  }
  if (measured.tokens == 0) throw Error(ErrorCode::cancelled, "interrupted");
  if (measured.is_partial()) {
    const std::span<const TokenId> done(tokens.data(), static_cast<size_t>(measured.tokens));
    measured.bytes = tokenizer.decode(done).size();
  }
  return measured;
}

WindowScorer scorer_of(LLM& llm, const Session& session) {
  return [&llm, cancelled = session.stop_token()](const std::vector<TokenId>& window) {
    double sum = 0;
    for (const Logprob& token : llm.score(window, {.cancelled = cancelled})) {
      sum += static_cast<double>(token.logprob.value_or(0.0f));
    }
    return sum;
  };
}

std::string perplexity_text(const Perplexity& measured) {
  const std::string of_all =
      measured.is_partial() ? fmt::format(" of {}", measured.text_tokens) : "";
  return fmt::format("{}{} tokens, perplexity {:.4f}, {:.4f} bits per byte", measured.tokens,
                     of_all, measured.value(), measured.bits_per_byte());
}

void write_perplexity(const Perplexity& measured, JsonWriter& json) {
  json.member("tokens", measured.tokens).member("perplexity", measured.value());
  json.member("bits_per_byte", measured.bits_per_byte());
  if (measured.is_partial()) json.member("text_tokens", measured.text_tokens);
}

}  // namespace paceline
