// Looks a name up in a table of definitions.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace paceline {

// The definition called `name`; null when there is none.
template <class Table>
auto find_named(const Table& table, std::string_view name) -> decltype(&*std::begin(table)) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const auto& definition) { return definition.name == name; });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace paceline
