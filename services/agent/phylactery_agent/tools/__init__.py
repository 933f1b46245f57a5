"""Tools: public specifications, and implementations that only the executor may import."""
