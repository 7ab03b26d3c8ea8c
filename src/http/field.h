// Names, values and lists in header fields, as RFC 9110 section 5 compares them.
#pragma once

#include <string_view>
#include <vector>

#include "http/http.h"

namespace paceline {

// 0 to 15, or -1.
int hex_digit(char c);
// ASCII below the space, and DEL.
bool is_control_character(char c);

// Letters of ASCII in either case.
bool same_http_token(std::string_view a, std::string_view b);

// A comma-separated list has this member.
bool http_list_has(std::string_view list, std::string_view token);

// One field per name, in the order of their first lines; values of the same name joined by ", ".
std::vector<HttpHeader> join_http_fields(std::vector<HttpHeader> fields);

}  // namespace paceline
