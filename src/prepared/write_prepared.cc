#include "prepared/write_prepared.h"

#include <array>
#include <string>
#include <vector>

#include "base/block_sum.h"
#include "base/error.h"
#include "base/new_file.h"
#include "prepared/pieces.h"

namespace paceline {
namespace {

// The bytes between the head and the first part.
std::string make_front(const std::string& json, std::span<const uint64_t> sums) {
  std::string front = json;
  front.resize(rounded_up(front.size(), sizeof(uint64_t)));
  front.append(reinterpret_cast<const char*>(sums.data()), sums.size_bytes());
  const uint64_t end = rounded_up(sizeof(PreparedHead) + front.size(), kFirstPartAlignment);
  front.resize(end - sizeof(PreparedHead));
  return front;
}

PreparedHead make_head(const PreparedTable& table, uint64_t table_bytes, uint64_t num_sums,
                       const std::string& front) {
  PreparedHead head{.magic = kPreparedMagic,
                    .file_bytes = sizeof(PreparedHead) + front.size(),
                    .table_bytes = table_bytes,
                    .num_sums = num_sums,
                    .first_part = sizeof(PreparedHead) + front.size(),
                    .front_sum = block_sum(std::as_bytes(std::span(front)), kFrontSeed)};
  for (const Part& part : table.weights.parts) head.file_bytes += stored_bytes(part.bytes.size());
  head.head_sum = sum_of_head(head);
  return head;
}

void append_part(const Part& part, NewFile& file) {
  static constexpr std::array<std::byte, kPartAlignment> kZeros{};
  PL_CHECK(part.bytes.size() == part_bytes(part.format), "write_prepared: a part of other bytes");
  file.append(part.bytes);
  file.append(std::span(kZeros).first(stored_bytes(part.bytes.size()) - part.bytes.size()));
}

}  // namespace

uint64_t write_prepared(const std::filesystem::path& path, const PreparedTable& table,
                        ThreadPool& threads) {
  const std::string json = write_table(table);
  const auto sums = sums_of_pieces(table.weights.parts, threads);
  const std::string front = make_front(json, sums);
  const PreparedHead head = make_head(table, json.size(), sums.size(), front);
  NewFile file(path, NewFile::Existing::replace);
  file.reserve(head.file_bytes);
  file.append(std::as_bytes(std::span(&head, 1)));
  file.append(front);
  for (const Part& part : table.weights.parts) append_part(part, file);
  file.commit();
  return head.file_bytes;
}

}  // namespace paceline
