// Locates the fields of a GGUF file, as far as it is well-formed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::fuzz {

struct GgufField {
  size_t begin = 0;
  size_t size = 0;
  bool is_text = false;  // the bytes of a string, whose length is in the eight bytes before
};

// A key with its value, or a tensor's entry.
struct GgufRecord {
  size_t begin = 0;
  size_t end = 0;
  std::vector<GgufField> fields;
};

struct GgufLayout {
  std::vector<GgufField> header;
  std::vector<GgufRecord> keys, tensors;
  size_t end = 0;  // of the well-formed part
};

class GgufScanner {
 public:
  explicit GgufScanner(std::string_view file) : file_(file) {}

  GgufLayout scan() {
    GgufLayout layout;
    uint64_t ignored = 0, num_tensors = 0, num_keys = 0;
    GgufRecord header;
    const bool sound = number(header, 4, ignored) && number(header, 4, ignored) &&
                       number(header, 8, num_tensors) && number(header, 8, num_keys);
    layout.header = header.fields;
    if (sound && records(num_keys, layout.keys, &GgufScanner::key)) {
      records(num_tensors, layout.tensors, &GgufScanner::tensor);
    }
    layout.end = at_;
    return layout;
  }

 private:
  static constexpr uint64_t kMaxRecords = 256;
  static constexpr uint64_t kMaxElements = 64;

  bool number(GgufRecord& record, size_t size, uint64_t& value) {
    if (size > file_.size() - at_) return false;
    value = 0;
    std::memcpy(&value, file_.data() + at_, size);
    record.fields.push_back({at_, size});
    at_ += size;
    return true;
  }
  bool text(GgufRecord& record) {
    uint64_t length = 0;
    if (!number(record, 8, length) || length > file_.size() - at_) return false;
    record.fields.push_back({at_, static_cast<size_t>(length), true});
    at_ += static_cast<size_t>(length);
    return true;
  }
  bool value(GgufRecord& record, uint64_t type) {
    constexpr size_t kSizes[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t ignored = 0;
    if (type == 8) return text(record);
    return type < 13 && type != 9 && number(record, kSizes[type], ignored);
  }
  bool key(GgufRecord& record) {
    uint64_t type = 0, count = 0;
    if (!text(record) || !number(record, 4, type)) return false;
    if (type != 9) return value(record, type);
    if (!number(record, 4, type) || !number(record, 8, count) || count > kMaxElements) return false;
    while (count > 0 && value(record, type)) --count;
    return count == 0;
  }
  bool tensor(GgufRecord& record) {
    uint64_t rank = 0, ignored = 0;
    if (!text(record) || !number(record, 4, rank) || rank > 8) return false;
    while (rank > 0 && number(record, 8, ignored)) --rank;
    return rank == 0 && number(record, 4, ignored) && number(record, 8, ignored);
  }
  bool records(uint64_t count, std::vector<GgufRecord>& found,
               bool (GgufScanner::*read)(GgufRecord&)) {
    for (uint64_t i = 0; i < std::min(count, kMaxRecords); ++i) {
      GgufRecord record{.begin = at_};
      const bool sound = (this->*read)(record);
      record.end = at_;
      if (!record.fields.empty()) found.push_back(record);
      if (!sound) return false;
    }
    return count <= kMaxRecords;
  }

  std::string_view file_;
  size_t at_ = 0;
};

}  // namespace paceline::fuzz
