#include "grammar/pattern.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/pattern_syntax.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using NodeKind = PatternNode::Kind;

// What may follow: where nothing has been read yet, and elsewhere. They differ when `^` is to come.
struct PatternRest {
  RegexId at_begin{};
  RegexId later{};
};

// Translates from right to left: of each node and what may follow it, the expression of both. So
// `$` and look-ahead are conditions on what follows.
class PatternTranslator {
 public:
  PatternTranslator(RegexSet& regexes, TextForm form) : regexes_(regexes), form_(form) {}

  RegexId whole(const PatternNode& pattern) {
    return before(pattern, {RegexSet::kEmpty, RegexSet::kEmpty}).at_begin;
  }
  RegexId anywhere(const PatternNode& pattern);

 private:
  static bool is_plain(const PatternNode& node) { return !node.has_anchors && !node.has_looks; }

  enum class Edge : bool { begin, end };
  static PatternNode with_short_edge(PatternNode pattern, Edge edge);

  RegexId characters(const CodePointRanges& ranges);
  RegexId without_anchors(const PatternNode& node);
  RegexId make_without_anchors(const PatternNode& node);
  PatternRest before(const PatternNode& node, PatternRest rest);
  PatternRest plain_before(const PatternNode& node, PatternRest rest);
  PatternRest choice_before(const PatternNode& choice, PatternRest rest);
  PatternRest look_before(const PatternNode& look, PatternRest rest);
  PatternRest repeat_before(const PatternNode& repeat, PatternRest rest);
  PatternRest anchored_star_before(const PatternNode& body, PatternRest rest);
  std::optional<PatternRest> guarded_repeat_before(const PatternNode& repeat, PatternRest rest);
  PatternRest either(PatternRest a, PatternRest b) {
    return {regexes_.alternation(a.at_begin, b.at_begin), regexes_.alternation(a.later, b.later)};
  }

  RegexSet& regexes_;
  TextForm form_;
  std::map<CodePointRanges, RegexId> characters_;
  std::unordered_map<const PatternNode*, RegexId> without_anchors_;
  PatternNode short_;
  size_t num_ranges_ = 0;
  size_t num_steps_ = 0;
};

// Repetitions at an edge of a plain pattern beside which any text may stand need not go on: where
// [a-z]{1,255} is found, so is [a-z].
PatternNode PatternTranslator::with_short_edge(PatternNode pattern, Edge edge) {
  switch (pattern.kind) {
    case NodeKind::repeat:
      pattern.max = pattern.min;
      if (pattern.min == 1) return with_short_edge(std::move(pattern.children[0]), edge);
      return pattern.min == 0 ? PatternNode{} : pattern;
    case NodeKind::choice:
      for (PatternNode& option : pattern.children) {
        option = with_short_edge(std::move(option), edge);
      }
      return pattern;
    case NodeKind::sequence: {
      std::vector<PatternNode>& parts = pattern.children;
      const auto vanishes = [edge](PatternNode& part) {
        part = with_short_edge(std::move(part), edge);
        return part.kind == NodeKind::sequence && part.children.empty();
      };
      if (edge == Edge::end) {
        while (!parts.empty() && vanishes(parts.back())) parts.pop_back();
        return pattern;
      }
      const auto first = std::find_if_not(parts.begin(), parts.end(), vanishes);
      parts.erase(parts.begin(), first);
      return pattern;
    }
    default:
      return pattern;
  }
}

RegexId PatternTranslator::anywhere(const PatternNode& pattern) {
  const RegexId character = any_character(regexes_, form_);
  const RegexId all = regexes_.star(character);
  if (is_plain(pattern)) {
    short_ = with_short_edge(with_short_edge(pattern, Edge::begin), Edge::end);
    const RegexId part = without_anchors(short_);
    return regexes_.is_nullable(part) ? all : regexes_.concat(std::array{all, part, all});
  }
  const PatternRest found = before(pattern, {all, all});
  if (found.at_begin == all || found.later == RegexSet::kNothing) return found.at_begin;
  if (found.at_begin == found.later) return regexes_.concat(all, found.later);
  return regexes_.alternation(found.at_begin,
                              regexes_.concat(std::array{character, all, found.later}));
}

RegexId PatternTranslator::characters(const CodePointRanges& ranges) {
  constexpr size_t kMaxRanges = 200'000;
  const auto [entry, is_new] = characters_.try_emplace(ranges, RegexSet::kNothing);
  if (is_new) {
    num_ranges_ += ranges.size();
    if (num_ranges_ > kMaxRanges) {
      throw Error(ErrorCode::exhausted, "a pattern has more than 200000 ranges of characters");
    }
    entry->second = one_of_characters(regexes_, ranges, form_);
  }
  return entry->second;
}

// The texts that `node` matches where neither `^` nor `$` does. It must not have look-ahead.
RegexId PatternTranslator::without_anchors(const PatternNode& node) {
  const auto [entry, is_new] = without_anchors_.try_emplace(&node, RegexSet::kNothing);
  if (is_new) {
    const RegexId made = make_without_anchors(node);
    without_anchors_[&node] = made;
    return made;
  }
  return entry->second;
}

RegexId PatternTranslator::make_without_anchors(const PatternNode& node) {
  switch (node.kind) {
    case NodeKind::characters:
      return characters(node.characters);
    case NodeKind::repeat:
      return regexes_.repeat(without_anchors(node.children[0]), node.min, node.max);
    case NodeKind::sequence:
    case NodeKind::choice: {
      std::vector<RegexId> parts;
      for (const PatternNode& child : node.children) parts.push_back(without_anchors(child));
      return node.kind == NodeKind::sequence ? regexes_.concat(parts) : regexes_.alternation(parts);
    }
    default:
      return RegexSet::kNothing;
  }
}

PatternRest PatternTranslator::before(const PatternNode& node, PatternRest rest) {
  constexpr size_t kMaxSteps = 200'000;
  if (++num_steps_ > kMaxSteps) {
    throw Error(ErrorCode::exhausted, "a pattern has too many nested repetitions with anchors");
  }
  if (is_plain(node)) return plain_before(node, rest);
  switch (node.kind) {
    case NodeKind::begin:
      return {rest.at_begin, RegexSet::kNothing};
    case NodeKind::end: {
      const auto ended = [&](RegexId text) {
        return regexes_.is_nullable(text) ? RegexSet::kEmpty : RegexSet::kNothing;
      };
      return {ended(rest.at_begin), ended(rest.later)};
    }
    case NodeKind::sequence:
      for (size_t i = node.children.size(); i-- > 0;) rest = before(node.children[i], rest);
      return rest;
    case NodeKind::choice:
      return choice_before(node, rest);
    case NodeKind::repeat:
      return repeat_before(node, rest);
    default:
      return look_before(node, rest);
  }
}

PatternRest PatternTranslator::plain_before(const PatternNode& node, PatternRest rest) {
  const RegexId part = without_anchors(node);
  const RegexId later = regexes_.concat(part, rest.later);
  if (rest.at_begin == rest.later) return {later, later};
  if (!regexes_.is_nullable(part)) return {later, later};
  const RegexId reading = regexes_.intersection(part, regexes_.complement(RegexSet::kEmpty));
  return {regexes_.alternation(rest.at_begin, regexes_.concat(reading, rest.later)), later};
}

PatternRest PatternTranslator::choice_before(const PatternNode& choice, PatternRest rest) {
  std::vector<RegexId> at_begin;
  std::vector<RegexId> later;
  for (const PatternNode& option : choice.children) {
    const PatternRest one = before(option, rest);
    at_begin.push_back(one.at_begin);
    later.push_back(one.later);
  }
  return {regexes_.alternation(at_begin), regexes_.alternation(later)};
}

PatternRest PatternTranslator::look_before(const PatternNode& look, PatternRest rest) {
  PatternRest ahead = before(look.children[0], {RegexSet::kAll, RegexSet::kAll});
  if (look.kind == NodeKind::look_not) {
    ahead = {regexes_.complement(ahead.at_begin), regexes_.complement(ahead.later)};
  }
  return {regexes_.intersection(ahead.at_begin, rest.at_begin),
          regexes_.intersection(ahead.later, rest.later)};
}

PatternRest PatternTranslator::repeat_before(const PatternNode& repeat, PatternRest rest) {
  constexpr uint32_t kMaxCopies = 16;
  const PatternNode& body = repeat.children[0];
  // Conditions alone are the same each time.
  if (!body.reads) return repeat.min == 0 ? rest : before(body, rest);
  if (body.has_looks) {
    if (const auto guarded = guarded_repeat_before(repeat, rest)) return *guarded;
  }
  const bool is_bounded = repeat.max != kUnbounded;
  if ((is_bounded ? repeat.max : repeat.min) > kMaxCopies || (body.has_looks && !is_bounded)) {
    throw Error(ErrorCode::unsupported,
                body.has_looks
                    ? "a pattern has look-ahead inside of a repetition; only look-ahead before a "
                      "single character is supported there, as in ^((?!x).)*$"
                    : "a pattern has an anchor inside of a repetition with a count above 16");
  }
  PatternRest found = is_bounded ? rest : anchored_star_before(body, rest);
  for (uint32_t count = is_bounded ? repeat.max : repeat.min; count > 0; --count) {
    found = before(body, found);
    if (count > repeat.min) found = either(rest, found);
  }
  return found;
}

// Only the first time that reads something may be at the begin of the text, and only the last one
// at its end: the times between them are without anchors.
PatternRest PatternTranslator::anchored_star_before(const PatternNode& body, PatternRest rest) {
  const PatternRest last = either(rest, before(body, rest));
  const RegexId between = regexes_.star(without_anchors(body));
  return either(rest, before(body, {last.at_begin, regexes_.concat(between, last.later)}));
}

// ((?!x).)* and the like: look-ahead, then one character. If no text can be split in two ways into
// such characters and what follows them, then the conditions hold at each of the characters exactly
// when none of them is where a condition fails. Nothing when the repetition isn't of this kind.
std::optional<PatternRest> PatternTranslator::guarded_repeat_before(const PatternNode& repeat,
                                                                    PatternRest rest) {
  const PatternNode& body = repeat.children[0];
  if (body.kind != NodeKind::sequence || rest.at_begin != rest.later) return std::nullopt;
  PatternRest condition{RegexSet::kAll, RegexSet::kAll};
  for (size_t i = body.children.size() - 1; i-- > 0;) {
    const NodeKind kind = body.children[i].kind;
    if (kind != NodeKind::look_ahead && kind != NodeKind::look_not) return std::nullopt;
    condition = look_before(body.children[i], condition);
  }
  if (body.children.back().kind != NodeKind::characters) return std::nullopt;
  if (condition.at_begin != condition.later) return std::nullopt;
  const RegexId character = without_anchors(body.children.back());
  const RegexId follows = rest.later;
  const RegexId read = regexes_.concat(regexes_.plus(character), follows);
  if (repeat.min <= 1 && regexes_.contains(follows, read)) {
    // What follows matches the optional characters too, so only the required one is read here.
    if (repeat.min == 0) return rest;
    const RegexId once =
        regexes_.intersection(condition.later, regexes_.concat(character, follows));
    return PatternRest{once, once};
  }
  if (regexes_.overlap(read, follows)) return std::nullopt;
  const RegexId fails = regexes_.intersection(regexes_.complement(condition.later), read);
  const RegexId holds = regexes_.intersection(
      regexes_.concat(regexes_.repeat(character, repeat.min, repeat.max), follows),
      regexes_.complement(regexes_.concat(regexes_.star(character), fails)));
  return PatternRest{holds, holds};
}

}  // namespace

RegexId parse_pattern(RegexSet& regexes, std::string_view pattern, TextForm form,
                      PatternMatch match) {
  const PatternNode tree = parse_pattern_syntax(pattern);
  PatternTranslator translator(regexes, form);
  return match == PatternMatch::whole ? translator.whole(tree) : translator.anywhere(tree);
}

}  // namespace paceline
