#include "protocol/token_names.h"

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

NamedToken TokenNames::named(int32_t id) const {
  if (!has_token(id)) return {.id = id};
  return {.id = id, .bytes = std::string(tokenizer_->token_bytes(id))};
}

size_t TokenNames::bytes_in_response(int32_t id, SpecialTokens specials) const {
  if (!has_token(id)) return 0;
  const bool is_hidden = specials == SpecialTokens::hidden && tokenizer_->is_special(id);
  return is_hidden ? 0 : tokenizer_->token_bytes(id).size();
}

std::string TokenNames::decode(std::span<const int32_t> ids) const {
  return tokenizer_ == nullptr ? std::string() : tokenizer_->decode(ids);
}

std::string TokenNames::decode_known(std::vector<int32_t> ids) const {
  std::erase_if(ids, [this](int32_t id) { return !has_token(id); });
  return decode(ids);
}

std::vector<size_t> TokenNames::bytes_in_prompt(std::string_view text,
                                                bool add_special_tokens) const {
  std::vector<size_t> sizes;
  if (tokenizer_ == nullptr) return sizes;
  size_t covered = 0;  // tokens that share a character all have its whole span
  for (const TextSpan& span :
       tokenizer_->encode_with_spans(text, {.add_special = add_special_tokens}).spans) {
    const size_t end = std::max(span.end, covered);
    sizes.push_back(end - covered);
    covered = end;
  }
  return sizes;
}

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
