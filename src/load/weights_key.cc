#include "load/weights_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/siphash.h"
#include "base/version.h"
#include "kernels/packed_layout.h"

namespace paceline {
namespace {

// Covers most headers; the file's stamp covers the rest.
constexpr size_t kDigestedBytes = 1 << 20;

std::string digest_of(std::span<const std::byte> bytes) {
  const Hash128 hash = siphash128_bytes(kPublicSipKey, bytes);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

// A file's name may contain line ends and ill-formed UTF-8.
std::string printable(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool is_plain = c > ' ' && c < 0x7f && c != '\\';
    text += is_plain ? std::string(1, c) : fmt::format("\\{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

// Without the inode, because some file systems renumber it at every mount. A replaced file has
// other times.
std::string line_of(const MappedFile& file) {
  const FileStamp& stamp = file.stamp();
  const auto beginning = file.bytes().first(std::min(kDigestedBytes, file.bytes().size()));
  return fmt::format("file {} {} {} {} {}\n", printable(file.path().filename().string()),
                     stamp.size_bytes, stamp.modified_ns, stamp.changed_ns, digest_of(beginning));
}

}  // namespace

std::string weights_key(const WeightsOrigin& origin) {
  std::string key =
      fmt::format("paceline {} {}\npanels {}\nplain {} quantize {} quantised {}\nconfig {}\n",
                  kVersion, kGitDescribe, kPanelLayoutVersion, dtype_name(origin.dtype),
                  origin.quantize, origin.keeps_quantised ? "kept" : "plain",
                  digest_of(std::as_bytes(std::span(origin.config))));
  for (const MappedFile& file : origin.files) key += line_of(file);
  return key;
}

std::string weights_file_name(std::string_view key) {
  return digest_of(std::as_bytes(std::span(key))) + ".weights";
}

bool are_unchanged(std::span<const MappedFile> files) {
  return std::ranges::all_of(
      files, [](const MappedFile& file) { return file_stamp(file.path()) == file.stamp(); });
}

}  // namespace paceline
