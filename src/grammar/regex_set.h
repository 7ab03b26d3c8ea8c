// RegexSet holds regular expressions over bytes, each once, and takes their derivatives.
//
// Matching is by Brzozowski's derivatives ("Derivatives of Regular Expressions", 1964; Owens, Reppy
// and Turon, "Regular-expression derivatives re-examined", 2009): the derivative of r by byte b is
// the expression of what may follow b. Intersection and complement cost no more than alternation,
// and a repetition with counts stays one node, whatever its counts.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/siphash.h"
#include "grammar/derivative_map.h"

namespace paceline {

using ByteSet = std::bitset<256>;

// An expression of one RegexSet. Equal ids: the same expression.
enum class RegexId : uint32_t {};

inline constexpr uint32_t kUnbounded = 0xFFFFFFFF;

// Beyond one of these the call throws Error exhausted, which names the limit.
struct RegexLimits {
  size_t max_nodes = 500'000;        // distinct expressions, derivatives included
  size_t max_alternatives = 20'000;  // of one alternation or intersection
  size_t max_search = 100'000;       // steps of one search for a match
  size_t max_searches = 500'000;     // and all of them since begin_searches()
};

// How bytes are written where they can't stand as they are. No spelling, nor a byte that stands for
// itself, begins another one. Digits, '-' and '.' stand for themselves.
struct ByteSpelling {
  std::array<std::string, 256> of_byte;          // empty: itself
  std::unordered_map<RegexId, RegexId> known{};  // of one RegexSet
};

class RegexSet {
 public:
  explicit RegexSet(const RegexLimits& limits = {});

  static constexpr RegexId kNothing{0};  // matches no text
  static constexpr RegexId kEmpty{1};    // matches the empty text
  static constexpr RegexId kAll{2};      // matches every text

  RegexId bytes(const ByteSet& set);
  RegexId byte(uint8_t value);
  RegexId literal(std::string_view text);
  RegexId concat(RegexId first, RegexId second);
  RegexId concat(std::span<const RegexId> parts);
  RegexId alternation(std::span<const RegexId> options);
  RegexId alternation(RegexId first, RegexId second);
  RegexId intersection(std::span<const RegexId> parts);
  RegexId intersection(RegexId first, RegexId second);
  // The texts in `text` that are a row of `min` to `max` parts. Every text in `text` must be a row
  // of parts, of whatever length: then cut_counts may leave out a length that doesn't matter yet.
  RegexId with_length(RegexId text, RegexId part, uint32_t min, uint32_t max);
  // Every text, of any bytes, that `of` doesn't match: intersect it with the texts that are meant.
  RegexId complement(RegexId of);
  // `max` may be kUnbounded; min > max matches nothing.
  RegexId repeat(RegexId of, uint32_t min, uint32_t max);
  RegexId optional(RegexId of) { return repeat(of, 0, 1); }
  RegexId star(RegexId of) { return repeat(of, 0, kUnbounded); }
  RegexId plus(RegexId of) { return repeat(of, 1, kUnbounded); }
  // Decimal numbers, "-" digits and perhaps "." digits, whose value is a multiple of
  // `divisor` / 10^`scale`; 1 <= divisor <= 2^31, scale <= 18. Intersect it with the numbers that
  // are meant: of other texts it may match any.
  RegexId multiple_of(uint32_t divisor, uint32_t scale);

  // The texts that `regex` matches, byte by byte as `spelling` says.
  RegexId spelt(RegexId regex, ByteSpelling& spelling);

  bool is_nullable(RegexId regex) const;  // matches the empty text
  RegexId derivative(RegexId regex, uint8_t byte);
  // No text that it matches begins with another byte; some of these may begin none either.
  const ByteSet& first_bytes(RegexId regex);
  // Whether it matches no text at all. Throws Error exhausted when the search is too long.
  bool is_nothing(RegexId regex);
  // Counts the steps of searches from 0 again: what was found before is paid for.
  void begin_searches() { search_steps_ = 0; }
  bool matches(RegexId regex, std::string_view text);
  // Whether both match some text in common.
  bool overlap(RegexId first, RegexId second);
  // Whether every text that `part` matches is matched by `whole`.
  bool contains(RegexId whole, RegexId part);

  // Equal to `regex` for the next `horizon` bytes: the same prefixes live and the same ones match.
  // Its counts are cut to what these bytes can reach, so that expressions which differ only beyond
  // become one.
  RegexId cut_counts(RegexId regex, uint32_t horizon);

  // Equal for equal expressions of any RegexSet, for one key.
  Hash128 fingerprint(RegexId regex, const SipKey& key);

  // Bytes that no expression tells apart have the same class. Grows as sets of bytes are added.
  size_t num_byte_classes() const { return num_classes_; }
  const std::array<uint8_t, 256>& byte_classes() const { return class_of_; }

  size_t num_nodes() const { return nodes_.size(); }
  size_t memory_bytes() const;

 private:
  enum class Kind : uint8_t {
    nothing,
    empty,
    bytes,
    concat,
    alternation,
    intersection,
    complement,
    repeat,
    multiple
  };
  struct Node {
    Kind kind = Kind::nothing;
    bool nullable = false;
    bool has_boolean =
        false;                // holds an intersection, complement or multiple: it may match nothing
    bool has_counts = false;  // holds a repetition that cut_counts may change
    uint16_t depth = 1;       // of nesting; the tail of a concatenation doesn't nest
    uint32_t min_length = 0;  // no shorter text matches
    // bytes: index of the set. concat: first, second. complement: of. repeat: of, min, max.
    // alternation and intersection: offset and count in children_; c of an intersection: the part
    // of with_length, or 0. multiple: index, remainder, phase.
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
  };
  struct Multiple {
    uint32_t divisor = 1;
    uint32_t scale = 0;
    bool operator==(const Multiple&) const = default;
  };
  enum class Emptiness : uint8_t { unknown, something, nothing };

  const Node& node(RegexId id) const { return nodes_[static_cast<size_t>(id)]; }
  std::vector<RegexId> children_of(RegexId id) const;
  [[noreturn]] static void over_limit(std::string_view what, size_t limit);
  static size_t hash_of(const Node& node, std::span<const RegexId> children);
  RegexId intern(Node node, std::span<const RegexId> children = {});
  bool is_same(const Node& found, const Node& node, std::span<const RegexId> children) const;
  void grow_index();
  RegexId bytes_node(const ByteSet& set);
  void flatten(Kind kind, std::span<const RegexId> parts, std::vector<RegexId>& out) const;
  void merge_bytes(std::vector<RegexId>& options);
  RegexId many(Kind kind, std::span<const RegexId> children, uint32_t part = 0);
  RegexId intersection_of(std::span<const RegexId> parts, uint32_t part);
  RegexId multiple_node(uint32_t index, uint32_t remainder, uint32_t phase);
  ByteSet compute_first_bytes(RegexId regex);
  RegexId compute_derivative(RegexId regex, uint8_t byte);
  RegexId derivative_of_concat(RegexId regex, uint8_t byte);
  RegexId derivative_of_many(RegexId regex, uint8_t byte);
  RegexId derivative_of_multiple(const Node& multiple, uint8_t byte);
  RegexId cut(RegexId regex, uint32_t horizon, int depth);
  RegexId cut_length(RegexId regex, uint32_t horizon, int depth);
  uint32_t longest_way_to_match(RegexId regex, int depth);
  void split_classes(const ByteSet& set);
  RegexId spelt_one(RegexId regex, ByteSpelling& spelling);
  RegexId spelt_bytes(const ByteSet& set, const ByteSpelling& spelling);
  bool search_for_match(RegexId regex);
  Hash128 fingerprint_of_one(RegexId regex, const SipKey& key);

  RegexLimits limits_;
  size_t num_derivatives_ = 0;  // asked for so far
  size_t search_steps_ = 0;
  std::vector<Node> nodes_;
  std::vector<RegexId> children_;
  std::vector<ByteSet> sets_;
  std::vector<Multiple> multiples_;
  std::vector<Emptiness> emptiness_;  // by node
  std::vector<size_t> hashes_;        // by node
  static constexpr uint32_t kNoSet = 0xFFFFFFFF;
  std::vector<uint32_t> first_bytes_;  // by node: of first_sets_, or kNoSet
  std::vector<ByteSet> first_sets_;
  std::unordered_map<ByteSet, uint32_t> first_index_;
  std::vector<uint32_t> index_;  // open addressing; node + 1, or 0
  std::unordered_map<ByteSet, uint32_t> set_index_;
  // By node and class of byte. A class that is split keeps its number for a part of its bytes, so
  // what is here stays true.
  DerivativeMap derivatives_;
  std::unordered_map<RegexId, Hash128> fingerprints_;
  std::unordered_map<RegexId, uint32_t> longest_ways_;
  std::array<uint8_t, 256> class_of_{};
  std::array<uint8_t, 256> byte_of_class_{};
  size_t num_classes_ = 1;
};

}  // namespace paceline
