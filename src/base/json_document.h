// JsonDocument is a parsed JSON text as simdjson keeps it: the form of files that are too big for a
// tree of Json and are read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_cursor.h"

namespace paceline {

struct DocumentMember;
template <class T>
class DocumentRange;

// A node of a JsonDocument, which must outlive it.
class DocumentNode {
 public:
  using Text = std::string_view;
  using Array = DocumentRange<DocumentNode>;
  using Object = DocumentRange<DocumentMember>;

  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  std::string shown() const;

  // Of a node that is one.
  bool boolean() const;
  double number() const;
  Text string() const;
  Array array() const;
  Object object() const;
  size_t num_items() const;
  DocumentNode item(size_t index) const;  // walks there
  // 4096.0 is none: those who read such files otherwise refuse it.
  std::optional<int64_t> integer() const;
  std::optional<uint64_t> unsigned_integer() const;

 private:
  friend class JsonDocument;
  template <class T>
  friend class DocumentRange;
  enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };

  Kind kind() const;

  // The two words of simdjson's element, or of its iterators.
  const void* document_ = nullptr;
  size_t index_ = 0;
};

struct DocumentMember {
  std::string_view key;
  DocumentNode value;
};

// The items of an array, or the members of an object, one after the other.
template <class T>
class DocumentRange {
 public:
  class Iterator {
   public:
    explicit Iterator(DocumentNode place) : place_(place) {}
    T operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return place_.index_ == other.place_.index_; }

   private:
    DocumentNode place_;
  };

  explicit DocumentRange(const DocumentNode& node);
  Iterator begin() const { return Iterator(begin_); }
  Iterator end() const { return Iterator(end_); }
  size_t size() const;  // walks through it

 private:
  DocumentNode begin_;
  DocumentNode end_;
};
extern template class DocumentRange<DocumentNode>;
extern template class DocumentRange<DocumentMember>;

using DocumentCursor = BasicJsonCursor<DocumentNode>;
extern template class BasicJsonCursor<DocumentNode>;

// What becomes of integers beyond 64 bits. Real files have them: transformers writes "no limit" as
// "model_max_length": 1000000000000000019884624838656.
enum class HugeIntegers : uint8_t { as_doubles, refused };

// What a text is: a whole document, or one line of several, which `where` names.
enum class JsonText : uint8_t { document, line };

class JsonDocument {
 public:
  // Parses strict JSON (UTF-8, no trailing bytes, depth at most 64, no duplicate keys) and frees
  // the text. Throws Error "WHERE: ..." with `code`, which the errors of cursors have too.
  JsonDocument(std::string text, std::string_view where, ErrorCode code = ErrorCode::invalid,
               HugeIntegers huge_integers = HugeIntegers::as_doubles,
               JsonText kind = JsonText::document);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;
  ~JsonDocument();

  DocumentCursor root() const;

 private:
  struct Parsed;  // simdjson's

  std::string where_;
  ErrorCode code_;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace paceline
