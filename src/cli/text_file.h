// Whole text files, standard input among them.
#pragma once

#include <string>

namespace paceline {

// "-" is standard input. Throws Error not_found or invalid with the system's reason, exhausted
// beyond 256 MiB.
std::string read_whole_file(const std::string& path);

// Makes the file or replaces what it holds. Throws Error invalid or exhausted with the system's
// reason.
void write_whole_file(const std::string& path, const std::string& content);

// Files and pipes end in a newline that nobody means to be part of a prompt.
std::string without_final_newline(std::string text);

}  // namespace paceline
