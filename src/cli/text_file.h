// Whole text files and standard input.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// "-" is standard input. Throws Error not_found or invalid with the system's reason, exhausted
// beyond 256 MiB.
std::string read_whole_file(const std::string& path);

// The same for text. Throws Error invalid, too, naming the first byte that is not UTF-8.
std::string read_whole_text(const std::string& path);

// Throws Error invalid naming the first byte of `text` that is not UTF-8. `where`: "standard
// input".
void check_utf8(std::string_view text, std::string_view where);

// Creates or overwrites the file. Throws Error invalid or exhausted with the system's reason.
void write_whole_file(const std::string& path, const std::string& content);

// Removes the final newline of a file or pipe, which isn't part of a prompt.
std::string without_final_newline(std::string text);

}  // namespace paceline
