"""include/paceline/paceline.h for ctypes; made by tools/make_python_abi.py."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)

PACELINE_OK = 0
PACELINE_INVALID = 1
PACELINE_NOT_FOUND = 2
PACELINE_UNSUPPORTED = 3
PACELINE_EXHAUSTED = 4
PACELINE_CORRUPT = 5
PACELINE_NUMERICAL = 6
PACELINE_CANCELLED = 7
PACELINE_INTERNAL = 8
PACELINE_FREE = 0
PACELINE_JSON_OBJECT = 1
PACELINE_JSON_SCHEMA = 2
PACELINE_REGEX = 3
PACELINE_GRAMMAR = 4
PACELINE_CHOICE = 5
PACELINE_FINISH_NONE = 0
PACELINE_FINISH_STOP = 1
PACELINE_FINISH_LENGTH = 2
PACELINE_FINISH_CANCELLED = 3
PACELINE_TOOLS_AUTO = 0
PACELINE_TOOLS_NONE = 1
PACELINE_TOOLS_REQUIRED = 2
PACELINE_TOOLS_NAMED = 3
PACELINE_PIECE = 0
PACELINE_WAITING = 1
PACELINE_FINISHED = 2
PACELINE_PREDICATE = 0
PACELINE_QUESTION_CHOICE = 1
PACELINE_QUESTION_SCORE = 2
PACELINE_TRAINING_FINISHED = 0
PACELINE_TRAINING_OUT_OF_PATIENCE = 1
PACELINE_TRAINING_STOPPED = 2
PACELINE_DEFAULT = -(2 ** 63)
PACELINE_DEFAULT_FLOAT = -1e30


class paceline_load_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("dtype", c_char_p),
        ("quantize", c_char_p),
        ("kv_cache_dtype", c_char_p),
        ("device", c_char_p),
        ("chat_template", c_char_p),
        ("weights_cache", c_char_p),
        ("speculative_model", c_char_p),
        ("speculative_method", c_char_p),
        ("num_threads", c_int32),
        ("enable_lora", c_int32),
        ("max_model_len", c_int64),
        ("max_num_seqs", c_int64),
        ("max_num_batched_tokens", c_int64),
        ("block_size", c_int64),
        ("kv_cache_memory_bytes", c_int64),
        ("memory_limit_bytes", c_int64),
        ("prefix_caching", c_int32),
        ("dummy_weights", c_int32),
        ("progress", CFUNCTYPE(None, c_uint64, c_uint64, c_void_p)),
        ("progress_user", c_void_p),
        ("backend", c_char_p),
        ("python", c_char_p),
        ("backend_timeout_s", c_int64),
    ]


class paceline_model_info(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("family", c_char_p),
        ("dtype", c_char_p),
        ("weight_format", c_char_p),
        ("chat_template", c_char_p),
        ("num_layers", c_int64),
        ("vocab_size", c_int64),
        ("max_model_len", c_int64),
        ("num_parameters", c_int64),
        ("weight_bytes", c_uint64),
        ("kv_cache_bytes", c_uint64),
        ("has_tokenizer", c_int32),
        ("has_chat_template", c_int32),
    ]


class paceline_device_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("instruction_set", c_char_p),
        ("num_threads", c_int32),
        ("total_memory_bytes", c_uint64),
        ("free_memory_bytes", c_uint64),
    ]


class paceline_memory(Structure):
    _fields_ = [
        ("active_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("cached_bytes", c_uint64),
    ]


class paceline_metrics(Structure):
    _fields_ = [
        ("prompt_tokens", c_int64),
        ("completion_tokens", c_int64),
        ("cached_tokens", c_int64),
        ("preemptions", c_int64),
        ("drafted_tokens", c_int64),
        ("accepted_tokens", c_int64),
        ("prefill_tokens_per_second", c_double),
        ("decode_tokens_per_second", c_double),
        ("time_to_first_token_seconds", c_double),
        ("peak_memory_bytes", c_uint64),
    ]


class paceline_prompt(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("text_size", c_size_t),
        ("ids", POINTER(c_int32)),
        ("num_ids", c_size_t),
    ]


class paceline_generate_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("max_tokens", c_int64),
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("typical_p", c_float),
        ("repetition_penalty", c_float),
        ("frequency_penalty", c_float),
        ("presence_penalty", c_float),
        ("top_k", c_int64),
        ("min_tokens", c_int64),
        ("seed", c_int64),
        ("ignore_eos", c_int32),
        ("skip_special_tokens", c_int32),
        ("add_special_tokens", c_int32),
        ("num_top_logprobs", c_int32),
        ("prompt_logprobs", c_int32),
        ("priority", c_int32),
        ("stop", POINTER(c_char_p)),
        ("num_stop", c_size_t),
        ("stop_token_ids", POINTER(c_int32)),
        ("num_stop_token_ids", c_size_t),
        ("allowed_token_ids", POINTER(c_int32)),
        ("num_allowed_token_ids", c_size_t),
        ("biased_token_ids", POINTER(c_int32)),
        ("token_biases", POINTER(c_float)),
        ("num_biased_tokens", c_size_t),
        ("constraint", c_int32),
        ("constraint_text", c_char_p),
        ("choices", POINTER(c_char_p)),
        ("num_choices", c_size_t),
        ("adapter", c_char_p),
        ("cache_salt", c_char_p),
        ("cancellation", c_void_p),
        ("queue", c_void_p),
        ("tag", c_int64),
        ("include_stop_in_output", c_int32),
        ("mlx_sampler_order", c_int32),
    ]


class paceline_top_logprob(Structure):
    _fields_ = [
        ("id", c_int32),
        ("logprob", c_float),
        ("token", c_char_p),
    ]


class paceline_logprob(Structure):
    _fields_ = [
        ("id", c_int32),
        ("has_logprob", c_int32),
        ("logprob", c_float),
        ("token", c_char_p),
        ("top", POINTER(paceline_top_logprob)),
        ("num_top", c_size_t),
    ]


class paceline_usage(Structure):
    _fields_ = [
        ("prompt_tokens", c_int64),
        ("completion_tokens", c_int64),
        ("cached_tokens", c_int64),
        ("drafted_tokens", c_int64),
        ("accepted_tokens", c_int64),
        ("reasoning_tokens", c_int64),
    ]


class paceline_tool_call(Structure):
    _fields_ = [
        ("id", c_char_p),
        ("name", c_char_p),
        ("arguments", c_char_p),
    ]


class paceline_completion(Structure):
    _fields_ = [
        ("status", c_int),
        ("finish", c_int),
        ("error", c_char_p),
        ("text", c_char_p),
        ("text_size", c_size_t),
        ("token_ids", POINTER(c_int32)),
        ("num_token_ids", c_size_t),
        ("logprobs", POINTER(paceline_logprob)),
        ("num_logprobs", c_size_t),
        ("prompt_logprobs", POINTER(paceline_logprob)),
        ("num_prompt_logprobs", c_size_t),
        ("usage", paceline_usage),
        ("queue_seconds", c_double),
        ("time_to_first_token_seconds", c_double),
        ("output_seconds", c_double),
        ("seed", c_uint64),
        ("stop_token", c_int64),
        ("stop_string", c_char_p),
        ("reasoning", c_char_p),
        ("content", c_char_p),
        ("tool_calls", POINTER(paceline_tool_call)),
        ("num_tool_calls", c_size_t),
    ]


class paceline_completions(Structure):
    _fields_ = [
        ("items", POINTER(paceline_completion)),
        ("count", c_size_t),
    ]


class paceline_chat_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tools_json", c_char_p),
        ("template_json", c_char_p),
        ("tool_choice", c_int32),
        ("tool_name", c_char_p),
        ("parallel_tool_calls", c_int32),
        ("reasoning_effort", c_char_p),
    ]


class paceline_request_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("adapter", c_char_p),
        ("cache_salt", c_char_p),
        ("priority", c_int32),
        ("add_special_tokens", c_int32),
        ("cancellation", c_void_p),
    ]


class paceline_classification(Structure):
    _fields_ = [
        ("status", c_int),
        ("error", c_char_p),
        ("token_id", c_int64),
        ("label", c_char_p),
        ("scores", POINTER(c_float)),
        ("num_scores", c_size_t),
        ("labels", POINTER(c_char_p)),
        ("num_labels", c_size_t),
    ]


class paceline_classifications(Structure):
    _fields_ = [
        ("items", POINTER(paceline_classification)),
        ("count", c_size_t),
    ]


class paceline_vector(Structure):
    _fields_ = [
        ("status", c_int),
        ("error", c_char_p),
        ("values", POINTER(c_float)),
        ("num_values", c_size_t),
        ("prompt_tokens", c_int64),
    ]


class paceline_vectors(Structure):
    _fields_ = [
        ("items", POINTER(paceline_vector)),
        ("count", c_size_t),
    ]


class paceline_logprobs(Structure):
    _fields_ = [
        ("items", POINTER(paceline_logprob)),
        ("count", c_size_t),
    ]


class paceline_question(Structure):
    _fields_ = [
        ("kind", c_int32),
        ("instructions", c_char_p),
        ("values", POINTER(c_char_p)),
        ("descriptions", POINTER(c_char_p)),
        ("num_values", c_size_t),
    ]


class paceline_answer(Structure):
    _fields_ = [
        ("probabilities", POINTER(c_float)),
        ("num_probabilities", c_size_t),
        ("best", c_size_t),
        ("score", c_float),
        ("confidence", c_float),
    ]


class paceline_decision(Structure):
    _fields_ = [
        ("status", c_int),
        ("error", c_char_p),
        ("answers", POINTER(paceline_answer)),
        ("num_answers", c_size_t),
    ]


class paceline_decisions(Structure):
    _fields_ = [
        ("items", POINTER(paceline_decision)),
        ("count", c_size_t),
    ]


class paceline_decode_entry(Structure):
    _fields_ = [
        ("sequence", c_int32),
        ("token", c_int32),
    ]


class paceline_length_stage(Structure):
    _fields_ = [
        ("length", c_int64),
        ("until", c_double),
    ]


class paceline_module_number(Structure):
    _fields_ = [
        ("key", c_char_p),
        ("number", c_double),
    ]


class paceline_train_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model", POINTER(paceline_load_options)),
        ("output", c_char_p),
        ("resume", c_int32),
        ("data", c_char_p),
        ("validation_data", c_char_p),
        ("validation_fraction", c_double),
        ("loss_tokens", c_char_p),
        ("max_seq_length", c_int64),
        ("packing", c_int32),
        ("sequence_lengths", POINTER(paceline_length_stage)),
        ("num_sequence_lengths", c_size_t),
        ("first_token", c_char_p),
        ("fine_tune_type", c_char_p),
        ("from_scratch", c_int32),
        ("target_modules", POINTER(c_char_p)),
        ("num_target_modules", c_size_t),
        ("num_layers", c_int64),
        ("rank", c_int64),
        ("alpha", c_double),
        ("scale", c_double),
        ("rank_pattern", POINTER(paceline_module_number)),
        ("num_rank_patterns", c_size_t),
        ("alpha_pattern", POINTER(paceline_module_number)),
        ("num_alpha_patterns", c_size_t),
        ("dropout", c_double),
        ("use_rslora", c_int32),
        ("lora_dtype", c_char_p),
        ("initial_adapter", c_char_p),
        ("num_steps", c_int64),
        ("num_epochs", c_double),
        ("batch_size", c_int64),
        ("accumulation_steps", c_int64),
        ("learning_rate", c_double),
        ("schedule", c_char_p),
        ("decay_fraction", c_double),
        ("warmup_steps", c_int64),
        ("warmup_init", c_double),
        ("hold_steps", c_int64),
        ("decay_steps", c_int64),
        ("final_learning_rate", c_double),
        ("optimizer", c_char_p),
        ("weight_decay", c_double),
        ("muon_momentum", c_double),
        ("adamw_learning_rate", c_double),
        ("adamw_weight_decay", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("max_gradient_norm", c_double),
        ("checkpoints", c_int32),
        ("patience", c_int64),
        ("steps_per_report", c_int64),
        ("steps_per_evaluation", c_int64),
        ("validation_batches", c_int64),
        ("steps_per_checkpoint", c_int64),
        ("seed", c_uint64),
    ]


class paceline_training_plan(Structure):
    _fields_ = [
        ("data_file", c_char_p),
        ("data_format", c_char_p),
        ("num_examples", c_int64),
        ("num_tokens", c_int64),
        ("num_counted_tokens", c_int64),
        ("num_validation_examples", c_int64),
        ("num_steps", c_int64),
        ("num_modules", c_int64),
        ("num_parameters", c_int64),
        ("dtype", c_char_p),
        ("notes", POINTER(c_char_p)),
        ("num_notes", c_size_t),
    ]


class paceline_step_cost(Structure):
    _fields_ = [
        ("loss", c_double),
        ("num_tokens", c_int64),
        ("seconds", c_double),
        ("peak_bytes", c_uint64),
    ]


class paceline_training_point(Structure):
    _fields_ = [
        ("step", c_int64),
        ("loss", c_double),
        ("validation_loss", c_double),
        ("learning_rate", c_double),
        ("gradient_norm", c_double),
        ("tokens_per_second", c_double),
        ("num_tokens", c_int64),
        ("peak_bytes", c_uint64),
    ]


class paceline_training_outcome(Structure):
    _fields_ = [
        ("end", c_int),
        ("num_steps", c_int64),
        ("saved_step", c_int64),
    ]


paceline_on_piece = CFUNCTYPE(c_int, c_char_p, c_size_t, c_void_p)


paceline_on_point = CFUNCTYPE(c_int, POINTER(paceline_training_point), c_void_p)


FUNCTIONS = {
    "paceline_apply_chat_template": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_char_p), POINTER(c_size_t)]),
    "paceline_batch_generate": (c_int, [c_void_p, POINTER(paceline_prompt), c_size_t, POINTER(POINTER(paceline_generate_options)), POINTER(POINTER(paceline_completions))]),
    "paceline_cancel": (None, [c_void_p]),
    "paceline_cancel_generation": (None, [c_void_p]),
    "paceline_chat": (c_int, [c_void_p, c_char_p, POINTER(paceline_chat_options), POINTER(paceline_generate_options), POINTER(c_void_p)]),
    "paceline_chat_options_init": (None, [POINTER(paceline_chat_options)]),
    "paceline_classify": (c_int, [c_void_p, POINTER(paceline_prompt), c_size_t, POINTER(c_char_p), c_size_t, POINTER(paceline_request_options), POINTER(POINTER(paceline_classifications))]),
    "paceline_clear_cache": (c_int, [c_void_p]),
    "paceline_close": (c_int, [c_void_p]),
    "paceline_context_room": (c_int64, [c_void_p]),
    "paceline_context_vocab_size": (c_int64, [c_void_p]),
    "paceline_decide": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, POINTER(paceline_question), c_size_t, c_float, POINTER(paceline_request_options), POINTER(POINTER(paceline_decisions))]),
    "paceline_decode_batch": (c_int, [c_void_p, POINTER(paceline_decode_entry), c_size_t, POINTER(c_float)]),
    "paceline_detokenize": (c_int, [c_void_p, POINTER(c_int32), c_size_t, c_int32, POINTER(c_char_p), POINTER(c_size_t)]),
    "paceline_embed": (c_int, [c_void_p, POINTER(paceline_prompt), c_size_t, c_int64, POINTER(paceline_request_options), POINTER(POINTER(paceline_vectors))]),
    "paceline_finish_generation": (c_int, [c_void_p, POINTER(POINTER(paceline_completion))]),
    "paceline_fork_sequence": (c_int, [c_void_p, c_int32, POINTER(c_int32)]),
    "paceline_free_cancellation": (None, [c_void_p]),
    "paceline_free_classifications": (None, [POINTER(paceline_classifications)]),
    "paceline_free_completions": (None, [POINTER(paceline_completions)]),
    "paceline_free_context": (None, [c_void_p]),
    "paceline_free_decisions": (None, [POINTER(paceline_decisions)]),
    "paceline_free_device_info": (None, [POINTER(paceline_device_info)]),
    "paceline_free_generation": (None, [c_void_p]),
    "paceline_free_ids": (None, [POINTER(c_int32)]),
    "paceline_free_logprobs": (None, [POINTER(paceline_logprobs)]),
    "paceline_free_model": (None, [c_void_p]),
    "paceline_free_model_info": (None, [POINTER(paceline_model_info)]),
    "paceline_free_queue": (None, [c_void_p]),
    "paceline_free_sequence": (c_int, [c_void_p, c_int32]),
    "paceline_free_text": (None, [c_char_p]),
    "paceline_free_training": (None, [c_void_p]),
    "paceline_free_training_plan": (None, [POINTER(paceline_training_plan)]),
    "paceline_free_vectors": (None, [POINTER(paceline_vectors)]),
    "paceline_generate": (c_int, [c_void_p, paceline_prompt, POINTER(paceline_generate_options), POINTER(c_void_p)]),
    "paceline_generate_all": (c_int, [c_void_p, paceline_prompt, POINTER(paceline_generate_options), paceline_on_piece, c_void_p, POINTER(POINTER(paceline_completions))]),
    "paceline_generate_options_init": (None, [POINTER(paceline_generate_options)]),
    "paceline_get_device_info": (c_int, [POINTER(paceline_load_options), POINTER(POINTER(paceline_device_info))]),
    "paceline_get_metrics": (c_int, [c_void_p, POINTER(paceline_metrics)]),
    "paceline_get_model_info": (c_int, [c_void_p, POINTER(POINTER(paceline_model_info))]),
    "paceline_get_training_plan": (c_int, [c_void_p, POINTER(POINTER(paceline_training_plan))]),
    "paceline_last_error": (c_char_p, []),
    "paceline_load": (c_int, [POINTER(paceline_load_options), POINTER(c_void_p)]),
    "paceline_load_adapter": (c_int, [c_void_p, c_char_p, c_char_p, c_double]),
    "paceline_load_options_init": (None, [POINTER(paceline_load_options)]),
    "paceline_measure_step": (c_int, [c_void_p, POINTER(paceline_step_cost)]),
    "paceline_memory_use": (c_int, [c_void_p, POINTER(paceline_memory)]),
    "paceline_new_cancellation": (c_void_p, []),
    "paceline_new_context": (c_int, [POINTER(paceline_load_options), c_int64, POINTER(c_void_p)]),
    "paceline_new_queue": (c_int, [POINTER(c_void_p)]),
    "paceline_new_sequence": (c_int, [c_void_p, c_int64, POINTER(c_int32)]),
    "paceline_next_piece": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_size_t)]),
    "paceline_open_training": (c_int, [POINTER(paceline_train_options), POINTER(c_void_p)]),
    "paceline_poll_piece": (c_int, [c_void_p, POINTER(c_int), POINTER(c_char_p), POINTER(c_size_t)]),
    "paceline_prefill": (c_int, [c_void_p, c_int32, POINTER(c_int32), c_size_t, c_int64, POINTER(c_size_t), c_size_t, POINTER(c_float)]),
    "paceline_queue_descriptor": (c_int, [c_void_p]),
    "paceline_request_options_init": (None, [POINTER(paceline_request_options)]),
    "paceline_reset_peak": (c_int, [c_void_p]),
    "paceline_run_training": (c_int, [c_void_p, paceline_on_point, c_void_p, c_void_p, POINTER(paceline_training_outcome)]),
    "paceline_score": (c_int, [c_void_p, paceline_prompt, c_int32, POINTER(paceline_request_options), POINTER(POINTER(paceline_logprobs))]),
    "paceline_score_pairs": (c_int, [c_void_p, c_char_p, POINTER(c_char_p), c_size_t, POINTER(paceline_request_options), POINTER(POINTER(paceline_vectors))]),
    "paceline_sequence_length": (c_int, [c_void_p, c_int32, POINTER(c_int64)]),
    "paceline_set_cache_limit": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "paceline_set_memory_limit": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "paceline_status_name": (c_char_p, [c_int]),
    "paceline_take_ready": (c_size_t, [c_void_p, POINTER(c_int64), c_size_t]),
    "paceline_text_prompt": (paceline_prompt, [c_char_p]),
    "paceline_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_int32, POINTER(POINTER(c_int32)), POINTER(c_size_t)]),
    "paceline_train_options_init": (None, [POINTER(paceline_train_options)]),
    "paceline_unload_adapter": (c_int, [c_void_p, c_char_p]),
    "paceline_version": (c_char_p, []),
}
