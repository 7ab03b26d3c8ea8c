#include "protocol/reported_tokens.h"

#include <algorithm>

namespace paceline {
namespace {

// `text_bytes` returns the bytes of a token's text.
template <class TextBytes>
std::vector<ReportedToken> report(std::span<const Logprob> tokens, int32_t num_top,
                                  const TokenNames& names, const TextBytes& text_bytes) {
  std::vector<ReportedToken> reported;
  reported.reserve(tokens.size());
  for (const Logprob& token : tokens) {
    ReportedToken one{.token = names.named(token.id), .logprob = token.logprob};
    const size_t count = std::min(token.top.size(), static_cast<size_t>(num_top));
    for (size_t i = 0; i < count; ++i) {
      one.top.push_back({names.named(token.top[i].id), token.top[i].logprob});
    }
    one.text_bytes = text_bytes(reported.size(), token.id);
    reported.push_back(std::move(one));
  }
  return reported;
}

}  // namespace

std::vector<ReportedToken> report_output(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names, SpecialTokens specials) {
  return report(tokens, num_top, names,
                [&](size_t, int32_t id) { return names.bytes_in_response(id, specials); });
}

std::vector<ReportedToken> report_prompt(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names) {
  return report(tokens, num_top, names, [](size_t, int32_t) { return size_t{0}; });
}

std::vector<ReportedToken> report_echo(std::span<const Logprob> tokens, int32_t num_top,
                                       const PromptText& prompt, bool add_special_tokens,
                                       const TokenNames& names) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    const std::vector<size_t> sizes = names.bytes_in_prompt(*text, add_special_tokens);
    return report(tokens, num_top, names,
                  [&](size_t index, int32_t) { return index < sizes.size() ? sizes[index] : 0; });
  }
  return report(tokens, num_top, names,
                [&](size_t, int32_t id) { return names.named(id).bytes.value_or("").size(); });
}

}  // namespace paceline
