"""Models for other packages' programs: modules lm_eval, langchain, llama_index and dspy, each of which imports the package of its name."""
