#include "load/gguf_tokenizer_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_cursor.h"
#include "load/generation_config.h"
#include "load/gguf_splits.h"
#include "load/gguf_tokens.h"
#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "text/generation_options.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kFile = "tokenizer.json";
constexpr size_t kMaxTokenizerBytes = size_t{1} << 30;
constexpr std::string_view kPieceSpace = "\u2581";  // sentencepiece's for a space

[[noreturn]] void refuse_tokenizer(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", where, what));
}

// What a normalizer or a pre-tokenizer does, step by step.
void add_steps(const Json& json, std::vector<std::string>& steps) {
  const std::string* const type = json.find_text("type");
  if (type == nullptr) return;
  const auto flag = [&](std::string_view key, bool otherwise) {
    const Json* const found = json.find_value(key);
    return found == nullptr ? otherwise : found->boolean().value_or(otherwise);
  };
  if (*type == "Sequence") {
    for (const std::string_view key : {"pretokenizers", "normalizers"}) {
      const Json* const parts = json.find_value(key);
      if (parts == nullptr || parts->array() == nullptr) continue;
      for (const Json& part : *parts->array()) add_steps(part, steps);
    }
  } else if (*type == "Split") {
    const Json* const pattern = json.find_value("pattern");
    const std::string* const regex = pattern == nullptr ? nullptr : pattern->find_text("Regex");
    const std::string* const behavior = json.find_text("behavior");
    steps.push_back(fmt::format("{} {} {}", regex == nullptr ? "" : *regex,
                                behavior == nullptr ? "" : *behavior, flag("invert", false)));
  } else if (*type == "Digits") {
    steps.push_back(fmt::format("Digits {}", flag("individual_digits", false)));
  } else if (*type == "ByteLevel") {
    steps.push_back(
        fmt::format("ByteLevel {} {}", flag("use_regex", true), flag("add_prefix_space", true)));
  } else {
    steps.push_back(*type);
  }
}

std::vector<std::string> steps_of(const Json* json) {
  std::vector<std::string> steps;
  if (json != nullptr) add_steps(*json, steps);
  return steps;
}

template <class Write>
std::vector<std::string> written_steps(const GgufSplit& split, const Write& write) {
  std::string text;
  JsonWriter writer(text);
  write(split, writer);
  const Json json = parse_json(text, "split");
  return steps_of(&json);
}

// The split of a byte-level tokenizer. The first name of several stands for all of them.
const GgufSplit& split_of(const Json& tokenizer, std::string_view where) {
  const Json* const model = tokenizer.find_value("model");
  const Json* const ignores = model == nullptr ? nullptr : model->find_value("ignore_merges");
  const bool ignore_merges = ignores != nullptr && ignores->boolean().value_or(false);
  const auto normalizer = steps_of(tokenizer.find_value("normalizer"));
  const auto pre_tokenizer = steps_of(tokenizer.find_value("pre_tokenizer"));
  for (const GgufSplit& split : gguf_splits()) {
    if (split.name.empty() || split.name == "default") continue;  // llama.cpp has another one
    if (split.ignore_merges == ignore_merges &&
        written_steps(split, write_normalizer) == normalizer &&
        written_steps(split, write_pre_tokenizer) == pre_tokenizer) {
      return split;
    }
  }
  refuse_tokenizer(where,
                   "its normalizer and pre_tokenizer have no name in GGUF files "
                   "(tokenizer.ggml.pre)");
}

// The tokens of a file, by id.
struct TokenList {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
};

void put(TokenList& list, int64_t id, std::string text, GgufTokenType type,
         std::string_view where) {
  if (id < 0 || id >= std::ssize(list.texts)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: token {} has id {}, expected 0 to {}, the embedding's rows", where,
                            quoted_name(text), id, std::ssize(list.texts) - 1));
  }
  list.texts[static_cast<size_t>(id)] = std::move(text);
  list.types[static_cast<size_t>(id)] = static_cast<int32_t>(type);
}

bool is_byte(std::string_view text) { return text.size() == 6 && text.starts_with("<0x"); }

std::string with_spaces(std::string text) {
  for (size_t at = text.find(kPieceSpace); at != text.npos; at = text.find(kPieceSpace, at + 1)) {
    text.replace(at, kPieceSpace.size(), " ");
  }
  return text;
}

// Ids without a token become unused ones, as llama.cpp's converter writes them.
TokenList list_tokens(const JsonCursor& tokenizer, bool has_pieces, int64_t vocab_size) {
  TokenList list{.texts = std::vector<std::string>(static_cast<size_t>(vocab_size)),
                 .types = std::vector<int32_t>(static_cast<size_t>(vocab_size),
                                               static_cast<int32_t>(GgufTokenType::unused))};
  for (size_t id = 0; id < list.texts.size(); ++id) list.texts[id] = fmt::format("[PAD{}]", id);
  const JsonCursor model = tokenizer.at("model");
  const auto unknown = model.find("unk_token");
  const JsonCursor vocabulary = model.at("vocab");
  for (const auto& [text, node] : vocabulary.members()) {
    const JsonCursor id = vocabulary.entry(text, node);
    GgufTokenType type = has_pieces && is_byte(text) ? GgufTokenType::byte : GgufTokenType::normal;
    if (has_pieces && unknown && unknown->string() == text) type = GgufTokenType::unknown;
    put(list, id.integer(), std::string(text), type, tokenizer.where());
  }
  const auto added = tokenizer.find("added_tokens");
  if (!added) return list;
  for (const JsonCursor& token : added->items()) {
    const int64_t id = token.at("id").integer();
    const bool is_special = token.boolean_or("special", false);
    std::string text = token.at("content").string();
    if (has_pieces && !is_special) text = with_spaces(std::move(text));
    const bool is_unknown =
        id >= 0 && id < vocab_size &&
        list.types[static_cast<size_t>(id)] == static_cast<int32_t>(GgufTokenType::unknown);
    if (is_unknown) continue;
    put(list, id, std::move(text),
        is_special ? GgufTokenType::control : GgufTokenType::user_defined, tokenizer.where());
  }
  return list;
}

// Pairs of pieces, in the order in which they are merged.
std::vector<std::pair<std::string, std::string>> merges_of(const JsonCursor& model) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const JsonCursor& merge : model.at("merges").items()) {
    if (merge.is_array() && merge.num_items() == 2) {
      const auto parts = merge.items();
      merges.emplace_back(parts[0].string(), parts[1].string());
      continue;
    }
    const std::string text = merge.string();
    const size_t blank = text.find(' ');
    if (blank == text.npos) merge.fail("expected two pieces");
    merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  return merges;
}

void add_byte_level(const Json& json, const JsonCursor& tokenizer, GgufHeader& header) {
  header.add_string("tokenizer.ggml.pre", split_of(json, tokenizer.where()).name);
  std::vector<std::string> merges;
  for (const auto& [left, right] : merges_of(tokenizer.at("model"))) {
    if (left.find(' ') != left.npos || right.find(' ') != right.npos) {
      refuse_tokenizer(tokenizer.where(), "merges of pieces with blanks can't be in GGUF files");
    }
    merges.push_back(fmt::format("{} {}", left, right));
  }
  header.add_strings("tokenizer.ggml.merges", merges);
}

// Pieces get scores in the order in which merges make them.
void add_pieces(const JsonCursor& tokenizer, const TokenList& list, const Tokenizer& loaded,
                GgufHeader& header) {
  constexpr float kNeverMerged = -1e6f;
  std::map<std::string, float> ranks;
  float rank = 0;
  for (const auto& [left, right] : merges_of(tokenizer.at("model"))) {
    if (ranks.emplace(left + right, rank).second) rank -= 1;
  }
  std::vector<float> scores;
  for (size_t id = 0; id < list.texts.size(); ++id) {
    const auto type = static_cast<GgufTokenType>(list.types[id]);
    const auto found = ranks.find(list.texts[id]);
    const bool merges = type == GgufTokenType::normal && found != ranks.end();
    scores.push_back(merges ? found->second : kNeverMerged);
  }
  header.add_numbers("tokenizer.ggml.scores", scores);
  const auto ids = loaded.encode("a");
  const bool has_space = !ids.empty() && loaded.token_text(ids.front()).starts_with(kPieceSpace);
  header.add_boolean("tokenizer.ggml.add_space_prefix", has_space);
}

std::optional<int64_t> pair_side(const Tokenizer& tokenizer, bool at_end) {
  const auto plain = tokenizer.encode("a");
  const auto framed = tokenizer.encode("a", {.add_special = true});
  if (plain.empty() || framed.size() <= plain.size()) return std::nullopt;
  const int32_t edge = at_end ? framed.back() : framed.front();
  const int32_t usual = at_end ? plain.back() : plain.front();
  return edge == usual ? std::nullopt : std::optional<int64_t>(edge);
}

std::optional<TokenId> named_token(const Tokenizer& tokenizer, std::string_view name) {
  for (const auto& [known, text] : tokenizer.special_tokens()) {
    if (known == name && !text.empty()) return tokenizer.token_id(text);
  }
  return std::nullopt;
}

// The named tokens, and the tokens that end a turn as eos, eot and eom.
void add_named_tokens(const Tokenizer& tokenizer, const GenerationConfig& generation,
                      GgufHeader& header) {
  const auto add = [&](std::string_view name, std::optional<int64_t> id) {
    if (!id || *id < 0) return;
    header.add_size(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(*id));
  };
  const auto first = pair_side(tokenizer, false), last = pair_side(tokenizer, true);
  std::optional<int64_t> bos = first, eos = last;
  if (!bos && tokenizer.bos_token()) bos = tokenizer.bos_token();
  if (!bos && generation.bos_token) bos = generation.bos_token;
  if (!eos) eos = named_token(tokenizer, "eos_token");
  std::vector<int64_t> ends(generation.eos_tokens.begin(), generation.eos_tokens.end());
  if (!eos && !ends.empty()) eos = ends.front();
  std::erase(ends, eos.value_or(-1));
  add("bos", bos);
  add("eos", eos);
  constexpr std::string_view kFurther[] = {"eot", "eom"};
  for (size_t i = 0; i < std::min(ends.size(), std::size(kFurther)); ++i) add(kFurther[i], ends[i]);
  add("unknown", named_token(tokenizer, "unk_token"));
  add("padding", tokenizer.pad_token());
  header.add_boolean("tokenizer.ggml.add_bos_token", first.has_value());
  header.add_boolean("tokenizer.ggml.add_eos_token", last.has_value());
}

void add_sampling(const ModelFiles& files, GgufHeader& header) {
  constexpr std::string_view kGeneration = "generation_config.json";
  if (!files.contains(kGeneration)) return;
  const Json json = files.read_json(kGeneration);
  const JsonCursor file(json, files.where(kGeneration));
  const bool is_greedy = !file.boolean_or("do_sample", true);
  for (const GenerationOption& option : kGenerationOptions) {
    const auto& [ours, theirs] = option.file_keys;
    if (theirs.empty() || ours.empty()) continue;
    const auto found = file.find(ours);
    const bool is_temperature = option.name == "temperature";
    if (!found && !(is_temperature && is_greedy)) continue;
    if (kind_of(option) == GenerationKind::integer) {
      header.add_integer(theirs, static_cast<int32_t>(
                                     std::clamp<int64_t>(found->integer(), INT32_MIN, INT32_MAX)));
    } else {
      const double value = is_temperature && is_greedy ? 0.0 : found->number();
      header.add_number(theirs, static_cast<float>(value));
    }
  }
}

// Keys of a GGUF file that belong to its tokenizer or its sampling.
void copy_keys(const GgufMetadata& metadata, GgufHeader& header) {
  for (const GgufValue& value : metadata.values()) {
    if (value.key.starts_with("tokenizer.") || value.key.starts_with("general.sampling.")) {
      header.add_copy(value);
    }
  }
}

}  // namespace

void add_tokenizer_keys(const ModelSource& source, int64_t vocab_size, GgufHeader& header) {
  if (source.gguf() != nullptr) return copy_keys(source.gguf()->metadata(), header);
  const ModelFiles& files = source.files();
  add_sampling(files, header);
  if (!files.contains(kFile)) {
    header.add_string("tokenizer.ggml.model", "none");
    return;
  }
  const Json json = parse_json(files.read(kFile, kMaxTokenizerBytes), files.where(kFile));
  const JsonCursor tokenizer(json, files.where(kFile));
  const JsonCursor model = tokenizer.at("model");
  const auto type = model.find("type");
  if (type && type->string() != "BPE") {
    refuse_tokenizer(
        tokenizer.where(),
        fmt::format("tokenizers of type {} aren't written to GGUF files; those of type BPE "
                    "are",
                    quoted_name(type->string())));
  }
  const bool has_pieces = model.boolean_or("byte_fallback", false);
  const Tokenizer loaded = Tokenizer::load(files);
  const TokenList list = list_tokens(tokenizer, has_pieces, vocab_size);
  header.add_string("tokenizer.ggml.model", has_pieces ? "llama" : "gpt2");
  header.add_strings("tokenizer.ggml.tokens", list.texts);
  header.add_integers("tokenizer.ggml.token_type", list.types);
  if (has_pieces) {
    add_pieces(tokenizer, list, loaded, header);
  } else {
    add_byte_level(json, tokenizer, header);
  }
  add_named_tokens(loaded, read_generation_config(files, vocab_size), header);
  if (const auto chat = ChatTemplate::load(files)) {
    header.add_string("tokenizer.chat_template", chat->source());
  }
}

void check_same_tokens(const ModelSource& source, const ModelSource& read) {
  constexpr std::string_view kTexts[] = {
      "It's 12345 o'clock, they'll say: \"no-one  knows\"!\n\n\tx = f(a[0]) + 3.14;  // done\r\n",
      "\u00c9t\u00e9 e\u0301te\u0301 na\u00efve \u4f60\u597d\uff0c\u4e16\u754c 2\u20ac "
      "\u0645\u0631\u062d\u0628\u0627 \U0001f600 ABCdef XMLHttp \u0915\u094d\u0937 ...  end ",
      " leading", "a", ""};
  if (!source.files().contains(kFile)) return;
  const Tokenizer before = Tokenizer::load(source.files()), after = Tokenizer::load(read.files());
  for (const std::string_view text : kTexts) {
    for (const bool special : {false, true}) {
      const EncodeOptions options{.add_special = special};
      if (before.encode(text, options) == after.encode(text, options)) continue;
      refuse_tokenizer(
          source.files().where(kFile),
          fmt::format("the tokenizer can't be in GGUF files: it would give other tokens for {}",
                      quoted_name(text)));
    }
  }
}

}  // namespace paceline
