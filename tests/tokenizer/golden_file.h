// Golden encodings of HF tokenizers, one JSON object a line, as
// tools/goldens/make_tokenizer_goldens.py makes them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "tokenizer/tokenizer.h"

namespace paceline {

struct GoldenEncoding {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<TokenId> ids_with_special;
  std::vector<TokenId> ids_special_as_text;  // absent in the file: as ids
  std::string decoded;                       // of ids
  std::string decoded_skip_special;          // of ids_with_special
};

inline std::vector<TokenId> golden_ids(const Json& ids) {
  std::vector<TokenId> result;
  for (const Json& id : ids.as_array("ids"))
    result.push_back(static_cast<TokenId>(id.as_int("id")));
  return result;
}

inline GoldenEncoding parse_golden(const std::string& line) {
  const Json json = parse_json(line, "golden.jsonl");
  const auto text = [&](const char* key) { return json.find(key)->as_string(key); };
  const Json* as_text = json.find("ids_special_as_text");
  return {.text = text("text"),
          .ids = golden_ids(*json.find("ids")),
          .ids_with_special = golden_ids(*json.find("ids_with_special")),
          .ids_special_as_text = golden_ids(as_text != nullptr ? *as_text : *json.find("ids")),
          .decoded = text("decoded"),
          .decoded_skip_special = text("decoded_skip_special")};
}

inline std::vector<GoldenEncoding> read_goldens(const std::filesystem::path& path) {
  const std::string file = read_text_file(path, size_t{64} << 20);
  std::vector<GoldenEncoding> goldens;
  for (size_t begin = 0; begin < file.size();) {
    const size_t end = std::min(file.find('\n', begin), file.size());
    if (end > begin) goldens.push_back(parse_golden(file.substr(begin, end - begin)));
    begin = end + 1;
  }
  return goldens;
}

inline std::filesystem::path golden_tokenizers() {
  return std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/goldens/tokenizer";
}

// The texts of the small goldens: strings that stand on the borders of the rules.
inline std::vector<std::string> hard_texts() {
  std::vector<std::string> texts;
  for (auto& golden : read_goldens(golden_tokenizers() / "odd_flags/golden.jsonl")) {
    texts.push_back(std::move(golden.text));
  }
  return texts;
}

}  // namespace paceline
