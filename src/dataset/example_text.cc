#include "dataset/example_text.h"

#include "base/error.h"

namespace paceline {
namespace {

// Sets `counts` for the tokens that lie inside the learnt parts; returns how many straddle the
// beginning of one. A token without bytes (of the post-processor) counts if the one before it does.
int64_t count_learnt(const std::vector<TextSpan>& spans, const std::vector<TextSpan>& learnt,
                     std::vector<uint8_t>& counts) {
  int64_t num_straddling = 0;
  size_t part = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto [begin, end] = spans[i];
    if (begin == end) {
      counts[i] = i > 0 ? counts[i - 1] : 0;
      continue;
    }
    while (part < learnt.size() && learnt[part].end <= begin) ++part;
    if (part == learnt.size()) break;
    if (begin >= learnt[part].begin && end <= learnt[part].end) counts[i] = 1;
    if (begin < learnt[part].begin && end > learnt[part].begin) ++num_straddling;
  }
  return num_straddling;
}

// Then no token's bytes need to be found: that takes 20 times the memory, much for a long text.
bool is_learnt_whole(const ExampleText& text) {
  return text.learnt.size() == 1 && text.learnt[0].begin == 0 &&
         text.learnt[0].end == text.text.size();
}

}  // namespace

std::optional<TokenId> end_of_text(const Tokenizer& tokenizer) {
  for (const auto& [name, text] : tokenizer.special_tokens()) {
    if (name == "eos_token") return tokenizer.token_id(text);
  }
  return std::nullopt;
}

EncodedExample encode_example(const ExampleText& text, const DatasetModel& model) {
  const EncodeOptions options{.add_special = !text.is_rendered, .plain = text.plain};
  EncodedExample encoded{.example = {},
                         .num_other_prompts = text.num_other_prompts,
                         .num_silent_thoughts = text.num_silent_thoughts};
  auto& [tokens, counts] = encoded.example;
  if (is_learnt_whole(text)) {
    tokens = model.tokenizer.encode(text.text, options);
    counts.assign(tokens.size(), 1);
  } else {
    Encoding encoding = model.tokenizer.encode_with_spans(text.text, options);
    counts.resize(encoding.ids.size());
    encoded.num_straddling = count_learnt(encoding.spans, text.learnt, counts);
    tokens = std::move(encoding.ids);
  }
  const bool ends_learnt = !text.learnt.empty() && text.learnt.back().end == text.text.size();
  if (!text.is_rendered && model.eos && (tokens.empty() || tokens.back() != *model.eos)) {
    tokens.push_back(*model.eos);
    counts.push_back(ends_learnt ? 1 : 0);
  }
  if (!counts.empty()) counts[0] = 0;
  return encoded;
}

}  // namespace paceline
