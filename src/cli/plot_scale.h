// Where values lie on an axis, and which of them are marked: 1, 2 or 5 times a power of ten.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The shortest round distance at which at most `most_ticks` lie on `span`; 1 for an empty span.
double tick_distance(double span, int most_ticks);

// A logarithmic axis from one pixel to another, with round ends around the values that it is for.
class LogScale {
 public:
  // Only values above 0 count; without any the axis is from 1 to 10.
  LogScale(const std::vector<double>& values, double from, double to);

  double at(double value) const;  // values outside lie on the ends
  double low() const { return low_; }
  double high() const { return high_; }
  // All round values when there are few, else powers of ten, never more than eight.
  std::vector<double> ticks() const;

 private:
  double low_ = 1;
  double high_ = 10;
  double from_;
  double to_;
};

// How wide a text will be at most: the reader's font is not known here.
double text_width(std::string_view text, double font_size);

// "10 ms" of "10.0 ms": a round number needs no zeros behind its point.
std::string without_zeros(std::string_view figure);

}  // namespace paceline
