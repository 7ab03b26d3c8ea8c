#include "tokenizer/tokenizer_config.h"

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/json_field.h"

namespace paceline {
namespace {

// transformers writes "no limit" as 1000000000000000019884624838656, which JSON allows and parsers
// of 64-bit integers refuse: such a number becomes a floating-point one.
std::string with_long_integers_as_floats(std::string_view json) {
  constexpr size_t kMaxDigits = 18;  // always fit
  std::string out;
  out.reserve(json.size() + 8);
  bool in_string = false;
  size_t digits = 0;  // of the number being read, as long as it is an integer
  bool integer = true;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const bool number = !in_string && ((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' ||
                                       c == '+' || c == '-');
    if (number) {
      integer = integer && (c == '-' || (c >= '0' && c <= '9'));
      ++digits;
    } else {
      if (integer && digits > kMaxDigits) out += "e0";
      digits = 0;
      integer = true;
    }
    out.push_back(c);
    if (in_string && c == '\\' && i + 1 < json.size()) {
      out.push_back(json[++i]);
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return out;
}

Json parse(std::string_view json, std::string_view where) {
  try {
    return parse_json(with_long_integers_as_floats(json), where);
  } catch (const Error& error) {
    throw Error(ErrorCode::corrupt, error.what());
  }
}

// A token is written as a string or as an AddedToken with its content.
std::optional<std::string> token_of(const JsonField& config, std::string_view key) {
  const auto field = config.find(key);
  if (!field) return std::nullopt;
  return field->is_string() ? field->string() : field->member("content").string();
}

}  // namespace

TokenizerConfig read_tokenizer_config(std::string_view json, std::string_view where) {
  const Json tree = parse(json, where);
  const JsonField config(tree, where);
  return {.bos_token = token_of(config, "bos_token"), .eos_token = token_of(config, "eos_token")};
}

}  // namespace paceline
