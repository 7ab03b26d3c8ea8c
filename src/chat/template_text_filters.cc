// Filters with text as results.
#include <fmt/format.h>

#include <algorithm>

#include "chat/python_case.h"
#include "chat/python_character.h"
#include "chat/python_json.h"
#include "chat/python_string.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"

namespace paceline {
namespace {

using Runtime = TemplateRuntime;
using Value = TemplateValue;
using Arguments = ArgumentReader;

Value text_of(Runtime& runtime, const Value& value, std::string (*change)(std::string_view)) {
  return runtime.text(change(to_text(runtime, value)));
}

Value escape(Runtime& runtime, const Value& value, Arguments&) {
  return value.is_safe() ? value : Value::safe(html_escaped(to_text(runtime, value)));
}

// Words begin after a blank, a minus or an opening bracket.
std::string titled(std::string_view text) {
  std::string out;
  size_t begin = 0;
  const auto add_word = [&](std::string_view word) {
    if (!word.empty())
      out += upper_case(characters_of(word)[0]) +
             lower_case(word.substr(characters_of(word)[0].size()));
  };
  for (const std::string_view character : characters_of(text)) {
    const bool is_border = std::string_view("-({[<").find(character) != std::string_view::npos ||
                           stripped(character, Ends::both).empty();
    if (!is_border) continue;
    const auto at = static_cast<size_t>(character.data() - text.data());
    add_word(text.substr(begin, at - begin));
    out += character;
    begin = at + character.size();
  }
  add_word(text.substr(begin));
  return out;
}

Value trim(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value set = arguments.optional("chars").value_or(Value());
  const std::string text = to_text(runtime, value);
  if (set.is_none()) return runtime.text(std::string(stripped(text, Ends::both)));
  return runtime.text(std::string(stripped_of(text, to_text(runtime, set), Ends::both)));
}

Value replace(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::string from = to_text(runtime, arguments.required("old"));
  const std::string to = to_text(runtime, arguments.required("new"));
  const Value count = arguments.optional("count").value_or(Value());
  const int64_t most = count.is_integral() ? count.integer() : -1;
  return runtime.text(
      replaced(to_text(runtime, value), from, to, most, runtime.limits().output_bytes));
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
  const int64_t width = arguments.integer("width", 80);
  return runtime.text(padded(runtime, to_text(runtime, value), width, " ", Alignment::center));
}

Value indent(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value width = arguments.optional("width").value_or(Value(int64_t{4}));
  const bool first = arguments.truth("first", false);
  const bool blank = arguments.truth("blank", false);
  const std::string indention =
      width.is_string()
          ? width.text()
          : padded(runtime, "", width.is_integral() ? width.integer() : 4, " ", Alignment::left);
  require_defined(value);
  if (!value.is_string())
    throw TemplateError("indent: expected a string, not {}", value.type_name());
  const std::string text = value.text() + "\n";
  std::string out = first ? indention : "";
  bool is_first = true;
  for (const std::string_view line : lines_of(text)) {
    if (!is_first) {
      out += "\n";
      if (blank || !line.empty()) out += indention;
    }
    is_first = false;
    out += line;
    runtime.charge(line.size() + indention.size() + 1);
  }
  return Value(std::move(out));
}

Value truncate(Runtime& runtime, const Value& value, Arguments& arguments) {
  const int64_t length = arguments.integer("length", 255);
  const bool kills_words = arguments.truth("killwords", false);
  const std::string end = arguments.text("end", "...");
  const Value leeway_value = arguments.optional("leeway").value_or(Value());
  const int64_t leeway = leeway_value.is_integral() ? leeway_value.integer() : 5;
  if (length < length_of(end))
    throw TemplateError("expected length >= {}, got {}", length_of(end), length);
  if (leeway < 0) throw TemplateError("expected leeway >= 0, got {}", leeway);
  const auto size = length_if_any(value);
  if (!size) throw TemplateError("object of type '{}' has no len()", value.type_name());
  if (*size <= length + leeway) return value;
  require_defined(value);
  if (!value.is_string()) throw TemplateError("truncate: expected a string");
  const std::string& text = value.text();
  const auto characters = characters_of(text);
  std::string cut;
  for (int64_t i = 0; i < length - length_of(end); ++i) cut += characters[static_cast<size_t>(i)];
  if (!kills_words) cut = std::string(split_on(cut, " ", 1, SplitFrom::right)[0]);
  return runtime.text(cut + end);
}

Value join(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::string separator =
      to_text(runtime, arguments.optional("d").value_or(Value(std::string())));
  const AttributePath attribute(arguments.optional("attribute").value_or(Value()));
  std::string out;
  bool is_first = true;
  for (const Value& item : to_items(runtime, value)) {
    if (!is_first) {
      runtime.charge(separator.size());
      out += separator;
    }
    is_first = false;
    out += to_text(runtime, attribute.of(runtime, item));
  }
  return Value(std::move(out));
}

Value to_json(Runtime& runtime, const Value& value, Arguments& arguments) {
  PythonJsonOptions options;
  options.ensure_ascii = arguments.truth("ensure_ascii", false);
  const Value indent = arguments.optional("indent").value_or(Value());
  const Value separators = arguments.optional("separators").value_or(Value());
  options.sort_keys = arguments.truth("sort_keys", false);
  if (indent.is_string()) options.indent = indent.text();
  if (indent.is_integral()) {
    options.indent =
        padded(runtime, "", std::max<int64_t>(indent.integer(), 0), " ", Alignment::left);
  }
  if (separators.is_sequence()) {
    const TemplateValues& both = separators.items();
    if (both.size() != 2 || !both[0].is_string() || !both[1].is_string()) {
      throw TemplateError("tojson: separators must be two strings");
    }
    options.item_separator = both[0].text();
    options.key_separator = both[1].text();
  }
  return runtime.text(python_json(value, options, runtime.limits().output_bytes));
}

enum class UrlPart { path, query };

// Like urllib.parse.quote: in a path "/" is kept, in a query a blank becomes "+".
std::string url_quoted(std::string_view text, UrlPart part) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') ||
                          std::string_view("_.-~").find(c) != std::string_view::npos ||
                          (part == UrlPart::path && c == '/');
    if (part == UrlPart::query && c == ' ') {
      out += "+";
    } else {
      out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value url_encode(Runtime& runtime, const Value& value, Arguments&) {
  if (!value.is_mapping() && !value.is_sequence())
    return runtime.text(url_quoted(to_text(runtime, value), UrlPart::path));
  std::string out;
  const auto add = [&](const Value& key, const Value& of_key) {
    if (!out.empty()) out += "&";
    out += url_quoted(to_text(runtime, key), UrlPart::query) + "=" +
           url_quoted(to_text(runtime, of_key), UrlPart::query);
  };
  if (value.is_mapping()) {
    for (const auto& [key, of_key] : value.members().members()) add(key, of_key);
  } else {
    for (const Value& pair : value.items()) {
      const TemplateValues both = to_items(runtime, pair);
      if (both.size() != 2) throw TemplateError("urlencode: expected pairs");
      add(both[0], both[1]);
    }
  }
  return runtime.text(std::move(out));
}

Value word_count(Runtime& runtime, const Value& value, Arguments&) {
  int64_t words = 0;
  bool in_word = false;
  const std::string text = to_text(runtime, value);
  for (const std::string_view character : characters_of(text)) {
    const bool is_word = character == "_" || all_characters(character, is_alnum);
    words += is_word && !in_word ? 1 : 0;
    in_word = is_word;
  }
  return words;
}

constexpr FilterDefinition kTextFilters[] = {
    {"upper", [](Runtime& r, const Value& v, Arguments&) { return text_of(r, v, upper_case); }},
    {"lower", [](Runtime& r, const Value& v, Arguments&) { return text_of(r, v, lower_case); }},
    {"capitalize",
     [](Runtime& r, const Value& v, Arguments&) { return text_of(r, v, capitalized); }},
    {"title", [](Runtime& r, const Value& v, Arguments&) { return text_of(r, v, titled); }},
    {"string", [](Runtime& r, const Value& v,
                  Arguments&) { return v.is_string() ? v : Value(to_text(r, v)); }},
    {"safe", [](Runtime& r, const Value& v, Arguments&) { return Value::safe(to_text(r, v)); }},
    {"escape", escape},
    {"e", escape},
    {"forceescape", [](Runtime& r, const Value& v,
                       Arguments&) { return Value::safe(html_escaped(to_text(r, v))); }},
    {"trim", trim},
    {"replace", replace},
    {"center", center},
    {"indent", indent},
    {"truncate", truncate},
    {"join", join},
    {"tojson", to_json},
    {"urlencode", url_encode},
    {"wordcount", word_count},
    {"format", [](Runtime&, const Value&, Arguments&) -> Value { refuse_formatting("|format"); }},
};

}  // namespace

std::span<const FilterDefinition> text_filters() { return kTextFilters; }

}  // namespace paceline
