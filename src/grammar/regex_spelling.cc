#include <string_view>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

// A text has one spelling and a spelling one text, so intersections and complements keep their
// meaning.
RegexId RegexSet::spelt(RegexId regex, ByteSpelling& spelling) {
  if (const auto known = spelling.known.find(regex); known != spelling.known.end()) {
    return known->second;
  }
  std::vector<RegexId> parts;
  RegexId tail = regex;
  for (; node(tail).kind == Kind::concat; tail = RegexId{node(tail).b}) {
    parts.push_back(spelt(RegexId{node(tail).a}, spelling));
  }
  parts.push_back(spelt_one(tail, spelling));
  const RegexId result = concat(parts);
  spelling.known.emplace(regex, result);
  return result;
}

RegexId RegexSet::spelt_bytes(const ByteSet& set, const ByteSpelling& spelling) {
  ByteSet plain;
  std::vector<RegexId> options;
  for (size_t byte = 0; byte < set.size(); ++byte) {
    if (!set[byte]) continue;
    if (spelling.of_byte[byte].empty()) {
      plain.set(byte);
    } else {
      options.push_back(literal(spelling.of_byte[byte]));
    }
  }
  options.push_back(plain.none() ? kNothing : bytes(plain));
  return alternation(options);
}

// Of any expression but a concatenation.
RegexId RegexSet::spelt_one(RegexId regex, ByteSpelling& spelling) {
  const Node one = node(regex);
  switch (one.kind) {
    case Kind::bytes: {
      const ByteSet set = sets_[one.a];  // a copy: new sets move the others
      return spelt_bytes(set, spelling);
    }
    case Kind::alternation:
    case Kind::intersection: {
      std::vector<RegexId> parts = children_of(regex);
      for (RegexId& part : parts) part = spelt(part, spelling);
      if (one.kind == Kind::alternation) return alternation(parts);
      const RegexId part = one.c == 0 ? kNothing : spelt(RegexId{one.c}, spelling);
      return intersection_of(parts, static_cast<uint32_t>(part));
    }
    case Kind::complement: {
      ByteSet any;
      any.set();
      const RegexId of = spelt(RegexId{one.a}, spelling);
      return intersection(star(spelt_bytes(any, spelling)), complement(of));
    }
    case Kind::repeat:
      return repeat(spelt(RegexId{one.a}, spelling), one.b, one.c);
    default:
      return regex;  // digits, signs and points are spelt as they are
  }
}

}  // namespace paceline
