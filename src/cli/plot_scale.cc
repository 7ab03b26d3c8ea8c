#include "cli/plot_scale.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace paceline {
namespace {

constexpr double kFactors[] = {1, 2, 5, 10};
// Rounding errors of powers and logarithms are far smaller.
constexpr double kSlack = 1e-9;

double power_below(double value) { return std::pow(10.0, std::floor(std::log10(value) + kSlack)); }

double round_below(double value) {
  double below = power_below(value);
  for (const double factor : kFactors) {
    const double candidate = factor * power_below(value);
    if (candidate <= value * (1 + kSlack)) below = candidate;
  }
  return below;
}

double round_above(double value) {
  for (const double factor : kFactors) {
    const double candidate = factor * power_below(value);
    if (candidate >= value * (1 - kSlack)) return candidate;
  }
  return value;
}

}  // namespace

double tick_distance(double span, int most_ticks) {
  if (span <= 0) return 1;
  return round_above(span / most_ticks);
}

LogScale::LogScale(const std::vector<double>& values, double from, double to)
    : from_(from), to_(to) {
  double least = 0, most = 0;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    least = least == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
  if (least == 0) return;
  low_ = round_below(least);
  high_ = std::max(round_above(most), round_above(low_ * 2));
}

double LogScale::at(double value) const {
  if (!(value > low_)) return from_;
  const double share = std::log(value / low_) / std::log(high_ / low_);
  return from_ + (to_ - from_) * std::min(share, 1.0);
}

std::vector<double> LogScale::ticks() const {
  constexpr size_t kMost = 8;
  std::vector<double> all, powers;
  const auto last = static_cast<int>(std::ceil(std::log10(high_)));
  for (auto exponent = static_cast<int>(std::floor(std::log10(low_))); exponent <= last;
       ++exponent) {
    const double power = std::pow(10.0, exponent);
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * power;
      if (tick < low_ * (1 - kSlack) || tick > high_ * (1 + kSlack)) continue;
      all.push_back(tick);
      if (factor == 1) powers.push_back(tick);
    }
  }
  if (all.size() <= kMost) return all;
  const size_t step = (powers.size() + kMost - 1) / kMost;
  std::vector<double> some;
  for (size_t i = 0; i < powers.size(); i += step) some.push_back(powers[i]);
  return some;
}

double text_width(std::string_view text, double font_size) {
  // Widths in DejaVu Sans, the widest of the fonts that the style names.
  double width = 0;
  while (!text.empty()) {
    const DecodedCodePoint decoded = decode_utf8(text);
    text.remove_prefix(decoded.size);
    const auto among = [&](std::string_view letters) {
      return decoded.code_point < 0x80 &&
             letters.find(static_cast<char>(decoded.code_point)) != std::string_view::npos;
    };
    width += among("fijlrt.,: ") ? 0.35 : (among("mwMW") ? 0.95 : 0.61);
  }
  return width * font_size;
}

std::string without_zeros(std::string_view figure) {
  const size_t end = std::min(figure.find(' '), figure.size());
  std::string number(figure.substr(0, end));
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number + std::string(figure.substr(end));
}

}  // namespace paceline
