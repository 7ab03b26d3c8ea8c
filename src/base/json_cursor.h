// JsonCursor is a JSON value and where it stands; every module reads JSON through it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/number_range.h"
#include "paceline/error.h"

namespace paceline {

// The one way in which messages say that a value is another than it should be.
std::string found_instead(std::string_view found, std::string_view expected);
// A scalar as it stands, a long string cut; of the rest the kind: "an array", "an object".
std::string shown(const Json& value);
// `text` as JSON writes it, cut after 60 bytes.
std::string shown_text(std::string_view text);

// A node of a Json, which must outlive it.
class TreeNode {
 public:
  using Text = const std::string&;
  using Array = const Json::Array&;
  using Object = const Json::Object&;

  TreeNode(const Json& json) : json_(&json) {}
  TreeNode(Json&&) = delete;

  const Json& json() const { return *json_; }
  bool is_null() const { return json_->is_null(); }
  bool is_bool() const { return json_->is_bool(); }
  bool is_integer() const { return json_->is_integer(); }
  bool is_number() const { return json_->is_number(); }
  bool is_string() const { return json_->is_string(); }
  bool is_array() const { return json_->is_array(); }
  bool is_object() const { return json_->is_object(); }
  std::string shown() const { return paceline::shown(*json_); }

  // Of a node that is one.
  bool boolean() const { return *json_->boolean(); }
  double number() const { return *json_->number(); }
  Text string() const { return *json_->string(); }
  Array array() const { return *json_->array(); }
  Object object() const { return *json_->object(); }
  size_t num_items() const { return array().size(); }
  TreeNode item(size_t index) const { return array()[index]; }
  // 4096.0 is an integer, too: programs write such numbers.
  std::optional<int64_t> integer() const { return json_->integer(); }
  std::optional<uint64_t> unsigned_integer() const { return json_->unsigned_integer(); }

 private:
  const Json* json_;
};

// Errors are "WHERE: PATH: found VALUE, expected ...": WHERE names what was parsed ("config.json",
// "line 7"; it may be empty), PATH is as JavaScript writes it ("rope_scaling.factor",
// "added_tokens[3].id", `weight_map["model.norm.weight"]`). They have the code of the root. What
// the node is part of must outlive the cursor.
template <class Node>
class BasicJsonCursor {
 public:
  struct Member {
    std::string_view key;
    Node value;
  };

  BasicJsonCursor(Node node, std::string where, ErrorCode code = ErrorCode::invalid)
      : node_(node), where_(std::move(where)), code_(code) {}

  const Node& node() const { return node_; }
  bool is_null() const { return node_.is_null(); }
  bool is_bool() const { return node_.is_bool(); }
  bool is_number() const { return node_.is_number(); }
  bool is_string() const { return node_.is_string(); }
  bool is_array() const { return node_.is_array(); }
  bool is_object() const { return node_.is_object(); }

  // The value, which must be of this kind and in the range.
  bool boolean() const;
  int64_t integer() const;
  int64_t integer(const NumberRange& range) const;
  uint64_t unsigned_integer() const;
  double number() const;
  double number(const NumberRange& range) const;
  typename Node::Text string() const;
  typename Node::Array array() const;
  typename Node::Object object() const;

  // Of an array.
  size_t num_items() const;
  BasicJsonCursor item(size_t index) const;
  std::vector<BasicJsonCursor> items() const;

  // Of an object. `find`: nothing when the member is absent or null; `at`: it must be there.
  std::optional<BasicJsonCursor> find(std::string_view key) const;
  BasicJsonCursor at(std::string_view key) const;
  bool contains(std::string_view key) const { return find_node(key).has_value(); }
  bool boolean_or(std::string_view key, bool otherwise) const;
  // In the text's order.
  std::vector<Member> members() const;
  // Every key must be one of these; a message suggests the nearest.
  void expect_keys(std::span<const std::string_view> known) const;

  // Loops over many nodes make the cursor of the one that an error is about.
  BasicJsonCursor below(size_t index, Node node) const;
  BasicJsonCursor below(std::string_view key, Node node) const;
  // As the last, of an object whose keys are the file's own names: they stand in brackets.
  BasicJsonCursor entry(std::string_view key, Node node) const;

  const std::string& where() const { return where_; }
  const std::string& path() const { return path_; }  // empty: the root
  std::string name() const;                          // "WHERE: PATH"
  std::string name_of(std::string_view key) const;   // of a member, there or not

  [[noreturn]] void mismatch(std::string_view expected) const;
  [[noreturn]] void fail(std::string_view what) const { fail(code_, what); }
  [[noreturn]] void fail(ErrorCode code, std::string_view what) const;

 private:
  std::optional<Node> find_node(std::string_view key) const;
  BasicJsonCursor at_path(Node node, std::string path) const;

  Node node_;
  std::string where_;
  std::string path_;
  ErrorCode code_;
};

// Of a tree, which is kept, changed and written; JsonDocument has the other one.
using JsonCursor = BasicJsonCursor<TreeNode>;
extern template class BasicJsonCursor<TreeNode>;

}  // namespace paceline
