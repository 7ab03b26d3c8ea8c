#include "cli/bench_prompts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/random.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 12> kNames = {
    "Tom",  "Mary",    "Mr. Brown", "the Captain", "Alice",      "the old man",
    "Jack", "Dorothy", "Polly",     "the Doctor",  "Miss Grant", "Henry"};
constexpr std::array<std::string_view, 12> kPlaces = {
    "the house", "the garden",  "the river",   "the old mill", "the village",    "the harbour",
    "the hill",  "the station", "the library", "the forest",   "the great hall", "the road"};
constexpr std::array<std::string_view, 12> kThings = {
    "a letter",           "a lantern",       "a silver watch",
    "a basket of apples", "an old book",     "a bundle of wood",
    "a loaf of bread",    "a blue coat",     "a map of the island",
    "a small box",        "a bottle of ink", "a key"};
constexpr std::array<std::string_view, 8> kVerbs = {"carried", "found", "brought", "left",
                                                    "took",    "hid",   "lost",    "saw"};
constexpr std::array<std::string_view, 7> kDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                   "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 6> kOpenings = {
    "It was late in the evening when {0} came to {1}.",
    "{0} had lived near {1} for many years.",
    "One morning in spring {0} went down to {1}.",
    "The rain had not ceased since {0} left {1}.",
    "There was once a time when {0} was happy at {1}.",
    "\"I will not go to {1} again,\" said {0}."};
constexpr std::array<std::string_view, 4> kSeconds = {
    "The wind was cold, and nobody spoke.", "It was a bright day, and the birds were singing.",
    "There was a light in the window.", "A carriage stood before the door."};

// Draws words one after another.
class Words {
 public:
  explicit Words(uint64_t seed) : seed_(seed) {}

  template <size_t N>
  std::string_view pick(const std::array<std::string_view, N>& words) {
    return words[static_cast<size_t>(uniform_draw(seed_, count_++) * static_cast<double>(N))];
  }
  std::string sentence(std::string_view who) {
    return fmt::format("{} {} {} near {}, and then went on to {}.", capital(who), pick(kVerbs),
                       pick(kThings), pick(kPlaces), pick(kPlaces));
  }
  static std::string capital(std::string_view text) {
    std::string result(text);
    if (result[0] >= 'a' && result[0] <= 'z') result[0] = static_cast<char>(result[0] - 'a' + 'A');
    return result;
  }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

std::string edited_passage(Words& words) {
  const std::string_view who = words.pick(kNames);
  const std::string_view other = words.pick(kNames);
  const std::string begin = words.sentence(who);
  std::string passage = begin;
  for (int i = 0; i < 4; ++i) passage += " " + words.sentence(who);
  const std::string edited =
      Words::capital(other) + begin.substr(who.size(), begin.rfind(" near ") - who.size());
  return fmt::format(
      "{0}\n\nThis is how {1} told it. Then {2} told the same of {2}, word for word:\n\n{3}",
      passage, who, other, edited);
}

std::string list_text(Words& words) {
  std::string text = "The list of what was wanted, day by day:\n\n";
  for (const std::string_view day : kDays) {
    text += fmt::format("{}: {} and {}, to be left at {}.\n", day, words.pick(kThings),
                        words.pick(kThings), words.pick(kPlaces));
  }
  return text + "\nThe list was read out once more:\n\nMonday:";
}

std::string quoted_letter(Words& words) {
  const std::string_view who = words.pick(kNames);
  std::string letter = fmt::format("\"My dear {},", Words::capital(words.pick(kNames)));
  for (int i = 0; i < 5; ++i) letter += " " + words.sentence(words.pick(kNames));
  letter += " Pray tell nobody of it.\"";
  const std::string first = letter.substr(0, letter.find(','));
  return fmt::format(
      "{0} opened the letter and read:\n\n{1}\n\n{0} could not believe it, and read the letter "
      "again aloud:\n\n{2},",
      Words::capital(who), letter, first);
}

}  // namespace

std::string repeating_prompt(uint64_t seed) {
  Words words(seed);
  switch (seed % 3) {
    case 0:
      return edited_passage(words);
    case 1:
      return list_text(words);
    default:
      return quoted_letter(words);
  }
}

std::string story_prompt(uint64_t seed) {
  Words words(seed);
  const std::string_view who = words.pick(kNames);
  const std::string opening =
      fmt::format(fmt::runtime(words.pick(kOpenings)), who, words.pick(kPlaces));
  std::string text = Words::capital(opening) + " " + std::string(words.pick(kSeconds));
  return text + " " + words.sentence(who);
}

}  // namespace paceline
