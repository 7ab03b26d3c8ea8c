#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "tokenizer/made_fields.h"
#include "tokenizer/merge_reader.h"
#include "tokenizer/pipeline.h"

namespace paceline {
namespace {

BpeOptions read_options(const DocumentCursor& model) {
  const auto dropout = model.find("dropout");
  if (dropout && dropout->number() != 0) refuse_part(model, "model.dropout");
  const auto text = [&](std::string_view key) {
    const auto found = model.find(key);
    return found ? std::string(found->string()) : std::string();
  };
  BpeOptions options{.ignore_merges = model.boolean_or("ignore_merges", false),
                     .byte_fallback = model.boolean_or("byte_fallback", false),
                     .fuse_unk = model.boolean_or("fuse_unk", false),
                     .continuing_subword_prefix = text("continuing_subword_prefix"),
                     .end_of_word_suffix = text("end_of_word_suffix")};
  if (const std::string unk = text("unk_token"); !unk.empty()) options.unk_token = unk;
  return options;
}

// A vocabulary sees by itself when a token occurs twice.
Vocabulary read_vocabulary(const DocumentCursor& field) {
  const auto entries = field.object();
  const size_t num_entries = entries.size();
  const int64_t limit = std::min(kMaxTokenIds, static_cast<int64_t>(num_entries) * 4 + kMaxHoles);
  Vocabulary vocabulary(num_entries);
  for (const auto& [token, value] : entries) {
    const auto id = value.integer();
    if (!id || *id < 0 || *id >= limit) {
      field.entry(token, value)
          .mismatch(fmt::format("an id from 0 to {} ({} tokens)", limit - 1, num_entries));
    }
    switch (vocabulary.insert(token, static_cast<TokenId>(*id))) {
      case Vocabulary::Inserted::yes:
        break;
      case Vocabulary::Inserted::text_is_taken:
        field.entry(token, value).fail("the token occurs twice");
      case Vocabulary::Inserted::id_is_taken:
        field.entry(token, value)
            .fail(fmt::format("the id {} is that of {} already", *id,
                              shown_text(vocabulary.text(static_cast<TokenId>(*id)))));
    }
  }
  vocabulary.shrink_to_fit();
  return vocabulary;
}

// The first entry of lists converted from a merges.txt.
bool is_version_line(const DocumentNode& line) {
  return line.is_string() && line.string().starts_with("#version");
}

// A merge in either spelling: "a b" or ["a", "b"]; nothing if it is neither.
std::optional<TokenPair> pair_of(const DocumentNode& merge) {
  if (merge.is_string()) {
    const std::string_view line = merge.string();
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) return std::nullopt;
    return TokenPair{line.substr(0, space), line.substr(space + 1)};
  }
  if (!merge.is_array()) return std::nullopt;
  std::array<std::string_view, 2> pair;
  size_t num_tokens = 0;
  for (const DocumentNode token : merge.array()) {
    if (num_tokens == pair.size() || !token.is_string()) return std::nullopt;
    pair[num_tokens++] = token.string();
  }
  if (num_tokens != pair.size()) return std::nullopt;
  return TokenPair{pair[0], pair[1]};
}

void read_merges(const DocumentCursor& lines, BpeModel& model) {
  MergeReader reader(model.vocabulary, lines, model.options.continuing_subword_prefix.size());
  size_t index = 0;
  for (const DocumentNode line : lines.array()) {
    const size_t line_index = index++;
    if (is_version_line(line)) continue;
    const auto pair = pair_of(line);
    if (!pair) lines.below(line_index, line).mismatch("a pair of tokens");
    reader.add(*pair, line_index);
  }
  reader.finish(model);
}

std::vector<TokenId> read_ids(const DocumentCursor& field, std::string_view key,
                              const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  const auto list = field.find(key);
  if (!list) return ids;
  for (const DocumentCursor& item : list->items()) {
    const auto id = static_cast<TokenId>(item.integer(kTokenIdRange));
    if (!vocabulary.contains(id)) item.fail(fmt::format("the id {} has no token", id));
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// [[TEXT, SCORE], ...], by id. An empty text has no token.
std::vector<double> read_scored_vocabulary(const DocumentCursor& field, Vocabulary& vocabulary) {
  const size_t count = field.num_items();
  if (static_cast<int64_t>(count) > kMaxTokenIds) {
    field.fail(fmt::format("{} tokens, at most {} are read", count, kMaxTokenIds));
  }
  vocabulary = Vocabulary(count);
  std::vector<double> scores;
  for (const DocumentCursor& item : field.items()) {
    const auto pair = item.items();
    if (pair.size() != 2) item.mismatch("a token and its score");
    const std::string_view text = pair[0].string();
    const auto id = static_cast<TokenId>(scores.size());
    if (!text.empty() && vocabulary.insert(text, id) != Vocabulary::Inserted::yes) {
      item.fail("the token occurs twice");
    }
    scores.push_back(pair[1].number());
  }
  vocabulary.shrink_to_fit();
  return scores;
}

double parse_number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A number as serde_json reads it for HF tokenizers, which may be a bit off: all digits as an
// integer, divided by a power of ten. Tokens with equal sums of scores depend on it.
double serde_number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                 std::chars_format::scientific);
  const std::string_view shown(text.data(), static_cast<size_t>(end.ptr - text.data()));
  const size_t mark = shown.find('e');
  if (mark == std::string_view::npos) return value;  // not finite
  std::string digits(shown.substr(0, mark));
  std::erase(digits, '.');
  const int exponent =
      static_cast<int>(parse_number(shown.substr(mark + (shown[mark + 1] == '+' ? 2 : 1)))) -
      static_cast<int>(digits.size() - 1);
  if (exponent >= 0 || exponent < -300) return value;
  const double read = parse_number(digits) / parse_number(fmt::format("1e{}", -exponent));
  return std::signbit(value) ? -read : read;
}

BpeModel read_unigram_model(const DocumentCursor& field) {
  BpeModel model;
  std::vector<double> scores = read_scored_vocabulary(field.at("vocab"), model.vocabulary);
  model.options.byte_fallback = field.boolean_or("byte_fallback", false);
  UnigramModel::Options options{
      .byte_fallback = model.options.byte_fallback,
      .sums = field.boolean_or(kSingleScoresField, false) ? UnigramModel::Sums::in_float32
                                                          : UnigramModel::Sums::in_float64,
      .unmatched = read_ids(field, kUnmatchedTokensField, model.vocabulary),
      .user_defined = read_ids(field, kUserDefinedField, model.vocabulary)};
  if (const auto unknown = field.find("unk_id")) {
    options.unknown = static_cast<TokenId>(unknown->integer(kTokenIdRange));
    if (!model.vocabulary.contains(options.unknown)) unknown->fail("the id has no token");
  }
  if (options.sums == UnigramModel::Sums::in_float64) {
    std::transform(scores.begin(), scores.end(), scores.begin(), serde_number);
  }
  model.unigram = std::make_unique<UnigramModel>(model.vocabulary, scores, options);
  return model;
}

BpeModel read_word_piece_model(const DocumentCursor& field) {
  constexpr double kMostCharacters = 1e9;
  BpeModel model;
  model.vocabulary = read_vocabulary(field.at("vocab"));
  const DocumentCursor unknown = field.at("unk_token");
  const auto id = model.vocabulary.find(unknown.string());
  if (!id) unknown.fail(fmt::format("{} isn't in vocab", shown_text(unknown.string())));
  const NumberRange lengths{.min = 0, .max = kMostCharacters};
  model.word_piece = std::make_unique<WordPieceModel>(
      model.vocabulary,
      WordPieceModel::Options{.unknown = *id,
                              .prefix = field.at("continuing_subword_prefix").string(),
                              .max_input_chars_per_word = static_cast<size_t>(
                                  field.at("max_input_chars_per_word").integer(lengths))});
  return model;
}

// Old files have no type; only WordPiece has this field.
std::string_view type_of(const DocumentCursor& field) {
  if (const auto type = field.find("type")) return type->string();
  return field.find("max_input_chars_per_word") ? "WordPiece" : "BPE";
}

}  // namespace

BpeModel read_bpe_model(const DocumentCursor& field) {
  const std::string_view type = type_of(field);
  if (type == "Unigram") return read_unigram_model(field);
  if (type == "WordPiece") return read_word_piece_model(field);
  if (type != "BPE") refuse_part(field, fmt::format("model {}", type));
  BpeModel model;
  model.options = read_options(field);
  model.vocabulary = read_vocabulary(field.at("vocab"));
  model.whole_tokens = read_ids(field, kWholeTokensField, model.vocabulary);
  read_merges(field.at("merges"), model);
  return model;
}

}  // namespace paceline
