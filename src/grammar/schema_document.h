// SchemaDocument is a JSON Schema with its drafts, its addresses and its nodes, read as they are
// needed.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"
#include "grammar/schema_node.h"
#include "grammar/schema_spacing.h"
#include "grammar/schema_uri.h"
#include "grammar/text_form.h"

namespace paceline {

enum class SchemaDraft : uint8_t { draft4, draft6, draft7, draft2019, draft2020, unstated };

// A part of the document that has an address (`$id`), or the document itself.
struct SchemaResource {
  std::string uri;
  const Json* root = nullptr;
  SchemaDraft draft = SchemaDraft::unstated;
};

class SchemaDocument {
 public:
  // Error invalid: not JSON, or not a schema. `builder` holds the patterns of its nodes, which are
  // of strings in the form `form`, and gets the warnings.
  SchemaDocument(std::string_view text, SchemaRigor rigor, GrammarBuilder& builder,
                 TextForm form = TextForm::json);
  SchemaDocument(const SchemaDocument&) = delete;
  SchemaDocument& operator=(const SchemaDocument&) = delete;

  SchemaLiteral root();
  // The schema of a property, counted from 0, of the schema that `owner` refers to: "#/allOf/0".
  SchemaLiteral property(std::string_view owner, size_t index);
  // Read at the first call. The reference stays valid.
  const SchemaNode& node(SchemaNodeId id);
  // A schema that stands in a part of the document.
  SchemaLiteral literal_at(const Json& schema, uint32_t resource_index);
  // What `$ref` means there; nothing: it is elsewhere.
  std::optional<SchemaLiteral> resolve(const Json& schema, std::string_view reference,
                                       uint32_t resource_index);
  // A node that the document doesn't write.
  SchemaLiteral add(SchemaNode made);
  // The value and nothing else.
  SchemaLiteral literal_of_value(const Json& value, uint32_t resource_index);
  SchemaLiteral anything() const { return anything_; }
  SchemaLiteral nothing() const { return negated(anything_); }

  const SchemaResource& resource(uint32_t index) const { return resources_[index]; }
  size_t num_resources() const { return resources_.size(); }
  SchemaRigor rigor() const { return rigor_; }
  const JsonSpacing& spacing() const { return spacing_; }
  RegexSet& regexes() { return builder_.regexes(); }
  TextForm form() const { return form_; }
  // Strings in which the pattern is found. Errors as parse_pattern's.
  RegexId pattern(std::string_view pattern);
  std::optional<RegexId> format(std::string_view name);

  // "#/properties/a".
  std::string path_of(const Json& value) const;
  [[noreturn]] void fail(ErrorCode code, const Json& schema, std::string_view keyword,
                         std::string_view what) const;
  // The keyword can't be enforced: Error unsupported, or with best effort a warning.
  void leave_out(const Json& schema, std::string_view keyword, std::string_view reason);

 private:
  SchemaDraft read_draft();
  void read_guidance();
  void find_resources(const Json& schema, uint32_t resource_index);
  void find_resources_below(const Json& schema, uint32_t resource_index);
  std::optional<std::pair<const Json*, uint32_t>> find_target(const SchemaReference& reference,
                                                              uint32_t resource_index) const;

  Json document_;
  SchemaRigor rigor_;
  GrammarBuilder& builder_;
  TextForm form_;
  JsonSpacing spacing_;
  std::vector<SchemaResource> resources_;
  std::unordered_map<const Json*, uint32_t> resource_of_root_;
  std::map<std::string, const Json*, std::less<>> anchors_;                     // by address#name
  std::map<std::string, std::pair<const Json*, uint32_t>, std::less<>> roots_;  // by address
  std::deque<SchemaNode> nodes_;
  std::unordered_map<const Json*, SchemaNodeId> node_of_json_;
  std::unordered_map<const Json*, SchemaNodeId> node_of_value_;
  std::unordered_map<std::string_view, RegexId> patterns_;
  std::unordered_map<std::string_view, std::optional<RegexId>> formats_;
  SchemaLiteral anything_{};
};

// Reads the keywords of `node.json`.
void read_schema_keywords(SchemaDocument& document, SchemaNode& node);

}  // namespace paceline
