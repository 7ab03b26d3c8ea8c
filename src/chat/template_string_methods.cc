#include "chat/template_string_methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/python_case.h"
#include "chat/python_character.h"
#include "chat/python_padding.h"
#include "chat/python_space.h"
#include "chat/python_string.h"
#include "chat/template_convert.h"
#include "chat/template_string_search.h"
#include "chat/template_table.h"

namespace paceline {
namespace {

using Call = StringCall;
using Method = TemplateValue (*)(const Call& call);

TemplateValue strip(const Call& call, Ends ends) {
  const auto characters = call.arguments.optional("chars");
  if (!characters || characters->is_none()) return call.made(stripped(call.text, ends));
  require_defined(*characters);
  if (!characters->is_string())
    throw TemplateError(fmt::format("{} arg must be None or str", call.name));
  return call.made(stripped_of(call.text, characters->text(), ends));
}

TemplateValue split(const Call& call, SplitFrom from) {
  const TemplateValue separator = call.arguments.optional("sep").value_or(TemplateValue());
  const int64_t most = call.arguments.integer("maxsplit", -1);
  require_defined(separator);
  if (separator.is_none()) return call.made_list(split_on_spaces(call.text, most, from));
  if (!separator.is_string())
    throw TemplateError("must be str or None, not " + std::string(separator.type_name()));
  if (separator.text().empty()) throw TemplateError("empty separator");
  return call.made_list(split_on(call.text, separator.text(), most, from));
}

TemplateValue split_lines(const Call& call) {
  const bool keeps_ends = call.arguments.truth("keepends", false);
  std::vector<std::string_view> lines = lines_of(call.text);
  for (size_t i = 0; keeps_ends && i < lines.size(); ++i) {
    const char* end =
        i + 1 < lines.size() ? lines[i + 1].data() : call.text.data() + call.text.size();
    lines[i] = std::string_view(lines[i].data(), static_cast<size_t>(end - lines[i].data()));
  }
  return call.made_list(lines);
}

TemplateValue replace(const Call& call) {
  const std::string from = call.arguments.required_text("old");
  const std::string to = call.arguments.required_text("new");
  const int64_t most = call.arguments.integer("count", -1);
  return call.runtime.text(replaced(call.text, from, to, most, call.runtime.limits().output_bytes));
}

TemplateValue join(const Call& call) {
  const TemplateValues items = to_items(call.runtime, call.arguments.required("iterable"));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      require_defined(items[i]);
      throw TemplateError(fmt::format("sequence item {}: expected str instance, {} found", i,
                                      items[i].type_name()));
    }
    if (i > 0) out += call.text;
    call.runtime.charge(call.text.size() + items[i].text().size());
    out += items[i].text();
  }
  return TemplateValue(std::move(out));
}

TemplateValue pad(const Call& call, Alignment alignment) {
  const int64_t width = call.arguments.required_integer("width");
  const std::string fill = call.arguments.text("fillchar", " ");
  if (length_of(fill) != 1)
    throw TemplateError("the fill character must be exactly one character long");
  return call.runtime.text(padded(call.runtime, call.text, width, fill, alignment));
}

TemplateValue format(const Call& call) { refuse_formatting("." + std::string(call.name)); }

// Zeros go after a sign.
TemplateValue zero_fill(const Call& call) {
  const auto width = std::max<int64_t>(call.arguments.required_integer("width"), 0);
  const size_t sign = call.text.starts_with('-') || call.text.starts_with('+') ? 1 : 0;
  return call.runtime.text(call.text.substr(0, sign) +
                           padded(call.runtime, std::string_view(call.text).substr(sign),
                                  width - static_cast<int64_t>(sign), "0", Alignment::right));
}

TemplateValue partition(const Call& call, SplitFrom from) {
  const std::string separator = call.arguments.required_text("sep");
  if (separator.empty()) throw TemplateError("empty separator");
  const auto parts = split_on(call.text, separator, 1, from);
  if (parts.size() == 2) {
    return TemplateValue::tuple({call.made(parts[0]), call.made(separator), call.made(parts[1])});
  }
  const TemplateValue nothing{std::string()};
  return from == SplitFrom::left ? TemplateValue::tuple({call.made(call.text), nothing, nothing})
                                 : TemplateValue::tuple({nothing, nothing, call.made(call.text)});
}

TemplateValue expand_tabs(const Call& call) {
  const int64_t size = call.arguments.integer("tabsize", 8);
  if (size > 1000) throw TemplateError("a tab of more than 1000 blanks", ErrorCode::exhausted);
  std::string out;
  int64_t column = 0;
  for (const std::string_view character : characters_of(call.text)) {
    if (character == "\t") {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      call.runtime.charge(static_cast<size_t>(blanks));
      out.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
    } else {
      out += character;
      column = character == "\n" || character == "\r" ? 0 : column + 1;
    }
  }
  return call.runtime.text(std::move(out));
}

template <bool (*kIs)(char32_t)>
TemplateValue every(const Call& call) {
  return all_characters(call.text, kIs);
}

struct MethodDefinition {
  std::string_view name;
  Method method;
};

constexpr MethodDefinition kMethods[] = {
    {"strip", [](const Call& c) { return strip(c, Ends::both); }},
    {"lstrip", [](const Call& c) { return strip(c, Ends::left); }},
    {"rstrip", [](const Call& c) { return strip(c, Ends::right); }},
    {"split", [](const Call& c) { return split(c, SplitFrom::left); }},
    {"rsplit", [](const Call& c) { return split(c, SplitFrom::right); }},
    {"splitlines", split_lines},
    {"startswith", [](const Call& c) { return begins_or_ends_with(c, TextEnd::start); }},
    {"endswith", [](const Call& c) { return begins_or_ends_with(c, TextEnd::end); }},
    {"find", [](const Call& c) { return search_text(c, TextSearch::find); }},
    {"rfind", [](const Call& c) { return search_text(c, TextSearch::rfind); }},
    {"index", [](const Call& c) { return search_text(c, TextSearch::index); }},
    {"rindex", [](const Call& c) { return search_text(c, TextSearch::rindex); }},
    {"count", count_text},
    {"replace", replace},
    {"join", join},
    {"upper", [](const Call& c) { return c.made(upper_case(c.text)); }},
    {"lower", [](const Call& c) { return c.made(lower_case(c.text)); }},
    {"casefold", [](const Call& c) { return c.made(case_folded(c.text)); }},
    {"capitalize", [](const Call& c) { return c.made(capitalized(c.text)); }},
    {"title", [](const Call& c) { return c.made(title_case(c.text)); }},
    {"swapcase", [](const Call& c) { return c.made(swapped_case(c.text)); }},
    {"ljust", [](const Call& c) { return pad(c, Alignment::left); }},
    {"rjust", [](const Call& c) { return pad(c, Alignment::right); }},
    {"center", [](const Call& c) { return pad(c, Alignment::center); }},
    {"zfill", zero_fill},
    {"format", format},
    {"format_map", format},
    {"partition", [](const Call& c) { return partition(c, SplitFrom::left); }},
    {"rpartition", [](const Call& c) { return partition(c, SplitFrom::right); }},
    {"expandtabs", expand_tabs},
    {"removeprefix",
     [](const Call& c) {
       const std::string prefix = c.arguments.required_text("prefix");
       return c.made(c.text.starts_with(prefix) ? c.text.substr(prefix.size()) : c.text);
     }},
    {"removesuffix",
     [](const Call& c) {
       const std::string suffix = c.arguments.required_text("suffix");
       return c.made(c.text.ends_with(suffix) ? c.text.substr(0, c.text.size() - suffix.size())
                                              : c.text);
     }},
    {"isalpha", every<is_alpha>},
    {"isdigit", every<is_digit>},
    {"isdecimal", every<is_decimal>},
    {"isnumeric", every<is_numeric>},
    {"isalnum", every<is_alnum>},
    {"isspace", every<is_python_space>},
    {"isascii",
     [](const Call& c) {
       return TemplateValue(c.text.empty() || all_characters(c.text, is_ascii));
     }},
    {"isprintable",
     [](const Call& c) {
       return TemplateValue(c.text.empty() || all_characters(c.text, is_printable));
     }},
    {"isupper", [](const Call& c) { return TemplateValue(is_upper_text(c.text)); }},
    {"islower", [](const Call& c) { return TemplateValue(is_lower_text(c.text)); }},
    {"istitle", [](const Call& c) { return TemplateValue(is_title_text(c.text)); }},
};

}  // namespace

bool is_string_method(std::string_view name) { return find_named(kMethods, name) != nullptr; }

TemplateValue call_string_method(TemplateRuntime& runtime, const TemplateValue& self,
                                 std::string_view name, TemplateArguments arguments) {
  runtime.step(self.text().size() / 64);
  ArgumentReader reader(name, std::move(arguments));
  TemplateValue result = find_named(kMethods, name)->method({runtime, name, self.text(), reader});
  reader.finish();
  return result;
}

}  // namespace paceline
