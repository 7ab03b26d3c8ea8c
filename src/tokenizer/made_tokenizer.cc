#include "tokenizer/made_tokenizer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_document.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

constexpr std::string_view kMade = "tokenizer.json";
constexpr std::string_view kConfigName = "tokenizer_config.json";
constexpr std::string_view kTekken = "tekken.json";
constexpr std::string_view kSentencePiece = "tokenizer.model";
constexpr std::string_view kVocab = "vocab.json";
constexpr std::string_view kMerges = "merges.txt";
constexpr std::string_view kVocabLines = "vocab.txt";
constexpr size_t kMaxSourceBytes = size_t{256} << 20;

// Without a class in tokenizer_config.json, config.json's model_type says which it is.
TokenizerConfig read_config(const ModelFiles& files) {
  TokenizerConfig config = read_tokenizer_config(files);
  constexpr std::string_view kModelConfig = "config.json";
  if (!config.tokenizer_class.empty() || !files.contains(kModelConfig)) return config;
  const JsonDocument document(files.read_config(kModelConfig), files.where(kModelConfig),
                              ErrorCode::invalid);
  const auto type = document.root().find("model_type");
  if (type && type->string().starts_with("qwen")) config.tokenizer_class = "Qwen2Tokenizer";
  return config;
}

SentencePieceFile read_sentence_piece(const ModelFiles& files) {
  return parse_sentence_piece_file(files.read(kSentencePiece, kMaxSourceBytes),
                                   files.where(kSentencePiece));
}

std::string names_json(const std::vector<std::pair<std::string_view, std::string>>& names) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  for (const auto& [name, text] : names) writer.member(name, text);
  writer.end_object();
  return json;
}

std::string sentence_piece_names(const SentencePieceFile& file) {
  std::vector<std::pair<std::string_view, std::string>> names;
  for (const auto& [name, id] : {std::pair{"bos_token", file.bos_id},
                                 {"eos_token", file.eos_id},
                                 {"unk_token", file.unknown_id},
                                 {"pad_token", file.pad_id}}) {
    if (id < 0 || id >= std::ssize(file.pieces)) continue;
    names.emplace_back(name, file.pieces[static_cast<size_t>(id)].text);
  }
  return names_json(names);
}

// `make` takes the files and the tokenizer's config.
template <class Make>
void add_json(ModelFiles& files, std::string_view source, Make make) {
  files.add_made(std::string(kMade), std::string(source),
                 [files, make] { return make(files, read_config(files)); });
}

}  // namespace

void refuse_to_make(std::string_view where, std::string_view what) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: {} isn't supported; a tokenizer.json beside it is read instead, in "
                          "Python: transformers.AutoTokenizer.from_pretrained(DIR)"
                          ".save_pretrained(DIR)",
                          where, what));
}

ModelFiles with_tokenizer_json(ModelFiles files) {
  if (files.contains(kMade)) return files;
  const bool has_config = files.contains(kConfigName);
  if (files.contains(kTekken)) {
    add_json(files, kTekken, [](const ModelFiles& own, const TokenizerConfig& config) {
      return tekken_json(own.read(kTekken, kMaxSourceBytes), config, own.where(kTekken));
    });
    if (has_config) return files;
    files.add_made(std::string(kConfigName), std::string(kTekken), [] {
      return names_json({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
    });
  } else if (files.contains(kSentencePiece)) {
    add_json(files, kSentencePiece, [](const ModelFiles& own, const TokenizerConfig& config) {
      return sentence_piece_json(read_sentence_piece(own), config, own.where(kSentencePiece));
    });
    if (has_config) return files;
    files.add_made(std::string(kConfigName), std::string(kSentencePiece),
                   [own = files] { return sentence_piece_names(read_sentence_piece(own)); });
  } else if (files.contains(kVocab) && files.contains(kMerges)) {
    add_json(files, kVocab, [](const ModelFiles& own, const TokenizerConfig& config) {
      return vocab_and_merges_json(own.read(kVocab, kMaxSourceBytes),
                                   own.read(kMerges, kMaxSourceBytes), config, own.where(kVocab));
    });
    if (has_config) return files;
    files.add_made(std::string(kConfigName), std::string(kVocab), [] {
      return names_json({{"eos_token", "<|endoftext|>"}});
    });
  } else if (files.contains(kVocabLines)) {
    add_json(files, kVocabLines, [](const ModelFiles& own, const TokenizerConfig& config) {
      return vocab_txt_json(own.read(kVocabLines, kMaxSourceBytes), config, own.where(kVocabLines));
    });
    if (has_config) return files;
    files.add_made(std::string(kConfigName), std::string(kVocabLines), [] {
      return names_json({{"unk_token", "[UNK]"},
                         {"sep_token", "[SEP]"},
                         {"pad_token", "[PAD]"},
                         {"cls_token", "[CLS]"},
                         {"mask_token", "[MASK]"}});
    });
  }
  return files;
}

}  // namespace paceline
