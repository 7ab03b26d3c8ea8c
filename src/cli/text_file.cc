#include "cli/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/utf8.h"

namespace paceline {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string read_whole_file(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{256} << 20;
  constexpr size_t kChunk = 1 << 18;
  const bool is_stdin = path == "-";
  const int descriptor = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string name = is_stdin ? "standard input" : path;
  if (descriptor < 0) throw error_of(ErrorCode::not_found, "{}: {}", name, std::strerror(errno));
  std::string text;
  ssize_t count = 1;
  while (count != 0 && text.size() <= kMaxBytes) {
    const size_t size = text.size();
    text.resize(size + kChunk);
    count = read(descriptor, text.data() + size, kChunk);
    const int reason = errno;
    text.resize(size + static_cast<size_t>(count > 0 ? count : 0));
    if (count < 0 && reason != EINTR) {
      if (!is_stdin) close(descriptor);
      throw error_of(ErrorCode::invalid, "{}: {}", name, std::strerror(reason));
    }
  }
  if (!is_stdin) close(descriptor);
  if (text.size() > kMaxBytes) {
    throw error_of(ErrorCode::exhausted, "{}: more than {} MiB", name, kMaxBytes >> 20);
  }
  return text;
}

void check_utf8(std::string_view text, std::string_view where) {
  for (size_t at = 0; at < text.size();) {
    const DecodedCodePoint next = decode_utf8(text.substr(at));
    if (!next.valid) {
      throw error_of(ErrorCode::invalid, "{}: byte {} (0x{:02x}) is not UTF-8, expected text",
                     where, at, static_cast<unsigned char>(text[at]));
    }
    at += next.size;
  }
}

std::string read_whole_text(const std::string& path) {
  std::string text = read_whole_file(path);
  check_utf8(text, path == "-" ? "standard input" : path);
  return text;
}

void write_whole_file(const std::string& path, const std::string& content) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) throw error_of(ErrorCode::invalid, "{}: {}", path, std::strerror(errno));
  const size_t written = std::fwrite(content.data(), 1, content.size(), file.get());
  if (written != content.size() || std::fclose(file.release()) != 0) {
    throw error_of(ErrorCode::exhausted, "{}: {}", path, std::strerror(errno));
  }
}

std::string without_final_newline(std::string text) {
  if (text.empty() || text.back() != '\n') return text;
  text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

}  // namespace paceline
