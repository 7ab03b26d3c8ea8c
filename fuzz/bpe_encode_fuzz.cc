// Any bytes as a text: decoding its tokens gives the repaired text back, however it is encoded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

// All bytes, some merges in an order that makes later ones overtake, and two added tokens.
std::string tokenizer_json(std::string_view normalizer, std::string_view pattern) {
  std::string vocabulary, merges;
  int id = 0;
  const auto escaped = [](std::string_view text) {
    std::string result;
    for (const char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result;
  };
  const auto add = [&](std::string_view token) {
    if (id > 0) vocabulary += ',';
    vocabulary += '"' + escaped(token) + "\":" + std::to_string(id++);
  };
  for (int byte = 0; byte < 256; ++byte) add(byte_level_character(static_cast<std::uint8_t>(byte)));
  constexpr std::string_view kMerges[][2] = {
      {"ab", "ab"}, {"a", "a"},   {"aa", "aa"}, {"a", "b"},    {"b", "a"}, {"Ġ", "Ġ"},
      {"Ġ", "a"},   {"ĠĠ", "ĠĠ"}, {"Ã", "©"},   {"aaaa", "b"}, {"Ċ", "Ċ"}};
  for (const auto& merge : kMerges) {
    add(std::string(merge[0]) + std::string(merge[1]));
    if (!merges.empty()) merges += ',';
    merges += "[\"" + std::string(merge[0]) + "\",\"" + std::string(merge[1]) + "\"]";
  }
  return R"({"added_tokens":[{"id":1000,"content":"<s>","special":true,"normalized":false},)"
         R"({"id":1001,"content":"aab","special":false,"normalized":true}],"normalizer":)" +
         std::string(normalizer) +
         R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" +
         escaped(pattern) +
         R"("},"behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
         R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)" +
         vocabulary + "},\"merges\":[" + merges + "]}}";
}

struct Tokenizers {
  std::unique_ptr<Tokenizer> plain =
      Tokenizer::from_json(tokenizer_json("null", kGpt2Pattern), "plain");
  std::unique_ptr<Tokenizer> nfc = Tokenizer::from_json(
      tokenizer_json(R"({"type":"NFC"})", R"([^\S\n]+|\p{L}+|\p{N}{2})"), "nfc");
  std::unique_ptr<SplitPattern> words = make_scanner(kGpt2Pattern);
  std::unique_ptr<SplitPattern> numbers = make_scanner(R"(\p{N}{1,3})");
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizers tokenizers;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = replace_invalid_utf8(bytes);
  for (const bool as_text : {false, true}) {
    const auto ids = tokenizers.plain->encode(bytes, {.specials_as_text = as_text});
    require(ids.size() <= text.size());
    require(tokenizers.plain->decode(ids) == text);
  }
  std::string storage;
  require(tokenizers.nfc->decode(tokenizers.nfc->encode(bytes)) ==
          NfcNormalizer().normalize(text, storage));
  for (const SplitPattern* scanner : {tokenizers.words.get(), tokenizers.numbers.get()}) {
    std::vector<std::string_view> pieces;
    scanner->split(text, pieces);
    std::string joined;
    for (const std::string_view piece : pieces) {
      require(!piece.empty());
      joined += piece;
    }
    require(joined == text);
  }
  return 0;
}
