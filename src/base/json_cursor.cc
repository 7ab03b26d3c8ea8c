#include "base/json_cursor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_document.h"
#include "base/json_writer.h"
#include "base/suggest.h"
#include "base/utf8.h"

namespace paceline {
namespace {

bool is_plain_key(std::string_view key) {
  constexpr size_t kMaxBytes = 64;
  return !key.empty() && key.size() <= kMaxBytes &&
         key.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == key.npos;
}

std::string path_to(const std::string& path, std::string_view key) {
  if (!is_plain_key(key)) return fmt::format("{}[{}]", path, shown_text(key));
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string joined(const std::string& where, std::string_view path) {
  if (where.empty() || path.empty()) return fmt::format("{}{}", where, path);
  return fmt::format("{}: {}", where, path);
}

}  // namespace

std::string found_instead(std::string_view found, std::string_view expected) {
  return fmt::format("found {}, expected {}", found, expected);
}

std::string shown(const Json& value) {
  if (value.is_array() || value.is_object()) return std::string(value.kind());
  return value.is_string() ? shown_text(*value.string()) : to_json(value);
}

std::string shown_text(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  if (text.size() <= kMaxShown) return json_quote(text);
  std::string_view begin = text.substr(0, kMaxShown);
  begin.remove_suffix(incomplete_utf8_suffix(begin));
  return json_quote(begin) + "...";
}

template <class Node>
bool BasicJsonCursor<Node>::boolean() const {
  if (!node_.is_bool()) mismatch("true or false");
  return node_.boolean();
}

template <class Node>
int64_t BasicJsonCursor<Node>::integer() const {
  if (const auto value = node_.integer()) return *value;
  mismatch(node_.is_integer() ? "an integer below 2^63" : "an integer");
}

template <class Node>
int64_t BasicJsonCursor<Node>::integer(const NumberRange& range) const {
  const auto value = node_.integer();
  if (!value || !range.contains(*value)) mismatch(range_words("an integer", range));
  return *value;
}

template <class Node>
uint64_t BasicJsonCursor<Node>::unsigned_integer() const {
  if (const auto value = node_.unsigned_integer()) return *value;
  const bool is_large = node_.is_number() && node_.number() > 1;
  mismatch(is_large ? "an integer below 2^64" : "an integer from 0 on");
}

template <class Node>
double BasicJsonCursor<Node>::number() const {
  if (!node_.is_number()) mismatch("a number");
  return node_.number();
}

template <class Node>
double BasicJsonCursor<Node>::number(const NumberRange& range) const {
  if (!node_.is_number() || !range.contains(node_.number())) {
    mismatch(range_words("a number", range));
  }
  return node_.number();
}

template <class Node>
typename Node::Text BasicJsonCursor<Node>::string() const {
  if (!node_.is_string()) mismatch("a string");
  return node_.string();
}

template <class Node>
typename Node::Array BasicJsonCursor<Node>::array() const {
  if (!node_.is_array()) mismatch("an array");
  return node_.array();
}

template <class Node>
typename Node::Object BasicJsonCursor<Node>::object() const {
  if (!node_.is_object()) mismatch("an object");
  return node_.object();
}

template <class Node>
size_t BasicJsonCursor<Node>::num_items() const {
  if (!node_.is_array()) mismatch("an array");
  return node_.num_items();
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::item(size_t index) const {
  if (index >= num_items())
    fail(fmt::format("{} items, expected more than {}", num_items(), index));
  return below(index, node_.item(index));
}

template <class Node>
std::vector<BasicJsonCursor<Node>> BasicJsonCursor<Node>::items() const {
  std::vector<BasicJsonCursor> items;
  for (const auto& value : array()) items.push_back(below(items.size(), Node(value)));
  return items;
}

template <class Node>
std::optional<Node> BasicJsonCursor<Node>::find_node(std::string_view key) const {
  for (const auto& [name, value] : object()) {
    if (name == key) return Node(value);
  }
  return std::nullopt;
}

template <class Node>
std::optional<BasicJsonCursor<Node>> BasicJsonCursor<Node>::find(std::string_view key) const {
  const auto found = find_node(key);
  if (!found || found->is_null()) return std::nullopt;
  return below(key, *found);
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::at(std::string_view key) const {
  const auto found = find_node(key);
  if (!found) throw Error(code_, name_of(key) + ": missing");
  return below(key, *found);
}

template <class Node>
bool BasicJsonCursor<Node>::boolean_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->boolean() : otherwise;
}

template <class Node>
std::vector<typename BasicJsonCursor<Node>::Member> BasicJsonCursor<Node>::members() const {
  std::vector<Member> members;
  for (const auto& [key, value] : object()) members.push_back({key, Node(value)});
  return members;
}

template <class Node>
void BasicJsonCursor<Node>::expect_keys(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fail(fmt::format("unknown field {}{}", is_plain_key(key) ? std::string(key) : shown_text(key),
                     did_you_mean(key, {known.begin(), known.end()})));
  }
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::at_path(Node node, std::string path) const {
  BasicJsonCursor cursor(node, where_, code_);
  cursor.path_ = std::move(path);
  return cursor;
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::below(size_t index, Node node) const {
  return at_path(node, fmt::format("{}[{}]", path_, index));
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::below(std::string_view key, Node node) const {
  return at_path(node, path_to(path_, key));
}

template <class Node>
BasicJsonCursor<Node> BasicJsonCursor<Node>::entry(std::string_view key, Node node) const {
  return at_path(node, fmt::format("{}[{}]", path_, shown_text(key)));
}

template <class Node>
std::string BasicJsonCursor<Node>::name() const {
  return joined(where_, path_);
}

template <class Node>
std::string BasicJsonCursor<Node>::name_of(std::string_view key) const {
  return joined(where_, path_to(path_, key));
}

template <class Node>
void BasicJsonCursor<Node>::mismatch(std::string_view expected) const {
  fail(found_instead(node_.shown(), expected));
}

template <class Node>
void BasicJsonCursor<Node>::fail(ErrorCode code, std::string_view what) const {
  const std::string place = name();
  throw Error(code, place.empty() ? std::string(what) : fmt::format("{}: {}", place, what));
}

template class BasicJsonCursor<TreeNode>;
template class BasicJsonCursor<DocumentNode>;

}  // namespace paceline
