// Any bytes as a text: decoding its tokens returns the repaired text, in every way of encoding it,
// and the cost is proportional to its length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "paceline/tokenizer.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/unicode_normalizer.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// A vocabulary and its merges, in the form of a tokenizer.json.
class Model {
 public:
  void add(std::string_view token) {
    if (num_tokens_ > 0) vocabulary_ += ',';
    vocabulary_ += '"' + escaped(token) + "\":" + std::to_string(num_tokens_++);
  }
  void merge(std::string_view left, std::string_view right) {
    add(std::string(left) + std::string(right));
    if (!merges_.empty()) merges_ += ',';
    merges_ += "[\"" + escaped(left) + "\",\"" + escaped(right) + "\"]";
  }
  // `options` and `parts` are members of the model and of the file, each with a comma at its end.
  std::string file(std::string_view options, std::string_view parts) const {
    return R"({"added_tokens":[{"id":1000,"content":"<s>","special":true,"normalized":false},)"
           R"({"id":1001,"content":"aab","special":false,"normalized":true}],)" +
           std::string(parts) + R"("model":{"type":"BPE",)" + std::string(options) + "\"vocab\":{" +
           vocabulary_ + "},\"merges\":[" + merges_ + "]}}";
  }

 private:
  std::string vocabulary_, merges_;
  int num_tokens_ = 0;
};

// All bytes, some merges with ranks out of order, and two added tokens.
std::string byte_level_json(std::string_view normalizer, std::string_view pattern) {
  Model model;
  for (int byte = 0; byte < 256; ++byte) {
    model.add(byte_level_character(static_cast<std::uint8_t>(byte)));
  }
  constexpr std::string_view kMerges[][2] = {{"a", "b"}, {"ab", "ab"}, {"a", "a"},   {"aa", "aa"},
                                             {"b", "a"}, {"Ġ", "Ġ"},   {"Ġ", "a"},   {"ĠĠ", "ĠĠ"},
                                             {"Ã", "©"}, {"Ċ", "Ċ"},   {"aaaa", "b"}};
  for (const auto& merge : kMerges) model.merge(merge[0], merge[1]);
  return model.file("", "\"normalizer\":" + std::string(normalizer) +
                            R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
                            R"({"type":"Split","pattern":{"Regex":")" +
                            escaped(pattern) +
                            R"("},"behavior":"Isolated"},)"
                            R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
                            R"("decoder":{"type":"ByteLevel"},)");
}

// Characters with byte fallback and no pre-tokenizer: the whole text is one piece.
std::string sentence_piece_json(std::string_view parts) {
  Model model;
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    model.add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
  }
  for (const std::string_view token : {"<unk>", "▁", "a", "b", "é", "你", "\u0301", "-"}) {
    model.add(token);
  }
  constexpr std::string_view kMerges[][2] = {{"a", "b"},  {"ab", "ab"}, {"a", "a"}, {"aa", "aa"},
                                             {"b", "▁a"}, {"▁", "▁"},   {"▁", "a"}, {"▁▁", "▁▁"}};
  model.add("▁a");
  for (const auto& merge : kMerges) {
    if (merge[0] != "▁" || merge[1] != "a") model.merge(merge[0], merge[1]);
  }
  return model.file(R"("byte_fallback":true,"unk_token":"<unk>","fuse_unk":true,)", parts);
}

constexpr std::string_view kJoined =
    R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})";

struct Tokenizers {
  Tokenizer plain = Tokenizer::from_json(byte_level_json("null", kGpt2Pattern), "plain");
  Tokenizer nfc = Tokenizer::from_json(
      byte_level_json(R"({"type":"NFC"})", R"([^\S\n]+|\p{L}+|\p{N}{2})"), "nfc");
  Tokenizer replaced = Tokenizer::from_json(
      sentence_piece_json(R"("normalizer":{"type":"Replace","pattern":{"String":" "},)"
                          R"("content":"▁"},"decoder":{"type":"Sequence","decoders":[)" +
                          std::string(kJoined) + "]},"),
      "replaced");
  Tokenizer metaspace = Tokenizer::from_json(
      sentence_piece_json(R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁",)"
                          R"("prepend_scheme":"never","split":true},)"
                          R"("decoder":{"type":"Sequence","decoders":[)" +
                          std::string(kJoined) + "]},"),
      "metaspace");
  std::unique_ptr<SplitPattern> words = make_scanner(kGpt2Pattern);
  std::unique_ptr<SplitPattern> numbers = make_scanner(R"(\p{N}{1,3})");
};

double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string with_spaces(std::string text) {
  constexpr std::string_view kMark = "▁";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.replace(at, kMark.size(), " ");
  }
  return text;
}

void check(const Tokenizer& tokenizer, std::string_view bytes, const std::string& expected) {
  for (const bool as_text : {false, true}) {
    const Encoding encoding = tokenizer.encode_with_spans(bytes, {.specials_as_text = as_text});
    require(encoding.ids == tokenizer.encode(bytes, {.specials_as_text = as_text}));
    require(encoding.ids.size() <= 3 * bytes.size());  // U+FFFD for a byte
    for (const TextSpan& span : encoding.spans) {
      require(span.begin <= span.end && span.end <= bytes.size());
    }
    require(tokenizer.decode(encoding.ids) == expected);
    IncrementalDetokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const TokenId id : encoding.ids) streamed += detokenizer.push(id);
    require(streamed + detokenizer.finish() == expected);
  }
}

// Repeats a short text: quadratic algorithms would take far longer.
void check_cost(const Tokenizer& tokenizer, std::string_view unit) {
  constexpr std::size_t kSize = 16 * 1024;
  constexpr double kMaxSeconds = 1;  // under sanitizers
  std::string text;
  while (text.size() < kSize) text += unit;
  const double begin = thread_seconds();
  tokenizer.decode(tokenizer.encode(text));
  require(thread_seconds() - begin < kMaxSeconds);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizers tokenizers;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = replace_invalid_utf8(bytes);
  check(tokenizers.plain, bytes, text);
  check(tokenizers.replaced, bytes, with_spaces(text));
  check(tokenizers.metaspace, bytes, with_spaces(text));
  TextStore store(text);
  require(tokenizers.nfc.decode(tokenizers.nfc.encode(bytes)) ==
          UnicodeNormalizer(UnicodeForm::nfc).normalize(text, store));
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
  if (size > 2 && size <= 8 && data[0] == '*') {
    const Tokenizer* all[] = {&tokenizers.plain, &tokenizers.nfc, &tokenizers.replaced};
    check_cost(*all[data[1] % std::size(all)], bytes.substr(1));
  }
  return 0;
}
