#include <array>
#include <utility>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/decode_steps.h"

namespace paceline {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos || from.empty()) return;
  std::string result;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    result.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = result.append(text, done);
}

class ReplaceStep final : public TokenStep {
 public:
  ReplaceStep(std::unique_ptr<TextPattern> pattern, std::string_view content)
      : pattern_(std::move(pattern)), content_(content) {}

  void apply(std::string& token, TokenPlace) const override {
    std::vector<TextPattern::Match> matches;
    pattern_->find_all(token, matches);
    for (size_t i = matches.size(); i > 0; --i) {
      const TextPattern::Match& match = matches[i - 1];
      token.replace(match.begin, match.end - match.begin, content_);
    }
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

class StripStep final : public TokenStep {
 public:
  StripStep(std::string_view character, StripCounts counts)
      : character_(character), counts_(counts) {}

  void apply(std::string& token, TokenPlace) const override {
    size_t begin = 0;
    size_t end = token.size();
    const std::string_view text = token;
    for (size_t i = 0; i < counts_.start && text.substr(begin).starts_with(character_); ++i) {
      begin += character_.size();
    }
    for (size_t i = 0; i < counts_.stop && text.substr(begin, end - begin).ends_with(character_);
         ++i) {
      end -= character_.size();
    }
    token = std::string(text.substr(begin, end - begin));
  }

 private:
  std::string character_;
  StripCounts counts_;
};

class MetaspaceStep final : public TokenStep {
 public:
  MetaspaceStep(std::string_view mark, FirstMark first) : mark_(mark), first_(first) {}

  void apply(std::string& token, TokenPlace place) const override {
    replace_all(token, mark_, place.first && looks_at_first() ? "" : " ");
  }
  bool looks_at_first() const override { return first_ == FirstMark::removed; }

 private:
  std::string mark_;
  FirstMark first_;
};

class WordPieceStep final : public TokenStep {
 public:
  WordPieceStep(std::string_view prefix, Cleanup cleanup) : prefix_(prefix), cleanup_(cleanup) {}

  void apply(std::string& token, TokenPlace place) const override {
    if (!place.first && std::string_view(token).starts_with(prefix_)) {
      token.erase(0, prefix_.size());
    } else if (!place.first) {
      token.insert(0, " ");
    }
    if (cleanup_ == Cleanup::no) return;
    // The list and its order are those of `cleanup` in HF's decoders/wordpiece.rs.
    constexpr std::array<std::array<std::string_view, 2>, 11> kReplaced = {{{" .", "."},
                                                                            {" ?", "?"},
                                                                            {" !", "!"},
                                                                            {" ,", ","},
                                                                            {" ' ", "'"},
                                                                            {" n't", "n't"},
                                                                            {" 'm", "'m"},
                                                                            {" do not", " don't"},
                                                                            {" 's", "'s"},
                                                                            {" 've", "'ve"},
                                                                            {" 're", "'re"}}};
    for (const auto& [from, to] : kReplaced) replace_all(token, from, to);
  }
  bool looks_at_first() const override { return true; }

 private:
  std::string prefix_;
  Cleanup cleanup_;
};

class SuffixStep final : public TokenStep {
 public:
  explicit SuffixStep(std::string_view suffix) : suffix_(suffix) {}

  void apply(std::string& token, TokenPlace place) const override {
    replace_all(token, suffix_, place.last ? "" : " ");
  }
  bool looks_at_last() const override { return true; }

 private:
  std::string suffix_;
};

class ByteLevelStep final : public TokenStep {
 public:
  void apply(std::string& token, TokenPlace) const override { token = from_byte_level(token); }
};

class SpaceStep final : public TokenStep {
 public:
  void apply(std::string& token, TokenPlace place) const override {
    if (!place.first) token.insert(0, " ");
  }
  bool looks_at_first() const override { return true; }
};

}  // namespace

std::unique_ptr<TokenStep> make_replace_step(std::unique_ptr<TextPattern> pattern,
                                             std::string_view content) {
  return std::make_unique<ReplaceStep>(std::move(pattern), content);
}

std::unique_ptr<TokenStep> make_strip_step(std::string_view character, StripCounts counts) {
  return std::make_unique<StripStep>(character, counts);
}

std::unique_ptr<TokenStep> make_metaspace_step(std::string_view mark, FirstMark first) {
  return std::make_unique<MetaspaceStep>(mark, first);
}

std::unique_ptr<TokenStep> make_word_piece_step(std::string_view prefix, Cleanup cleanup) {
  return std::make_unique<WordPieceStep>(prefix, cleanup);
}

std::unique_ptr<TokenStep> make_suffix_step(std::string_view suffix) {
  return std::make_unique<SuffixStep>(suffix);
}

std::unique_ptr<TokenStep> make_byte_level_step() { return std::make_unique<ByteLevelStep>(); }

std::unique_ptr<TokenStep> make_space_step() { return std::make_unique<SpaceStep>(); }

}  // namespace paceline
