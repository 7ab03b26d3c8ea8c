#include "tools/literal_alignment.h"

#include <algorithm>
#include <charconv>

#include "tools/text_units.h"

namespace paceline {
namespace {

std::optional<uint32_t> number_of(std::string_view unit) {
  uint32_t value = 0;
  if (!is_digits(unit)) return std::nullopt;
  const auto [end, error] = std::from_chars(unit.data(), unit.data() + unit.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

bool counts_on(std::string_view first, std::string_view second) {
  const auto a = number_of(first);
  const auto b = number_of(second);
  return a && b && *a + 1 == *b;
}

bool is_common(std::string_view first, std::string_view second) {
  return first == second || counts_on(first, second);
}

template <class Iterator>
CommonBytes common_bytes(Iterator first, Iterator first_end, Iterator second, Iterator second_end) {
  CommonBytes bytes;
  const auto ends = std::mismatch(first, first_end, second, second_end, is_common);
  for (; first != ends.first; ++first) bytes.first += first->size();
  for (; second != ends.second; ++second) bytes.second += second->size();
  return bytes;
}

}  // namespace

CommonBytes aligned_prefix(std::string_view first, std::string_view second) {
  const auto a = text_units(first);
  const auto b = text_units(second);
  return common_bytes(a.begin(), a.end(), b.begin(), b.end());
}

CommonBytes aligned_suffix(std::string_view first, std::string_view second) {
  const auto a = text_units(first);
  const auto b = text_units(second);
  return common_bytes(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

std::optional<std::vector<CallPiece>> aligned_pieces(std::string_view first,
                                                     std::string_view second) {
  const auto a = text_units(first);
  const auto b = text_units(second);
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), is_common)) return std::nullopt;
  std::vector<CallPiece> pieces;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      append_piece(pieces, {.text = std::string(a[i])});
    } else {
      append_piece(pieces, {.kind = CallPiece::Kind::index});
    }
  }
  return pieces;
}

void append_piece(std::vector<CallPiece>& pieces, CallPiece piece) {
  constexpr auto kLiteral = CallPiece::Kind::literal;
  if (piece.kind == kLiteral && piece.text.empty()) return;
  if (!pieces.empty() && piece.kind == kLiteral && pieces.back().kind == kLiteral &&
      pieces.back().is_optional == piece.is_optional) {
    pieces.back().text += piece.text;
  } else {
    pieces.push_back(std::move(piece));
  }
}

}  // namespace paceline
