// Changes a GGUF file so that the parts before and after the change stay well-formed: plain
// mutations fail at the magic or at the next length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/gguf_layout.h"

namespace paceline::fuzz {

class GgufMutator {
 public:
  GgufMutator(std::string file, unsigned seed)
      : file_(std::move(file)), layout_(GgufScanner(file_).scan()), random_(seed) {}

  // Mostly changes keys and tensors, which have the most checks.
  std::string mutated() {
    const uint64_t share = draw(100);
    if (share < 35) {
      change_field(any(layout_.keys));
    } else if (share < 70) {
      change_field(any(layout_.tensors));
    } else if (share < 80) {
      change_one_of(layout_.header);
    } else if (share < 90) {
      change_records();
    } else if (share < 95) {
      add_alignment();
    } else {
      change_end();
    }
    return std::move(file_);
  }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  GgufRecord* any(std::vector<GgufRecord>& records) {
    return records.empty() ? nullptr : &records[draw(records.size())];
  }

  void change_field(const GgufRecord* record) {
    if (record == nullptr) return change_end();
    change_one_of(record->fields);
  }

  void change_one_of(const std::vector<GgufField>& fields) {
    if (fields.empty()) return change_end();
    const GgufField field = fields[draw(fields.size())];
    if (field.is_text) return change_text(field);
    uint64_t old = 0;
    std::memcpy(&old, file_.data() + field.begin, field.size);
    const uint64_t number = changed_number(old);
    std::memcpy(file_.data() + field.begin, &number, field.size);
  }

  uint64_t changed_number(uint64_t old) {
    const uint64_t power = uint64_t{1} << draw(64);
    switch (draw(8)) {
      case 0:
        return draw(45);  // small counts, types of values and tensors
      case 1:
        return power;
      case 2:
        return power - 1;
      case 3:
        return ~power + 1;
      case 4:
        return old + 1;
      case 5:
        return old - 1;
      case 6:
        return draw(2) == 0 ? old * 2 : old ^ power;
      default:
        return draw(2) == 0 ? file_.size() - draw(40) : 32 * draw(8);
    }
  }

  // Replaces a text by a longer, shorter or other one, and updates its length.
  void change_text(const GgufField& field) {
    std::string text = file_.substr(field.begin, field.size);
    switch (draw(4)) {
      case 0:
        text.insert(draw(text.size() + 1), draw(20) == 0 ? 1100 : 1 + draw(3), 'x');
        break;
      case 1:
        text.resize(draw(text.size() + 1));
        break;
      case 2:
        text = kWords[draw(std::size(kWords))];
        break;
      default:
        if (!text.empty()) text[draw(text.size())] = static_cast<char>(draw(256));
    }
    const uint64_t length = text.size();
    std::memcpy(file_.data() + field.begin - sizeof(length), &length, sizeof(length));
    file_.replace(field.begin, field.size, text);
  }

  // Duplicates, removes or replaces a key or tensor, and updates the counts.
  void change_records() {
    const bool of_keys = draw(2) == 0;
    auto& records = of_keys ? layout_.keys : layout_.tensors;
    if (records.empty()) return add_alignment();
    const GgufRecord record = records[draw(records.size())];
    const GgufRecord other = records[draw(records.size())];
    const std::string text = file_.substr(record.begin, record.end - record.begin);
    switch (draw(3)) {
      case 0:
        file_.insert(other.end, text);
        return add_to_count(of_keys, 1);
      case 1:
        file_.erase(record.begin, text.size());
        return add_to_count(of_keys, ~uint64_t{0});
      default:
        file_.replace(other.begin, other.end - other.begin, text);
    }
  }

  void add_to_count(bool of_keys, uint64_t number) {
    const size_t at = of_keys ? 16 : 8;
    uint64_t count = 0;
    std::memcpy(&count, file_.data() + at, sizeof(count));
    count += number;
    std::memcpy(file_.data() + at, &count, sizeof(count));
  }

  void add_alignment() {
    if (layout_.header.size() < 4) return change_end();
    constexpr std::string_view kKey = "general.alignment";
    std::string record(8, '\0');
    record[0] = static_cast<char>(kKey.size());
    record.append(kKey).append("\4\0\0\0", 4);  // uint32
    const auto alignment = static_cast<uint32_t>(draw(4) == 0 ? draw(5000) : 1u << draw(32));
    record.append(reinterpret_cast<const char*>(&alignment), sizeof(alignment));
    constexpr size_t kHeaderBytes = 24;
    file_.insert(kHeaderBytes, record);
    add_to_count(true, 1);
  }

  // Truncates or extends the data, or changes a byte of it.
  void change_end() {
    const size_t begin = std::min(layout_.end, file_.size());
    const size_t at = begin + draw(file_.size() - begin + 1);
    switch (draw(3)) {
      case 0:
        return file_.resize(at);
      case 1:
        file_.insert(at, 1 + draw(64), static_cast<char>(draw(256)));
        return;
      default:
        if (at < file_.size()) file_[at] = static_cast<char>(draw(256));
    }
  }

  static constexpr std::string_view kWords[] = {
      "",      "general.alignment", "split.no", "split.count",      "general.architecture",
      "llama", "output.weight",     "a",        "token_embd.weight"};

  std::string file_;
  GgufLayout layout_;
  std::mt19937_64 random_;
};

}  // namespace paceline::fuzz
