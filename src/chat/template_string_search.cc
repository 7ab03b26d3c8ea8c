#include "chat/template_string_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "chat/python_string.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

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

}  // namespace

TemplateValue begins_or_ends_with(const StringCall& call, TextEnd where) {
  const TemplateValue wanted = call.arguments.required("prefix");
  const auto window = window_of(call);
  const auto matches = [&](const TemplateValue& one) {
    require_defined(one);
    if (!one.is_string()) {
      throw TemplateError(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                      call.name, one.type_name()));
    }
    if (!window) return false;
    return where == TextEnd::start ? window->text.starts_with(one.text())
                                   : window->text.ends_with(one.text());
  };
  if (!wanted.is_tuple()) return matches(wanted);
  return std::any_of(wanted.items().begin(), wanted.items().end(), matches);
}

TemplateValue search_text(const StringCall& call, TextSearch how) {
  const std::string wanted = call.arguments.required_text("sub");
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
  const std::string wanted = call.arguments.required_text("sub");
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

}  // namespace paceline
