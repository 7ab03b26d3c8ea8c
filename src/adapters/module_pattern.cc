// ModulePattern on PCRE2.
#include "adapters/module_pattern.h"

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <ctime>

#include "base/error.h"

namespace paceline {
namespace {

constexpr size_t kMaxPatternBytes = 16 * 1024;
constexpr uint32_t kMatchLimit = 200'000;  // backtracking points of one match
constexpr uint32_t kHeapLimitKib = 16 * 1024;

std::string pcre_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

bool MatchBudget::is_spent() {
  const std::chrono::nanoseconds now = thread_time();
  if (!begin_) begin_ = now;
  return now - *begin_ > limit_;
}

struct ModulePattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_data_free(match_data);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }

  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_match_data* match_data = nullptr;
};

ModulePattern::ModulePattern(std::string_view pattern, Extent extent, std::string where)
    : where_(std::move(where)), compiled_(std::make_unique<Compiled>()) {
  if (pattern.size() > kMaxPatternBytes) {
    throw Error(ErrorCode::invalid, fmt::format("{}: a pattern of {} bytes, at most {} are allowed",
                                                where_, pattern.size(), kMaxPatternBytes));
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Names hold no line breaks and nothing beyond ASCII.
  const uint32_t extent_options =
      extent == Extent::whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : PCRE2_ANCHORED;
  compiled_->code = pcre2_compile(units_of(pattern), pattern.size(),
                                  extent_options | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &error,
                                  &offset, nullptr);
  if (compiled_->code == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: not a regular expression at byte {}: {}",
                                                where_, offset, pcre_message(error)));
  }
  compiled_->context = pcre2_match_context_create(nullptr);
  compiled_->match_data = pcre2_match_data_create_from_pattern(compiled_->code, nullptr);
  if (compiled_->context == nullptr || compiled_->match_data == nullptr) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: out of memory", where_));
  }
  pcre2_set_match_limit(compiled_->context, kMatchLimit);
  pcre2_set_heap_limit(compiled_->context, kHeapLimitKib);
}

ModulePattern::~ModulePattern() = default;
ModulePattern::ModulePattern(ModulePattern&&) noexcept = default;
ModulePattern& ModulePattern::operator=(ModulePattern&&) noexcept = default;

bool ModulePattern::match(std::string_view module, MatchBudget& budget) const {
  if (budget.is_spent()) {
    throw Error(
        ErrorCode::exhausted,
        fmt::format("{}: matching the patterns takes too long; write simpler ones", where_));
  }
  const int result = pcre2_match(compiled_->code, units_of(module), module.size(), 0, 0,
                                 compiled_->match_data, compiled_->context);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: matching \"{}\": {}; write a simpler pattern", where_, module,
                            pcre_message(result)));
  }
  return true;
}

bool ModulePattern::matches(std::string_view module, MatchBudget& budget) const {
  return match(module, budget);
}

std::optional<std::string> ModulePattern::find_group(std::string_view module,
                                                     const std::string& group,
                                                     MatchBudget& budget) const {
  if (!match(module, budget)) return std::nullopt;
  PCRE2_UCHAR* text = nullptr;
  PCRE2_SIZE size = 0;
  const auto* const name = reinterpret_cast<PCRE2_SPTR>(group.c_str());
  if (pcre2_substring_get_byname(compiled_->match_data, name, &text, &size) != 0) {
    return std::nullopt;
  }
  std::string found(reinterpret_cast<const char*>(text), size);
  pcre2_substring_free(text);
  return found;
}

}  // namespace paceline
