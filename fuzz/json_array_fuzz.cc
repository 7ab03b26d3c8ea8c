// The items of an array are found in any bytes or named in an Error, and are those of the JSON that
// the bytes are.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "dataset/json_array.h"

namespace {

using namespace paceline;

std::vector<std::string> items_of(std::string_view text) {
  JsonArrayItems items(text, "a.json");
  std::vector<std::string> found;
  while (const auto item = items.next()) found.emplace_back(*item);
  return found;
}

void check_items(const std::string& text) {
  std::vector<std::string> items;
  bool is_array = true;
  try {
    items = items_of(text);
  } catch (const Error&) {
    is_array = false;
  }
  Json json;
  try {
    json = parse_json(text, "a.json");
  } catch (const Error&) {
    return;
  }
  PL_CHECK(is_array && items.size() == json.array()->size(), "other items than the array's");
  for (size_t i = 0; i < items.size(); ++i) {
    PL_CHECK(to_json(parse_json(items[i], "item")) == to_json((*json.array())[i]), "another item");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_items("[" + std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
