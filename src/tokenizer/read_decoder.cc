#include <fmt/format.h>

#include <string>
#include <utility>

#include "tokenizer/pipeline.h"

namespace paceline {
namespace {

// Orders decoders: those before the joining become steps on tokens, the rest steps on text.
class DecoderReader {
 public:
  void add(const DocumentCursor& field) {
    const std::string_view type = field.at("type").string();
    if (type == "Fuse") {
      joined_ = true;
    } else if (type == "Replace") {
      add_replace(field);
    } else if (type == "Strip") {
      add_strip(field);
    } else if (type == "Metaspace") {
      add_metaspace(field);
    } else if (type == "BPEDecoder") {
      add_suffix(field);
    } else if (joined_ && (type == "ByteLevel" || type == "ByteFallback" || type == "WordPiece")) {
      refuse_part(field, fmt::format("decoder {} after one that joins the tokens", type));
    } else if (type == "ByteLevel") {
      tokens().push_back(make_byte_level_step());
      decoder_.joined_is_bytes = true;
      joined_ = true;
    } else if (type == "ByteFallback") {
      if (decoder_.byte_fallback) refuse_part(field, "decoder ByteFallback twice");
      decoder_.byte_fallback = true;
    } else if (type == "WordPiece") {
      tokens().push_back(
          make_word_piece_step(field.at("prefix").string(),
                               field.boolean_or("cleanup", true) ? Cleanup::yes : Cleanup::no));
    } else {
      refuse_part(field, fmt::format("decoder {}", type));
    }
  }

  TokenDecoder take(const DocumentCursor& field) {
    if (decoder_.byte_fallback && decoder_.looks_at_last()) {
      refuse_part(field, "decoder BPEDecoder together with ByteFallback");
    }
    return std::move(decoder_);
  }

 private:
  std::vector<std::unique_ptr<TokenStep>>& tokens() {
    return decoder_.byte_fallback ? decoder_.behind : decoder_.before;
  }

  void add_replace(const DocumentCursor& field) {
    const DocumentCursor pattern = field.at("pattern");
    const std::string_view content = field.at("content").string();
    auto found = read_pattern(pattern, "decoder Replace");
    if (!joined_) {
      tokens().push_back(make_replace_step(std::move(found), content));
    } else if (const auto string = pattern.find("String")) {
      decoder_.text.push_back(make_replace_text(string->string(), content));
    } else {
      decoder_.text.push_back(make_replace_text(std::move(found), content));
    }
  }

  void add_strip(const DocumentCursor& field) {
    const std::string_view character = read_character(field.at("content"));
    const auto count = [&](const char* key) {
      return static_cast<size_t>(field.at(key).integer({.min = 0}));
    };
    const StripCounts counts{.start = count("start"), .stop = count("stop")};
    if (joined_) {
      decoder_.text.push_back(make_strip_text(character, counts));
    } else {
      tokens().push_back(make_strip_step(character, counts));
    }
  }

  // After joining, the text counts as the first and last token.
  void add_metaspace(const DocumentCursor& field) {
    const std::string_view mark = read_character(field.at("replacement"));
    const auto scheme = field.find("prepend_scheme");
    const bool kept =
        (scheme && scheme->string() == "never") || !field.boolean_or("add_prefix_space", true);
    if (joined_) {
      decoder_.text.push_back(make_replace_text(mark, kept ? " " : ""));
    } else {
      tokens().push_back(make_metaspace_step(mark, kept ? FirstMark::kept : FirstMark::removed));
    }
  }

  void add_suffix(const DocumentCursor& field) {
    const DocumentCursor suffix = field.at("suffix");
    if (suffix.string().empty()) refuse_part(suffix, "decoder BPEDecoder with an empty suffix");
    if (joined_) {
      decoder_.text.push_back(make_replace_text(suffix.string(), ""));
    } else {
      tokens().push_back(make_suffix_step(suffix.string()));
    }
  }

  TokenDecoder decoder_;
  bool joined_ = false;
};

}  // namespace

TokenDecoder read_decoder(const std::optional<DocumentCursor>& field) {
  if (!field) {
    TokenDecoder decoder;
    decoder.before.push_back(make_space_step());
    return decoder;
  }
  DecoderReader reader;
  for (const DocumentCursor& part : parts_of(*field, "decoders")) reader.add(part);
  return reader.take(*field);
}

}  // namespace paceline
