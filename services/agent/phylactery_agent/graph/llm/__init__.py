"""LLM mode of the secured graph: what a model is asked, and what its answers may become. It runs nothing."""
