// Any bytes are either a JSON Schema, under which a JSON text can be written byte by byte, or an
// Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "fuzz/constrained_text.h"
#include "fuzz/json_mutator.h"
#include "grammar/json_schema.h"
#include "paceline/error.h"

namespace {

using namespace paceline;
using namespace paceline::fuzz;

constexpr std::string_view kWords[] = {"type",
                                       "object",
                                       "array",
                                       "string",
                                       "integer",
                                       "number",
                                       "null",
                                       "properties",
                                       "required",
                                       "additionalProperties",
                                       "patternProperties",
                                       "propertyNames",
                                       "minProperties",
                                       "maxProperties",
                                       "items",
                                       "prefixItems",
                                       "contains",
                                       "minItems",
                                       "maxItems",
                                       "uniqueItems",
                                       "enum",
                                       "const",
                                       "minimum",
                                       "exclusiveMaximum",
                                       "multipleOf",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "^[a-c]+$",
                                       "(a|é){2,3}",
                                       "format",
                                       "date-time",
                                       "ipv6",
                                       "allOf",
                                       "anyOf",
                                       "oneOf",
                                       "not",
                                       "if",
                                       "then",
                                       "else",
                                       "dependentRequired",
                                       "dependentSchemas",
                                       "unevaluatedProperties",
                                       "$ref",
                                       "#",
                                       "#/$defs/a",
                                       "$defs",
                                       "$id",
                                       "$anchor",
                                       "$schema",
                                       "http://json-schema.org/draft-04/schema#",
                                       "a",
                                       "b"};

// JSON, but that names of additional properties may repeat and numbers may have any exponent.
void check_text(const std::string& text) {
  try {
    parse_json(text, "text");
  } catch (const Error& error) {
    const std::string_view what = error.what();
    require(what.find("stands twice") != std::string_view::npos ||
            what.find("beyond the range") != std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxWritten = 64;
  const std::string_view schema(reinterpret_cast<const char*>(data), size);
  try {
    const std::string text = write_bytes(
        compile_json_schema(schema, {.limits = kSmallGrammarLimits}), schema, kMaxWritten);
    if (!text.empty()) check_text(text);
  } catch (const Error& error) {
    require_refusal(error);
    require(is_valid_utf8(error.what()));
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  return mutate_json(kWords, 2, bytes, size, max_size, seed);
}
