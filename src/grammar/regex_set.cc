#include "grammar/regex_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr uint16_t kMaxRegexDepth = 1000;
constexpr int kMaxCutDepth = 200;

uint32_t saturating_add(uint32_t a, uint32_t b) { return a > kUnbounded - b ? kUnbounded : a + b; }

uint32_t saturating_multiply(uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t{a} * b;
  return product > kUnbounded ? kUnbounded : static_cast<uint32_t>(product);
}

size_t mixed(size_t hash, size_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9ULL;
}

}  // namespace

void RegexSet::over_limit(std::string_view what, size_t limit) {
  throw Error(ErrorCode::exhausted,
              fmt::format("the constraint is too complex: more than {} {}", limit, what));
}

RegexSet::RegexSet(const RegexLimits& limits) : limits_(limits), index_(1024, 0) {
  intern({.kind = Kind::nothing});
  intern({.kind = Kind::empty, .nullable = true});
  intern({.kind = Kind::complement, .nullable = true});
}

std::vector<RegexId> RegexSet::children_of(RegexId id) const {
  const Node& many = node(id);
  const auto begin = children_.begin() + many.a;
  return {begin, begin + many.b};
}

bool RegexSet::is_same(const Node& found, const Node& node,
                       std::span<const RegexId> children) const {
  if (found.kind != node.kind || found.c != node.c) return false;
  if (node.kind != Kind::alternation && node.kind != Kind::intersection) {
    return found.a == node.a && found.b == node.b;
  }
  return found.b == children.size() &&
         std::equal(children.begin(), children.end(), children_.begin() + found.a);
}

size_t RegexSet::hash_of(const Node& node, std::span<const RegexId> children) {
  size_t hash = mixed(static_cast<size_t>(node.kind), node.c);
  if (node.kind != Kind::alternation && node.kind != Kind::intersection) {
    return mixed(mixed(hash, node.a), node.b);
  }
  for (const RegexId child : children) hash = mixed(hash, static_cast<size_t>(child));
  return hash;
}

// The node with its flags, once. Of alternations and intersections `children` are the parts.
RegexId RegexSet::intern(Node node, std::span<const RegexId> children) {
  const bool is_many = node.kind == Kind::alternation || node.kind == Kind::intersection;
  const size_t hash = hash_of(node, children);
  size_t slot = hash & (index_.size() - 1);
  while (index_[slot] != 0) {
    const auto id = static_cast<RegexId>(index_[slot] - 1);
    if (is_same(this->node(id), node, children)) return id;
    slot = (slot + 1) & (index_.size() - 1);
  }
  // A child takes a fifth of a node's memory.
  if (nodes_.size() + children_.size() / 5 >= limits_.max_nodes) {
    over_limit("nodes of regular expressions", limits_.max_nodes);
  }
  if (node.depth > kMaxRegexDepth) {
    over_limit("levels of nested regular expressions", kMaxRegexDepth);
  }
  if (is_many) {
    node.a = static_cast<uint32_t>(children_.size());
    node.b = static_cast<uint32_t>(children.size());
    children_.insert(children_.end(), children.begin(), children.end());
  }
  nodes_.push_back(node);
  emptiness_.push_back(Emptiness::unknown);
  hashes_.push_back(hash);
  index_[slot] = static_cast<uint32_t>(nodes_.size());
  if (nodes_.size() * 2 > index_.size()) grow_index();
  return static_cast<RegexId>(nodes_.size() - 1);
}

void RegexSet::grow_index() {
  index_.assign(index_.size() * 4, 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    size_t slot = hashes_[i] & (index_.size() - 1);
    while (index_[slot] != 0) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = static_cast<uint32_t>(i + 1);
  }
}

// Splits each class that lies partly inside `set`. The part inside gets a new number.
void RegexSet::split_classes(const ByteSet& set) {
  std::array<int, 256> inside;
  inside.fill(-1);
  std::array<bool, 256> has_outside{};
  for (size_t byte = 0; byte < 256; ++byte) {
    if (!set[byte]) has_outside[class_of_[byte]] = true;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const uint8_t old = class_of_[byte];
    if (!set[byte] || !has_outside[old]) continue;
    if (inside[old] < 0) inside[old] = static_cast<int>(num_classes_++);
    class_of_[byte] = static_cast<uint8_t>(inside[old]);
  }
  for (size_t byte = 256; byte-- > 0;) byte_of_class_[class_of_[byte]] = static_cast<uint8_t>(byte);
}

RegexId RegexSet::bytes_node(const ByteSet& set) {
  if (set.none()) return kNothing;
  const auto [entry, is_new] = set_index_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(set);
  return intern({.kind = Kind::bytes, .min_length = 1, .a = entry->second});
}

RegexId RegexSet::bytes(const ByteSet& set) {
  if (!set_index_.contains(set)) split_classes(set);
  return bytes_node(set);
}

RegexId RegexSet::byte(uint8_t value) {
  ByteSet set;
  set[value] = true;
  return bytes(set);
}

RegexId RegexSet::literal(std::string_view text) {
  RegexId tail = kEmpty;
  for (size_t i = text.size(); i-- > 0;) tail = concat(byte(static_cast<uint8_t>(text[i])), tail);
  return tail;
}

RegexId RegexSet::concat(RegexId first, RegexId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEmpty) return second;
  if (second == kEmpty) return first;
  if (first == kAll && second == kAll) return kAll;
  const Node& a = node(first);
  const Node& b = node(second);
  return intern({.kind = Kind::concat,
                 .nullable = a.nullable && b.nullable,
                 .has_boolean = a.has_boolean || b.has_boolean,
                 .has_counts = a.has_counts || b.has_counts,
                 .depth = static_cast<uint16_t>(std::max<int>(a.depth + 1, b.depth)),
                 .min_length = saturating_add(a.min_length, b.min_length),
                 .a = static_cast<uint32_t>(first),
                 .b = static_cast<uint32_t>(second)});
}

RegexId RegexSet::concat(std::span<const RegexId> parts) {
  RegexId tail = kEmpty;
  for (size_t i = parts.size(); i-- > 0;) tail = concat(parts[i], tail);
  return tail;
}

void RegexSet::flatten(Kind kind, std::span<const RegexId> parts, std::vector<RegexId>& out) const {
  for (const RegexId part : parts) {
    const Node& one = node(part);
    if (one.kind == kind) {
      out.insert(out.end(), children_.begin() + one.a, children_.begin() + one.a + one.b);
    } else {
      out.push_back(part);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() > limits_.max_alternatives) {
    over_limit("alternatives", limits_.max_alternatives);
  }
}

RegexId RegexSet::many(Kind kind, std::span<const RegexId> children, uint32_t part) {
  const bool is_alternation = kind == Kind::alternation;
  Node made{.kind = kind,
            .nullable = !is_alternation,
            .has_boolean = !is_alternation,
            .min_length = is_alternation ? kUnbounded : 0,
            .c = part};
  for (const RegexId child : children) {
    const Node& one = node(child);
    made.has_boolean |= one.has_boolean;
    made.has_counts |= one.has_counts;
    made.depth = std::max<uint16_t>(made.depth, one.depth + 1);
    if (is_alternation) {
      made.nullable |= one.nullable;
      made.min_length = std::min(made.min_length, one.min_length);
    } else {
      made.nullable &= one.nullable;
      made.min_length = std::max(made.min_length, one.min_length);
    }
  }
  return intern(made, children);
}

// Joins single bytes, and concatenations of a byte and the same tail.
void RegexSet::merge_bytes(std::vector<RegexId>& options) {
  std::vector<std::pair<RegexId, RegexId>> heads;  // tail, option
  std::vector<RegexId> others;
  for (const RegexId option : options) {
    const Node& one = node(option);
    if (one.kind == Kind::bytes) {
      heads.emplace_back(kEmpty, option);
    } else if (one.kind == Kind::concat && node(RegexId{one.a}).kind == Kind::bytes) {
      heads.emplace_back(RegexId{one.b}, option);
    } else {
      others.push_back(option);
    }
  }
  if (heads.size() < 2) return;
  std::sort(heads.begin(), heads.end());
  for (size_t i = 0, end = 0; i < heads.size(); i = end) {
    const RegexId tail = heads[i].first;
    while (end < heads.size() && heads[end].first == tail) ++end;
    if (end == i + 1) {
      others.push_back(heads[i].second);
      continue;
    }
    ByteSet joined;
    for (size_t k = i; k < end; ++k) {
      const Node& one = node(heads[k].second);
      joined |= sets_[one.kind == Kind::bytes ? one.a : node(RegexId{one.a}).a];
    }
    others.push_back(concat(bytes_node(joined), tail));
  }
  std::sort(others.begin(), others.end());
  options = std::move(others);
}

RegexId RegexSet::alternation(std::span<const RegexId> options) {
  std::vector<RegexId> parts;
  flatten(Kind::alternation, options, parts);
  std::erase(parts, kNothing);
  if (std::binary_search(parts.begin(), parts.end(), kAll)) return kAll;
  merge_bytes(parts);
  const bool has_empty = std::binary_search(parts.begin(), parts.end(), kEmpty);
  if (has_empty && std::any_of(parts.begin(), parts.end(), [&](RegexId part) {
        return part != kEmpty && node(part).nullable;
      })) {
    std::erase(parts, kEmpty);
  }
  if (parts.empty()) return kNothing;
  if (parts.size() == 1) return parts[0];
  for (const RegexId part : parts) {
    const Node& one = node(part);
    if (one.kind == Kind::complement &&
        std::binary_search(parts.begin(), parts.end(), RegexId{one.a})) {
      return kAll;
    }
  }
  return many(Kind::alternation, parts);
}

RegexId RegexSet::alternation(RegexId first, RegexId second) {
  return alternation(std::array{first, second});
}

RegexId RegexSet::intersection(std::span<const RegexId> given) { return intersection_of(given, 0); }

RegexId RegexSet::with_length(RegexId text, RegexId part, uint32_t min, uint32_t max) {
  return intersection_of(std::array{text, repeat(part, min, max)}, static_cast<uint32_t>(part));
}

RegexId RegexSet::intersection_of(std::span<const RegexId> given, uint32_t part) {
  if (given.size() == 1) return given[0];
  std::vector<RegexId> parts;
  flatten(Kind::intersection, given, parts);
  std::erase(parts, kAll);
  // Any length will do: the others are a row of parts.
  if (part != 0 && parts.size() > 1) std::erase(parts, repeat(RegexId{part}, 0, kUnbounded));
  if (parts.empty()) return kAll;
  if (parts[0] == kNothing) return kNothing;
  if (parts[0] == kEmpty) {
    const bool all_nullable =
        std::all_of(parts.begin(), parts.end(), [&](RegexId id) { return node(id).nullable; });
    return all_nullable ? kEmpty : kNothing;
  }
  if (parts.size() == 1) return parts[0];
  ByteSet common;
  common.set();
  size_t num_bytes = 0;
  for (const RegexId id : parts) {
    const Node& one = node(id);
    if (one.kind == Kind::complement &&
        std::binary_search(parts.begin(), parts.end(), RegexId{one.a})) {
      return kNothing;
    }
    if (one.kind != Kind::bytes) continue;
    common &= sets_[one.a];
    ++num_bytes;
  }
  if (num_bytes > 1) {
    std::erase_if(parts, [&](RegexId id) { return node(id).kind == Kind::bytes; });
    parts.push_back(bytes_node(common));
    return intersection(parts);
  }
  return many(Kind::intersection, parts, part);
}

RegexId RegexSet::intersection(RegexId first, RegexId second) {
  return intersection(std::array{first, second});
}

RegexId RegexSet::complement(RegexId of) {
  const Node& inner = node(of);
  if (inner.kind == Kind::complement) return RegexId{inner.a};
  return intern({.kind = Kind::complement,
                 .nullable = !inner.nullable,
                 .has_boolean = true,
                 .has_counts = inner.has_counts,
                 .depth = static_cast<uint16_t>(inner.depth + 1),
                 .a = static_cast<uint32_t>(of)});
}

RegexId RegexSet::repeat(RegexId of, uint32_t min, uint32_t max) {
  if (min > max) return kNothing;
  if (max == 0 || of == kEmpty) return kEmpty;
  if (of == kNothing) return min == 0 ? kEmpty : kNothing;
  const Node& inner = node(of);
  if (inner.nullable) min = 0;
  if (min == 1 && max == 1) return of;
  if (max == 1 && inner.nullable) return of;
  if (of == kAll) return kAll;
  if (min == 0 && inner.kind == Kind::repeat && inner.b <= 1) {  // (r{0,m}){0,n} is r{0,m n}
    if (inner.b == 0 || max == kUnbounded || max == 1) {
      return repeat(RegexId{inner.a}, 0, saturating_multiply(inner.c, max));
    }
  }
  return intern({.kind = Kind::repeat,
                 .nullable = min == 0,
                 .has_boolean = inner.has_boolean,
                 .has_counts = inner.has_counts || min > 1 || (max != 1 && max != kUnbounded),
                 .depth = static_cast<uint16_t>(inner.depth + 1),
                 .min_length = saturating_multiply(inner.min_length, min),
                 .a = static_cast<uint32_t>(of),
                 .b = min,
                 .c = max});
}

RegexId RegexSet::multiple_of(uint32_t divisor, uint32_t scale) {
  PL_CHECK(divisor >= 1 && divisor <= (1U << 31) && scale <= 18,
           fmt::format("the divisor {} / 10^{}", divisor, scale));
  for (const char byte : std::string_view("-.0123456789")) this->byte(static_cast<uint8_t>(byte));
  const Multiple multiple{divisor, scale};
  auto found = std::find(multiples_.begin(), multiples_.end(), multiple);
  if (found == multiples_.end()) found = multiples_.insert(found, multiple);
  return multiple_node(static_cast<uint32_t>(found - multiples_.begin()), 0, 0);
}

// `phase`: 0 before the point, then 1 + the digits behind it, at most 1 + scale.
RegexId RegexSet::multiple_node(uint32_t index, uint32_t remainder, uint32_t phase) {
  const auto [divisor, scale] = multiples_[index];
  uint64_t scaled = remainder;
  for (uint32_t digit = phase == 0 ? 0 : phase - 1; digit < scale; ++digit) {
    scaled = scaled * 10 % divisor;
  }
  return intern({.kind = Kind::multiple,
                 .nullable = scaled == 0,
                 .has_boolean = true,
                 .a = index,
                 .b = remainder,
                 .c = phase});
}

bool RegexSet::is_nullable(RegexId regex) const { return node(regex).nullable; }

// Upper bound of the bytes that any beginning of a text needs to become a text that `regex`
// matches. `regex` holds neither intersection nor complement.
uint32_t RegexSet::longest_way_to_match(RegexId regex, int depth) {
  if (depth > kMaxCutDepth) return kUnbounded;
  if (const auto found = longest_ways_.find(regex); found != longest_ways_.end()) {
    return found->second;
  }
  uint32_t longest = 0;
  RegexId tail = regex;
  while (node(tail).kind == Kind::concat) {
    const RegexId second{node(tail).b};
    const uint32_t in_first = longest_way_to_match(RegexId{node(tail).a}, depth + 1);
    longest = std::max(longest, saturating_add(in_first, node(second).min_length));
    tail = second;
  }
  const Node one = node(tail);
  if (one.kind == Kind::alternation) {
    for (uint32_t i = 0; i < one.b; ++i) {
      longest = std::max(longest, longest_way_to_match(children_[one.a + i], depth + 1));
    }
  } else if (one.kind == Kind::repeat) {
    const uint32_t others =
        saturating_multiply(node(RegexId{one.a}).min_length, one.b == 0 ? 0 : one.b - 1);
    const uint32_t in_one = longest_way_to_match(RegexId{one.a}, depth + 1);
    longest = std::max(longest, saturating_add(in_one, others));
  } else {
    longest = std::max(longest, one.min_length);
  }
  longest_ways_.emplace(regex, longest);
  return longest;
}

// A text and its length. Where more parts may come than the next bytes are and any text of these
// needs behind them, the length doesn't matter yet.
RegexId RegexSet::cut_length(RegexId regex, uint32_t horizon, int depth) {
  const Node one = node(regex);
  if (one.c == 0 || one.b != 2) return regex;
  for (uint32_t i = 0; i < 2; ++i) {
    const Node length = node(children_[one.a + i]);
    const RegexId text = children_[one.a + 1 - i];
    if (length.kind != Kind::repeat || length.a != one.c || length.b != 0) continue;
    if (node(text).has_boolean) continue;
    const uint32_t needed = saturating_add(horizon, longest_way_to_match(text, depth));
    if (length.c >= needed) return cut(text, horizon, depth + 1);
  }
  return regex;
}

// Complements and other intersections stay: whether they match anything may depend on counts beyond
// the horizon.
RegexId RegexSet::cut(RegexId regex, uint32_t horizon, int depth) {
  const Node one = node(regex);
  if (!one.has_counts || depth > kMaxCutDepth) return regex;
  switch (one.kind) {
    case Kind::intersection:
      return cut_length(regex, horizon, depth);
    case Kind::concat: {
      const uint32_t used = node(RegexId{one.a}).min_length;
      const RegexId second =
          used >= horizon ? RegexId{one.b} : cut(RegexId{one.b}, horizon - used, depth + 1);
      return concat(cut(RegexId{one.a}, horizon, depth + 1), second);
    }
    case Kind::alternation: {
      std::vector<RegexId> parts = children_of(regex);
      for (RegexId& part : parts) part = cut(part, horizon, depth + 1);
      return alternation(parts);
    }
    case Kind::repeat: {
      const RegexId of{one.a};
      const uint32_t unreachable = horizon / std::max(node(of).min_length, 1U) + 1;
      return repeat(cut(of, horizon, depth + 1), std::min(one.b, unreachable),
                    one.c >= unreachable ? kUnbounded : one.c);
    }
    default:
      return regex;
  }
}

RegexId RegexSet::cut_counts(RegexId regex, uint32_t horizon) { return cut(regex, horizon, 0); }

// Of any expression but a concatenation.
Hash128 RegexSet::fingerprint_of_one(RegexId regex, const SipKey& key) {
  const Node one = node(regex);
  std::vector<uint64_t> words{static_cast<uint64_t>(one.kind)};
  const auto add = [&](const Hash128& hash) { words.insert(words.end(), {hash.low, hash.high}); };
  switch (one.kind) {
    case Kind::bytes:
      words.resize(5);
      for (size_t byte = 0; byte < 256; ++byte) {
        words[1 + byte / 64] |= uint64_t{sets_[one.a][byte]} << (byte % 64);
      }
      break;
    case Kind::alternation:
    case Kind::intersection: {
      std::vector<std::pair<uint64_t, uint64_t>> parts;  // in an order that all sets share
      for (const RegexId part : children_of(regex)) {
        const Hash128 hash = fingerprint(part, key);
        parts.emplace_back(hash.low, hash.high);
      }
      std::sort(parts.begin(), parts.end());
      for (const auto& [low, high] : parts) add({low, high});
      break;
    }
    case Kind::complement:
      add(fingerprint(RegexId{one.a}, key));
      break;
    case Kind::repeat:
      add(fingerprint(RegexId{one.a}, key));
      words.insert(words.end(), {one.b, one.c});
      break;
    case Kind::multiple:
      words.insert(words.end(), {multiples_[one.a].divisor, multiples_[one.a].scale, one.b, one.c});
      break;
    default:
      break;
  }
  return siphash128(key, words);
}

Hash128 RegexSet::fingerprint(RegexId regex, const SipKey& key) {
  std::vector<RegexId> chain;  // concatenations, each the tail of the last
  while (node(regex).kind == Kind::concat && !fingerprints_.contains(regex)) {
    chain.push_back(regex);
    regex = RegexId{node(regex).b};
  }
  auto known = fingerprints_.find(regex);
  if (known == fingerprints_.end()) {
    known = fingerprints_.emplace(regex, fingerprint_of_one(regex, key)).first;
  }
  Hash128 hash = known->second;
  while (!chain.empty()) {
    const Hash128 first = fingerprint(RegexId{node(chain.back()).a}, key);
    hash = siphash128(key, std::array{static_cast<uint64_t>(Kind::concat), first.low, first.high,
                                      hash.low, hash.high});
    fingerprints_.emplace(chain.back(), hash);
    chain.pop_back();
  }
  return hash;
}

size_t RegexSet::memory_bytes() const {
  constexpr size_t kMapEntry = 40;
  return nodes_.capacity() * sizeof(Node) + children_.capacity() * sizeof(RegexId) +
         sets_.capacity() * sizeof(ByteSet) + emptiness_.capacity() +
         hashes_.capacity() * sizeof(size_t) + index_.capacity() * sizeof(uint32_t) +
         derivatives_.memory_bytes() +
         (set_index_.size() + fingerprints_.size() + longest_ways_.size()) * kMapEntry;
}

}  // namespace paceline
