// Scales of plot axes, and their ticks at 1, 2 or 5 times a power of ten.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The smallest round distance with at most `most_ticks` ticks on `span`; 1 for an empty span.
double tick_distance(double span, int most_ticks);

// A logarithmic axis from one pixel to another, with round ends around its values.
class LogScale {
 public:
  // Ignores values that aren't above 0; without any others the axis is from 1 to 10.
  LogScale(const std::vector<double>& values, double from, double to);

  double at(double value) const;  // values outside lie on the ends
  double low() const { return low_; }
  double high() const { return high_; }
  // All round values if they are few, else powers of ten; at most eight.
  std::vector<double> ticks() const;

 private:
  double low_ = 1;
  double high_ = 10;
  double from_;
  double to_;
};

// An upper bound of a text's width, as the reader's font is unknown.
double text_width(std::string_view text, double font_size);

// Removes zeros after the decimal point: "10.0 ms" becomes "10 ms".
std::string without_zeros(std::string_view figure);

}  // namespace paceline
