// DataFileKind is how a file of training data is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace paceline {

enum class DataFileKind : uint8_t { json, plain_text };

// By the file's name: .jsonl, .ndjson, .jsonlines and .json are JSON, others plain text. Throws
// Error unsupported for tables, archives and documents, which would be learnt as the text of their
// bytes, with what makes JSON Lines of them.
DataFileKind data_file_kind(const std::filesystem::path& file);

// The same by what the file begins with, where its name says plain text.
void check_plain_text(const std::filesystem::path& file, std::string_view text);

}  // namespace paceline
