#include "cli/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace paceline {
namespace {

constexpr int kDigits = 3;
constexpr int kMostDecimals = 6;

// The power of ten of the first significant digit, after rounding to three digits.
int leading_power(double value) {
  const double size = std::abs(value);
  if (size == 0) return 0;
  const int power = static_cast<int>(std::floor(std::log10(size)));
  // 9.996 has one more digit before its point once it is rounded.
  const double scaled = size / std::pow(10.0, power - (kDigits - 1));
  return std::round(scaled) >= std::pow(10.0, kDigits) ? power + 1 : power;
}

std::string with_prefix(double value, std::string_view unit, int power_of_1000) {
  static constexpr std::array<std::string_view, 9> kPrefixes = {"n", "µ", "m", "", "k",
                                                                "M", "G", "T", "P"};
  constexpr int kOne = 3;
  const int last = static_cast<int>(kPrefixes.size()) - 1 - kOne;
  const int power = std::clamp(power_of_1000, -kOne, last);
  const int index = kOne + power;
  return fmt::format("{} {}{}", figure(value / std::pow(1000.0, power)),
                     kPrefixes[static_cast<size_t>(index)], unit);
}

int power_of_1000(double value) { return static_cast<int>(std::floor(leading_power(value) / 3.0)); }

}  // namespace

std::string grouped(std::string digits) {
  const size_t first = digits[0] == '-' ? 1 : 0;
  const size_t end = std::min(digits.find('.'), digits.size());
  for (size_t i = end; i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string grouped_digits(int64_t value) { return grouped(std::to_string(value)); }

std::string grouped_number(double value) {
  if (std::abs(value) < 100) return fmt::format("{:.1f}", value);
  return grouped(fmt::format("{:.0f}", value));
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  constexpr double kRoundsToNext = 1023.5;
  for (; bytes >= kRoundsToNext && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, kUnits[unit]);
}

std::string plural_of(std::string_view unit, int64_t count) {
  return fmt::format("{}{}", unit, count == 1 ? "" : "s");
}

std::string figure(double value) {
  if (!std::isfinite(value)) return "-";
  const int decimals = std::clamp(kDigits - 1 - leading_power(value), 0, kMostDecimals);
  return grouped(fmt::format("{:.{}f}", value, value == 0 ? 0 : decimals));
}

std::string figure_of(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "-";
  return with_prefix(value, unit, std::max(power_of_1000(value), 0));
}

std::string duration_figure(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  return with_prefix(seconds, "s", std::min(power_of_1000(seconds), 0));
}

double DraftCounts::tokens_per_step() const {
  const int64_t plain = output - accepted;
  return static_cast<double>(output) / static_cast<double>(std::max<int64_t>(plain, 1));
}

std::string draft_figures(const DraftCounts& counts) {
  const double rate = counts.drafted == 0 ? 0.0
                                          : static_cast<double>(counts.accepted) /
                                                static_cast<double>(counts.drafted);
  return fmt::format("drafted {} {}, accepted {} ({}), {:.2f} tokens a step",
                     grouped_digits(counts.drafted), plural_of("token", counts.drafted),
                     grouped_digits(counts.accepted), share_figure(rate), counts.tokens_per_step());
}

std::string share_figure(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  const double percent = 100 * fraction;
  if (std::abs(percent) < 9.95) return fmt::format("{:.1f}%", percent);
  return grouped(fmt::format("{:.0f}", percent)) + "%";
}

}  // namespace paceline
