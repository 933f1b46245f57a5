"""`phylactery handoff`: the terminal of a person who works the queue of escalations."""
