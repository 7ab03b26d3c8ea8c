#include "grammar/unicode_property.h"

#include <utf8proc.h>

#include <array>

namespace paceline {

namespace {

struct CategoryName {
  std::string_view short_name;
  std::string_view long_name;
  uint32_t categories;  // bits by utf8proc_category_t
};

template <class... Category>
constexpr uint32_t categories(Category... category) {
  return ((1U << category) | ...);
}

constexpr uint32_t kCasedLetters =
    categories(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT);

// PropertyValueAliases.txt of Unicode.
constexpr std::array kCategoryNames{
    CategoryName{"Lu", "Uppercase_Letter", categories(UTF8PROC_CATEGORY_LU)},
    CategoryName{"Ll", "Lowercase_Letter", categories(UTF8PROC_CATEGORY_LL)},
    CategoryName{"Lt", "Titlecase_Letter", categories(UTF8PROC_CATEGORY_LT)},
    CategoryName{"LC", "Cased_Letter", kCasedLetters},
    CategoryName{"Lm", "Modifier_Letter", categories(UTF8PROC_CATEGORY_LM)},
    CategoryName{"Lo", "Other_Letter", categories(UTF8PROC_CATEGORY_LO)},
    CategoryName{"L", "Letter",
                 kCasedLetters | categories(UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO)},
    CategoryName{"Mn", "Nonspacing_Mark", categories(UTF8PROC_CATEGORY_MN)},
    CategoryName{"Mc", "Spacing_Mark", categories(UTF8PROC_CATEGORY_MC)},
    CategoryName{"Me", "Enclosing_Mark", categories(UTF8PROC_CATEGORY_ME)},
    CategoryName{"M", "Mark",
                 categories(UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME)},
    CategoryName{"M", "Combining_Mark",
                 categories(UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME)},
    CategoryName{"Nd", "Decimal_Number", categories(UTF8PROC_CATEGORY_ND)},
    CategoryName{"Nd", "digit", categories(UTF8PROC_CATEGORY_ND)},
    CategoryName{"Nl", "Letter_Number", categories(UTF8PROC_CATEGORY_NL)},
    CategoryName{"No", "Other_Number", categories(UTF8PROC_CATEGORY_NO)},
    CategoryName{"N", "Number",
                 categories(UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO)},
    CategoryName{"Pc", "Connector_Punctuation", categories(UTF8PROC_CATEGORY_PC)},
    CategoryName{"Pd", "Dash_Punctuation", categories(UTF8PROC_CATEGORY_PD)},
    CategoryName{"Ps", "Open_Punctuation", categories(UTF8PROC_CATEGORY_PS)},
    CategoryName{"Pe", "Close_Punctuation", categories(UTF8PROC_CATEGORY_PE)},
    CategoryName{"Pi", "Initial_Punctuation", categories(UTF8PROC_CATEGORY_PI)},
    CategoryName{"Pf", "Final_Punctuation", categories(UTF8PROC_CATEGORY_PF)},
    CategoryName{"Po", "Other_Punctuation", categories(UTF8PROC_CATEGORY_PO)},
    CategoryName{"P", "Punctuation",
                 categories(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS,
                            UTF8PROC_CATEGORY_PE, UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF,
                            UTF8PROC_CATEGORY_PO)},
    CategoryName{"P", "punct",
                 categories(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS,
                            UTF8PROC_CATEGORY_PE, UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF,
                            UTF8PROC_CATEGORY_PO)},
    CategoryName{"Sm", "Math_Symbol", categories(UTF8PROC_CATEGORY_SM)},
    CategoryName{"Sc", "Currency_Symbol", categories(UTF8PROC_CATEGORY_SC)},
    CategoryName{"Sk", "Modifier_Symbol", categories(UTF8PROC_CATEGORY_SK)},
    CategoryName{"So", "Other_Symbol", categories(UTF8PROC_CATEGORY_SO)},
    CategoryName{"S", "Symbol",
                 categories(UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SC, UTF8PROC_CATEGORY_SK,
                            UTF8PROC_CATEGORY_SO)},
    CategoryName{"Zs", "Space_Separator", categories(UTF8PROC_CATEGORY_ZS)},
    CategoryName{"Zl", "Line_Separator", categories(UTF8PROC_CATEGORY_ZL)},
    CategoryName{"Zp", "Paragraph_Separator", categories(UTF8PROC_CATEGORY_ZP)},
    CategoryName{"Z", "Separator",
                 categories(UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZL, UTF8PROC_CATEGORY_ZP)},
    CategoryName{"Cc", "Control", categories(UTF8PROC_CATEGORY_CC)},
    CategoryName{"Cc", "cntrl", categories(UTF8PROC_CATEGORY_CC)},
    CategoryName{"Cf", "Format", categories(UTF8PROC_CATEGORY_CF)},
    CategoryName{"Cs", "Surrogate", categories(UTF8PROC_CATEGORY_CS)},
    CategoryName{"Co", "Private_Use", categories(UTF8PROC_CATEGORY_CO)},
    CategoryName{"Cn", "Unassigned", categories(UTF8PROC_CATEGORY_CN)},
    CategoryName{"C", "Other",
                 categories(UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CS,
                            UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CN)},
};

struct CategoryRun {
  char32_t first;
  uint32_t category;  // one bit
};

// Runs of code points with the same category, in the version of Unicode that utf8proc has.
const std::vector<CategoryRun>& category_runs() {
  static const std::vector<CategoryRun> runs = [] {
    std::vector<CategoryRun> found;
    for (char32_t c = 0; c <= kLastCodePoint; ++c) {
      const uint32_t category = 1U << utf8proc_category(static_cast<utf8proc_int32_t>(c));
      if (found.empty() || found.back().category != category) found.push_back({c, category});
    }
    return found;
  }();
  return runs;
}

CodePointRanges code_points_of(uint32_t categories) {
  const std::vector<CategoryRun>& runs = category_runs();
  CodePointRanges ranges;
  for (size_t i = 0; i < runs.size(); ++i) {
    if ((runs[i].category & categories) == 0) continue;
    const char32_t last = i + 1 < runs.size() ? runs[i + 1].first - 1 : kLastCodePoint;
    ranges.emplace_back(runs[i].first, last);
  }
  return sorted_ranges(std::move(ranges));
}

}  // namespace

std::optional<CodePointRanges> unicode_property(std::string_view property) {
  const size_t equals = property.find('=');
  const bool is_category = equals == std::string_view::npos || property.substr(0, equals) == "gc" ||
                           property.substr(0, equals) == "General_Category";
  if (!is_category) return std::nullopt;
  if (equals == std::string_view::npos) {
    if (property == "Any") return CodePointRanges{{0, kLastCodePoint}};
    if (property == "ASCII") return CodePointRanges{{0, 0x7F}};
    if (property == "Assigned") return code_points_of(~categories(UTF8PROC_CATEGORY_CN));
  } else {
    property.remove_prefix(equals + 1);
  }
  for (const CategoryName& name : kCategoryNames) {
    if (property == name.short_name || property == name.long_name) {
      return code_points_of(name.categories);
    }
  }
  return std::nullopt;
}

}  // namespace paceline
