#include "dataset/line_format.h"

namespace paceline {

const LineFormat* find_line_format(const JsonCursor& line) {
  for (const LineFormat* format : {&kCompletionLines, &kChatLines, &kTextLines}) {
    if (format->has_keys(line)) return format;
  }
  return nullptr;
}

}  // namespace paceline
