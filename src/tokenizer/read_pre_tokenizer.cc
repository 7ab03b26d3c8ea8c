#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "tokenizer/character_splits.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

using Steps = std::vector<std::unique_ptr<PreTokenizer>>;

SplitBehavior read_behavior(const DocumentCursor& field) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {
      {{"Removed", SplitBehavior::removed},
       {"Isolated", SplitBehavior::isolated},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next},
       {"Contiguous", SplitBehavior::contiguous}}};
  for (const auto& [name, behavior] : kBehaviors) {
    if (field.string() == name) return behavior;
  }
  field.mismatch("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

void add_split(const DocumentCursor& field, Steps& steps) {
  const SplitBehavior behavior = read_behavior(field.at("behavior"));
  const DocumentCursor pattern = field.at("pattern");
  const auto regex = pattern.find("Regex");
  if (regex && behavior == SplitBehavior::isolated) {
    steps.push_back(
        std::make_unique<IsolatedSplit>(make_split_pattern(regex->string(), regex->name())));
    return;
  }
  const auto matches = field.boolean_or("invert", false) ? PatternSplit::Matches::inverted
                                                         : PatternSplit::Matches::as_found;
  steps.push_back(std::make_unique<PatternSplit>(read_pattern(pattern, "pre_tokenizer Split"),
                                                 behavior, matches));
}

void add_byte_level(const DocumentCursor& field, std::optional<bool> prefix_space, Steps& steps) {
  const bool of_file = field.at("add_prefix_space").boolean();
  if (prefix_space.value_or(of_file)) steps.push_back(std::make_unique<PrefixSpace>());
  if (!field.boolean_or("use_regex", true)) return;
  steps.push_back(std::make_unique<IsolatedSplit>(make_split_pattern(kGpt2Pattern, field.name())));
}

MetaspaceSplit::Prepend read_prepend(const DocumentCursor& field) {
  using Prepend = MetaspaceSplit::Prepend;
  Prepend prepend = Prepend::always;
  if (const auto scheme = field.find("prepend_scheme")) {
    const std::string_view name = scheme->string();
    if (name == "first") {
      prepend = Prepend::first;
    } else if (name == "never") {
      prepend = Prepend::never;
    } else if (name != "always") {
      scheme->mismatch("always, first or never");
    }
  }
  // Older files, without prepend_scheme.
  if (field.boolean_or("add_prefix_space", true)) return prepend;
  if (field.find("prepend_scheme") && prepend != Prepend::never) {
    field.at("add_prefix_space").fail("false contradicts prepend_scheme");
  }
  return Prepend::never;
}

void add_metaspace(const DocumentCursor& field, Steps& steps) {
  steps.push_back(std::make_unique<MetaspaceSplit>(
      MetaspaceSplit::Options{.replacement = std::string(read_character(field.at("replacement"))),
                              .prepend = read_prepend(field),
                              .split = field.boolean_or("split", true)}));
}

void add_one(const DocumentCursor& field, std::optional<bool> prefix_space, Steps& steps) {
  const auto add_class = [&](uint16_t classes, SplitBehavior behavior) {
    steps.push_back(std::make_unique<ClassSplit>(classes, behavior));
  };
  const std::string_view type = field.at("type").string();
  if (type == "Split") {
    add_split(field, steps);
  } else if (type == "ByteLevel") {
    add_byte_level(field, prefix_space, steps);
  } else if (type == "Metaspace") {
    add_metaspace(field, steps);
  } else if (type == "Digits") {
    const bool individual = field.boolean_or("individual_digits", false);
    add_class(kDigit, individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    const auto behavior = field.find("behavior");
    add_class(kPunctuationMark, behavior ? read_behavior(*behavior) : SplitBehavior::isolated);
  } else if (type == "Whitespace") {
    steps.push_back(std::make_unique<WordSplit>());
  } else if (type == "WhitespaceSplit") {
    add_class(kSpace, SplitBehavior::removed);
  } else if (type == "BertPreTokenizer") {
    add_class(kSpace, SplitBehavior::removed);
    add_class(kPunctuationMark, SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    steps.push_back(
        std::make_unique<PatternSplit>(make_string_pattern(read_character(field.at("delimiter"))),
                                       SplitBehavior::removed, PatternSplit::Matches::as_found));
  } else {
    refuse_part(field, fmt::format("pre_tokenizer {}", type));
  }
}

}  // namespace

PieceSplitter read_pre_tokenizer(const std::optional<DocumentCursor>& field,
                                 std::optional<bool> prefix_space) {
  Steps steps;
  bool byte_level = false;
  if (field) {
    for (const DocumentCursor& part : parts_of(*field, "pretokenizers")) {
      // The last ByteLevel isn't applied: merging reads its pieces as bytes.
      if (byte_level) steps.push_back(std::make_unique<ByteLevelMapping>());
      add_one(part, prefix_space, steps);
      byte_level = part.at("type").string() == "ByteLevel";
    }
  }
  return {std::make_unique<PreTokenizerSequence>(std::move(steps)), byte_level};
}

}  // namespace paceline
