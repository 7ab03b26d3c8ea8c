// TemplateValue is a value of a chat template, with Python's types.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace paceline {

class TemplateValue;
class TemplateObject;
using TemplateValues = std::vector<TemplateValue>;

// Immutable once made; shared, never copied. Values don't outlive the rendering, which owns the
// objects.
struct TemplateText {
  std::string bytes;     // UTF-8
  bool is_safe = false;  // made by |safe or |escape: Markup in Python
};

struct TemplateSequence {
  TemplateValues items;
  bool is_tuple = false;
  bool is_group = false;  // a pair of |groupby, with the names grouper and list
  uint32_t depth = 1;     // nesting depth of containers
};

// A Python generator: always true, without a length, iterated once.
struct TemplateStream {
  TemplateValues items;
  size_t next = 0;
};

// Keeps the order of insertion; keys are hashable values.
class TemplateMapping {
 public:
  using Member = std::pair<TemplateValue, TemplateValue>;

  // The last of equal keys wins, in the position of the first.
  void set(TemplateValue key, TemplateValue value);
  const TemplateValue* find(const TemplateValue& key) const;
  const TemplateValue* find(std::string_view key) const;
  const std::vector<Member>& members() const { return members_; }
  uint32_t depth() const { return depth_; }

 private:
  std::vector<Member> members_;
  // Places of string keys, once there are many. Copies of a key share its text.
  std::unordered_map<std::string_view, size_t> index_;
  size_t num_indexed_ = 0;
  uint32_t depth_ = 1;
};

class TemplateValue {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> why;  // the message of an error about it
  };
  struct None {};

  TemplateValue() : value_(None{}) {}
  TemplateValue(bool value) : value_(value) {}
  TemplateValue(int64_t value) : value_(value) {}
  TemplateValue(double value) : value_(value) {}
  TemplateValue(std::string text)
      : value_(std::make_shared<const TemplateText>(TemplateText{std::move(text)})) {}
  TemplateValue(const char*) = delete;
  TemplateValue(std::shared_ptr<const TemplateText> text) : value_(std::move(text)) {}
  TemplateValue(std::shared_ptr<const TemplateSequence> items) : value_(std::move(items)) {}
  TemplateValue(std::shared_ptr<const TemplateMapping> members) : value_(std::move(members)) {}
  TemplateValue(std::shared_ptr<TemplateStream> stream) : value_(std::move(stream)) {}
  TemplateValue(TemplateObject* object) : value_(object) {}

  static TemplateValue undefined(std::string why);
  static TemplateValue list(TemplateValues items);
  static TemplateValue tuple(TemplateValues items);
  static TemplateValue stream(TemplateValues items);
  static TemplateValue mapping(TemplateMapping members);
  static TemplateValue safe(std::string text);

  bool is_undefined() const { return holds<Undefined>(); }
  bool is_none() const { return holds<None>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_int() const { return holds<int64_t>(); }  // not a bool
  bool is_float() const { return holds<double>(); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_integral() const { return is_bool() || is_int(); }
  bool is_string() const { return holds<std::shared_ptr<const TemplateText>>(); }
  bool is_sequence() const { return holds<std::shared_ptr<const TemplateSequence>>(); }
  bool is_tuple() const { return is_sequence() && sequence().is_tuple; }
  bool is_mapping() const { return holds<std::shared_ptr<const TemplateMapping>>(); }
  bool is_stream() const { return holds<std::shared_ptr<TemplateStream>>(); }
  bool is_object() const { return holds<TemplateObject*>(); }

  const std::string& why_undefined() const { return *std::get<Undefined>(value_).why; }
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t integer() const;  // of an integral value
  double real() const;      // of a number
  const std::string& text() const { return text_part().bytes; }
  bool is_safe() const { return is_string() && text_part().is_safe; }
  const TemplateSequence& sequence() const {
    return *std::get<std::shared_ptr<const TemplateSequence>>(value_);
  }
  const TemplateValues& items() const { return sequence().items; }
  const TemplateMapping& members() const {
    return *std::get<std::shared_ptr<const TemplateMapping>>(value_);
  }
  TemplateStream& stream_part() const { return *std::get<std::shared_ptr<TemplateStream>>(value_); }
  TemplateObject& object() const { return *std::get<TemplateObject*>(value_); }

  // The nesting depth of containers; 0 for anything else.
  uint32_t depth() const;
  // Python's bool(value).
  bool truth() const;
  // Python's type(value).__name__, e.g. "str"; for messages.
  std::string_view type_name() const;

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  const TemplateText& text_part() const {
    return *std::get<std::shared_ptr<const TemplateText>>(value_);
  }

  std::variant<None, Undefined, bool, int64_t, double, std::shared_ptr<const TemplateText>,
               std::shared_ptr<const TemplateSequence>, std::shared_ptr<const TemplateMapping>,
               std::shared_ptr<TemplateStream>, TemplateObject*>
      value_;
};

// The maximum nesting depth of containers, so that walking them needs little stack.
inline constexpr uint32_t kMaxValueDepth = 128;

// Whether Python can use it as a key: not a list or dict.
bool is_hashable(const TemplateValue& value);

}  // namespace paceline
