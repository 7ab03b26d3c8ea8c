// SplitPattern and TextPattern on PCRE2 with its just-in-time compiler.
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <string>

#include "base/error.h"
#include "tokenizer/regex_dialect.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/text_pattern.h"

namespace paceline {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;  // backtracking points of one match
constexpr uint32_t kHeapLimitKib =
    64 * 1024;  // of the interpreter, when the stack below is too small
constexpr size_t kJitStackBytes = 1024 * 1024;  // at most
constexpr size_t kJitStackStartBytes = 32 * 1024;
constexpr size_t kMaxPatternBytes = 64 * 1024;

template <auto release>
struct Release {
  template <class T>
  void operator()(T* pointer) const {
    release(pointer);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Release<release>>;

using Code = Owned<pcre2_code, pcre2_code_free>;
using CompileContext = Owned<pcre2_compile_context, pcre2_compile_context_free>;
using MatchContext = Owned<pcre2_match_context, pcre2_match_context_free>;
using MatchData = Owned<pcre2_match_data, pcre2_match_data_free>;
using JitStack = Owned<pcre2_jit_stack, pcre2_jit_stack_free>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// The state of one thread while it matches.
class Matcher {
 public:
  explicit Matcher(const pcre2_code* code)
      : code_(code),
        match_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    if (!match_ || !context_) throw Error(ErrorCode::exhausted, "split pattern: out of memory");
    pcre2_set_match_limit(context_.get(), kMatchLimit);
    pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  }

  // Whether there is a match at or after `from`; begin() and end() are then its bounds.
  bool find(std::string_view text, size_t from) {
    int result = match(text, from, PCRE2_NO_UTF_CHECK);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && enlarge_stack()) {
      result = match(text, from, PCRE2_NO_UTF_CHECK);
    }
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = match(text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) {
      throw Error(ErrorCode::exhausted, fmt::format("split pattern at byte {} of {}: {}", from,
                                                    text.size(), message_of(result)));
    }
    return true;
  }

  size_t begin() const { return pcre2_get_ovector_pointer(match_.get())[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(match_.get())[1]; }

 private:
  int match(std::string_view text, size_t from, uint32_t options) {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                       match_.get(), context_.get());
  }

  // Replaces the 32 KiB of the machine stack, enough for nearly every match, by a stack of its own.
  bool enlarge_stack() {
    if (stack_) return false;
    stack_.reset(pcre2_jit_stack_create(kJitStackStartBytes, kJitStackBytes, nullptr));
    if (stack_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return stack_ != nullptr;
  }

  const pcre2_code* code_;
  MatchData match_;
  MatchContext context_;
  JitStack stack_;
};

class PcrePattern final : public SplitPattern, public TextPattern {
 public:
  PcrePattern(std::string_view pattern, std::string_view where) {
    const CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) throw Error(ErrorCode::exhausted, "split pattern: out of memory");
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context.get(), 64);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                              context.get()));
    if (!code_) {
      throw Error(ErrorCode::unsupported, fmt::format("{}: not a pattern for PCRE2, at byte {}: {}",
                                                      where, offset, message_of(error)));
    }
    // If this fails (on a hardened system), the slower interpreter is used.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    const auto add = [&](size_t begin, size_t end) {
      if (begin < end) pieces.push_back(text.substr(begin, end - begin));
    };
    size_t done = 0;
    for_each_match(text, [&](Match match) {
      add(done, match.begin);
      add(match.begin, match.end);
      done = match.end;
    });
    add(done, text.size());
  }

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    for_each_match(text, [&](Match match) { matches.push_back(match); });
  }

 private:
  // Skips an empty match right behind another one, as Oniguruma's iteration does.
  template <class Use>
  void for_each_match(std::string_view text, Use use) const {
    Matcher matcher(code_.get());
    size_t last_end = std::string_view::npos;
    for (size_t from = 0; from <= text.size() && matcher.find(text, from);) {
      const Match match{matcher.begin(), matcher.end()};
      const bool empty = match.begin == match.end;
      if (!empty || match.end != last_end) use(match);
      last_end = match.end;
      from = empty ? after_character(text, match.end) : match.end;
    }
  }

  static size_t after_character(std::string_view text, size_t offset) {
    do {
      ++offset;
    } while (offset < text.size() && (static_cast<uint8_t>(text[offset]) & 0xC0) == 0x80);
    return offset;
  }

  Code code_;
};

}  // namespace

namespace {

std::unique_ptr<PcrePattern> make_checked(std::string_view pattern, std::string_view where) {
  if (pattern.size() > kMaxPatternBytes) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: a pattern of {} bytes, at most {} are read", where, pattern.size(),
                            kMaxPatternBytes));
  }
  if (const auto difference = dialect_difference(pattern)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: a pattern with {} isn't supported", where, *difference));
  }
  return std::make_unique<PcrePattern>(with_spaces_spelt_out(pattern), where);
}

}  // namespace

std::unique_ptr<SplitPattern> make_pcre_pattern(std::string_view pattern, std::string_view where) {
  return make_checked(pattern, where);
}

std::unique_ptr<TextPattern> make_regex_pattern(std::string_view pattern, std::string_view where) {
  return make_checked(pattern, where);
}

}  // namespace paceline
