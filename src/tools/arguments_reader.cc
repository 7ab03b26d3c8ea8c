#include "tools/arguments_reader.h"

#include <algorithm>

#include "tools/text_units.h"
#include "tools/value_notation.h"
#include "tools/value_scanner.h"

namespace paceline {
namespace {

size_t num_leading_blanks(std::string_view text) { return text.size() - trimmed_left(text).size(); }

class ObjectReader : public ArgumentsReader {
 public:
  size_t take(std::string_view text, bool /*is_final*/, std::string& out) override {
    const size_t blanks = has_begun_ ? 0 : num_leading_blanks(text);
    text.remove_prefix(blanks);
    if (text.empty()) return blanks;
    if (!has_begun_ && text.front() != '{') {
      state_ = State::broken;
      return blanks;
    }
    has_begun_ = true;
    const size_t taken = scanner_.take(text);
    out += text.substr(0, taken);
    if (scanner_.state() == ValueScanner::State::done) state_ = State::done;
    if (scanner_.state() == ValueScanner::State::broken) state_ = State::broken;
    return blanks + taken;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  ValueScanner scanner_;
  bool has_begun_ = false;
};

// The bytes of the escape at the beginning of `text`; 0: more bytes decide.
size_t json_escape_bytes(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] != 'u') return 2;
  const bool is_pair = text.size() >= 4 && (text[2] == 'd' || text[2] == 'D') &&
                       std::string_view("89abAB").find(text[3]) != std::string_view::npos;
  const size_t bytes = is_pair ? 12 : 6;
  return text.size() >= bytes ? bytes : 0;
}

// A JSON string that holds the object.
class QuotedReader : public ArgumentsReader {
 public:
  size_t take(std::string_view text, bool /*is_final*/, std::string& out) override {
    size_t taken = has_begun_ ? 0 : num_leading_blanks(text);
    if (!has_begun_ && taken < text.size()) {
      if (text[taken] != '"') {
        state_ = State::broken;
        return taken;
      }
      has_begun_ = true;
      ++taken;
    }
    while (state_ == State::running && taken < text.size()) {
      const size_t part = take_part(text.substr(taken), out);
      if (part == 0) break;
      taken += part;
    }
    return taken;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  size_t take_part(std::string_view text, std::string& out) {
    if (text.front() == '"') {
      state_ = State::done;
      return 1;
    }
    if (text.front() != '\\') {
      const size_t end = std::min(text.find_first_of("\"\\"), text.size());
      out += text.substr(0, end);
      return end;
    }
    const size_t bytes = json_escape_bytes(text);
    if (bytes == 0) return 0;
    const auto meaning = unescaped(text.substr(0, bytes), StringNotation::Escapes::json);
    if (!meaning) {
      state_ = State::broken;
      return 0;
    }
    out += *meaning;
    return bytes;
  }

  bool has_begun_ = false;
};

}  // namespace

std::unique_ptr<ArgumentsReader> make_arguments_reader(const ArgumentsFormat& format,
                                                       const Tool* tool, std::string_view next) {
  switch (format.style) {
    case ArgumentsFormat::Style::json_object:
      return std::make_unique<ObjectReader>();
    case ArgumentsFormat::Style::json_string:
      return std::make_unique<QuotedReader>();
    case ArgumentsFormat::Style::parameters:
      break;
  }
  return make_parameters_reader(format, tool, next);
}

}  // namespace paceline
