// URI references as `$id` and `$ref` write them.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

struct SchemaReference {
  std::string resource;  // absolute where the base is, without a fragment
  std::string fragment;  // percent-decoded, without "#"
};

// RFC 3986, 5.2: `reference` as it stands in a document whose address is `base` (perhaps empty).
SchemaReference resolve_schema_reference(std::string_view base, std::string_view reference);

}  // namespace paceline
