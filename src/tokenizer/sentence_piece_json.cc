// Makes the tokenizer.json of a tokenizer.model: what sentencepiece does, with the special tokens
// of transformers around it.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/base64.h"
#include "base/json_writer.h"
#include "tokenizer/made_fields.h"
#include "tokenizer/made_tokenizer.h"
#include "tokenizer/named_token_list.h"
#include "tokenizer/piece_merges.h"
#include "tokenizer/tokenizer_json_parts.h"

namespace paceline {
namespace {

using Type = SentencePieceFile::Type;
using Kind = SentencePieceFile::Kind;

constexpr int64_t kAllSpaces = 1 << 30;

void check_supported(const SentencePieceFile& file, std::string_view where) {
  const bool is_known = file.kind == Kind::unigram || file.kind == Kind::bpe;
  if (!is_known) {
    refuse_to_make(where, fmt::format("model_type {}", file.kind == Kind::word ? "word" : "char"));
  }
  if (file.whitespace_as_suffix) refuse_to_make(where, "treat_whitespace_as_suffix");
  if (!file.escape_whitespaces) refuse_to_make(where, "escape_whitespaces: false");
  if (file.denormalizes) refuse_to_make(where, "a denormalizer");
  const auto is_unused = [](const auto& piece) { return piece.type == Type::unused; };
  if (file.kind == Kind::bpe && std::ranges::any_of(file.pieces, is_unused)) {
    refuse_to_make(where, "a merging model with unused pieces");
  }
}

bool is_special(Type type) { return type == Type::control || type == Type::unknown; }

class Writer {
 public:
  Writer(const SentencePieceFile& file, const TokenizerConfig& config)
      : file_(file), config_(config), writer_(json_) {
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      ids_.try_emplace(file.pieces[id].text, static_cast<int64_t>(id));
    }
    prefixed_ = file.add_dummy_prefix && config.add_prefix_space.value_or(true);
  }

  std::string write() {
    begin_tokenizer_json(writer_);
    write_added();
    write_normalizer();
    write_pre_tokenizer();
    writer_.key("post_processor");
    write_frame(frame_token("bos_token", file_.bos_id, config_.add_bos_token.value_or(true)),
                frame_token("eos_token", file_.eos_id, config_.add_eos_token.value_or(false)),
                writer_);
    write_decoder();
    file_.kind == Kind::bpe ? write_merges() : write_scores();
    writer_.end_object();
    return std::move(json_);
  }

 private:
  void write_added() {
    writer_.key("added_tokens").begin_array();
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const auto& piece = file_.pieces[id];
      if (!is_special(piece.type) || piece.text.empty()) continue;
      write_added_token(static_cast<int64_t>(id), piece.text, true, writer_);
    }
    const auto id_of = [this](std::string_view text) { return find(text); };
    const auto is_listed = [this](std::string_view text) {
      const auto id = find(text);
      return id && is_special(file_.pieces[static_cast<size_t>(*id)].type);
    };
    write_named_tokens(config_, id_of, is_listed, std::ssize(file_.pieces), writer_);
    writer_.end_array();
  }

  void write_normalizer() {
    const std::string_view prefix = config_.legacy.value_or(true) ? "always" : "first";
    writer_.key("normalizer").begin_object().member("type", kSentencePieceType);
    writer_.member("prefix", prefixed_ ? prefix : "never");
    writer_.member("remove_extra_whitespaces", file_.remove_extra_whitespaces);
    if (!file_.charsmap.empty()) writer_.member("charsmap", base64_of_bytes(file_.charsmap));
    const std::vector<std::string_view> kept = texts_of(Type::user_defined);
    if (!kept.empty()) write_texts("kept", kept);
    writer_.end_object();
  }

  // sentencepiece's merging never crosses the border of a user-defined piece.
  void write_pre_tokenizer() {
    const std::vector<std::string_view> texts = texts_of(Type::user_defined);
    writer_.key("pre_tokenizer");
    if (texts.empty() || file_.kind != Kind::bpe) {
      writer_.null();
      return;
    }
    writer_.begin_object().member("type", "Split").key("pattern").begin_object();
    write_texts(kStringsField, texts);
    writer_.end_object().member("behavior", "Isolated").member("invert", false).end_object();
  }

  void write_decoder() {
    writer_.key("decoder").begin_object().member("type", "Sequence").key("decoders").begin_array();
    writer_.begin_object().member("type", "Replace").key("pattern").begin_object();
    writer_.member("String", kSpaceMark).end_object().member("content", " ").end_object();
    writer_.begin_object().member("type", "ByteFallback").end_object();
    writer_.begin_object().member("type", "Fuse").end_object();
    if (prefixed_ || file_.remove_extra_whitespaces) {
      writer_.begin_object().member("type", "Strip").member("content", " ");
      writer_.member("start", file_.remove_extra_whitespaces ? kAllSpaces : int64_t{1});
      writer_.member("stop", 0).end_object();
    }
    writer_.end_array().end_object();
  }

  void write_merges() {
    std::vector<std::string_view> texts;
    std::vector<ScoredPiece> merging;
    for (const auto& piece : file_.pieces) {
      texts.push_back(piece.text);
      if (piece.type == Type::normal) merging.push_back({piece.text, piece.score});
    }
    const auto unknown = texts_of(Type::unknown);
    begin_bpe_model({.unknown = unknown.empty() ? std::string_view() : unknown.front(),
                     .byte_fallback = file_.byte_fallback},
                    texts, writer_);
    write_ids(kWholeTokensField, Type::user_defined);
    writer_.key("merges").begin_array();
    for (const auto& [left, right] : merges_of_pieces(merging)) {
      writer_.begin_array().string(left).string(right).end_array();
    }
    writer_.end_array().end_object();
  }

  void write_scores() {
    writer_.key("model").begin_object().member("type", "Unigram");
    writer_.member("byte_fallback", file_.byte_fallback).member(kSingleScoresField, true);
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      if (file_.pieces[id].type != Type::unknown) continue;
      writer_.member("unk_id", id);
      break;
    }
    write_ids(kUserDefinedField, Type::user_defined);
    writer_.key(kUnmatchedTokensField).begin_array();
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const Type type = file_.pieces[id].type;
      const bool is_matched = type == Type::normal || type == Type::user_defined;
      if (!is_matched && !file_.pieces[id].text.empty()) writer_.unsigned_integer(id);
    }
    writer_.end_array().key("vocab").begin_array();
    for (const auto& piece : file_.pieces) {
      writer_.begin_array().string(piece.text).number(double{piece.score}).end_array();
    }
    writer_.end_array().end_object();
  }

  void write_ids(std::string_view key, Type type) {
    writer_.key(key).begin_array();
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const auto& piece = file_.pieces[id];
      if (piece.type == type && !piece.text.empty()) writer_.unsigned_integer(id);
    }
    writer_.end_array();
  }

  void write_texts(std::string_view key, const std::vector<std::string_view>& texts) {
    writer_.key(key).begin_array();
    for (const std::string_view text : texts) writer_.string(text);
    writer_.end_array();
  }

  std::vector<std::string_view> texts_of(Type type) const {
    std::vector<std::string_view> texts;
    for (const auto& piece : file_.pieces) {
      if (piece.type == type && !piece.text.empty()) texts.push_back(piece.text);
    }
    return texts;
  }

  std::optional<int64_t> find(std::string_view text) const {
    const auto at = ids_.find(text);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }

  // The token that the config gives this name, else that of the model.
  FrameToken frame_token(std::string_view name, int64_t id, bool is_added) const {
    if (!is_added) return {};
    for (const auto& [known, text] : config_.special_tokens) {
      if (known != name) continue;
      const auto own = find(text);
      return own ? FrameToken{text, *own} : FrameToken{};
    }
    if (id < 0 || id >= std::ssize(file_.pieces)) return {};
    return {file_.pieces[static_cast<size_t>(id)].text, id};
  }

  const SentencePieceFile& file_;
  const TokenizerConfig& config_;
  std::unordered_map<std::string_view, int64_t> ids_;
  bool prefixed_ = false;
  std::string json_;
  JsonWriter writer_;
};

}  // namespace

std::string sentence_piece_json(const SentencePieceFile& file, const TokenizerConfig& config,
                                std::string_view where) {
  check_supported(file, where);
  return Writer(file, config).write();
}

}  // namespace paceline
