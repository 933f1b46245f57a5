"""LLM mode of the secured graph: model prompts and the interpretation of model output. It runs no tools."""
