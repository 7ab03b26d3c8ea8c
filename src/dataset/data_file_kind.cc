#include "dataset/data_file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "dataset/json_examples.h"

namespace paceline {
namespace {

struct ForeignFile {
  std::string_view extensions;  // each between blanks
  std::string_view what;
  std::string_view instead;
};

constexpr std::array<ForeignFile, 4> kForeignFiles = {{
    {" .csv .tsv ", "a table (CSV)",
     "python3 -c \"import csv, json, sys; [print(json.dumps(row)) for row in "
     "csv.DictReader(sys.stdin)]\" writes its rows so"},
    {" .parquet .arrow .feather .orc .avro ", "a table in binary form",
     "python3 -c \"import pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], "
     "orient='records', lines=True)\" writes a Parquet file's rows so"},
    {" .gz .bz2 .xz .zst .zip .tar .tgz .7z ", "an archive", "unpack it first"},
    {" .xls .xlsx .ods .db .sqlite .pkl .pt .npy .npz .h5 .pdf .doc .docx .odt .epub .rtf ",
     "a document or a table in binary form", "export its rows, or its text to a file .txt"},
}};

struct Signature {
  std::string_view bytes;
  std::string_view what;
};

constexpr std::array<Signature, 8> kSignatures = {{
    {"PAR1", "a Parquet file"},
    {"ARROW1", "an Arrow file"},
    {"%PDF-", "a PDF document"},
    {"PK\x03\x04", "a ZIP archive or an office document"},
    {"SQLite format 3", "a database"},
    {"\x1F\x8B", "a gzip archive"},
    {"\x28\xB5\x2F\xFD", "a zstd archive"},
    {"\x93NUMPY", "a NumPy array"},
}};

constexpr std::string_view kExpected = "JSON Lines (.jsonl), a JSON array (.json) or a plain text";

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view what,
                         std::string_view instead) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: found {}, expected {}; {}", file.string(),
                                                  what, kExpected, instead));
}

}  // namespace

DataFileKind data_file_kind(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char byte) {
    return 'A' <= byte && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  });
  if (extension.empty()) return DataFileKind::plain_text;
  const std::string word = " " + extension + " ";
  if (std::string_view(" .jsonl .ndjson .jsonlines .json ").find(word) != std::string_view::npos) {
    return DataFileKind::json;
  }
  for (const ForeignFile& foreign : kForeignFiles) {
    if (foreign.extensions.find(word) != std::string_view::npos) {
      refuse(file, foreign.what, foreign.instead);
    }
  }
  return DataFileKind::plain_text;
}

void check_plain_text(const std::filesystem::path& file, std::string_view text) {
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.bytes)) {
      refuse(file, signature.what, "write its text, or its rows as JSON Lines");
    }
  }
  if (!begins_with_example(text)) return;
  refuse(file, "an example in JSON, which would be learnt as text",
         "name the file .jsonl (or .json) to learn its examples");
}

}  // namespace paceline
