#include "cli/plot_labels.h"

#include <algorithm>

#include "cli/plot_scale.h"

namespace paceline {
namespace {

constexpr double kLabelFontSize = 10;
constexpr double kHeight = 12;
constexpr double kDistance = 8;

bool overlap(const SvgBox& a, const SvgBox& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

}  // namespace

bool PlotLabels::is_free(const SvgBox& wanted) const {
  const bool is_within = wanted.x >= box_.x && wanted.right() <= box_.right() &&
                         wanted.y >= box_.y && wanted.bottom() <= box_.bottom();
  return is_within && std::none_of(taken_.begin(), taken_.end(),
                                   [&](const SvgBox& taken) { return overlap(taken, wanted); });
}

bool PlotLabels::write_if_free(std::string_view text, const SvgBox& box) {
  if (!is_free(box)) return false;
  taken_.push_back(box);
  svg_.text("label", {box.x, box.bottom() - 3}, text);
  return true;
}

bool PlotLabels::place(std::string_view text, SvgPoint at) {
  const double width = text_width(text, kLabelFontSize);
  const double middle = at.y - kHeight / 2;
  const SvgBox candidates[] = {{at.x + kDistance, middle, width, kHeight},
                               {at.x - kDistance - width, middle, width, kHeight},
                               {at.x - width / 2, at.y - kDistance - kHeight, width, kHeight},
                               {at.x - width / 2, at.y + kDistance, width, kHeight},
                               {at.x + kDistance / 2, at.y + kDistance, width, kHeight},
                               {at.x + kDistance / 2, at.y - kDistance - kHeight, width, kHeight}};
  return std::any_of(std::begin(candidates), std::end(candidates),
                     [&](const SvgBox& box) { return write_if_free(text, box); });
}

bool PlotLabels::place_along(std::string_view text, SvgPoint from, SvgPoint to) {
  constexpr int kTries = 24;
  const double width = text_width(text, kLabelFontSize);
  for (int i = 0; i <= kTries; ++i) {
    const double share = static_cast<double>(i) / kTries;
    const SvgPoint end{from.x + share * (to.x - from.x) - 6, from.y + share * (to.y - from.y) - 4};
    if (write_if_free(text, {end.x - width, end.y - kHeight, width, kHeight})) return true;
  }
  return false;
}

}  // namespace paceline
