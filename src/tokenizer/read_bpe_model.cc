#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>

#include "tokenizer/bpe_model.h"
#include "tokenizer/json_field.h"
#include "tokenizer/merge_reader.h"

namespace paceline {
namespace {

using simdjson::dom::element;

// An option that is absent or null has its default.
template <class T>
T option(const DomMembers& model, std::string_view key, T otherwise, FilePlace place) {
  const auto found = model.find(key);
  if (found == model.end() || found->second.is_null()) return otherwise;
  T value{};
  if (found->second.get(value) != simdjson::SUCCESS) {
    place.corrupt(fmt::format("model.{}: {} is no value for it", key, kind_of(found->second)));
  }
  return value;
}

BpeOptions read_options(const DomMembers& model, FilePlace place) {
  if (option<double>(model, "dropout", 0, place) != 0) place.unsupported("model.dropout");
  const auto text = [&](std::string_view key) {
    return std::string(option<std::string_view>(model, key, {}, place));
  };
  BpeOptions options{.ignore_merges = option(model, "ignore_merges", false, place),
                     .byte_fallback = option(model, "byte_fallback", false, place),
                     .fuse_unk = option(model, "fuse_unk", false, place),
                     .continuing_subword_prefix = text("continuing_subword_prefix"),
                     .end_of_word_suffix = text("end_of_word_suffix")};
  if (const std::string unk = text("unk_token"); !unk.empty()) options.unk_token = unk;
  return options;
}

Vocabulary read_vocabulary(const DomMembers& model, FilePlace place) {
  const auto found = model.find("vocab");
  if (found == model.end()) place.corrupt("model.vocab is missing");
  const simdjson::dom::object entries = object_of(found->second, "model.vocab", place);
  const auto num_entries = static_cast<size_t>(std::distance(entries.begin(), entries.end()));
  const int64_t limit = std::min(kMaxTokenIds, static_cast<int64_t>(num_entries) * 4 + kMaxHoles);
  Vocabulary vocabulary(num_entries);
  for (const auto entry : entries) {
    const auto fail = [&](std::string_view what) {
      place.corrupt(fmt::format("model.vocab[{}]: {}", in_quotes(entry.key), what));
    };
    int64_t id = 0;
    if (entry.value.get(id) != simdjson::SUCCESS) {
      fail(fmt::format("expected an id, found {}", kind_of(entry.value)));
    }
    if (id < 0 || id >= limit) {
      fail(fmt::format("the id {} is outside 0..{} ({} tokens)", id, limit - 1, num_entries));
    }
    switch (vocabulary.insert(entry.key, static_cast<TokenId>(id))) {
      case Vocabulary::Inserted::yes:
        break;
      case Vocabulary::Inserted::text_is_taken:
        fail("the token stands twice");
        break;
      case Vocabulary::Inserted::id_is_taken:
        fail(fmt::format("the id {} is that of {} already", id,
                         in_quotes(vocabulary.text(static_cast<TokenId>(id)))));
    }
  }
  vocabulary.shrink_to_fit();
  return vocabulary;
}

// Line 0 of the lists that began as a merges.txt.
bool is_version_line(element value) {
  std::string_view line;
  return value.get(line) == simdjson::SUCCESS && line.starts_with("#version");
}

// A merge in either spelling: "a b" or ["a", "b"]; nothing if it is neither.
std::optional<TokenPair> pair_of(element value) {
  TokenPair pair;
  std::string_view line;
  if (value.get(line) == simdjson::SUCCESS) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      return std::nullopt;
    }
    return TokenPair{line.substr(0, space), line.substr(space + 1)};
  }
  simdjson::dom::array both;
  if (value.get(both) != simdjson::SUCCESS) return std::nullopt;
  auto token = both.begin();
  const auto end = both.end();
  if (token == end || (*token).get(pair.left) != simdjson::SUCCESS) return std::nullopt;
  if (++token == end || (*token).get(pair.right) != simdjson::SUCCESS) return std::nullopt;
  if (++token != end) return std::nullopt;
  return pair;
}

void read_merges(const DomMembers& members, FilePlace place, BpeModel& model) {
  const auto found = members.find("merges");
  if (found == members.end()) place.corrupt("model.merges is missing");
  const simdjson::dom::array lines = array_of(found->second, "model.merges", place);
  const auto num_lines = static_cast<size_t>(std::distance(lines.begin(), lines.end()));
  MergeReader reader(model.vocabulary, num_lines, model.options.continuing_subword_prefix.size(),
                     place);
  size_t index = 0;
  for (const element line : lines) {
    const size_t line_index = index++;
    if (is_version_line(line)) continue;
    const auto pair = pair_of(line);
    if (!pair) {
      place.corrupt(fmt::format("model.merges[{}]: expected a pair of tokens", line_index));
    }
    reader.add(*pair, line_index);
  }
  reader.finish(model);
}

}  // namespace

BpeModel read_bpe_model(const element& value, FilePlace place) {
  const DomMembers members = members_of(value, "model", place);
  if (const auto type = members.find("type"); type != members.end()) {
    std::string_view name;
    if (type->second.get(name) != simdjson::SUCCESS) {
      place.corrupt(fmt::format("model.type: expected a string, found {}", kind_of(type->second)));
    }
    if (name != "BPE") place.unsupported(fmt::format("model {}", name));
  }
  BpeModel model;
  model.options = read_options(members, place);
  model.vocabulary = read_vocabulary(members, place);
  read_merges(members, place, model);
  return model;
}

}  // namespace paceline
