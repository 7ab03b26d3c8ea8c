// Makes prompts for measurements of speculative decoding: texts that repeat themselves, and
// beginnings of stories.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

// The first words of a text that has been in the prompt before, with small changes: in turn an
// edited passage, a list and a quoted letter, of 80 to 150 words. A function of the seed.
std::string repeating_prompt(uint64_t seed);

// The first two or three sentences of a story. A function of the seed.
std::string story_prompt(uint64_t seed);

}  // namespace paceline
