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

constexpr std::pair<FineTuneType, std::string_view> kFineTuneTypes[] = {
    {FineTuneType::lora, "lora"}, {FineTuneType::full, "full"}};
constexpr std::pair<LossTokens, std::string_view> kLossTokens[] = {
    {LossTokens::all, "all"},
    {LossTokens::completion, "completion"},
    {LossTokens::assistant_turns, "assistant"}};
constexpr std::pair<RateSchedule, std::string_view> kRateSchedules[] = {
    {RateSchedule::constant, "constant"},
    {RateSchedule::linear, "linear"},
    {RateSchedule::cosine, "cosine"},
    {RateSchedule::wsd, "wsd"}};
constexpr std::pair<OptimizerKind, std::string_view> kOptimizers[] = {
    {OptimizerKind::adamw, "adamw"}, {OptimizerKind::muon, "muon"}};

}  // namespace

OptionNames<DataType> option_names(DataType) { return kDataTypes; }
OptionNames<LoadQuantization> option_names(LoadQuantization) { return kQuantizations; }
OptionNames<Activations> option_names(Activations) { return kActivations; }
OptionNames<DraftMethod> option_names(DraftMethod) { return kDraftMethods; }
OptionNames<SpecAccept> option_names(SpecAccept) { return kSpecAccepts; }
OptionNames<FineTuneType> option_names(FineTuneType) { return kFineTuneTypes; }
OptionNames<LossTokens> option_names(LossTokens) { return kLossTokens; }
OptionNames<RateSchedule> option_names(RateSchedule) { return kRateSchedules; }
OptionNames<OptimizerKind> option_names(OptimizerKind) { return kOptimizers; }

}  // namespace paceline
