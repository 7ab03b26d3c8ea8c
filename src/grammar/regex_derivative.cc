#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

namespace {

// A step counts one more for each so many derivatives of parts that it takes.
constexpr size_t kDerivativesOfAStep = 8;

uint32_t one_less(uint32_t count) { return count == kUnbounded || count == 0 ? count : count - 1; }

}  // namespace

RegexId RegexSet::derivative_of_multiple(const Node& multiple, uint8_t byte) {
  const auto [divisor, scale] = multiples_[multiple.a];
  if (byte == '-') return multiple_node(multiple.a, multiple.b, multiple.c);
  if (byte == '.') return multiple.c == 0 ? multiple_node(multiple.a, multiple.b, 1) : kNothing;
  if (byte < '0' || byte > '9') return kNothing;
  const auto digit = static_cast<uint32_t>(byte - '0');
  if (multiple.c == scale + 1) {
    return digit == 0 ? multiple_node(multiple.a, multiple.b, multiple.c) : kNothing;
  }
  const auto remainder = static_cast<uint32_t>((uint64_t{multiple.b} * 10 + digit) % divisor);
  return multiple_node(multiple.a, remainder, multiple.c == 0 ? 0 : multiple.c + 1);
}

// A row of parts that may all be empty gives an option for each of them, and the options'
// derivatives as many again: rows are bounded.
RegexId RegexSet::derivative_of_concat(RegexId regex, uint8_t byte) {
  constexpr size_t kMaxOptionalParts = 1000;
  std::vector<RegexId> options;
  size_t num_parts = 0;
  while (node(regex).kind == Kind::concat) {
    if (++num_parts > kMaxOptionalParts) {
      over_limit("optional parts in a row", kMaxOptionalParts);
    }
    const RegexId first{node(regex).a};
    const RegexId second{node(regex).b};
    const RegexId head = derivative(first, byte);
    if (head != kNothing) options.push_back(concat(head, second));
    if (!node(first).nullable) return alternation(options);
    regex = second;
  }
  options.push_back(derivative(regex, byte));
  return alternation(options);
}

RegexId RegexSet::derivative_of_many(RegexId regex, uint8_t byte) {
  const bool is_alternation = node(regex).kind == Kind::alternation;
  std::vector<RegexId> parts;
  const uint32_t offset = node(regex).a;
  const uint32_t count = node(regex).b;
  const uint32_t part_of_length = node(regex).c;
  for (uint32_t i = 0; i < count; ++i) {
    const RegexId part = derivative(children_[offset + i], byte);
    if (part == kNothing) {
      if (!is_alternation) return kNothing;
      continue;
    }
    parts.push_back(part);
  }
  return is_alternation ? alternation(parts) : intersection_of(parts, part_of_length);
}

RegexId RegexSet::compute_derivative(RegexId regex, uint8_t byte) {
  const Node one = node(regex);
  switch (one.kind) {
    case Kind::nothing:
    case Kind::empty:
      return kNothing;
    case Kind::bytes:
      return sets_[one.a][byte] ? kEmpty : kNothing;
    case Kind::concat:
      return derivative_of_concat(regex, byte);
    case Kind::alternation:
    case Kind::intersection:
      return derivative_of_many(regex, byte);
    case Kind::complement:
      return complement(derivative(RegexId{one.a}, byte));
    case Kind::repeat: {
      const RegexId head = derivative(RegexId{one.a}, byte);
      if (head == kNothing) return kNothing;
      return concat(head, repeat(RegexId{one.a}, one_less(one.b), one_less(one.c)));
    }
    case Kind::multiple:
      return derivative_of_multiple(one, byte);
  }
  return kNothing;
}

RegexId RegexSet::derivative(RegexId regex, uint8_t byte) {
  ++num_derivatives_;
  const Kind kind = node(regex).kind;
  if (kind == Kind::nothing || kind == Kind::empty || kind == Kind::bytes || regex == kAll) {
    return regex == kAll ? kAll : compute_derivative(regex, byte);
  }
  if (!first_bytes(regex)[byte]) return kNothing;
  const uint64_t key = static_cast<uint64_t>(regex) << 8 | class_of_[byte];
  if (const auto found = derivatives_.find(key)) return RegexId{*found};
  const RegexId result = compute_derivative(regex, byte);
  derivatives_.insert(key, static_cast<uint32_t>(result));
  return result;
}

const ByteSet& RegexSet::first_bytes(RegexId regex) {
  if (first_bytes_.size() < nodes_.size()) first_bytes_.resize(nodes_.size(), kNoSet);
  if (first_bytes_[static_cast<size_t>(regex)] == kNoSet) {
    const ByteSet found = compute_first_bytes(regex);
    const auto [entry, is_new] = first_index_.try_emplace(found, first_sets_.size());
    if (is_new) first_sets_.push_back(found);
    first_bytes_[static_cast<size_t>(regex)] = entry->second;
  }
  return first_sets_[first_bytes_[static_cast<size_t>(regex)]];
}

ByteSet RegexSet::compute_first_bytes(RegexId regex) {
  ByteSet found;
  while (node(regex).kind == Kind::concat) {
    const RegexId first{node(regex).a};
    found |= first_bytes(first);
    if (!node(first).nullable) return found;
    regex = RegexId{node(regex).b};
  }
  const Node one = node(regex);
  switch (one.kind) {
    case Kind::bytes:
      return found | sets_[one.a];
    case Kind::repeat:
      return found | first_bytes(RegexId{one.a});
    case Kind::complement:
      return found.set();
    case Kind::alternation:
      for (uint32_t i = 0; i < one.b; ++i) found |= first_bytes(children_[one.a + i]);
      return found;
    case Kind::intersection: {
      ByteSet common;
      common.set();
      for (uint32_t i = 0; i < one.b; ++i) common &= first_bytes(children_[one.a + i]);
      return found | common;
    }
    case Kind::multiple:
      for (const char byte : std::string_view("-.0123456789"))
        found.set(static_cast<uint8_t>(byte));
      return found;
    default:
      return found;
  }
}

// Depth first over the derivatives until one matches the empty text, or can't fail to match.
bool RegexSet::search_for_match(RegexId regex) {
  struct Visit {
    RegexId regex;
    size_t next_class;
  };
  std::vector<Visit> path{{regex, 0}};
  std::unordered_set<RegexId> seen{regex};
  size_t steps = 0;
  const auto is_found = [&](RegexId id) {
    return node(id).nullable || emptiness_[static_cast<size_t>(id)] == Emptiness::something ||
           (!node(id).has_boolean && id != kNothing);
  };
  while (!path.empty()) {
    if (is_found(path.back().regex)) {
      for (const Visit& visit : path) {
        emptiness_[static_cast<size_t>(visit.regex)] = Emptiness::something;
      }
      return true;
    }
    Visit& top = path.back();
    if (top.next_class == num_classes_) {
      path.pop_back();
      continue;
    }
    const size_t derivatives_before = num_derivatives_;
    const RegexId next = derivative(top.regex, byte_of_class_[top.next_class++]);
    const size_t cost = 1 + (num_derivatives_ - derivatives_before) / kDerivativesOfAStep;
    steps += cost;
    if (steps > limits_.max_search) {
      over_limit("steps to find out whether an intersection is empty", limits_.max_search);
    }
    search_steps_ += cost;
    if (search_steps_ > limits_.max_searches) {
      over_limit("steps to find out which intersections are empty", limits_.max_searches);
    }
    if (next == kNothing || emptiness_[static_cast<size_t>(next)] == Emptiness::nothing) continue;
    if (seen.insert(next).second) path.push_back({next, 0});
  }
  for (const RegexId id : seen) emptiness_[static_cast<size_t>(id)] = Emptiness::nothing;
  return false;
}

// Only intersections, complements and multiples need a search: what is around them, as blanks that
// may be many, does not.
bool RegexSet::is_nothing(RegexId regex) {
  if (regex == kNothing) return true;
  if (node(regex).nullable || !node(regex).has_boolean) return false;
  const Emptiness known = emptiness_[static_cast<size_t>(regex)];
  if (known != Emptiness::unknown) return known == Emptiness::nothing;
  bool result = false;
  const Kind kind = node(regex).kind;
  if (kind == Kind::concat) {
    RegexId tail = regex;
    while (!result && node(tail).kind == Kind::concat && node(tail).has_boolean) {
      result = is_nothing(RegexId{node(tail).a});
      tail = RegexId{node(tail).b};
    }
    result = result || is_nothing(tail);
  } else if (kind == Kind::repeat) {
    result = is_nothing(RegexId{node(regex).a});
  } else if (kind == Kind::alternation) {
    const std::vector<RegexId> options = children_of(regex);
    result = std::all_of(options.begin(), options.end(),
                         [&](RegexId option) { return is_nothing(option); });
  } else {
    return !search_for_match(regex);
  }
  emptiness_[static_cast<size_t>(regex)] = result ? Emptiness::nothing : Emptiness::something;
  return result;
}

bool RegexSet::matches(RegexId regex, std::string_view text) {
  for (const char byte : text) {
    regex = derivative(regex, static_cast<uint8_t>(byte));
    if (regex == kNothing) return false;
  }
  return is_nullable(regex);
}

bool RegexSet::overlap(RegexId first, RegexId second) {
  return !is_nothing(intersection(first, second));
}

bool RegexSet::contains(RegexId whole, RegexId part) {
  return is_nothing(intersection(part, complement(whole)));
}

}  // namespace paceline
