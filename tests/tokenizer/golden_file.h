// Golden encodings of HF tokenizers, one JSON object a line, as
// tools/goldens/make_tokenizer_goldens.py makes them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "paceline/tokenizer.h"

namespace paceline {

struct GoldenEncoding {
  std::string text;
  std::vector<TokenId> ids;
  std::optional<std::vector<TokenId>> spans;  // of ids: begin, end, begin, ...
  std::vector<TokenId> ids_with_special;
  std::vector<TokenId> ids_special_as_text;  // absent in the file: as ids
  std::string decoded;                       // of ids
  std::string decoded_skip_special;          // of ids_with_special
};

struct GoldenDecoding {
  std::vector<TokenId> ids;
  std::string decoded;
};

struct GoldenPair {
  std::string first;
  std::string second;
  std::vector<TokenId> ids;
  std::vector<TokenId> type_ids;
  std::vector<TokenId> ids_with_special;
  std::vector<TokenId> type_ids_with_special;
};

struct Goldens {
  std::vector<GoldenEncoding> encodings;
  std::vector<GoldenDecoding> decodings;
  std::vector<GoldenPair> pairs;
};

inline std::vector<TokenId> golden_ids(const Json& ids) {
  std::vector<TokenId> result;
  for (const Json& id : ids.as_array("ids"))
    result.push_back(static_cast<TokenId>(id.as_int("id")));
  return result;
}

inline void parse_golden(const std::string& line, Goldens& goldens) {
  const Json json = parse_json(line, "golden.jsonl");
  const auto text = [&](const char* key) { return json.find(key)->as_string(key); };
  if (const Json* ids = json.find("decode")) {
    goldens.decodings.push_back({.ids = golden_ids(*ids), .decoded = text("decoded")});
    return;
  }
  if (const Json* pair = json.find("pair")) {
    const auto& texts = pair->as_array("pair");
    goldens.pairs.push_back(
        {.first = texts[0].as_string("first"),
         .second = texts[1].as_string("second"),
         .ids = golden_ids(*json.find("ids")),
         .type_ids = golden_ids(*json.find("type_ids")),
         .ids_with_special = golden_ids(*json.find("ids_with_special")),
         .type_ids_with_special = golden_ids(*json.find("type_ids_with_special"))});
    return;
  }
  const Json* as_text = json.find("ids_special_as_text");
  GoldenEncoding golden{
      .text = text("text"),
      .ids = golden_ids(*json.find("ids")),
      .spans = std::nullopt,
      .ids_with_special = golden_ids(*json.find("ids_with_special")),
      .ids_special_as_text = golden_ids(as_text != nullptr ? *as_text : *json.find("ids")),
      .decoded = text("decoded"),
      .decoded_skip_special = text("decoded_skip_special")};
  if (const Json* spans = json.find("spans")) golden.spans = golden_ids(*spans);
  goldens.encodings.push_back(std::move(golden));
}

inline Goldens read_goldens(const std::filesystem::path& path) {
  const std::string file = read_text_file(path, size_t{64} << 20);
  Goldens goldens;
  for (size_t begin = 0; begin < file.size();) {
    const size_t end = std::min(file.find('\n', begin), file.size());
    if (end > begin) parse_golden(file.substr(begin, end - begin), goldens);
    begin = end + 1;
  }
  return goldens;
}

inline std::filesystem::path golden_tokenizers() {
  return std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/goldens/tokenizer";
}

// The small tokenizers, each with files of its own.
inline constexpr const char* kGoldenTokenizers[] = {
    "odd_flags",    "ignore_merges",   "unknown_pattern",  "prepended",
    "replaced",     "metaspace_first", "metaspace_always", "suffixed",
    "prefixed",     "behaviors",       "byte_normalized",  "trimmed",
    "bert",         "bert_cased",      "bert_accents",     "unigram",
    "unigram_whole"};

// The texts of the small goldens: edge cases of the rules.
inline std::vector<std::string> hard_texts() {
  std::vector<std::string> texts;
  for (const char* name : {"odd_flags", "prepended"}) {
    for (auto& golden : read_goldens(golden_tokenizers() / name / "golden.jsonl").encodings) {
      texts.push_back(std::move(golden.text));
    }
  }
  return texts;
}

}  // namespace paceline
