// ToolSet is the tools of a request: their names, and what their parameters may be.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "grammar/json_schema.h"
#include "grammar/schema_node.h"

namespace paceline {

struct ToolSpec {
  std::string name;
  std::string parameters = {};  // the text of a JSON Schema; empty: no parameters
  bool is_strict = false;       // a part of it that can't be enforced is an error, else left out
  // What its one parameter, `input`, may be, in Lark's notation; empty: what the schema says.
  std::string input_grammar = {};
};

struct ToolParameter {
  std::string name;
  std::vector<JsonSchemaPlace> places;  // of its schemas in the tool's
  const Json* json = nullptr;           // the first one, whose references mean the tool's schema
  JsonKinds kinds = kAllKinds;          // that its schema allows, as far as types, constants and
                                        // combinations of schemas say
  bool is_required = false;
};

class Tool {
 public:
  // Error invalid "tool NAME: ..." when the parameters aren't a JSON Schema for an object.
  explicit Tool(ToolSpec spec);
  Tool(Tool&&) = default;

  const std::string& name() const { return spec_.name; }
  // A JSON Schema of the arguments as a whole.
  const std::string& schema() const { return spec_.parameters; }
  bool is_strict() const { return spec_.is_strict; }
  const std::string& input_grammar() const { return spec_.input_grammar; }
  SchemaRigor rigor() const {
    return spec_.is_strict ? SchemaRigor::exact : SchemaRigor::best_effort;
  }
  const std::vector<ToolParameter>& parameters() const { return parameters_; }
  // Nothing when the schema doesn't name it.
  const ToolParameter* find(std::string_view parameter) const;
  // Whether parameters that the schema doesn't name are meant: it names none, or allows others.
  bool takes_others() const { return takes_others_; }

 private:
  ToolSpec spec_;
  Json root_;
  std::vector<ToolParameter> parameters_;
  bool takes_others_ = false;
};

// Immutable. Names occur once.
class ToolSet {
 public:
  // Error invalid when two tools have one name, or a name is empty.
  explicit ToolSet(std::vector<ToolSpec> tools);

  std::span<const Tool> tools() const { return tools_; }
  const Tool* find(std::string_view name) const;

 private:
  std::vector<Tool> tools_;
};

// The kinds of values that `schema`, a part of `root`, allows at most.
JsonKinds kinds_of_schema(const Json& schema, const Json& root);
// What "#/a/b" means in `root`; null when it is anything else, or isn't there.
const Json* resolve_pointer(std::string_view reference, const Json& root);
// What a schema's `$ref` names by a pointer; null without one that is there.
const Json* reference_target(const Json& schema, const Json& root);
std::set<std::string> required_of(const Json& schema);
// As a bit.
JsonKinds kind_of_value(const Json& value);

}  // namespace paceline
