// The terminals of Lark's module `common`, which grammars import.
#pragma once

#include <optional>
#include <string_view>

namespace paceline {

// The definition in Lark's notation, which may name other terminals of the module.
std::optional<std::string_view> common_terminal(std::string_view name);

}  // namespace paceline
