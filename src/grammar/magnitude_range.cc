#include "grammar/magnitude_range.h"

#include <algorithm>
#include <array>
#include <vector>

namespace paceline {

namespace {

RegexId digits_between(RegexSet& regexes, char first, char last) {
  ByteSet set;
  for (char digit = first; digit <= last; ++digit) set.set(static_cast<uint8_t>(digit));
  return regexes.bytes(set);
}

// Writes numbers digit by digit. As long as all digits are those of a bound, the number touches it:
// only then does the bound limit the next digit.
class MagnitudeWriter {
 public:
  MagnitudeWriter(RegexSet& regexes, const MagnitudeRange& range)
      : regexes_(regexes),
        range_(range),
        digit_(digits_between(regexes, '0', '9')),
        fraction_(any_fraction(regexes)) {}

  RegexId write();

 private:
  struct Touch {
    bool min = false;
    bool max = false;
  };

  // Numbers whose whole part has `length` digits; 0: it is "0".
  RegexId with_length(size_t length);
  RegexId longer_than_min(size_t max_length);
  RegexId whole_from(size_t place, size_t length, Touch touch);
  RegexId behind_whole(Touch touch);
  RegexId fraction_from(size_t place, Touch touch);
  // The digits from `first` on at this place; `rest` gives what follows for a touch.
  template <class Rest>
  RegexId digit_then(char first, std::pair<char, char> bounds, Touch touch, Rest rest);
  bool may_end(size_t fraction_place, Touch touch) const;

  static char digit_at(const std::string& digits, size_t place) {
    return place < digits.size() ? digits[place] : '0';
  }
  const Decimal& max() const { return *range_.max; }

  RegexSet& regexes_;
  const MagnitudeRange& range_;
  RegexId digit_;
  RegexId fraction_;
};

RegexId MagnitudeWriter::write() {
  if (range_.max) {
    const int order = compare_magnitudes(range_.min, max());
    if (order > 0) return RegexSet::kNothing;
  }
  const size_t min_length = range_.min.whole.size();
  std::vector<RegexId> options{with_length(min_length)};
  if (!range_.max) {
    options.push_back(longer_than_min(kUnbounded));
  } else if (max().whole.size() > min_length) {
    options.push_back(longer_than_min(max().whole.size() - 1));
    options.push_back(with_length(max().whole.size()));
  }
  return regexes_.alternation(options);
}

RegexId MagnitudeWriter::longer_than_min(size_t max_length) {
  const auto shortest = static_cast<uint32_t>(range_.min.whole.size() + 1);
  const auto longest = static_cast<uint32_t>(max_length);
  if (shortest > longest) return RegexSet::kNothing;
  const RegexId more =
      regexes_.repeat(digit_, shortest - 1, longest == kUnbounded ? kUnbounded : longest - 1);
  return regexes_.concat(std::array{digits_between(regexes_, '1', '9'), more, fraction_});
}

RegexId MagnitudeWriter::with_length(size_t length) {
  const Touch touch{.min = length == range_.min.whole.size(),
                    .max = range_.max && length == max().whole.size()};
  if (length == 0) return regexes_.concat(regexes_.byte('0'), behind_whole(touch));
  return whole_from(0, length, touch);
}

template <class Rest>
RegexId MagnitudeWriter::digit_then(char first, std::pair<char, char> bounds, Touch touch,
                                    Rest rest) {
  const char low = touch.min ? std::max(first, bounds.first) : first;
  const char high = touch.max ? bounds.second : '9';
  std::vector<RegexId> options;
  char free_first = low;
  char free_last = high;
  if (low > high) return RegexSet::kNothing;
  const auto add = [&](char digit, Touch next) {
    options.push_back(regexes_.concat(regexes_.byte(static_cast<uint8_t>(digit)), rest(next)));
  };
  if (touch.min && low == bounds.first) {
    add(low, {.min = true, .max = touch.max && low == high});
    ++free_first;
  }
  if (touch.max && free_first <= high) {
    add(high, {.min = false, .max = true});
    --free_last;
  }
  if (free_first <= free_last) {
    options.push_back(
        regexes_.concat(digits_between(regexes_, free_first, free_last), rest(Touch{})));
  }
  return regexes_.alternation(options);
}

RegexId MagnitudeWriter::whole_from(size_t place, size_t length, Touch touch) {
  if (!touch.min && !touch.max) {
    const auto left = static_cast<uint32_t>(length - place);
    return regexes_.concat(regexes_.repeat(digit_, left, left), fraction_);
  }
  if (place == length) return behind_whole(touch);
  const std::pair bounds{digit_at(range_.min.whole, place),
                         range_.max ? digit_at(max().whole, place) : '9'};
  return digit_then(place == 0 ? '1' : '0', bounds, touch,
                    [&](Touch next) { return whole_from(place + 1, length, next); });
}

// Whether a number may end that touches these bounds with `fraction_place` digits of its fraction.
bool MagnitudeWriter::may_end(size_t fraction_place, Touch touch) const {
  if (touch.min && (fraction_place < range_.min.fraction.size() || range_.excludes_min)) {
    return false;
  }
  return !touch.max || fraction_place < max().fraction.size() || !range_.excludes_max;
}

RegexId MagnitudeWriter::behind_whole(Touch touch) {
  if (range_.min.fraction.empty() && !range_.excludes_min) touch.min = false;
  if (!touch.min && !touch.max) return fraction_;
  // The first digit isn't optional, so it is written here.
  const auto digits_behind_point = [&] {
    const std::pair bounds{digit_at(range_.min.fraction, 0),
                           range_.max ? digit_at(max().fraction, 0) : '9'};
    return digit_then('0', bounds, touch, [&](Touch next) { return fraction_from(1, next); });
  };
  const RegexId fraction = regexes_.concat(regexes_.byte('.'), digits_behind_point());
  return may_end(0, touch) ? regexes_.optional(fraction) : fraction;
}

RegexId MagnitudeWriter::fraction_from(size_t place, Touch touch) {
  const size_t min_left =
      touch.min && range_.min.fraction.size() > place ? range_.min.fraction.size() - place : 0;
  const size_t max_left =
      touch.max && max().fraction.size() > place ? max().fraction.size() - place : 0;
  if (touch.min && min_left == 0 && !range_.excludes_min) touch.min = false;
  if (!touch.min && !touch.max) return regexes_.star(digit_);
  if (min_left == 0 && max_left == 0) {
    const RegexId zeros = regexes_.star(regexes_.byte('0'));
    if (touch.max) return may_end(place, touch) ? zeros : RegexSet::kNothing;
    return regexes_.concat(
        std::array{zeros, digits_between(regexes_, '1', '9'), regexes_.star(digit_)});
  }
  const std::pair bounds{digit_at(range_.min.fraction, place),
                         range_.max ? digit_at(max().fraction, place) : '9'};
  const RegexId more =
      digit_then('0', bounds, touch, [&](Touch next) { return fraction_from(place + 1, next); });
  return may_end(place, touch) ? regexes_.optional(more) : more;
}

}  // namespace

RegexId any_fraction(RegexSet& regexes) {
  const RegexId digits = regexes.plus(digits_between(regexes, '0', '9'));
  return regexes.optional(regexes.concat(regexes.byte('.'), digits));
}

RegexId magnitudes_between(RegexSet& regexes, const MagnitudeRange& range) {
  return MagnitudeWriter(regexes, range).write();
}

}  // namespace paceline
