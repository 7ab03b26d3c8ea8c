#include <algorithm>
#include <utility>
#include <vector>

#include "tokenizer/decode_steps.h"

namespace paceline {
namespace {

// The length of the longest end of `text` that is a proper prefix of `string`.
size_t overlap(std::string_view text, std::string_view string) {
  size_t size = std::min(text.size(), string.size() - 1);
  while (size > 0 && !string.starts_with(text.substr(text.size() - size))) --size;
  return size;
}

class ReplaceStringStream final : public TextStepStream {
 public:
  ReplaceStringStream(std::string_view string, std::string_view content)
      : string_(string), content_(content) {}

  void push(std::string_view text, std::string& out) override {
    held_.append(text);
    const std::string_view all = held_;
    size_t done = 0;
    for (size_t at = all.find(string_); at != std::string_view::npos;
         at = all.find(string_, done)) {
      out.append(all.substr(done, at - done)).append(content_);
      done = at + string_.size();
    }
    const size_t sure = all.size() - overlap(all.substr(done), string_);
    out.append(all.substr(done, sure - done));
    held_.erase(0, sure);
  }

  void finish(std::string& out) override {
    out.append(held_);
    held_.clear();
  }

 private:
  std::string_view string_;
  std::string_view content_;
  std::string held_;
};

class ReplaceString final : public TextStep {
 public:
  ReplaceString(std::string_view string, std::string_view content)
      : string_(string), content_(content) {}
  std::unique_ptr<TextStepStream> begin_text() const override {
    return std::make_unique<ReplaceStringStream>(string_, content_);
  }

 private:
  std::string string_;
  std::string content_;
};

class TokenStepStream final : public TextStepStream {
 public:
  explicit TokenStepStream(const TokenStep& step) : step_(step) {}
  void push(std::string_view text, std::string&) override { held_.append(text); }
  void finish(std::string& out) override {
    step_.apply(held_, {.first = true, .last = true});
    out.append(held_);
    held_.clear();
  }

 private:
  const TokenStep& step_;
  std::string held_;
};

class WholeText final : public TextStep {
 public:
  explicit WholeText(std::unique_ptr<TokenStep> step) : step_(std::move(step)) {}
  std::unique_ptr<TextStepStream> begin_text() const override {
    return std::make_unique<TokenStepStream>(*step_);
  }

 private:
  std::unique_ptr<TokenStep> step_;
};

class StripStream final : public TextStepStream {
 public:
  StripStream(std::string_view character, StripCounts counts)
      : character_(character), stop_(counts.stop), start_left_(counts.start) {}

  void push(std::string_view text, std::string& out) override {
    while (start_left_ > 0 && !text.empty()) {
      if (!text.starts_with(character_)) {
        start_left_ = 0;
        break;
      }
      text.remove_prefix(character_.size());
      --start_left_;
    }
    held_.append(text);
    const std::string_view all = held_;
    size_t sure = all.size();
    for (size_t i = 0; i < stop_ && all.substr(0, sure).ends_with(character_); ++i) {
      sure -= character_.size();
    }
    out.append(all.substr(0, sure));
    held_.erase(0, sure);
  }

  void finish(std::string&) override { held_.clear(); }

 private:
  std::string_view character_;
  size_t stop_;
  size_t start_left_;  // characters still to remove at the start
  std::string held_;   // at most stop_ characters, removed if nothing follows
};

class StripText final : public TextStep {
 public:
  StripText(std::string_view character, StripCounts counts)
      : character_(character), counts_(counts) {}
  std::unique_ptr<TextStepStream> begin_text() const override {
    return std::make_unique<StripStream>(character_, counts_);
  }

 private:
  std::string character_;
  StripCounts counts_;
};

}  // namespace

std::unique_ptr<TextStep> make_replace_text(std::string_view string, std::string_view content) {
  return std::make_unique<ReplaceString>(string, content);
}

std::unique_ptr<TextStep> make_replace_text(std::unique_ptr<TextPattern> pattern,
                                            std::string_view content) {
  return std::make_unique<WholeText>(make_replace_step(std::move(pattern), content));
}

std::unique_ptr<TextStep> make_strip_text(std::string_view character, StripCounts counts) {
  return std::make_unique<StripText>(character, counts);
}

}  // namespace paceline
