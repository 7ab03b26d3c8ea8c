#include <fmt/format.h>

#include <string>
#include <utility>

#include "tokenizer/pipeline.h"

namespace paceline {
namespace {

// Puts decoders in order: what stands before the tokens are joined changes tokens, the rest text.
class DecoderReader {
 public:
  void add(const JsonField& field) {
    const std::string& type = field.member("type").string();
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
      field.unsupported(fmt::format("decoder {} behind one that joins the tokens", type));
    } else if (type == "ByteLevel") {
      tokens().push_back(make_byte_level_step());
      decoder_.joined_is_bytes = true;
      joined_ = true;
    } else if (type == "ByteFallback") {
      if (decoder_.byte_fallback) field.unsupported("decoder ByteFallback twice");
      decoder_.byte_fallback = true;
    } else if (type == "WordPiece") {
      tokens().push_back(
          make_word_piece_step(field.member("prefix").string(),
                               field.boolean_or("cleanup", true) ? Cleanup::yes : Cleanup::no));
    } else {
      field.unsupported("decoder " + type);
    }
  }

  TokenDecoder take(const JsonField& field) {
    if (decoder_.byte_fallback && decoder_.looks_at_last()) {
      field.unsupported("decoder BPEDecoder together with ByteFallback");
    }
    return std::move(decoder_);
  }

 private:
  std::vector<std::unique_ptr<TokenStep>>& tokens() {
    return decoder_.byte_fallback ? decoder_.behind : decoder_.before;
  }

  void add_replace(const JsonField& field) {
    const JsonField pattern = field.member("pattern");
    const std::string& content = field.member("content").string();
    auto found = read_pattern(pattern, "decoder Replace");
    if (!joined_) {
      tokens().push_back(make_replace_step(std::move(found), content));
    } else if (const auto string = pattern.find("String")) {
      decoder_.text.push_back(make_replace_text(string->string(), content));
    } else {
      decoder_.text.push_back(make_replace_text(std::move(found), content));
    }
  }

  void add_strip(const JsonField& field) {
    const std::string& character = read_character(field.member("content"));
    const auto count = [&](const char* key) {
      const JsonField number = field.member(key);
      if (number.integer() < 0) number.corrupt("expected a count");
      return static_cast<size_t>(number.integer());
    };
    const StripCounts counts{.start = count("start"), .stop = count("stop")};
    if (joined_) {
      decoder_.text.push_back(make_strip_text(character, counts));
    } else {
      tokens().push_back(make_strip_step(character, counts));
    }
  }

  // The joined text is the first token, and the last.
  void add_metaspace(const JsonField& field) {
    const std::string& mark = read_character(field.member("replacement"));
    const auto scheme = field.find("prepend_scheme");
    const bool kept =
        (scheme && scheme->string() == "never") || !field.boolean_or("add_prefix_space", true);
    if (joined_) {
      decoder_.text.push_back(make_replace_text(mark, kept ? " " : ""));
    } else {
      tokens().push_back(make_metaspace_step(mark, kept ? FirstMark::kept : FirstMark::removed));
    }
  }

  void add_suffix(const JsonField& field) {
    const JsonField suffix = field.member("suffix");
    if (suffix.string().empty()) suffix.unsupported("decoder BPEDecoder with an empty suffix");
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

TokenDecoder read_decoder(const std::optional<JsonField>& field) {
  if (!field) {
    TokenDecoder decoder;
    decoder.before.push_back(make_space_step());
    return decoder;
  }
  DecoderReader reader;
  for (const JsonField& part : parts_of(*field, "decoders")) reader.add(part);
  return reader.take(*field);
}

}  // namespace paceline
