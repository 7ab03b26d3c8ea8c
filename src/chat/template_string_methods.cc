#include "chat/template_string_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "chat/python_format.h"
#include "chat/python_space.h"
#include "chat/python_string.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

struct Call {
  TemplateRuntime& runtime;
  std::string_view name;
  const std::string& text;
  ArgumentReader& arguments;

  TemplateValue made(std::string_view result) const { return runtime.text(std::string(result)); }
};

using Method = TemplateValue (*)(const Call& call);

TemplateValue strings(const Call& call, const std::vector<std::string_view>& parts) {
  TemplateValues items;
  call.runtime.charge_items(parts.size());
  for (const std::string_view part : parts) items.push_back(call.made(part));
  return TemplateValue::list(std::move(items));
}

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
  if (separator.is_none()) return strings(call, split_on_spaces(call.text, most, from));
  if (!separator.is_string())
    throw TemplateError("must be str or None, not " + std::string(separator.type_name()));
  if (separator.text().empty()) throw TemplateError("empty separator");
  return strings(call, split_on(call.text, separator.text(), most, from));
}

TemplateValue split_lines(const Call& call) {
  const bool keeps_ends = call.arguments.truth("keepends", false);
  std::vector<std::string_view> lines = lines_of(call.text);
  for (size_t i = 0; keeps_ends && i < lines.size(); ++i) {
    const char* end =
        i + 1 < lines.size() ? lines[i + 1].data() : call.text.data() + call.text.size();
    lines[i] = std::string_view(lines[i].data(), static_cast<size_t>(end - lines[i].data()));
  }
  return strings(call, lines);
}

// Where characters [start, end) of the text lie, in bytes; and which character `start` is.
struct Window {
  size_t begin;
  size_t end;
  int64_t first;
  bool is_empty;  // start behind the end
};
Window window_of(const Call& call) {
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
  const auto characters = characters_of(call.text);
  const auto offset = [&](int64_t index) {
    return index >= length ? call.text.size()
                           : static_cast<size_t>(characters[static_cast<size_t>(index)].data() -
                                                 call.text.data());
  };
  return {offset(start), offset(std::max(stop, start)), start, start > stop || start > length};
}

TemplateValue starts_or_ends(const Call& call, bool starts) {
  const TemplateValue wanted = call.arguments.required("prefix");
  const Window window = window_of(call);
  const std::string_view text =
      std::string_view(call.text).substr(window.begin, window.end - window.begin);
  const auto matches = [&](const TemplateValue& one) {
    require_defined(one);
    if (!one.is_string()) {
      throw TemplateError(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                      call.name, one.type_name()));
    }
    if (window.is_empty) return false;
    return starts ? text.starts_with(one.text()) : text.ends_with(one.text());
  };
  if (!wanted.is_tuple()) return matches(wanted);
  return std::any_of(wanted.items().begin(), wanted.items().end(), matches);
}

enum class Search { find, rfind, index, rindex };
TemplateValue search(const Call& call, Search how) {
  const std::string wanted = call.arguments.required_text("sub");
  const Window window = window_of(call);
  const std::string_view text =
      std::string_view(call.text).substr(window.begin, window.end - window.begin);
  const bool from_right = how == Search::rfind || how == Search::rindex;
  const size_t at = window.is_empty ? std::string_view::npos
                    : from_right    ? text.rfind(wanted)
                                    : text.find(wanted);
  if (at != std::string_view::npos) return window.first + length_of(text.substr(0, at));
  if (how == Search::index || how == Search::rindex) throw TemplateError("substring not found");
  return int64_t{-1};
}

TemplateValue count(const Call& call) {
  const std::string wanted = call.arguments.required_text("sub");
  const Window window = window_of(call);
  if (window.is_empty) return int64_t{0};
  std::string_view text =
      std::string_view(call.text).substr(window.begin, window.end - window.begin);
  if (wanted.empty()) return length_of(text) + 1;
  int64_t found = 0;
  for (size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; at += wanted.size())
    ++found;
  return found;
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

enum class Side { left, right, center };
TemplateValue pad(const Call& call, Side side) {
  const int64_t width = call.arguments.required_integer("width");
  const std::string fill = call.arguments.text("fillchar", " ");
  if (length_of(fill) != 1)
    throw TemplateError("the fill character must be exactly one character long");
  return call.runtime.text(padded(call.runtime, call.text, width, fill,
                                  side == Side::left    ? Alignment::left
                                  : side == Side::right ? Alignment::right
                                                        : Alignment::center));
}

TemplateValue zero_fill(const Call& call) {
  const int64_t width = call.arguments.required_integer("width");
  const bool has_sign = call.text.starts_with('-') || call.text.starts_with('+');
  const std::string digits = call.text.substr(has_sign ? 1 : 0);
  return call.runtime.text(
      (has_sign ? call.text.substr(0, 1) : "") +
      padded(call.runtime, digits, width - (has_sign ? 1 : 0), "0", Alignment::right));
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

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_space(char32_t c) { return is_python_space(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

struct Definition {
  std::string_view name;
  Method method;
};

constexpr Definition kMethods[] = {
    {"strip", [](const Call& c) { return strip(c, Ends::both); }},
    {"lstrip", [](const Call& c) { return strip(c, Ends::left); }},
    {"rstrip", [](const Call& c) { return strip(c, Ends::right); }},
    {"split", [](const Call& c) { return split(c, SplitFrom::left); }},
    {"rsplit", [](const Call& c) { return split(c, SplitFrom::right); }},
    {"splitlines", split_lines},
    {"startswith", [](const Call& c) { return starts_or_ends(c, true); }},
    {"endswith", [](const Call& c) { return starts_or_ends(c, false); }},
    {"find", [](const Call& c) { return search(c, Search::find); }},
    {"rfind", [](const Call& c) { return search(c, Search::rfind); }},
    {"index", [](const Call& c) { return search(c, Search::index); }},
    {"rindex", [](const Call& c) { return search(c, Search::rindex); }},
    {"count", count},
    {"replace", replace},
    {"join", join},
    {"upper", [](const Call& c) { return c.made(upper_case(c.text)); }},
    {"lower", [](const Call& c) { return c.made(lower_case(c.text)); }},
    {"casefold", [](const Call& c) { return c.made(lower_case(c.text)); }},
    {"capitalize", [](const Call& c) { return c.made(capitalized(c.text)); }},
    {"title", [](const Call& c) { return c.made(title_case(c.text)); }},
    {"swapcase", [](const Call& c) { return c.made(swapped_case(c.text)); }},
    {"ljust", [](const Call& c) { return pad(c, Side::left); }},
    {"rjust", [](const Call& c) { return pad(c, Side::right); }},
    {"center", [](const Call& c) { return pad(c, Side::center); }},
    {"zfill", zero_fill},
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
    {"isspace", every<is_space>},
    {"isascii",
     [](const Call& c) {
       return TemplateValue(c.text.empty() || all_characters(c.text, is_ascii));
     }},
    {"isupper", [](const Call& c) { return TemplateValue(is_upper_text(c.text)); }},
    {"islower", [](const Call& c) { return TemplateValue(is_lower_text(c.text)); }},
    {"istitle", [](const Call& c) { return TemplateValue(is_title_text(c.text)); }},
};

const Definition* find_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMethods), std::end(kMethods),
                   [&](const Definition& definition) { return definition.name == name; });
  return found == std::end(kMethods) ? nullptr : found;
}

}  // namespace

bool is_string_method(std::string_view name) {
  return name == "format" || find_method(name) != nullptr;
}

TemplateValue call_string_method(TemplateRuntime& runtime, const TemplateValue& self,
                                 std::string_view name, TemplateArguments arguments) {
  runtime.step(self.text().size() / 64);
  if (name == "format") return runtime.text(format_braces(runtime, self.text(), arguments));
  ArgumentReader reader(name, std::move(arguments));
  TemplateValue result = find_method(name)->method({runtime, name, self.text(), reader});
  reader.finish();
  return result;
}

}  // namespace paceline
