// Options of train. Names are mlx_lm.lora's where it has the option, else those of transformers'
// TrainingArguments.
#include "cli/length_stages.h"
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr CommandSet kTrain = set_of({train});
constexpr double kMaxSteps = 1e9;

constexpr OptionDef kTrainingOptions[] = {
    option("data", kTo<&Settings::train, &TrainOptions::data>,
           "Training data: JSON Lines or a JSON array, a plain text file, or a directory that has "
           "train.jsonl.",
           {.placeholder = "PATH", .group = OptionGroup::data}),
    option("valid-data", kTo<&Settings::train, &TrainOptions::validation_data>,
           "Data for evaluation.",
           {.placeholder = "FILE",
            .default_text = "valid.jsonl of a directory, else a part of the data"}),
    option("valid-fraction", kTo<&Settings::train, &TrainOptions::validation_fraction>,
           "Fraction of the examples kept for evaluation if there is no file for it; 0: none.",
           {.placeholder = "FRACTION",
            .limits = {0, 0.9},
            .default_text = "0.05",
            .excludes = "valid-data"}),
    option("loss-on", kTo<&Settings::train, &TrainOptions::loss_tokens>,
           "Tokens that the model learns to predict: all, completion (the last message) or "
           "assistant (every turn of the assistant).",
           {.placeholder = "TOKENS", .choices = "all completion assistant", .default_text = "all"}),
    option("mask-prompt",
           {OptionKind::flag,
            [](Settings& s, const OptionValue& v) {
              s.train.loss_tokens = as_flag(v) ? LossTokens::completion : LossTokens::all;
            }},
           "Learn completions only: the same as --loss-on completion.", {.excludes = "loss-on"}),
    option("max-seq-length", kTo<&Settings::train, &TrainOptions::max_seq_length>,
           "Longest row in tokens; longer examples are cut.", {.limits = {2, 1 << 20}}),
    option("no-packing", kNot<&Settings::train, &TrainOptions::packing>,
           "Put one example in each row. By default a row holds as many as fit, and none sees "
           "another."),
    option("sequence-lengths",
           {OptionKind::text,
            [](Settings& s, const OptionValue& v) {
              s.train.sequence_lengths = parse_length_stages(as_text(v), "--sequence-lengths");
            }},
           "Train on shorter sequences first: 256:0.45,512:0.85 means 256 tokens until 45 % of the "
           "run, then 512 until 85 %.",
           {.placeholder = "N:X,..."}),
    option("first-token", kTo<&Settings::train, &TrainOptions::first_token>,
           "Start each sequence of a plain text with this token instead of the token before it.",
           {.placeholder = "TOKEN"}),
    option(
        "fine-tune-type", kTo<&Settings::train, &TrainOptions::fine_tune_type>,
        "What is trained: LoRA matrices beside the frozen weights (lora), or all weights (full).",
        {.placeholder = "TYPE", .choices = "lora full", .group = OptionGroup::training}),
    option("from-scratch", kTo<&Settings::train, &TrainOptions::from_scratch>,
           "Start from random weights, which are drawn from the seed; only config and tokenizer "
           "are read. Needs --fine-tune-type full."),
    option("target-modules", kTo<&Settings::train, &TrainOptions::target_modules>,
           "Linear modules to adapt: all-linear, or q_proj, k_proj, v_proj (or qkv_proj), o_proj, "
           "gate_proj, up_proj (or gate_up_proj), down_proj; c_fc, c_proj; input_linear, "
           "output_linear. Experts of mixtures only by name: experts.gate_up_proj (gate and up as "
           "one), or experts.gate_proj and experts.up_proj; experts.down_proj.",
           {.placeholder = "NAME,...",
            .choices = "all-linear q_proj k_proj v_proj o_proj qkv_proj gate_proj up_proj "
                       "gate_up_proj down_proj c_fc c_proj input_linear output_linear "
                       "experts.gate_proj experts.up_proj experts.gate_up_proj experts.down_proj",
            .default_text = "all of the model's"}),
    option("num-layers", kTo<&Settings::train, &TrainOptions::num_layers>,
           "Adapt only the last N layers.", {.limits = {-1, 1 << 16}, .default_text = "-1, all"}),
    option("lora-rank", kTo<&Settings::train, &TrainOptions::rank>, "Rank of the LoRA matrices.",
           {.aliases = "--rank", .limits = {1, 1024}, .needs = "!fine-tune-type=full"}),
    option("lora-alpha",
           {OptionKind::number,
            [](Settings& s, const OptionValue& v) {
              s.train.alpha = std::get<double>(v);
              s.train.scale.reset();
            }},
           "Multiply the product of the LoRA matrices by X / rank.",
           {.limits = {1e-6, 1e6}, .default_text = "16", .needs = "!fine-tune-type=full"}),
    option(
        "lora-scale", kTo<&Settings::train, &TrainOptions::scale>,
        "Multiply the product by X instead of alpha / rank (mlx_lm's scale).",
        {.limits = {1e-6, 1e6}, .default_text = "--lora-alpha / rank", .excludes = "lora-alpha"}),
    option("rank-pattern", kTo<&Settings::train, &TrainOptions::rank_pattern>,
           "Another rank for modules whose names end in KEY, a regular expression as in PEFT's "
           "rank_pattern. Repeatable; the first match counts.",
           {.placeholder = "KEY=N", .limits = {1, 1024}}),
    option(
        "alpha-pattern", kTo<&Settings::train, &TrainOptions::alpha_pattern>,
        "Another alpha for modules whose names end in KEY, as in PEFT's alpha_pattern. Repeatable.",
        {.placeholder = "KEY=X", .limits = {1e-6, 1e6}}),
    option("lora-dropout", kTo<&Settings::train, &TrainOptions::dropout>,
           "Fraction of the LoRA inputs that is dropped in training.", {.limits = {0, 0.99}}),
    option("use-rslora", kTo<&Settings::train, &TrainOptions::use_rslora>,
           "Multiply by alpha / sqrt(rank) instead of alpha / rank."),
    option("lora-dtype", kTo<&Settings::train, &TrainOptions::lora_dtype>,
           "Type in which the LoRA matrices are multiplied and saved.",
           {.placeholder = "TYPE",
            .choices = "auto float32 bfloat16",
            .default_text = "auto: float32 beside weights in float32, else bfloat16"}),
    option("initial-adapter", kTo<&Settings::train, &TrainOptions::initial_adapter>,
           "Start from the values of this adapter.",
           {.aliases = "--resume-adapter-file", .placeholder = "DIR"}),
    option("iters",
           {OptionKind::integer,
            [](Settings& s, const OptionValue& v) {
              s.train.num_steps = as_integer(v);
              s.train.num_epochs.reset();
            }},
           "Number of steps.",
           {.aliases = "--max-steps", .limits = {1, kMaxSteps}, .default_text = "1000"}),
    option("epochs", kTo<&Settings::train, &TrainOptions::num_epochs>,
           "Number of passes over the training data, instead of --iters; 0.5 is half of one.",
           {.aliases = "--num-train-epochs",
            .limits = {1e-6, 1000},
            .default_text = "what --iters makes",
            .excludes = "iters"}),
    option("batch-size", kTo<&Settings::train, &TrainOptions::batch_size>, "Rows in a batch.",
           {.limits = {1, 1 << 16}}),
    option("grad-accumulation-steps", kTo<&Settings::train, &TrainOptions::accumulation_steps>,
           "Batches in a step.", {.limits = {1, 1 << 16}}),
    option("learning-rate", kTo<&Settings::train, &TrainOptions::learning_rate>,
           "Peak learning rate.", {.aliases = "--lr", .limits = {0, 10}}),
    option("lr-schedule", kTo<&Settings::train, &TrainOptions::schedule>,
           "How the learning rate falls: constant (not at all), linear, cosine, or wsd (constant, "
           "then linear in the last part of the run).",
           {.placeholder = "NAME", .choices = "constant linear cosine wsd"}),
    option("decay-fraction", kTo<&Settings::train, &TrainOptions::decay_fraction>,
           "Last fraction of the run, in which the rate of wsd falls.",
           {.limits = {0, 1}, .needs = "lr-schedule=wsd"}),
    option("warmup-steps", kTo<&Settings::train, &TrainOptions::warmup_steps>,
           "Steps in which the learning rate rises to its peak.", {.limits = {0, kMaxSteps}}),
    option("warmup-init", kTo<&Settings::train, &TrainOptions::warmup_init>,
           "Learning rate of the first step of the warm-up.",
           {.limits = {0, 10},
            .default_text = "--learning-rate / (--warmup-steps + 1)",
            .needs = "warmup-steps"}),
    option("hold-steps", kTo<&Settings::train, &TrainOptions::hold_steps>,
           "Steps at the peak between the warm-up and the decay of linear and cosine.",
           {.limits = {0, kMaxSteps}, .needs = "lr-schedule=linear lr-schedule=cosine"}),
    option("decay-steps", kTo<&Settings::train, &TrainOptions::decay_steps>,
           "Steps in which linear and cosine fall to --final-learning-rate, which then stays.",
           {.limits = {1, kMaxSteps},
            .default_text = "to the end of the run",
            .needs = "lr-schedule=linear lr-schedule=cosine"}),
    option("final-learning-rate", kTo<&Settings::train, &TrainOptions::final_learning_rate>,
           "Learning rate at the end of linear, cosine and wsd.",
           {.limits = {0, 10}, .needs = "lr-schedule=linear lr-schedule=cosine lr-schedule=wsd"}),
    option("weight-decay", kTo<&Settings::train, &TrainOptions::weight_decay>,
           "Weight decay. With muon, that of the matrices.", {.limits = {0, 10}}),
    option("optimizer", kTo<&Settings::train, &TrainOptions::optimizer>,
           "adamw, or muon: Muon for the matrices of blocks, AdamW for everything else.",
           {.placeholder = "NAME", .choices = "adamw muon"}),
    option("muon-momentum", kTo<&Settings::train, &TrainOptions::muon_momentum>,
           "Momentum of Muon.", {.limits = {0, 0.9999}, .needs = "optimizer=muon"}),
    option("adamw-learning-rate", kTo<&Settings::train, &TrainOptions::adamw_learning_rate>,
           "With muon, the peak learning rate of what AdamW trains.",
           {.limits = {0, 10}, .default_text = "--learning-rate"}),
    option("adamw-weight-decay", kTo<&Settings::train, &TrainOptions::adamw_weight_decay>,
           "With muon, the weight decay of what AdamW trains.",
           {.limits = {0, 10}, .needs = "optimizer=muon"}),
    option("adam-beta1", kTo<&Settings::train, &TrainOptions::beta1>,
           "AdamW's beta1: decay of the mean of gradients.", {.limits = {0, 0.99999}}),
    option("adam-beta2", kTo<&Settings::train, &TrainOptions::beta2>,
           "AdamW's beta2: decay of the mean of squared gradients.", {.limits = {0, 0.99999}}),
    option("adam-epsilon", kTo<&Settings::train, &TrainOptions::epsilon>,
           "AdamW's epsilon: added to the root of the mean of squares.", {.limits = {1e-20, 1}}),
    option("max-grad-norm", kTo<&Settings::train, &TrainOptions::max_gradient_norm>,
           "Scale longer gradients down to this norm; 0: never.", {.limits = {0, 1e9}}),
    option("no-grad-checkpoint", kNot<&Settings::train, &TrainOptions::checkpoints>,
           "Keep the activations of all layers instead of recomputing those of the first ones "
           "beyond 256 MiB: faster, but needs more memory."),
    option("patience", kTo<&Settings::train, &TrainOptions::patience>,
           "Stop after N evaluations in a row without a lower loss.",
           {.limits = {0, 1 << 20}, .default_text = "0, never"}),
    option("steps-per-report", kTo<&Settings::train, &TrainOptions::steps_per_report>,
           "Report every N steps.", {.limits = {1, kMaxSteps}}),
    option("steps-per-eval", kTo<&Settings::train, &TrainOptions::steps_per_evaluation>,
           "Evaluate every N steps, and at the end; 0: at the end only.",
           {.limits = {0, kMaxSteps}}),
    option("val-batches", kTo<&Settings::train, &TrainOptions::validation_batches>,
           "Batches in an evaluation; -1: all.", {.limits = {-1, kMaxSteps}}),
    option("save-every", kTo<&Settings::train, &TrainOptions::steps_per_checkpoint>,
           "Save a checkpoint every N steps; the last two are kept.", {.limits = {1, kMaxSteps}}),
    option("seed", kAs<OptionKind::seed, &Settings::train, &TrainOptions::seed>,
           "Seed of the order of the examples and of random initial values.",
           {.aliases = "-s", .placeholder = "N"}),
    option("resume", kTo<&Settings::train, &TrainOptions::resume>,
           "Continue from the last checkpoint in --output."),
    option("dry-run", kTo<&Settings::dry_run>,
           "Check the data, take one step, and print the memory and time that the run needs.",
           {.flag_only = true}),
};

}  // namespace

std::vector<OptionDef> training_options() {
  return section(OptionGroup::training, kTrain, kTrainingOptions);
}

}  // namespace paceline
