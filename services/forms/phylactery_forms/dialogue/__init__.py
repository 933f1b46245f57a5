"""A form filled in conversation: the state, and what each message does to it, without a clock and without I/O."""
