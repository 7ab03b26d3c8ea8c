// The methods of strings that look for a part: startswith, endswith, find, index, count.
#pragma once

#include "chat/template_string_call.h"

namespace paceline {

enum class TextEnd { start, end };
TemplateValue begins_or_ends_with(const StringCall& call, TextEnd where);

// find and rfind give -1 for what isn't there, index and rindex throw TemplateError.
enum class TextSearch { find, rfind, index, rindex };
TemplateValue search_text(const StringCall& call, TextSearch how);

TemplateValue count_text(const StringCall& call);

}  // namespace paceline
