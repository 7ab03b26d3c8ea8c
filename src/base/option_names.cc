#include "base/option_names.h"

namespace paceline {
namespace {

constexpr std::pair<DataType, std::string_view> kDataTypes[] = {{DataType::automatic, "auto"},
                                                                {DataType::float32, "float32"},
                                                                {DataType::float16, "float16"},
                                                                {DataType::bfloat16, "bfloat16"},
                                                                {DataType::int8, "int8"}};
constexpr std::pair<LoadQuantization, std::string_view> kQuantizations[] = {
    {LoadQuantization::none, "none"}, {LoadQuantization::q4, "q4"}, {LoadQuantization::q8, "q8"}};
constexpr std::pair<Activations, std::string_view> kActivations[] = {
    {Activations::automatic, "auto"},
    {Activations::int8, "int8"},
    {Activations::bfloat16, "bfloat16"},
    {Activations::plain, "plain"}};
constexpr std::pair<DraftMethod, std::string_view> kDraftMethods[] = {
    {DraftMethod::automatic, ""}, {DraftMethod::model, "model"}, {DraftMethod::ngram, "ngram"}};
constexpr std::pair<SpecAccept, std::string_view> kSpecAccepts[] = {
    {SpecAccept::coupled, "coupled"}, {SpecAccept::rejection, "rejection"}};

}  // namespace

OptionNames<DataType> option_names(DataType) { return kDataTypes; }
OptionNames<LoadQuantization> option_names(LoadQuantization) { return kQuantizations; }
OptionNames<Activations> option_names(Activations) { return kActivations; }
OptionNames<DraftMethod> option_names(DraftMethod) { return kDraftMethods; }
OptionNames<SpecAccept> option_names(SpecAccept) { return kSpecAccepts; }

}  // namespace paceline
