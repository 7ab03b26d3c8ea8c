#include "chat/template_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/python_case.h"
#include "chat/python_character.h"
#include "chat/python_string.h"
#include "chat/template_arguments.h"
#include "chat/template_convert.h"
#include "chat/template_runtime.h"
#include "chat/template_table.h"

namespace paceline {
namespace {

// A call of a string's method.
struct StringCall {
  TemplateRuntime& runtime;
  std::string_view name;  // of the method
  const std::string& text;
  ArgumentReader& arguments;

  TemplateValue made(std::string_view result) const { return runtime.text(std::string(result)); }
  TemplateValue made_list(const std::vector<std::string_view>& parts) const {
    TemplateValues items;
    runtime.charge_items(parts.size());
    for (const std::string_view part : parts) items.push_back(made(part));
    return TemplateValue::list(std::move(items));
  }
};

enum class TextEnd { start, end };

// Without a match find and rfind return -1, index and rindex throw TemplateError.
enum class TextSearch { find, rfind, index, rindex };

// The part of the text selected by the arguments start and end; nothing when start is beyond the
// end.
struct Window {
  std::string_view text;
  int64_t first;  // the index of its first character
};

std::optional<Window> window_of(const StringCall& call) {
  const int64_t length = length_of(call.text);
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    const auto value = call.arguments.optional(name);
    if (!value || value->is_none()) return otherwise;
    require_defined(*value);
    if (!value->is_integral()) throw TemplateError("slice indices must be integers or None");
    const int64_t index = value->integer();
    return index < 0 ? std::max<int64_t>(index + length, 0) : index;
  };
  const int64_t start = bound("start", 0);
  const int64_t stop = std::min(bound("end", length), length);
  if (start > stop) return std::nullopt;
  const auto characters = characters_of(call.text);
  const auto offset = [&](int64_t index) {
    if (index == length) return call.text.size();
    return static_cast<size_t>(characters[static_cast<size_t>(index)].data() - call.text.data());
  };
  const size_t begin = offset(start);
  return Window{std::string_view(call.text).substr(begin, offset(stop) - begin), start};
}

TemplateValue begins_or_ends_with(const StringCall& call, TextEnd where) {
  const TemplateValue wanted = call.arguments.required("prefix");
  const auto window = window_of(call);
  const auto matches = [&](const TemplateValue& one) {
    require_defined(one);
    if (!one.is_string()) {
      throw TemplateError("{} first arg must be str or a tuple of str, not {}", call.name,
                          one.type_name());
    }
    if (!window) return false;
    return where == TextEnd::start ? window->text.starts_with(one.text())
                                   : window->text.ends_with(one.text());
  };
  if (!wanted.is_tuple()) return matches(wanted);
  return std::any_of(wanted.items().begin(), wanted.items().end(), matches);
}

TemplateValue search_text(const StringCall& call, TextSearch how) {
  const std::string wanted = call.arguments.text("sub");
  const auto window = window_of(call);
  const bool from_right = how == TextSearch::rfind || how == TextSearch::rindex;
  const size_t at = !window      ? std::string_view::npos
                    : from_right ? window->text.rfind(wanted)
                                 : window->text.find(wanted);
  if (at != std::string_view::npos) return window->first + length_of(window->text.substr(0, at));
  if (how == TextSearch::index || how == TextSearch::rindex) {
    throw TemplateError("substring not found");
  }
  return int64_t{-1};
}

TemplateValue count_text(const StringCall& call) {
  const std::string wanted = call.arguments.text("sub");
  const auto window = window_of(call);
  if (!window) return int64_t{0};
  if (wanted.empty()) return length_of(window->text) + 1;
  int64_t found = 0;
  for (size_t at = 0; (at = window->text.find(wanted, at)) != std::string_view::npos;) {
    at += wanted.size();
    ++found;
  }
  return found;
}

using Call = StringCall;
using Method = TemplateValue (*)(const Call& call);

TemplateValue strip(const Call& call, Ends ends) {
  const auto characters = call.arguments.optional("chars");
  if (!characters || characters->is_none()) return call.made(stripped(call.text, ends));
  require_defined(*characters);
  if (!characters->is_string()) throw TemplateError("{} arg must be None or str", call.name);
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
  const std::string from = call.arguments.text("old");
  const std::string to = call.arguments.text("new");
  const int64_t most = call.arguments.integer("count", -1);
  return call.runtime.text(replaced(call.text, from, to, most, call.runtime.limits().output_bytes));
}

TemplateValue join(const Call& call) {
  const TemplateValues items = to_items(call.runtime, call.arguments.required("iterable"));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      require_defined(items[i]);
      throw TemplateError("sequence item {}: expected str instance, {} found", i,
                          items[i].type_name());
    }
    if (i > 0) out += call.text;
    call.runtime.charge(call.text.size() + items[i].text().size());
    out += items[i].text();
  }
  return TemplateValue(std::move(out));
}

TemplateValue pad(const Call& call, Alignment alignment) {
  const int64_t width = call.arguments.integer("width");
  const std::string fill = call.arguments.text("fillchar", " ");
  if (length_of(fill) != 1)
    throw TemplateError("the fill character must be exactly one character long");
  return call.runtime.text(padded(call.runtime, call.text, width, fill, alignment));
}

TemplateValue format(const Call& call) { refuse_formatting("." + std::string(call.name)); }

// Zeros go after a sign.
TemplateValue zero_fill(const Call& call) {
  const auto width = std::max<int64_t>(call.arguments.integer("width"), 0);
  const size_t sign = call.text.starts_with('-') || call.text.starts_with('+') ? 1 : 0;
  return call.runtime.text(call.text.substr(0, sign) +
                           padded(call.runtime, std::string_view(call.text).substr(sign),
                                  width - static_cast<int64_t>(sign), "0", Alignment::right));
}

TemplateValue partition(const Call& call, SplitFrom from) {
  const std::string separator = call.arguments.text("sep");
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
       const std::string prefix = c.arguments.text("prefix");
       return c.made(c.text.starts_with(prefix) ? c.text.substr(prefix.size()) : c.text);
     }},
    {"removesuffix",
     [](const Call& c) {
       const std::string suffix = c.arguments.text("suffix");
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
