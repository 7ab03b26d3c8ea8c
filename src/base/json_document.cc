#include "base/json_document.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <unordered_set>
#include <vector>

#include "base/json_fault.h"

namespace paceline {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxDepth = 64;

// What a DocumentNode holds is an element, or an iterator, of simdjson: a document and a place on
// its tape. Its header stays out of ours in this way.
dom::element element_at(const DocumentNode& node) { return std::bit_cast<dom::element>(node); }

template <class T>
struct Iteration;
template <>
struct Iteration<DocumentNode> {
  using Container = dom::array;
  static DocumentNode value(dom::array::iterator at) { return std::bit_cast<DocumentNode>(*at); }
};
template <>
struct Iteration<DocumentMember> {
  using Container = dom::object;
  static DocumentMember value(dom::object::iterator at) {
    return {at.key(), std::bit_cast<DocumentNode>(at.value())};
  }
};

bool is_integer_beyond_64_bits(std::string_view number) {
  const char* const end = number.data() + number.size();
  int64_t as_signed = 0;
  uint64_t as_unsigned = 0;
  const auto overflows = [end](std::from_chars_result result) {
    return result.ptr == end && result.ec == std::errc::result_out_of_range;
  };
  // from_chars accepts no sign for an unsigned type, so negative numbers fail at their start.
  return overflows(std::from_chars(number.data(), end, as_signed)) &&
         std::from_chars(number.data(), end, as_unsigned).ec != std::errc();
}

// Calls `take` with each number of a valid JSON text, in order.
template <class Take>
void for_each_number(std::string_view text, const Take& take) {
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text[i] == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (text[i] == '\\') ++end;
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      end = std::min(text.find_first_not_of("+-.0123456789Ee", i), text.size());
      take(text.substr(i, end - i));
    }
    i = end;
  }
}

// simdjson refuses integers beyond 64 bits; "e0" behind them makes them doubles.
std::string with_huge_integers_as_doubles(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  const char* copied = text.data();
  for_each_number(text, [&](std::string_view number) {
    if (!is_integer_beyond_64_bits(number)) return;
    out.append(copied, number.data() + number.size());
    out += "e0";
    copied = number.data() + number.size();
  });
  out.append(copied, text.data() + text.size());
  return out;
}

// The number at this index, in the text's order, of those at the cursor and below it. Subtracts
// their count from the index if they are fewer.
std::optional<DocumentCursor> find_number(const DocumentCursor& at, size_t& index) {
  if (at.is_number()) return index-- == 0 ? std::optional(at) : std::nullopt;
  std::optional<DocumentCursor> found;
  if (at.is_array()) {
    size_t item_index = 0;
    for (const DocumentNode& item : at.array()) {
      if ((found = find_number(at.below(item_index++, item), index))) return found;
    }
  } else if (at.is_object()) {
    for (const auto& [key, value] : at.object()) {
      if ((found = find_number(at.below(key, value), index))) return found;
    }
  }
  return found;
}

// Throws the error of the first integer beyond 64 bits in the text, if it has one.
void refuse_huge_integers(std::string_view text, const DocumentCursor& root) {
  constexpr size_t kMaxShown = 60;
  size_t index = 0;
  std::string_view huge;
  for_each_number(text, [&](std::string_view number) {
    if (!huge.empty()) return;
    is_integer_beyond_64_bits(number) ? void(huge = number) : void(++index);
  });
  if (huge.empty()) return;
  find_number(root, index)
      ->fail(found_instead(huge.substr(0, kMaxShown), "an integer of at most 64 bits"));
}

// Whether two keys have the same hash, as equal ones do. Cheaper than a set of a vocabulary's keys.
bool may_have_duplicate_key(const DocumentNode& object) {
  std::vector<size_t> hashes;
  hashes.reserve(object.object().size());
  for (const auto& [key, value] : object.object()) {
    hashes.push_back(std::hash<std::string_view>()(key));
  }
  std::sort(hashes.begin(), hashes.end());
  return std::adjacent_find(hashes.begin(), hashes.end()) != hashes.end();
}

std::optional<std::string_view> duplicate_key(const DocumentNode& object) {
  if (!may_have_duplicate_key(object)) return std::nullopt;
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : object.object()) {
    if (!keys.insert(key).second) return key;
  }
  return std::nullopt;
}

bool has_duplicate_key(const DocumentNode& node) {
  if (node.is_array()) {
    for (const DocumentNode& item : node.array()) {
      if (has_duplicate_key(item)) return true;
    }
    return false;
  }
  if (!node.is_object()) return false;
  if (duplicate_key(node)) return true;
  for (const auto& [key, value] : node.object()) {
    if (has_duplicate_key(value)) return true;
  }
  return false;
}

// Throws the error of the first object with a duplicate key, if there is one.
void refuse_duplicate_keys(const DocumentCursor& at) {
  if (!has_duplicate_key(at.node())) return;
  if (at.is_array()) {
    for (const DocumentCursor& item : at.items()) refuse_duplicate_keys(item);
    return;
  }
  if (const auto key = duplicate_key(at.node())) {
    at.fail(fmt::format("the key {} occurs twice", shown_text(*key)));
  }
  for (const auto& [key, value] : at.object()) refuse_duplicate_keys(at.below(key, value));
}

// Appends to `text` what simdjson may read behind its end.
simdjson::error_code parse(std::string& text, dom::document& document) {
  dom::parser parser;
  const size_t size = text.size();
  // The depth limit bounds the recursion of the document's readers.
  auto error = parser.allocate(std::max<size_t>(size, 32), kMaxDepth);
  if (error != simdjson::SUCCESS) return error;
  text.append(simdjson::SIMDJSON_PADDING, '\0');
  error = parser.parse_into_document(document, text.data(), size, false).error();
  text.resize(size);
  return error;
}

}  // namespace

DocumentNode::Kind DocumentNode::kind() const {
  using dom::element_type;
  switch (element_at(*this).type()) {
    case element_type::ARRAY:
      return Kind::array;
    case element_type::OBJECT:
      return Kind::object;
    case element_type::INT64:
    case element_type::UINT64:
      return Kind::integer;
    case element_type::DOUBLE:
      return Kind::real;
    case element_type::STRING:
      return Kind::string;
    case element_type::BOOL:
      return Kind::boolean;
    case element_type::NULL_VALUE:
      break;
  }
  return Kind::null;
}

std::string DocumentNode::shown() const {
  if (is_array()) return "an array";
  if (is_object()) return "an object";
  return is_string() ? shown_text(string()) : simdjson::minify(element_at(*this));
}

bool DocumentNode::boolean() const { return element_at(*this).get<bool>(); }
double DocumentNode::number() const { return element_at(*this).get<double>(); }
std::string_view DocumentNode::string() const { return element_at(*this).get<std::string_view>(); }
DocumentNode::Array DocumentNode::array() const { return Array(*this); }
DocumentNode::Object DocumentNode::object() const { return Object(*this); }
size_t DocumentNode::num_items() const { return array().size(); }

DocumentNode DocumentNode::item(size_t index) const {
  auto at = array().begin();
  for (size_t i = 0; i < index; ++i) ++at;
  return *at;
}

std::optional<int64_t> DocumentNode::integer() const {
  int64_t value = 0;
  if (is_integer() && element_at(*this).get(value) == simdjson::SUCCESS) return value;
  return std::nullopt;
}

std::optional<uint64_t> DocumentNode::unsigned_integer() const {
  uint64_t value = 0;
  if (is_integer() && element_at(*this).get(value) == simdjson::SUCCESS) return value;
  return std::nullopt;
}

template <class T>
DocumentRange<T>::DocumentRange(const DocumentNode& node) {
  const typename Iteration<T>::Container container = element_at(node);
  begin_ = std::bit_cast<DocumentNode>(container.begin());
  end_ = std::bit_cast<DocumentNode>(container.end());
}

template <class T>
T DocumentRange<T>::Iterator::operator*() const {
  return Iteration<T>::value(std::bit_cast<typename Iteration<T>::Container::iterator>(place_));
}

template <class T>
typename DocumentRange<T>::Iterator& DocumentRange<T>::Iterator::operator++() {
  auto at = std::bit_cast<typename Iteration<T>::Container::iterator>(place_);
  ++at;
  place_ = std::bit_cast<DocumentNode>(at);
  return *this;
}

template <class T>
size_t DocumentRange<T>::size() const {
  size_t size = 0;
  for (auto at = begin(); at != end(); ++at) ++size;
  return size;
}

template class DocumentRange<DocumentNode>;
template class DocumentRange<DocumentMember>;

struct JsonDocument::Parsed {
  dom::document document;
};

JsonDocument::~JsonDocument() = default;

DocumentCursor JsonDocument::root() const {
  return {std::bit_cast<DocumentNode>(parsed_->document.root()), where_, code_};
}

JsonDocument::JsonDocument(std::string text, std::string_view where, ErrorCode code,
                           HugeIntegers huge_integers, JsonText kind)
    : where_(where), code_(code), parsed_(std::make_unique<Parsed>()) {
  auto error = parse(text, parsed_->document);
  if (error == simdjson::NUMBER_ERROR) {
    std::string again = with_huge_integers_as_doubles(text);
    error = parse(again, parsed_->document);
    const bool is_parsed = error == simdjson::SUCCESS;
    if (is_parsed && huge_integers == HugeIntegers::refused) refuse_huge_integers(text, root());
  }
  if (error == simdjson::MEMALLOC) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: no memory to parse {} bytes of JSON", where, text.size()));
  }
  if (error != simdjson::SUCCESS) {
    const auto fault = find_json_fault(text, kMaxDepth);
    throw Error(code, fmt::format("{}: not valid JSON: {}", where,
                                  !fault                   ? simdjson::error_message(error)
                                  : kind == JsonText::line ? fault->text_in_line()
                                                           : fault->text()));
  }
  text = std::string();  // a duplicate's check may need as much memory
  refuse_duplicate_keys(root());
}

}  // namespace paceline
