#include "tokenizer/token_decoder.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/token_table.h"

namespace paceline {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  // HF tokenizers reads the two as a number, which may have a sign.
  const int high = token[3] == '+' ? 0 : hex_value(token[3]);
  const int low = hex_value(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

bool TokenDecoder::decode_inside(std::string& token) const {
  constexpr TokenPlace kInside{};
  for (const auto& step : before) step->apply(token, kInside);
  if (byte_fallback) {
    if (const auto byte = fallback_byte(token)) {
      token.assign(1, *byte);
      return true;
    }
  }
  for (const auto& step : behind) step->apply(token, kInside);
  return false;
}

bool TokenDecoder::looks_at_first() const {
  const auto looks = [](const auto& step) { return step->looks_at_first(); };
  return std::any_of(before.begin(), before.end(), looks) ||
         std::any_of(behind.begin(), behind.end(), looks);
}

bool TokenDecoder::looks_at_last() const {
  const auto looks = [](const auto& step) { return step->looks_at_last(); };
  return std::any_of(before.begin(), before.end(), looks) ||
         std::any_of(behind.begin(), behind.end(), looks);
}

TokenJoiner::TokenJoiner(const TokenDecoder& decoder, const TokenTable& table)
    : decoder_(decoder),
      table_(table),
      looks_at_first_(decoder.looks_at_first()),
      looks_at_last_(decoder.looks_at_last()) {}

void TokenJoiner::push_text(std::string_view token, std::string& out) {
  if (!looks_at_last_) return decode(std::string(token), {.first = first_before_}, out);
  if (held_) decode(std::move(*held_), {.first = first_before_}, out);
  held_ = std::string(token);
}

void TokenJoiner::push_id(int32_t id, std::string& out) {
  if (table_.is_byte(id)) return add_byte(table_.bytes(id).front(), out);
  if (run_is_broken_ || !run_.empty()) end_run(out);
  out += table_.bytes(id);
}

void TokenJoiner::finish(std::string& out) {
  if (held_) decode(std::move(*held_), {.first = first_before_, .last = true}, out);
  held_.reset();
  end_run(out);
  first_before_ = first_behind_ = true;
}

void TokenJoiner::decode(std::string token, TokenPlace place, std::string& out) {
  first_before_ = false;
  for (const auto& step : decoder_.before) step->apply(token, place);
  if (decoder_.byte_fallback) {
    if (const auto byte = fallback_byte(token)) return add_byte(*byte, out);
  }
  end_run(out);
  add_behind(std::move(token), place.last, out);
}

void TokenJoiner::add_byte(char byte, std::string& out) {
  if (run_is_broken_) return add_replacements(1, out);
  run_ += byte;
  const std::string_view rest = std::string_view(run_).substr(run_complete_);
  if (is_valid_utf8(rest)) {
    run_complete_ = run_.size();
  } else if (incomplete_utf8_suffix(rest) < rest.size()) {
    run_is_broken_ = true;
    add_replacements(run_.size(), out);
    run_.clear();
  }
}

void TokenJoiner::end_run(std::string& out) {
  if (run_.size() > run_complete_) {
    add_replacements(run_.size(), out);
  } else if (!run_.empty()) {
    add_behind(run_, false, out);
  }
  run_.clear();
  run_complete_ = 0;
  run_is_broken_ = false;
}

void TokenJoiner::add_replacements(size_t count, std::string& out) {
  for (size_t i = 0; i < count; ++i) add_behind(std::string(kReplacement), false, out);
}

void TokenJoiner::add_behind(std::string token, bool last, std::string& out) {
  const TokenPlace place{.first = first_behind_, .last = last};
  first_behind_ = false;
  for (const auto& step : decoder_.behind) step->apply(token, place);
  out += token;
}

}  // namespace paceline
