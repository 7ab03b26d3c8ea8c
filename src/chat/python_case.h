// Upper and lower case like Python's str.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string case_folded(std::string_view text);
std::string capitalized(std::string_view text);
std::string title_case(std::string_view text);
std::string swapped_case(std::string_view text);

bool is_upper_text(std::string_view text);  // str.isupper()
bool is_lower_text(std::string_view text);
bool is_title_text(std::string_view text);

}  // namespace paceline
