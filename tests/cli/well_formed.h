// Checks that a text is well-formed XML: nesting of elements, attributes and entities. Covers less
// than a parser, but the likely mistakes of a writer.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : rest_(text) {}

  // The first error; empty when there is none.
  std::string run() {
    while (problem_.empty() && !rest_.empty()) {
      const std::string_view text = take_until('<');
      check_entities(text);
      if (elements_.empty() && text.find_first_not_of(" \n") != std::string_view::npos) {
        fail("text outside the document", text);
      }
      if (!at_end_) check_tag(take_until('>'));
    }
    if (!elements_.empty()) fail("never closed", elements_.back());
    return problem_;
  }

 private:
  // Takes the text before `end`, and `end`.
  std::string_view take_until(char end) {
    const size_t at = rest_.find(end);
    at_end_ = at == std::string_view::npos;
    if (at_end_ && end == '>') fail("a tag without an end", rest_);
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at_end_ ? rest_.size() : at + 1);
    return taken;
  }

  void fail(std::string_view what, std::string_view where) {
    if (problem_.empty()) problem_ = std::string(what) + ": " + std::string(where.substr(0, 80));
  }

  void check_entities(std::string_view text) {
    for (size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
      bool is_known = false;
      for (std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        is_known = is_known || text.substr(at).starts_with(entity);
      }
      if (!is_known) fail("no entity", text.substr(at));
    }
  }

  void check_tag(std::string_view tag) {
    if (tag.starts_with('/')) {
      if (elements_.empty() || elements_.back() != tag.substr(1)) return fail("wrong end", tag);
      elements_.pop_back();
      return;
    }
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    const size_t name_end = std::min(tag.find_first_of(" \n"), tag.size());
    if (name_end == 0 || tag.find('<') != std::string_view::npos) fail("no tag", tag);
    if (elements_.empty() && has_root_) fail("a second document", tag);
    has_root_ = true;
    if (!is_empty) elements_.push_back(tag.substr(0, name_end));
    check_attributes(tag.substr(name_end));
  }

  // Each is white space, a name, =" and a value up to the next quote.
  void check_attributes(std::string_view text) {
    while (!text.empty() && problem_.empty()) {
      const size_t begin = text.find_first_not_of(" \n");
      const size_t equals = text.find("=\"");
      if (begin == 0 || begin >= equals || equals == std::string_view::npos) {
        return fail("no attribute", text);
      }
      const std::string_view name = text.substr(begin, equals - begin);
      if (name.empty() || name.find_first_of(" \n\"'=") != std::string_view::npos) {
        return fail("no attribute", text);
      }
      const size_t end = text.find('"', equals + 2);
      if (end == std::string_view::npos) return fail("a value without an end", text);
      check_entities(text.substr(equals + 2, end - equals - 2));
      text.remove_prefix(end + 1);
    }
  }

  std::string_view rest_;
  std::vector<std::string_view> elements_;
  bool at_end_ = false;
  bool has_root_ = false;
  std::string problem_;
};

}  // namespace paceline
